"""An attribution graph as a picture: the source below, the output above, layers between."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html import escape
from math import sqrt
from typing import NamedTuple

from rich.cells import cell_len

from translucid.circuits.graph import AttributionGraph, GraphNode
from translucid.circuits.kinds import PAGE
from translucid.data.tokenizing.pieces import without_space
from translucid.inspection.rendering.html import web_file
from translucid.inspection.words import is_right_to_left

CELL, MARGIN, BOX, ROW, GAP = 6.6, 104, 22, 62, 6
"""The widths of a character and of the names of rows; the heights of a node and of a row; the gap between nodes."""
SHOWN = 60
"""The number of edges that are visible before a node is chosen."""
MIN_SHARE = 0.01
"""The least share of an edge that is drawn at all."""
LONGEST_LABEL = 16
"""The number of characters of a label that are shown: its last words, which are the value."""


class Place(NamedTuple):
    """The center of a node, and its width."""

    x: float
    y: float
    width: float


def caption(node: GraphNode, labels: Mapping[str, str]) -> str:
    """Return what stands in a node: the number of a feature with its label, or another part in a word."""
    if node.part.kind != "feature":
        return node.part.kind
    label = labels.get(node.part.name, "")
    while len(label) > LONGEST_LABEL and " " in label:
        label = label.partition(" ")[2]
    return f"{node.part.number} {label[:LONGEST_LABEL]}".rstrip()


def title(graph: AttributionGraph) -> str:
    """Return what the logit is of, in words."""
    return f"{graph.word} instead of {graph.instead_of}" if graph.instead_of else graph.word


def draw(graph: AttributionGraph, labels: Mapping[str, str] | None = None, *, standalone: bool = True) -> str:
    """Return the graph as an SVG.

    Args:
        graph: the graph.
        labels: what features mean, by their names.
        standalone: whether it is a file of its own, with its style sheet and a background.
    """
    rows = _rows(graph)
    captions = [caption(node, labels or {}) for node in graph.nodes]
    places, width, columns = _layout(graph, rows, captions)
    height = ROW * (len(rows) + 1) + 30
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="graph" role="group" font-size="12">']
    parts.append(f"<title>{escape(title(graph))}</title>")
    if standalone:
        parts.append(f"<style>{web_file('tokens.css')}{style()}</style>")
        parts.append('<rect width="100%" height="100%" class="background" fill="#ffffff"/>')
    for number, row in enumerate(rows):
        y = height - 30 - ROW * number
        name = {"encoder.input": "source", "decoder.input": "prefix"}.get(row, row)
        parts.append(f'<text x="8" y="{y - 16:.0f}" class="row" fill="#56606d">{name}</text>')
        if row.endswith("input"):
            for x, token in columns[row]:
                parts.append(
                    f'<text x="{x:.0f}" y="{y + 16:.0f}" class="word" text-anchor="middle">{escape(token)}</text>'
                )
    output = Place(width / 2, height - 30 - ROW * len(rows) - 20, 8 * CELL + CELL * cell_len(title(graph)))
    parts += _edges(graph, places, output)
    for number, (node, text, place) in enumerate(zip(graph.nodes, captions, places, strict=True)):
        weight = 0.08 + 0.5 * min(1.0, 6 * node.influence)
        parts.append(_box(str(number), node.part.kind, text, place, node.total, weight))
    parts.append(_box("logit", "output", f"{title(graph)}  {graph.logit:+.2f}", output, 1.0, 0.3))
    return "\n".join([*parts, "</svg>\n"])


@cache
def style() -> str:
    """Return the style sheet of the picture."""
    return (PAGE / "graph.css").read_text(encoding="utf-8")


def _rows(graph: AttributionGraph) -> list[str]:
    """Return the rows from the source to the output: embeddings and sublayers."""
    layers = {node.part.place for node in graph.nodes} - {"encoder.input", "decoder.input"}
    rows = []
    for side in ("encoder", "decoder"):
        own = sorted((int(layer.split(".")[1]), layer) for layer in layers if layer.startswith(side))
        rows += [f"{side}.input", *(layer for _, layer in own)]
    return rows


def _layout(
    graph: AttributionGraph, rows: list[str], captions: list[str]
) -> tuple[list[Place], float, dict[str, list[tuple[float, str]]]]:
    """Return the places of nodes, the width of the picture, and the centers of the tokens of both sides."""
    widths = [CELL * cell_len(text) + 14 for text in captions]
    by_cell: dict[tuple[str, int], list[int]] = {}
    for number, node in enumerate(graph.nodes):
        by_cell.setdefault((node.part.place, node.part.position), []).append(number)
    sides = {"encoder": graph.source, "decoder": graph.prefix}
    columns: dict[str, list[float]] = {}
    for side, tokens in sides.items():
        needed = [CELL * cell_len(without_space(token)) + 10 for token in tokens]
        for (place, position), numbers in by_cell.items():
            if place.startswith(side):
                total = sum(widths[number] + GAP for number in numbers)
                needed[position] = max(needed[position], total)
        columns[side] = needed
    inner = max(*(sum(needed) for needed in columns.values()), 420.0)
    centers: dict[str, list[float]] = {}
    for side, needed in columns.items():
        stretch = (inner - sum(needed)) / len(needed)
        x, centers[side] = float(MARGIN), []
        for column in needed:
            centers[side].append(x + (column + stretch) / 2)
            x += column + stretch
        if is_right_to_left(sides[side]):
            centers[side] = [inner + 2 * MARGIN - center for center in centers[side]]
    height = ROW * (len(rows) + 1) + 30
    places: dict[int, Place] = {}
    for (name, position), numbers in by_cell.items():
        total = sum(widths[number] for number in numbers) + GAP * (len(numbers) - 1)
        x = centers[name.partition(".")[0]][position] - total / 2
        y = height - 30 - ROW * rows.index(name) - 20
        for number in numbers:
            places[number] = Place(x + widths[number] / 2, y, widths[number])
            x += widths[number] + GAP
    labels = {}
    for side, tokens in sides.items():
        labels[f"{side}.input"] = [(x, without_space(token)) for x, token in zip(centers[side], tokens, strict=True)]
    return [places[number] for number in range(len(graph.nodes))], inner + MARGIN + 12, labels


def _edges(graph: AttributionGraph, places: list[Place], output: Place) -> list[str]:
    """Return the edges, those that matter most for the logit visible."""
    influences = [node.influence for node in graph.nodes]
    largest = max(influences, default=1.0)
    weighted = []
    for edge in graph.edges:
        if edge.share >= MIN_SHARE:
            at_target = 1.0 if edge.target is None else influences[edge.target] / largest
            weighted.append((edge.share * at_target, edge))
    weighted.sort(key=lambda pair: -pair[0])
    lines = []
    for rank, (weight, edge) in enumerate(weighted):
        start, end = places[edge.source], output if edge.target is None else places[edge.target]
        y, end_y = start.y - BOX / 2, end.y + BOX / 2
        bend = (y - end_y) / 2
        curve = f"M{start.x:.0f} {y:.0f}C{start.x:.0f} {y - bend:.0f} "
        curve += f"{end.x:.0f} {end_y + bend:.0f} {end.x:.0f} {end_y:.0f}"
        sign, color = _sign(edge.effect)
        target = "logit" if edge.target is None else edge.target
        state = "" if rank < SHOWN else " faint"
        lines.append(
            f'<path d="{curve}" class="edge {sign}{state}" data-source="{edge.source}" data-target="{target}" '
            f'fill="none" stroke="{color}" stroke-opacity="{0 if state else 0.55}" '
            f'stroke-width="{max(0.8, 7 * sqrt(weight)):.1f}"/>'
        )
    return lines


def _box(name: str, kind: str, text: str, place: Place, effect: float, weight: float) -> str:
    """Return a node: a box with a text, in the color of its effect; features are round."""
    sign, color = _sign(effect)
    radius = BOX / 2 if kind == "feature" else 3
    left, top = place.x - place.width / 2, place.y - BOX / 2
    box = f'x="{left:.1f}" y="{top:.1f}" width="{place.width:.1f}" height="{BOX}" rx="{radius:g}"'
    return (
        f'<g class="node {kind} {sign}" data-node="{name}">'
        f'<rect {box} class="ground" fill="#ffffff"/>'
        f'<rect {box} class="box" fill="{color}" fill-opacity="{weight:.2f}" stroke="{color}"/>'
        f'<text x="{place.x:.1f}" y="{place.y + 4:.1f}" text-anchor="middle">{escape(text)}</text></g>'
    )


def _sign(effect: float) -> tuple[str, str]:
    """Return a class and a color for programs that ignore style sheets."""
    return ("positive", "#2563eb") if effect >= 0 else ("negative", "#dc5014")
