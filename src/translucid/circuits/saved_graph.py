"""Saved attribution graphs: a page, a picture, our JSON, and the JSON of circuit-tracer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from translucid.circuits.drawing import draw, style, title
from translucid.circuits.graph import AttributionGraph, GraphNode
from translucid.circuits.kinds import PAGE
from translucid.circuits.nodes import Node
from translucid.ground.atomic import write_output
from translucid.inspection.rendering.captions import current_caption, described
from translucid.inspection.rendering.html import scripted_page

_FRAME = """body { margin: 2rem auto; padding: 0 1rem; max-width: 80rem; background: var(--background);
  color: var(--text); font-family: var(--sans); }
h1 { font-size: var(--large); } .figures { color: var(--muted); font-size: var(--small); white-space: pre-line; }
"""


def save_graph(
    graph: AttributionGraph,
    file: Path,
    figures: str = "",
    labels: Mapping[str, str] | None = None,
    model: str = "model",
) -> list[Path]:
    """Save a graph in the format of the file's ending, and return the files that were written.

    Args:
        graph: the graph.
        file: `.html`, `.svg`, `.pdf`, `.png` or `.json`; JSON is also written in circuit-tracer's format, beside it.
        figures: a text for the page.
        labels: what features mean, by their names.
        model: the name of the model, for circuit-tracer.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        write_output(file, page(graph, figures, labels).encode())
    elif kind == ".svg":
        write_output(file, described(draw(graph, labels), current_caption()).encode())
    elif kind in (".pdf", ".png"):
        from translucid.inspection.plots import draw_svg, save_figure

        save_figure(draw_svg(draw(graph, labels, standalone=False)), file)
    else:
        write_output(file, json.dumps(graph.to_json(), ensure_ascii=False).encode())
        other = file.with_suffix(".circuit-tracer.json")
        record = circuit_tracer(graph, file.stem, model, labels or {})
        write_output(other, json.dumps(record, ensure_ascii=False).encode())
        return [file, other]
    return [file]


def page(graph: AttributionGraph, figures: str = "", labels: Mapping[str, str] | None = None) -> str:
    """Return the graph as a page in one file, which needs no network."""
    record = view_record(graph, labels or {})
    head = f"""<h1>{escape(title(graph))}</h1>
<p dir="auto">{escape(graph.text)}</p>
<p dir="auto">{escape(graph.translation)}</p>
<p class="figures">{escape(figures)}</p>
"""
    return scripted_page(title(graph), style() + _FRAME, head, record, PAGE / "graph.js", "showGraph")


def view_record(graph: AttributionGraph, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what `graph.js` shows: the record of a graph with its picture and the labels of its features."""
    names = {node.part.name for node in graph.nodes}
    shown = {name: label for name, label in labels.items() if name in names}
    return {**graph.to_json(), "svg": draw(graph, labels, standalone=False), "labels": shown}


def circuit_tracer(graph: AttributionGraph, slug: str, model: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the graph as the viewers of circuit-tracer and Neuronpedia read it (schema version 1).

    They know one sequence and one stack of layers, so the source comes before the prefix, and the encoder's layers
    before the decoder's. Token and position nodes of a position are one embedding.
    """
    offset, layers = len(graph.source), _layer_numbers(graph)
    last, top = offset + len(graph.prefix) - 1, len(layers) + 1
    names = [_tracer_name(node.part, offset, layers) for node in graph.nodes]
    nodes: dict[str, dict[str, Any]] = {}
    reached = 0.0
    # Viewers hide the nodes whose influence, together with that of all greater ones, is above a threshold.
    for name, node in sorted(zip(names, graph.nodes, strict=True), key=lambda pair: -pair[1].influence):
        reached += node.influence
        nodes.setdefault(name, _tracer_node(name, node, labels) | {"influence": round(reached, 6)})
    logit = _tracer_record(f"{top}_0_{last}", "logit", f'Output "{title(graph)}" (p={graph.probability:.3f})')
    nodes[logit["node_id"]] = {**logit, "token_prob": graph.probability, "is_target_logit": True}
    weights: dict[tuple[str, str], float] = {}
    for edge in graph.edges:
        ends = names[edge.source], logit["node_id"] if edge.target is None else names[edge.target]
        weights[ends] = weights.get(ends, 0.0) + edge.effect
    return {
        "metadata": {
            "slug": _tracer_id(slug),
            "scan": _tracer_id(model),
            "transcoder_list": [],
            "prompt": graph.text,
            "schema_version": 1,
            "prompt_tokens": [*graph.source, *graph.prefix],
            "node_threshold": round(reached, 6),
        },
        "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""},
        "nodes": [*nodes.values()],
        "links": [{"source": source, "target": end, "weight": weight} for (source, end), weight in weights.items()],
    }


def _tracer_id(text: str) -> str:
    return re.sub(r"[^\w.-]", "_", text, flags=re.ASCII)


def _layer_numbers(graph: AttributionGraph) -> dict[str, int]:
    """Return the numbers of layers from 1, because Neuronpedia refuses a graph whose highest layer is 0."""
    places = {node.part.place for node in graph.nodes if not node.part.place.endswith("input")}
    order = sorted(places, key=lambda place: (place.startswith("decoder"), int(place.partition(".")[2])))
    return {place: number for number, place in enumerate(order, 1)}


def _tracer_name(part: Node, offset: int, layers: Mapping[str, int]) -> str:
    position = part.position + (offset if part.side == "decoder" else 0)
    if part.kind in ("token", "position"):
        return f"E_{position}_{position}"
    return f"{layers[part.place]}_{part.number}_{position}"  # an error has the number -1


def _tracer_node(name: str, node: GraphNode, labels: Mapping[str, str]) -> dict[str, Any]:
    part = node.part
    kinds = {"feature": "cross layer transcoder", "error": "mlp reconstruction error"}
    record = _tracer_record(name, kinds.get(part.kind, "embedding"), labels.get(part.name, part.name))
    return {**record, "activation": part.activation or None}


def _tracer_record(name: str, kind: str, label: str) -> dict[str, Any]:
    layer, number, position = name.split("_")
    feature = int(number)
    if kind.startswith("cross"):  # the layer and the number in one, by Cantor's pairing
        total = int(layer) + feature
        feature += total * (total + 1) // 2
    return {
        "node_id": name,
        "jsNodeId": f"{layer}_{number}-{position}",
        "feature": feature,
        "layer": layer,
        "ctx_idx": int(position),
        "feature_type": kind,
        "clerp": label,
    }
