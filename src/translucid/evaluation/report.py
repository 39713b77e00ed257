"""The results of an evaluation, for people and for programs; for a multilingual model, of several directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from translucid.data.seen_sentences import SeenPairs
from translucid.evaluation.breakdown import LengthRow, by_length
from translucid.evaluation.metrics import (
    DEFAULT,
    METRICS,
    CorpusScore,
    ReferenceSets,
    bleu_tokenizer,
    corpus_scores,
    long_enough,
)
from translucid.evaluation.quality_checks import LOOP
from translucid.ground.console import table_of, unbroken


class ForcedScores(NamedTuple):
    """The scores of the references by forced decoding, per token of the model's vocabulary."""

    perplexity: float
    """exp of the mean -log p of a reference token, including end tokens; it compares models that share a tokenizer."""
    accuracy: float
    """The share of the tokens that the model ranks first, given the reference tokens before."""
    tokens: int


@dataclass(frozen=True)
class SeenReport:
    """How much of a test set was in the training text, and the score of the rest."""

    sentences: int
    counts: dict[str, int] | None
    """The number of pairs by what of them was there, as in `Sides`; None if it is unknown."""
    complete: bool = True
    """Whether nothing else was in the training text."""
    false_reports: float = 0.0
    """The expected number of false reports."""
    metric: str = "BLEU"
    others: int = 0
    """The number of pairs of which no side was in the training text."""
    others_score: float | None = None
    """Their score; None if there are none."""
    lines: dict[str, list[int]] | None = None
    """The numbers of the pairs, from 1, as in `counts`."""

    @classmethod
    def of(
        cls,
        seen: SeenPairs | None,
        hypotheses: Sequence[str],
        references: ReferenceSets,
        *,
        others: Sequence[bool] | None = None,
        tokenize: str = DEFAULT,
        lowercase: bool = False,
    ) -> SeenReport:
        """Score the translations of the pairs of which no side was seen.

        Args:
            seen: what of the test set was in the training text, if it is known.
            hypotheses: the translations.
            references: sets of references.
            others: whether a pair is to be scored; by default those of which this run has seen no side.
            tokenize: sacreBLEU's tokenizer.
            lowercase: whether case is ignored.
        """
        if seen is None:
            return cls(len(hypotheses), None)
        others = others or [sides.none for sides in seen.sides]
        score = None
        if any(others):
            kept = [list(compress(texts, others)) for texts in references]
            kept = [texts for texts in kept if any(texts)]
            translations = list(compress(hypotheses, others))
            scores = corpus_scores(translations, kept, tokenize=tokenize, lowercase=lowercase)
            score = next(score.value for score in scores if score.name == "BLEU")
        lines = seen.lines()
        counts = {name: len(numbers) for name, numbers in lines.items()}
        unreported = len(hypotheses) - counts["source"], len(hypotheses) - counts["reference"]
        false_reports = seen.false_reports(*unreported)
        return cls(len(hypotheses), counts, seen.complete, false_reports, "BLEU", sum(others), score, lines)

    def __str__(self) -> str:
        counts = self.counts
        if counts is None:
            return "unknown which sentences were in the training text: there is no seen-sentence index of it"
        figures = []
        for name in ("source", "reference", "pair"):
            figures.append(f"{counts[name]:,} of {self.sentences:,} {name}s")
        text = f"{', '.join(figures)} were in the training text"
        if not self.complete:
            text += ", and perhaps more: a part of it has no index"
        if counts["other_source"] or counts["other_reference"]:
            text += f"; in other directions {counts['other_source']:,} more sources"
            text += f" and {counts['other_reference']:,} more references"
        score = "-" if self.others_score is None else f"{self.others_score:.2f}"
        text += f"; {self.metric} of the others {score} ({self.others:,} pairs)"
        return f"{text}; false reports expected by chance: {self.false_reports:.2g}"

    def to_json(self) -> dict[str, Any] | str:
        """Return everything as plain values; `unknown` if it is."""
        if self.counts is None:
            return "unknown"
        record: dict[str, Any] = {"sentences": self.sentences, **self.counts, "complete": self.complete}
        record |= {"others": self.others, f"{self.metric}_of_others": self.others_score}
        record["false_reports_expected"] = self.false_reports
        if self.lines:
            record["lines"] = self.lines
        return record


