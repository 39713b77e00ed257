"""Corpus files of any size whose given translations are scored: an answer for each line, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from translucid.api.translator import WINDOW, Translator
from translucid.data.readers.bad_lines import BadLine
from translucid.data.readers.corpus import Pair, sides
from translucid.decoding.pair_scores import PairScore, perplexity, score_pairs
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import pairs_of
from translucid.runs.data_options import DataOptions


@dataclass(frozen=True)
class ScoredLine:
    """What came of a line."""

    pair: Pair | None
    """None if the line can't be read."""
    score: PairScore | None
    problem: str | None
    """Why there is no score, if there is none."""

    def to_text(self, translator: Translator, tokens: bool) -> str:
        """Return log-probability, perplexity and, if wanted, each token with its own; nothing without a score."""
        if not self.score:
            return ""
        columns = [f"{self.score.log_probability:.4f}", f"{self.score.perplexity:.4f}"]
        if tokens:
            columns.append(" ".join(f"{piece} {value:.4f}" for piece, value in _by_token(translator, self.score)))
        return "\t".join(columns)

    def to_json(self, translator: Translator, tokens: bool) -> dict[str, Any]:
        """Return the same and the texts as plain values, and what is wrong, if anything is."""
        source, target = self.pair or (None, None)
        record: dict[str, Any] = {"source": source, "target": target, "log_probability": None, "perplexity": None}
        record["tokens"] = 0
        if self.score:
            record["log_probability"] = round(self.score.log_probability, 6)
            record["perplexity"] = round(self.score.perplexity, 6)
            record["tokens"] = len(self.score.tokens)
            if tokens:
                by_token = _by_token(translator, self.score)
                record["token_log_probabilities"] = [(piece, round(value, 6)) for piece, value in by_token]
        return {**record, "problem": self.problem}


@dataclass
class ScoredSum:
    """The lines of all files together."""

    scored: int = 0
    tokens: int = 0
    log_probability: float = 0.0
    without: int = 0
    """Lines that can be read but have no score."""
    bad: int = 0
    """Lines that can't be read."""

    def add(self, line: ScoredLine) -> None:
        """Count a line."""
        if line.score:
            self.scored += 1
            self.tokens += len(line.score.tokens)
            self.log_probability += line.score.log_probability
        elif line.pair:
            self.without += 1
        else:
            self.bad += 1

    def __str__(self) -> str:
        """Say it in a line."""
        found = f"{self.scored:,} pairs, {self.tokens:,} tokens of the model's own vocabulary"
        if self.tokens:
            found += f", perplexity {perplexity(self.log_probability, self.tokens):.2f} per token"
        return found + (f"; {self.without:,} more are blank or too long" if self.without else "")


def score_lines(
    translator: Translator, files: Sequence[str], on_done: Callable[[int], None] | None = None
) -> Iterator[ScoredLine]:
    """Score the pairs of files that `read_pairs` reads; lines that it can't read are answered too.

    Args:
        translator: any.
        files: corpora.
        on_done: called with the number of pairs done after each batch.

    Raises:
        UserError: a file can't be read at all, or its sides are of unequal length; lines before are answered first.
    """
    t = translator
    for window in _windows(_answerable(files, translator.configuration.data)):
        pairs = [item for item in window if isinstance(item, Pair)]
        scores = score_pairs(t.model, t.pipeline, pairs, t.device, on_done)
        for item in window:
            if isinstance(item, BadLine):
                yield ScoredLine(None, None, f"{item.file}:{item.line}: {item.what}")
                continue
            found = next(scores)
            yield ScoredLine(item, None, found) if isinstance(found, str) else ScoredLine(item, found, None)


def _answerable(files: Sequence[str], options: DataOptions) -> Iterator[Pair | BadLine]:
    """Yield the pairs of files, as a run reads them, and, in their places, the lines that are none."""
    for file in files:
        waiting: list[BadLine] = []
        both = len(sides(file)) == 2
        for pair in pairs_of(options, file, on_bad=waiting.append):
            yield from _once(waiting, both)
            waiting.clear()
            yield pair
        yield from _once(waiting, both)


def _once(bad: Iterable[BadLine], both: bool) -> Iterable[BadLine]:
    """Return bad lines; of a corpus of two files, one where the same line of both is bad."""
    return {line.line: line for line in bad}.values() if both else bad


def _windows(items: Iterator[Pair | BadLine]) -> Iterator[list[Pair | BadLine]]:
    """Cut what comes into lists of `WINDOW`; what came before an error is not lost."""
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
