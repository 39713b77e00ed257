"""The alignment error rate of word alignments against gold links."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import Field

from bitext.pair import Pair
from bitext.readers.file_kinds import ending_of
from bitext.words import linked_words
from translucid.data.readers.corpus import read_lines
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.layers.variants import Method

Links: TypeAlias = list[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0."""


class AlignmentOptions(OptionGroup):
    """Options for reading word alignments."""

    learned: bool = True
    """Read the alignment layer of `translucid tune alignments` if the run has one, otherwise the attention."""

    layer: int | None = Field(None, ge=0, le=255)
    """The decoder layer whose attention is read; the average of all if not given. `evaluate --alignments` finds it."""
    head: int | None = Field(None, ge=0, le=4095)
    """The head that is read, such as the one that training.guided_alignment taught; the average of all if not given."""
    method: Method = "weights"
    """What is read: weights, those of content words, norms or contributions; without an alignment layer. `evaluate`
    finds it too."""
    shift: bool = False
    """Read a word's row when it is the decoder's input, not when it is predicted (SHIFT-ATT, Chen et al. 2020)."""
    both: bool = True
    """Also find the target word that attends most to each source word, and combine both readings by grow-diagonal."""

    def of(self, has_layer: bool) -> AlignmentOptions:
        """Return the options that apply to a run, depending on whether it has an alignment layer."""
        if has_layer and self.learned:
            return AlignmentOptions(both=self.both)
        return self.model_copy(update={"learned": False})

    def reads_contributions(self, has_layer: bool) -> bool:
        """Whether a run reads norms or contributions; one that has an alignment layer may read that instead."""
        return self.of(has_layer).needs_contributions

    @property
    def needs_contributions(self) -> bool:
        """Whether the method is norms or contributions."""
        return self.method in ("norms", "contributions")


class Gold(NamedTuple):
    """The gold links of one sentence pair."""

    sure: frozenset[tuple[int, int]]
    """The links that an alignment should have."""
    possible: frozenset[tuple[int, int]]
    """The links that an alignment may have, including all sure ones."""

    def to_learn(self) -> frozenset[tuple[int, int]]:
        """Return the links that a model learns: where a target word has sure links, its possible ones don't count."""
        with_sure = {target for _, target in self.sure}
        return self.sure | {link for link in self.possible if link[1] not in with_sure}


class AlignmentScore(NamedTuple):
    """Scores of a test set, from 0 to 1."""

    error_rate: float
    """The alignment error rate (AER); 0 is best."""
    precision: float
    """The share of the predicted links that is possible."""
    recall: float
    """The share of the sure links that is predicted."""

    def to_json(self) -> dict[str, float]:
        """Return the scores by name."""
        return {"aer": self.error_rate, "precision": self.precision, "recall": self.recall, "f1": self.f1}

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self.precision * self.recall, self.precision + self.recall)


def spread(links: Iterable[tuple[int, int, float]], sizes: Sequence[Sequence[int]]) -> list[tuple[int, int, float]]:
    """Replace each link between groups of words by links between all words of the groups.

    Args:
        links: links (source group, target group, weight).
        sizes: the number of words of each group, for both sides.
    """
    source_sizes, target_sizes = sizes
    source_starts = list(accumulate(source_sizes, initial=0))
    target_starts = list(accumulate(target_sizes, initial=0))
    word_links = []
    for s, t, weight in links:
        for source in range(source_starts[s], source_starts[s + 1]):
            for target in range(target_starts[t], target_starts[t + 1]):
                word_links.append((source, target, weight / source_sizes[s]))
    return word_links


def alignment_score(predicted: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Score alignments (Och and Ney 2003, Computational Linguistics 29(1), section 5).

    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) for predicted links A, sure links S and possible links P, over all
    sentences.

    Raises:
        ValueError: the numbers of alignments and of gold alignments differ.
    """
    in_sure = in_possible = total = sure = 0
    for links, correct in zip(predicted, gold, strict=True):
        in_sure += len(correct.sure.intersection(links))
        in_possible += len(correct.possible.intersection(links))
        total += len(set(links))
        sure += len(correct.sure)
    # Without any links, the agreement is perfect.
    rate = 0.0
    if total + sure:
        rate = 1 - (in_sure + in_possible) / (total + sure)
    return AlignmentScore(rate, _ratio(in_possible, total), _ratio(in_sure, sure))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def read_gold(file: str | Path, pairs: Sequence[Pair]) -> list[Gold]:
    """Return the gold links of sentence pairs; file and errors are those of `linked_to_gold`."""
    return [gold for _, gold in linked_to_gold(file, pairs)]


def linked_to_gold(file: str | Path, pairs: Iterable[Pair], *, reverse: bool = False) -> Iterator[tuple[Pair, Gold]]:
    """Yield sentence pairs with their gold links, of which a file has one line per pair.

    A line is `0-0 1?2`, with `-` for sure links and `?` for links that are only possible; in .jsonl it is the field
    `alignment`. Words are those of `linked_words`.

    Args:
        file: the file.
        pairs: the pairs, which are read together with the file.
        reverse: whether source and target of the pairs are exchanged; the file then links targets to sources.

    Raises:
        UserError: a line has another format or links a word that does not exist, or the number of lines differs from
            the number of pairs.
    """
    lines, remaining = enumerate(read_lines(file), 1), iter(pairs)
    number = 0
    for pair in remaining:
        previous = number
        number, line = next(lines, (0, ""))
        if not number:
            raise _unequal(file, previous, previous + 1 + sum(1 for _ in remaining))
        gold = _links_of_line(line, file, number)
        _refuse_outside(gold, pair.swapped if reverse else pair, file, number)
        if reverse:
            gold = Gold(_swapped(gold.sure), _swapped(gold.possible))
        yield pair, gold
    extra = sum(1 for _ in lines)
    if extra:
        raise _unequal(file, number + extra, number)


def _unequal(file: str | Path, lines: int, pairs: int) -> UserError:
    return UserError(f"holds {lines:,} lines for {pairs:,} sentence pairs", file=file, fix="Give both.")


def _links_of_line(line: str, file: str | Path, number: int) -> Gold:
    try:
        if ending_of(str(file)) == ".jsonl":
            line = json.loads(line)["alignment"]
        return _parse_links(line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "Write 0-0 1-2 (1?2 if only possible)."
        raise UserError("is not a line of word links", file=file, line=number, fix=fix) from error


def _swapped(links: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    return frozenset((target, source) for source, target in links)


def _parse_links(text: str) -> Gold:
    sure, possible = set(), set()
    for link in text.split():
        source, target = map(int, link.replace("?", "-").split("-"))
        possible.add((source, target))
        if "?" not in link:
            sure.add((source, target))
    return Gold(frozenset(sure), frozenset(possible))


def _refuse_outside(gold: Gold, pair: Pair, file: str | Path, line: int) -> None:
    words = len(linked_words(pair.source)), len(linked_words(pair.target))
    for source, target in sorted(gold.possible):
        if source >= words[0] or target >= words[1]:
            what = f"links {source}-{target}, but the pair has {words[0]} and {words[1]} words"
            fix = "Count words from 0, source word first."
            if source < len(pair.source.split()) and target < len(pair.target.split()):
                what += " between spaces and tabs"
                fix = "The aligner also split at other spaces, such as no-break spaces: replace those in the text."
            raise UserError(what, file=file, line=line, fix=fix)


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Return links as text: [(0, 0), (1, 2)] as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in links)