@dataclass(frozen=True)
class Evaluation:
    """The scores of one test set."""

    scores: list[CorpusScore]
    by_length: list[LengthRow]
    """Empty unless requested."""
    sentences: int
    seconds: float
    """The duration of the translation."""
    empty: int
    """The number of translations without a word, of sources that have words."""
    looped: int
    """The number of translations that repeat one to four words four times in a row, unlike the source."""
    engine: str = ""
    """The engine of the search."""
    forced: ForcedScores | None = None
    """The scores of the first references, if they were requested and not all pairs are too long."""
    too_long: int = 0
    """The number of pairs that are too long for the model, and left out of `forced`."""
    lines: str = ""
    """Whether `sentences` or `whole` lines were translated, if it was measured."""
    bleu_is_blind: bool = False
    """Whether the references are too short for BLEU, which counts sequences of four words."""
    seen: SeenReport | None = None
    """How much of the test set was in the training text, if that was asked."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        record: dict[str, Any] = {score.name: asdict(score) for score in self.scores}
        record |= {"sentences": self.sentences, "seconds": round(self.seconds, 3)}
        record |= {"empty": self.empty, "looped": self.looped, "engine": self.engine}
        if self.lines:
            record["lines"] = self.lines
        if self.forced or self.too_long:
            perplexity, accuracy, tokens = self.forced or (None, None, 0)
            record |= {"perplexity": perplexity, "token_accuracy": accuracy, "tokens": tokens}
            record["pairs_too_long_for_perplexity"] = self.too_long
        if self.seen:
            record["seen"] = self.seen.to_json()
        if self.by_length:
            record["by_length"] = [row._asdict() for row in self.by_length]
        return record

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and texts for people."""
        table = table_of("metric", figures=("score",))
        for score in self.scores:
            table.add_row(score.name, Text(f"{score.value:.2f}", "bold"))
        yield table
        for score in self.scores:
            yield unbroken(f"{score.name}|{score.signature}")
        if self.lines:
            yield f"lines: {self.lines}"
        rate = self.sentences / self.seconds if self.seconds else 0
        by = f" by {self.engine}" if self.engine else ""
        yield f"{self.sentences:,} sentences in {self.seconds:.1f} s ({rate:,.0f} a second){by}"
        if self.forced:
            omitted = ""
            if self.too_long:
                omitted = f"; {self.too_long:,} pairs are too long for the model and left out"
            yield (
                f"perplexity {self.forced.perplexity:.2f}, accuracy {self.forced.accuracy:.1%} of "
                f"{self.forced.tokens:,} reference tokens of its own vocabulary{omitted}"
            )
        elif self.too_long:
            yield Text("no perplexity: all pairs are too long for the model", "yellow")
        if self.bleu_is_blind:
            yield Text(
                "BLEU says nothing here: nearly all references are shorter than its four words; see chrF", "yellow"
            )
        if self.seen:
            yield unbroken(str(self.seen))
        if self.empty or self.looped:
            yield Text(f"{self.empty} empty translations, {self.looped} that repeat themselves", "yellow")
        if self.by_length:
            table = table_of(figures=("source words", "sentences", "BLEU", "chrF", "length ratio"))
            for row in self.by_length:
                figures = f"{row.bleu:.1f}", f"{row.chrf:.1f}", f"{row.length_ratio:.2f}"
                table.add_row(row.words, f"{row.sentences:,}", *figures)
            yield ""
            yield table


