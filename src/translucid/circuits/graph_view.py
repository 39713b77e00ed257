"""An attribution graph in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from translucid.circuits.drawing import caption, title
from translucid.circuits.graph import AttributionGraph, Edge
from translucid.decoding.hypothesis import percent
from translucid.inspection.rendering.terminal import bar

SOURCES = 3
"""The number of nodes that are listed as the origin of another."""


def terminal_view(graph: AttributionGraph, labels: Mapping[str, str] | None = None) -> RenderableType:
    """Return the nodes as a table, the output first, and the figures below it."""
    labels = labels or {}
    table = Table(box=None, pad_edge=False)
    for column in ("node", "at"):
        table.add_column(column)
    for column in ("effect", "all paths"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("influence", "comes from"):
        table.add_column(column)
    incoming: dict[int | None, list[Edge]] = {}
    for edge in graph.edges:
        incoming.setdefault(edge.target, []).append(edge)
    largest = max((node.influence for node in graph.nodes), default=1.0)
    origin = _origin(graph, incoming.get(None, []), labels)
    table.add_row(Text(title(graph), "bold"), "", f"{graph.logit:+.2f}", "", "", origin)
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        name = _name(graph, number, labels)
        cells = Text(f"{node.effect:+.2f}"), Text(f"{node.total:+.2f}")
        influence = Text(f"{bar(node.influence / largest * 0.5)} {percent(node.influence)}", "cyan")
        origin = _origin(graph, incoming.get(number, []), labels)
        table.add_row(Text(name), Text(_token(node.token)), *cells, influence, origin)
    return Group(table, Text(), Text(figures(graph)))


def figures(graph: AttributionGraph) -> str:
    """Return what the logit consists of, and what the model writes without the strongest features, in words."""
    subtracted = f"minus that of {graph.instead_of!r}" if graph.instead_of else "minus the mean logit"
    prefix = "".join(graph.prefix[1:]).replace("▁", " ").strip()
    lines = [
        f"logit of {_token(graph.piece)!r} {subtracted}, after {prefix!r}: {graph.logit:+.2f}",
        "  "
        + ", ".join(f"{_PLURALS[kind]} {effect:+.2f}" for kind, effect in graph.by_kind.items())
        + f", biases {graph.bias:+.2f}",
        f"{len(graph.nodes)} of {graph.count} nodes keep {percent(graph.share)} of the influence; "
        f"the direct effects of the others sum to {graph.remainder:+.2f}",
    ]
    if graph.ties:
        lines.append(f"near ties of active features: {', '.join(f'{name} @ {place}' for name, place in graph.ties)}")
    result = graph.faithfulness
    if result is None:
        return "\n".join(lines)
    if not result.written:
        lines.append("\nthe model itself would write another word here: faithfulness is about that word")
    verb = {True: "another word", False: "the same word"}
    count, strongest = len(result.features), result.strongest
    lines += [
        "\nfaithfulness: what the model writes without some features, and the logit then",
        f"  without the {count} strongest: {verb[result.top.changed]}, {result.top.logit:+.2f} "
        f"({result.predicted:+.2f} with attention held: the error of freezing is "
        f"{result.predicted - result.top.logit:+.2f})",
        f"  without {count} random ones at the same places: another word in {percent(result.random_changed)} of "
        f"{len(result.random)} draws, {result.random_logit:+.2f}",
        f"  without the {count} most active ones there: {verb[strongest.changed]}, {strongest.logit:+.2f}",
        f"  errors and embeddings are never ablated; they are {_unablated(graph):+.2f} of the logit",
    ]
    return "\n".join(lines)


_PLURALS = {"token": "tokens", "position": "positions", "feature": "features", "error": "errors"}


def _unablated(graph: AttributionGraph) -> float:
    return sum(effect for kind, effect in graph.by_kind.items() if kind != "feature")


def _name(graph: AttributionGraph, number: int, labels: Mapping[str, str]) -> str:
    node = graph.nodes[number]
    label = labels.get(node.part.name)
    return f"{node.part.name} ({label})" if label else node.part.name


def _origin(graph: AttributionGraph, edges: list[Edge], labels: Mapping[str, str]) -> Text:
    """Return the strongest edges into a node as text."""
    strongest = sorted(edges, key=lambda edge: -edge.share)[:SOURCES]
    names = []
    for edge in strongest:
        node = graph.nodes[edge.source]
        sign = "" if edge.effect > 0 else "−"
        what = caption(node, labels) if node.part.kind != "token" else ""
        what = what or {"encoder": "source", "decoder": "prefix"}[node.part.side]
        names.append(f"{sign}{what} {_token(node.token)} {percent(edge.share)}")
    return Text(", ".join(names), "dim")


def _token(piece: str) -> str:
    return piece.replace("▁", "") or "▁"
