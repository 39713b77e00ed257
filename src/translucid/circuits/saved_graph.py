"""Saved attribution graphs: a page, a picture, our JSON, and the JSON of circuit-tracer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from translucid.circuits.drawing import draw, style, title
from translucid.circuits.graph import AttributionGraph, GraphNode
from translucid.circuits.kinds import PAGE
from translucid.circuits.nodes import Node
from translucid.ground.atomic import write_output
from translucid.inspection.rendering.bundling import WEB, bundle
from translucid.inspection.rendering.html import document, quoted

_FRAME = """body { margin: 2rem auto; padding: 0 1rem; max-width: 80rem; background: var(--background);
  color: var(--text); font-family: var(--sans); }
h1 { font-size: var(--large); } .figures { color: var(--muted); font-size: var(--small); white-space: pre-line; }
"""
_SHOW = """modules["graph.js"].showGraph(
  document.getElementById("graph"), JSON.parse(document.getElementById("record").textContent));
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
        file: `.html`, `.svg` or `.json`; JSON is also written in the format of circuit-tracer, beside it.
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
        write_output(file, draw(graph, labels).encode())
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
    body = f"""<main>
<h1>{escape(title(graph))}</h1>
<p>{escape(graph.text)}<br>{escape(graph.translation)}</p>
<p class="figures">{escape(figures)}</p>
<div id="graph"></div>
</main>
<script type="application/json" id="record">{quoted(record)}</script>
<script>
{bundle("graph.js", [WEB, PAGE], _SHOW)}</script>
"""
    return document(title(graph), style() + _FRAME, body)


def view_record(graph: AttributionGraph, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what `graph.js` shows: the record of a graph with its picture and the labels of its features."""
    names = {node.part.name for node in graph.nodes}
    shown = {name: label for name, label in labels.items() if name in names}
    return {**graph.to_json(), "svg": draw(graph, labels, standalone=False), "labels": shown}


def circuit_tracer(graph: AttributionGraph, slug: str, model: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the graph as circuit-tracer's viewers read it (its `frontend/graph_models.py`, schema version 1).

    They know one sequence and one stack of layers, so the source comes before the prefix, and the encoder's layers
    before the decoder's. Token and position nodes of a position are one embedding.
    """
    offset, layers = len(graph.source), _layer_numbers(graph)
    last = offset + len(graph.prefix) - 1
    output = f"{len(layers) + 1}_0_{last}"
    names = [_tracer_name(node.part, offset, layers) for node in graph.nodes]
    nodes: dict[str, dict[str, Any]] = {}
    for name, node in zip(names, graph.nodes, strict=True):
        if name in nodes:
            nodes[name]["influence"] += node.influence
        else:
            nodes[name] = _tracer_node(name, node, offset, layers, labels)
    nodes[output] = {
        "node_id": output,
        "jsNodeId": f"L_0-{last}",
        "feature": 0,
        "layer": str(len(layers) + 1),
        "ctx_idx": last,
        "feature_type": "logit",
        "is_target_logit": True,
        "token_prob": 0.0,
        "clerp": f"Output {title(graph)!r}",
        "run_idx": 0,
        "reverse_ctx_idx": 0,
    }
    weights: dict[tuple[str, str], float] = {}
    for edge in graph.edges:
        ends = names[edge.source], output if edge.target is None else names[edge.target]
        weights[ends] = weights.get(ends, 0.0) + edge.effect
    return {
        "metadata": {
            "slug": slug,
            "scan": model,
            "transcoder_list": [],
            "prompt": graph.text,
            "schema_version": 1,
            "prompt_tokens": [*graph.source, *graph.prefix],
            "node_threshold": round(graph.share, 4),
        },
        "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""},
        "nodes": [*nodes.values()],
        "links": [{"source": source, "target": end, "weight": weight} for (source, end), weight in weights.items()],
    }


def _layer_numbers(graph: AttributionGraph) -> dict[str, int]:
    places = {node.part.place for node in graph.nodes if not node.part.place.endswith("input")}
    order = sorted(places, key=lambda place: (place.startswith("decoder"), int(place.partition(".")[2])))
    return {place: number for number, place in enumerate(order)}


def _tracer_name(part: Node, offset: int, layers: Mapping[str, int]) -> str:
    position = part.position + (offset if part.side == "decoder" else 0)
    if part.kind in ("token", "position"):
        return f"E_{position}_{position}"
    return f"{layers[part.place]}_{part.number}_{position}"  # an error has the number -1


def _tracer_node(
    name: str, node: GraphNode, offset: int, layers: Mapping[str, int], labels: Mapping[str, str]
) -> dict[str, Any]:
    part = node.part
    kinds = {"feature": "cross layer transcoder", "error": "mlp reconstruction error"}
    layer, number, position = name.split("_")
    label = labels.get(part.name, part.name) if part.kind == "feature" else part.name
    return {
        "node_id": name,
        "jsNodeId": f"{layer}_{number}-{position}",
        "feature": int(number),
        "layer": layer,
        "ctx_idx": int(position),
        "feature_type": kinds.get(part.kind, "embedding"),
        "clerp": label,
        "influence": node.influence,
        "activation": part.activation or None,
        "token_prob": 0.0,
        "is_target_logit": False,
        "run_idx": 0,
        "reverse_ctx_idx": 0,
    }