def evaluate(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: ReferenceSets,
    *,
    seconds: float = 0.0,
    engine: str = "",
    lines: str = "",
    forced: ForcedScores | None = None,
    too_long: int = 0,
    lengths: bool = False,
    tokenize: str | None = None,
    language: str | None = None,
    lowercase: bool = False,
) -> Evaluation:
    """Score translations; the arguments are those of `corpus_scores` and `Evaluation`, `lengths` adds `by_length`."""
    tokenize = tokenize or bleu_tokenizer(language, references)
    scores = corpus_scores(hypotheses, references, tokenize=tokenize, lowercase=lowercase)
    rows = []
    if lengths:
        rows = by_length(sources, hypotheses, references, tokenize=tokenize, lowercase=lowercase)
    empty = looped = 0
    for source, text in zip(sources, hypotheses, strict=True):
        empty += bool(source.strip()) and not text.strip()
        looped += bool(LOOP.search(text)) and not LOOP.search(source)
    short, count = not long_enough(references, tokenize), len(hypotheses)
    return Evaluation(
        scores, rows, count, seconds, empty, looped, engine, forced, too_long, lines=lines, bleu_is_blind=short
    )


_SHOWN = METRICS[:3]
"""The metrics of the table of directions."""


@dataclass(frozen=True)
class DirectionScore:
    """The scores of one direction."""

    name: str
    """The name of the direction, such as `en-fr`."""
    evaluation: Evaluation
    off_target: float | None
    """The share of translations in another language of the model; None if it can't be identified."""
    references_off_target: float | None
    """The same share of the references, which are right: the error of the identification."""
    zero_shot: bool = False
    """Whether no training pair has this direction."""

    def value(self, metric: str) -> float:
        """Return the score of a metric, such as `BLEU`."""
        return next(score.value for score in self.evaluation.scores if score.name == metric)


@dataclass(frozen=True)
class DirectionScores:
    """The scores of several directions."""

    scores: Sequence[DirectionScore]
    languages: Sequence[str]
    """The languages among which those of translations are identified."""

    def means(self) -> dict[str, float | None]:
        """Return the means over the directions by name."""
        rates = [score.off_target for score in self.scores if score.off_target is not None]
        means: dict[str, float | None] = {}
        for metric in _SHOWN:
            means[metric] = fmean(score.value(metric) for score in self.scores)
        return {**means, "off_target": fmean(rates) if rates else None}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        directions = {}
        for score in self.scores:
            rates = {"off_target": score.off_target, "references_off_target": score.references_off_target}
            directions[score.name] = {**score.evaluation.to_json(), **rates, "zero_shot": score.zero_shot}
        return {"directions": directions, "mean": self.means(), "languages": list(self.languages)}

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and texts for people."""
        table = table_of("direction", figures=("sentences", *_SHOWN, "off-target", "references"))
        for score in self.scores:
            name = Text(score.name, "bold")
            if score.zero_shot:
                name.append(" zero-shot", "dim")
            rates = _percent(score.off_target), _percent(score.references_off_target)
            quality = [f"{score.value(metric):.2f}" for metric in _SHOWN]
            table.add_row(name, f"{score.evaluation.sentences:,}", *quality, *rates)
        means = self.means()
        rate = _percent(means["off_target"])
        table.add_row(Text("mean", "bold"), "", *(f"{means[metric]:.2f}" for metric in _SHOWN), rate, "")
        yield table
        yield Text(f"off-target: the language identified among {', '.join(self.languages)} is another one", "dim")
        for score in self.scores:
            if score.evaluation.seen:
                yield unbroken(f"{score.name}: {score.evaluation.seen}")
        signatures = [signature(score.evaluation) for score in self.scores]
        for text in dict.fromkeys(signatures):  # each once
            yield unbroken(text)
        seconds = sum(score.evaluation.seconds for score in self.scores)
        count = sum(score.evaluation.sentences for score in self.scores)
        # Directions that no training pair has consider other pieces.
        engines = "; ".join(dict.fromkeys(score.evaluation.engine for score in self.scores))
        yield f"{count:,} sentences in {seconds:.1f} s ({count / max(seconds, 1e-9):,.0f} a second) by {engines}"


def signature(evaluation: Evaluation) -> str:
    """Return sacreBLEU's signatures of BLEU, chrF and chrF++, and what was translated at a time."""
    signatures = {score.name: score.signature for score in evaluation.scores}
    parts = [f"{metric} {signatures[metric]}" for metric in _SHOWN]
    if evaluation.lines:
        parts.append(f"lines: {evaluation.lines}")
    return "; ".join(parts)


def _percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{rate:.1%}"
