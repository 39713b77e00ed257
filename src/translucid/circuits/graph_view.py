"""An attribution graph in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from translucid.circuits.drawing import caption, title
from translucid.circuits.graph import AttributionGraph, Edge
from translucid.data.tokenizing.pieces import without_space
from translucid.decoding.hypothesis import percent
from translucid.ground.console import table_of

SOURCES = 3
"""The number of nodes that are listed as the origin of another."""


def terminal_view(graph: AttributionGraph, labels: Mapping[str, str] | None = None, width: int = 120) -> RenderableType:
    """Return the nodes as a table, the output first, and the figures below it."""
    labels = labels or {}
    table = table_of("node", "at", figures=("effect", "all paths", "influence"))
    if meanings := any(node.part.name in labels for node in graph.nodes):
        table.add_column("meaning", no_wrap=True)
    table.add_column("comes from", no_wrap=True)
    incoming: dict[int | None, list[Edge]] = {}
    for edge in graph.edges:
        incoming.setdefault(edge.target, []).append(edge)
    origin = _origin(graph, incoming.get(None, []))
    empty = ("",) if meanings else ()
    table.add_row(Text(title(graph), "bold"), "", f"{graph.logit:+.2f}", "", "", *empty, origin)
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        name, token = Text(node.part.name), Text(without_space(node.token), "bold")
        cells = [f"{node.effect:+.2f}", f"{node.total:+.2f}", percent(node.influence)]
        if meanings:
            cells.append(labels.get(node.part.name, ""))
        table.add_row(name, token, *cells, _origin(graph, incoming.get(number, [])))
    # A narrow terminal cuts off where nodes come from, and nothing else.
    for column in table.columns[:-1]:
        column.no_wrap = True
        column.width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        width -= column.width + 2
    table.columns[-1].width = max(width, 12)
    return Group(table, Text(), Text(figures(graph)))


def figures(graph: AttributionGraph) -> str:
    """Return what the logit consists of, and what the model writes without the strongest features, in words."""
    subtracted = f"minus that of {graph.instead_of!r}" if graph.instead_of else "minus the mean logit"
    space = " " if " " in graph.translation else ""  # the words of a single one are its characters
    prefix = "".join(graph.prefix[1:]).replace("▁", space).strip()
    lines = [
        f"logit of {without_space(graph.piece)!r} {subtracted}, after {prefix!r}: {graph.logit:+.2f}",
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
    unablated = sum(effect for kind, effect in graph.by_kind.items() if kind != "feature")
    lines += [
        "\nfaithfulness: what the model writes without some features, and the logit then",
        f"  without the {count} strongest: {verb[result.top.changed]}, {result.top.logit:+.2f} "
        f"({result.predicted:+.2f} with attention held: the error of freezing is "
        f"{result.predicted - result.top.logit:+.2f})",
        f"  without {count} random ones at the same places: another word in {percent(result.random_changed)} of "
        f"{len(result.random)} draws, {result.random_logit:+.2f}",
        f"  without the {count} most active ones there: {verb[strongest.changed]}, {strongest.logit:+.2f}",
        f"  errors and embeddings are never ablated; they are {unablated:+.2f} of the logit",
    ]
    return "\n".join(lines)


_PLURALS = {"token": "tokens", "position": "positions", "feature": "features", "error": "errors"}


def _origin(graph: AttributionGraph, edges: list[Edge]) -> Text:
    """Return the strongest edges into a node as text."""
    strongest = sorted(edges, key=lambda edge: -edge.share)[:SOURCES]
    names = []
    for edge in strongest:
        node = graph.nodes[edge.source]
        sign = "" if edge.effect > 0 else "−"
        what = caption(node, {}) if node.part.kind != "token" else ""
        what = what or {"encoder": "source", "decoder": "prefix"}[node.part.side]
        names.append(f"{sign}{what} {without_space(node.token)} {percent(edge.share)}")
    return Text(", ".join(names), "dim")
