"""How right a word alignment is: alignment error rate against gold links."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import Field

from translucid.data.readers.corpus import Pair, read_lines
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup

Links: TypeAlias = list[tuple[int, int]]
"""Pairs (source word, target word), counted from 0."""


class AlignmentOptions(OptionGroup):
    """Where word alignments are read, and how."""

    learned: bool = True
    """In the alignment layer of `translucid tune --alignments` if the run has one, else in the attention."""

    layer: int | None = Field(None, ge=0, le=255)
    """The decoder layer whose attention is read; the average of all if not given. `evaluate --alignments` finds it."""
    shift: bool = False
    """Read a word's row when it is the decoder's input, not when it is predicted (SHIFT-ATT, Chen et al. 2020)."""
    both: bool = True
    """Also ask for each source word which target word looked at it most, and join the two readings by grow-diagonal."""

    def of(self, taught: bool) -> AlignmentOptions:
        """Return what they come to for a run that has an alignment layer, or has none."""
        if taught and self.learned:
            return AlignmentOptions(both=self.both)
        return self.model_copy(update={"learned": False})


class Gold(NamedTuple):
    """The right links of one sentence pair."""

    sure: frozenset[tuple[int, int]]
    """Those that should be found."""
    possible: frozenset[tuple[int, int]]
    """Those that may be found; all that are sure are possible."""


class AlignmentScore(NamedTuple):
    """Figures over a whole test set, 0 to 1."""

    error_rate: float
    """AER; 0 is best."""
    precision: float
    """Of the links found, the share that is possible."""
    recall: float
    """Of the sure links, the share that was found."""

    def to_json(self) -> dict[str, float]:
        """Return the figures by name."""
        return {"aer": self.error_rate, "precision": self.precision, "recall": self.recall, "f1": self.f1}

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def spread(links: Iterable[tuple[int, int, float]], sizes: Sequence[Sequence[int]]) -> list[tuple[int, int, float]]:
    """Return links between words, some of which are several words each, as links between all of these.

    Args:
        links: (source word, target word, weight).
        sizes: of both sides, how many words each word is.
    """
    starts = [list(accumulate(each, initial=0)) for each in sizes]
    found = []
    for s, t, weight in links:
        for source in range(starts[0][s], starts[0][s + 1]):
            for target in range(starts[1][t], starts[1][t + 1]):
                found.append((source, target, weight / sizes[0][s]))
    return found


def alignment_score(found: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Score alignments (Och and Ney 2003, Computational Linguistics 29(1), section 5).

    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) for the links A found, S sure and P possible, over all sentences.

    Raises:
        ValueError: there are more or fewer alignments than gold ones.
    """
    in_sure = in_possible = total = sure = 0
    for links, right in zip(found, gold, strict=True):
        in_sure += len(right.sure.intersection(links))
        in_possible += len(right.possible.intersection(links))
        total += len(set(links))
        sure += len(right.sure)
    rate = 1 - (in_sure + in_possible) / (total + sure) if total + sure else 0.0
    return AlignmentScore(rate, in_possible / total if total else 0.0, in_sure / sure if sure else 0.0)


def read_gold(file: str | Path, pairs: Sequence[Pair]) -> list[Gold]:
    """Read the gold links of sentence pairs, a pair a line.

    A line is `0-0 1?2`, `-` sure and `?` possible; in .jsonl that is `alignment`. Words are what stands between spaces.

    Raises:
        UserError: a line is something else or links a word that is not there, or there are not as many as pairs.
    """
    gold: list[Gold] = []
    for number, line in enumerate(read_lines(file), 1):
        try:
            text = json.loads(line)["alignment"] if str(file).removesuffix(".gz").endswith(".jsonl") else line
            links = [(link.replace("?", "-").split("-"), "?" in link) for link in text.split()]
            found = [((int(s), int(t)), only_possible) for (s, t), only_possible in links]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                "is not a line of word links", file=file, line=number, fix="Write 0-0 1-2 (1?2 if only possible)."
            ) from error
        if number <= len(pairs):
            _refuse_outside([link for link, _ in found], pairs[number - 1], file, number)
        sure = frozenset(link for link, only_possible in found if not only_possible)
        gold.append(Gold(sure, frozenset(link for link, _ in found)))
    if len(gold) != len(pairs):
        raise UserError(f"holds {len(gold):,} lines for {len(pairs):,} sentence pairs", file=file, fix="Give both.")
    return gold


def _refuse_outside(links: Links, pair: Pair, file: str | Path, line: int) -> None:
    words = len(pair.source.split()), len(pair.target.split())
    for source, target in links:
        if source >= words[0] or target >= words[1]:
            raise UserError(
                f"links {source}-{target}, but the pair has {words[0]} and {words[1]} words",
                file=file,
                line=line,
                fix="Count words from 0, source word first.",
            )


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """[(0, 0), (1, 2)] -> `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in links)
