"""Scoring the pairs of corpus files of any size: a result for each line, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from bitext.pair import Pair
from bitext.readers.lines import BadLine
from translucid.api.translator import WINDOW, Translator
from translucid.data.readers.corpus import sides
from translucid.data.seen_sentences import SeenSentences, Sides
from translucid.decoding.pair_scores import PairScore, perplexity, score_pairs
from translucid.evaluation.report import SeenReport
from translucid.ground.errors import UserError
from translucid.jobs.job import rounded_pairs
from translucid.runs.corpus_files import pairs_of
from translucid.runs.data_options import DataOptions


@dataclass(frozen=True)
class ScoredLine:
    """The result for a line."""

    pair: Pair | None
    """None if the line can't be read."""
    score: PairScore | None
    problem: str | None
    """The reason why there is no score."""
    seen: Sides | None = None
    """What of it was in the training text; None if it is unknown."""

    def to_text(self, translator: Translator, tokens: bool) -> str:
        """Return log-probability, perplexity and the log-probabilities of `tokens`; nothing without a score."""
        if not self.score:
            return ""
        columns = [f"{self.score.log_probability:.4f}", f"{self.score.perplexity:.4f}"]
        if tokens:
            columns.append(" ".join(f"{piece} {value:.4f}" for piece, value in _by_token(translator, self.score)))
        return "\t".join(columns)

    def to_json(self, translator: Translator, tokens: bool) -> dict[str, Any]:
        """Return the same as plain values, with the texts and the problem."""
        source, target = self.pair or (None, None)
        record: dict[str, Any] = {"source": source, "target": target}
        record |= {"log_probability": None, "perplexity": None, "tokens": 0}
        record["seen"] = self.seen and self.seen._asdict()
        if self.score:
            record["log_probability"] = round(self.score.log_probability, 6)
            record["perplexity"] = round(self.score.perplexity, 6)
            record["tokens"] = len(self.score.tokens)
            if tokens:
                record["token_log_probabilities"] = rounded_pairs(_by_token(translator, self.score))
        return {**record, "problem": self.problem}


@dataclass
class ScoredSum:
    """The sums over the lines of all files."""

    scored: int = 0
    tokens: int = 0
    log_probability: float = 0.0
    unscored: int = 0
    """The number of readable lines without a score."""
    bad: int = 0
    """The number of unreadable lines."""
    seen: Counter[str] = field(default_factory=Counter)
    """The number of pairs by what of them was in the training text, if it is known."""
    others: tuple[int, int, float] = (0, 0, 0.0)
    """`scored`, `tokens` and `log_probability` of the pairs of which no side was in the training text."""

    def add(self, line: ScoredLine) -> None:
        """Count a line."""
        if line.seen:
            self.seen.update(name for name, flag in line.seen._asdict().items() if flag)
            if line.score and line.seen.none:
                count, tokens, log_probability = self.others
                self.others = count + 1, tokens + len(line.score.tokens), log_probability + line.score.log_probability
        if line.score:
            self.scored += 1
            self.tokens += len(line.score.tokens)
            self.log_probability += line.score.log_probability
        elif line.pair:
            self.unscored += 1
        else:
            self.bad += 1

    def seen_report(self, index: SeenSentences | None) -> SeenReport:
        """Return how many of the pairs were in the training text, given the index."""
        pairs = self.scored + self.unscored
        if index is None:
            return SeenReport(pairs, None)
        nothing = index.look_up([])
        counts = {name: self.seen[name] for name in Sides._fields}
        false_reports = nothing.false_reports(pairs - counts["source"], pairs - counts["reference"])
        count, tokens, log_probability = self.others
        score = perplexity(log_probability, tokens) if tokens else None
        return SeenReport(pairs, counts, index.complete, false_reports, "perplexity", count, score)

    def __str__(self) -> str:
        text = f"{self.scored:,} pairs, {self.tokens:,} tokens of the model's own vocabulary"
        if self.tokens:
            text += f", perplexity {perplexity(self.log_probability, self.tokens):.2f} per token"
        if self.unscored:
            text += f"; {self.unscored:,} more are blank or too long"
        return text


def score_lines(
    translator: Translator,
    files: Sequence[str],
    on_done: Callable[[int], None] | None = None,
    index: SeenSentences | None = None,
) -> Iterator[ScoredLine]:
    """Score the pairs of files that `read_pairs` reads, and report lines that it can't read.

    Args:
        translator: the translator.
        files: the corpora.
        on_done: called with the number of pairs after each batch.
        index: the sentences of the training text, if they are known.

    Raises:
        UserError: a file can't be read at all, or its sides have unequal lengths; the lines before are scored first.
    """
    for window in _windows(_pairs_and_bad_lines(files, translator.configuration.data)):
        pairs = [item for item in window if isinstance(item, Pair)]
        seen: Iterator[Sides | None] = iter(index.look_up(pairs, translator.languages).sides) if index else repeat(None)
        scores = score_pairs(translator.model, translator.pipeline, pairs, translator.device, on_done)
        for item in window:
            if isinstance(item, BadLine):
                yield ScoredLine(None, None, f"{item.file}:{item.line}: {item.what}")
                continue
            score = next(scores)
            if isinstance(score, str):  # the reason why there is none
                yield ScoredLine(item, None, score, next(seen))
            else:
                yield ScoredLine(item, score, None, next(seen))


def _pairs_and_bad_lines(files: Sequence[str], options: DataOptions) -> Iterator[Pair | BadLine]:
    """Yield the pairs of files and, in their places, the lines that are no pairs."""
    for file in files:
        bad_lines: list[BadLine] = []
        # A Moses pair has two files, and each reports its bad lines.
        has_two_files = len(sides(file)) == 2
        for pair in pairs_of(options, file, on_bad=bad_lines.append):
            yield from _distinct(bad_lines, has_two_files)
            bad_lines.clear()
            yield pair
        yield from _distinct(bad_lines, has_two_files)


def _distinct(bad: Iterable[BadLine], has_two_files: bool) -> Iterable[BadLine]:
    """Return bad lines; of a corpus with two files, a line that is bad in both is returned once."""
    if not has_two_files:
        return bad
    return {line.line: line for line in bad}.values()


def _windows(items: Iterator[Pair | BadLine]) -> Iterator[list[Pair | BadLine]]:
    """Divide items into lists of `WINDOW`; an error is raised after the items before it."""
    window: list[Pair | BadLine] = []
    try:
        for item in items:
            window.append(item)
            if len(window) == WINDOW:
                yield window
                window = []
    except UserError:
        if window:
            yield window
        raise
    if window:
        yield window


def _by_token(translator: Translator, score: PairScore) -> Iterable[tuple[str, float]]:
    return zip(translator.tokenizer.target_pieces(score.tokens), score.log_probabilities, strict=True)
