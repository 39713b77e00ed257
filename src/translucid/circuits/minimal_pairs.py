"""Faithfulness of graphs over minimal pairs: sentences CLEAN and OTHER, whose translations differ in the words A and B.

The graph is that of A instead of B in the translation of CLEAN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from translucid.circuits.faithfulness import TOP, Faithfulness
from translucid.circuits.graph import AttributionGraph, attribution_graph
from translucid.circuits.transcoder import Transcoder
from translucid.data.readers.corpus import read_lines
from translucid.ground.console import table_of
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.translator import Translator

_FIX = "Each line is CLEAN, OTHER and A/B, separated by tabs; a name of the kind of pair may follow."


class MinimalPair(NamedTuple):
    """Two sentences, and the words in which their translations differ."""

    clean: str
    other: str
    words: tuple[str, str]
    kind: str = "pairs"
    target: str | None = None
    """A translation of CLEAN that contains A; the model's own by default."""
    position: int | None = None
    """The position of A among the words of the translation; by default, the first A."""


class PairResult(NamedTuple):
    """What happens without the strongest features of the graph of a pair."""

    pair: MinimalPair
    faithfulness: Faithfulness
    becomes_other: bool
    """Whether the model writes B without the strongest features."""


def read_minimal_pairs(file: Path) -> list[MinimalPair]:
    """Read minimal pairs from a file of tab-separated values.

    Raises:
        UserError: the file can't be read, a line has another format, or there are none.
    """
    pairs = []
    for number, line in enumerate(read_lines(file), 1):
        clean, *rest = line.rstrip("\n").split("\t")
        words = rest[1].split("/") if len(rest) > 1 else []
        if not clean.strip() or len(rest) > 3 or len(words) != 2 or not all(map(str.strip, words)):
            raise UserError("is no minimal pair", file=file, line=number, fix=_FIX)
        kind = rest[2].strip() if len(rest) > 2 else "pairs"
        pairs.append(MinimalPair(clean, rest[0], (words[0].strip(), words[1].strip()), kind))
    if not pairs:
        raise UserError("has no pairs", file=file, fix=_FIX)
    return pairs


def measure(
    translator: Translator,
    transcoders: Mapping[str, Transcoder],
    pairs: Sequence[MinimalPair],
    on_done: Callable[[int], None] | None = None,
) -> tuple[list[PairResult], int]:
    """Return the results of the pairs, and the number of those of which the model does not write A.

    `on_done` is called with 1 after each pair.
    """
    results, left_out = [], 0
    for pair in pairs:
        try:
            graph = graph_of(translator, transcoders, pair)
        except UserError:
            graph = None
        if graph is None or graph.faithfulness is None or not graph.faithfulness.written:
            left_out += 1
        else:
            becomes_other = graph.faithfulness.top.changed and graph.faithfulness.top.logit < 0
            results.append(PairResult(pair, graph.faithfulness, becomes_other))
        if on_done:
            on_done(1)
    return results, left_out


def graph_of(translator: Translator, transcoders: Mapping[str, Transcoder], pair: MinimalPair) -> AttributionGraph:
    """Return the graph of A instead of B.

    Raises:
        UserError: the translation lacks A.
    """
    a, b = pair.words
    word = a if pair.position is None else pair.position
    return attribution_graph(translator, transcoders, pair.clean, word, instead_of=b, target=pair.target)


class Row(NamedTuple):
    """The shares of pairs in which the word changes, from 0 to 1."""

    kind: str
    pairs: int
    top: float
    becomes_other: float
    random: float
    strongest: float
    freezing: float
    """The mean error of freezing: the magnitude by which the held model predicts another logit without the features."""


def rows(results: Sequence[PairResult]) -> list[Row]:
    """Return the figures of all pairs, and of each kind if there are several."""
    kinds = dict.fromkeys(result.pair.kind for result in results)
    groups = {kind: [result for result in results if result.pair.kind == kind] for kind in kinds}
    if len(groups) > 1:
        groups["all"] = list(results)
    table = []
    for kind, group in groups.items():
        figures = [
            fmean(result.faithfulness.top.changed for result in group),
            fmean(result.becomes_other for result in group),
            fmean(result.faithfulness.random_changed for result in group),
            fmean(result.faithfulness.strongest.changed for result in group),
            fmean(abs(result.faithfulness.predicted - result.faithfulness.top.logit) for result in group),
        ]
        table.append(Row(kind, len(group), *figures))
    return table


def view(table: Sequence[Row], left_out: int) -> Table:
    """Return the figures as a table."""
    names = ("pairs", f"without the {TOP} strongest", "B is preferred", "random ones", "most active", "error")
    result = table_of("another word", figures=names)
    for kind, pairs, *shares, freezing in table:
        result.add_row(kind, str(pairs), *(f"{100 * share:.0f} %" for share in shares), f"{freezing:.2f}")
    if left_out:
        result.add_row("left out", str(left_out))
    return result


def to_json(table: Sequence[Row], left_out: int) -> dict[str, Any]:
    """Return plain values."""
    return {"rows": [row._asdict() for row in table], "left_out": left_out}
