"""Comparison of two systems on one test set: scores, significance of the differences, and differing sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from translucid.evaluation.breakdown import FrequencyRow, LengthRow, by_frequency, by_length
from translucid.evaluation.metrics import DEFAULT, METRICS, Criterion, ReferenceSets, corpus_scores, metrics, plain_name
from translucid.ground.console import table_of, unbroken
from translucid.ground.errors import UserError

MOST_TESTED = 20_000
"""The maximum number of sentences of a significance test; sacreBLEU holds 1,000 samples in memory, 1.4 GB."""


FEWEST_TESTED = 6
"""The minimum number of differing sentences for a significance test. With 5 there are 32 ways to exchange the systems,
2 of which differ as much as the observed one, so that no p-value is below 1/16. sacreBLEU counts only larger
differences, and would report 1/10,001."""


class Significance(NamedTuple):
    """The results of sacreBLEU's two significance tests of one metric (Koehn 2004; Riezler and Maxwell 2005).

    A p-value is the probability of a difference as large between two systems that are equally good.
    """

    interval_a: float
    """Half of the 95 % confidence interval of A's score, from the bootstrap."""
    interval_b: float
    bootstrap: float
    """The p-value by paired bootstrap resampling."""
    randomization: float
    """The p-value by approximate randomization."""
    signatures: tuple[str, str]
    """The signatures of both tests."""


class MetricRow(NamedTuple):
    """One metric of both systems."""

    name: str
    a: float
    b: float
    signature: str
    tested: Significance | None
    """None if the test was not requested, or too few sentences differ."""


class DifferingSentence(NamedTuple):
    """A sentence that the two systems translate differently."""

    number: int
    """The number of the sentence, from 1."""
    source: str
    reference: str
    """The first reference."""
    a: str
    b: str
    chrf_a: float
    """The sentence chrF of A's translation."""
    chrf_b: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of two systems, A and B."""

    names: tuple[str, str]
    sentences: int
    equal: int
    """The number of sentences with the same translation by both systems."""
    metrics: list[MetricRow]
    by_length: list[tuple[LengthRow, LengthRow]]
    by_frequency: list[tuple[FrequencyRow, FrequencyRow]]
    apart: list[DifferingSentence]
    """The sentences whose chrF differs most; those on which B is better come first."""
    criterion: str = "BLEU"
    """The metric by which lengths are compared: chrF where BLEU can't distinguish the translations of A."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        rows = []
        for row in self.metrics:
            record = {**row._asdict(), "difference": row.b - row.a}
            rows.append({**record, "tested": row.tested and row.tested._asdict()})
        frequency = []
        for a, b in self.by_frequency:
            record = {"times": a.times, "words": a.words, "f1_a": a.f1, "f1_b": b.f1}
            frequency.append({**record, "written_a": a.written, "written_b": b.written})
        return {
            "a": self.names[0],
            "b": self.names[1],
            "sentences": self.sentences,
            "equal": self.equal,
            "metrics": rows,
            "criterion": self.criterion,
            "by_length": [{"a": a._asdict(), "b": b._asdict()} for a, b in self.by_length],
            "by_frequency": frequency,
            "apart": [sentence._asdict() for sentence in self.apart],
        }

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and texts for people."""
        yield f"A  {self.names[0]}\nB  {self.names[1]}"
        few = ""
        if self.sentences - self.equal < FEWEST_TESTED:
            few = ": too few differ to test"
        yield f"{self.sentences:,} sentences, {self.equal:,} of them translated alike{few}\n"
        yield self._metrics_table()
        yield ""
        for row in self.metrics:
            signature = row.tested.signatures[0] if row.tested else row.signature
            yield unbroken(f"{row.name}|{signature}")
        if self.criterion != "BLEU":
            yield f"BLEU says little here, as hardly any sequence of four words is correct: compare {self.criterion}"
        table = table_of("source words", figures=("sentences", f"{self.criterion} A", f"{self.criterion} B", "B - A"))
        for a, b in self.by_length:
            table.add_row(
                a.words, f"{a.sentences:,}", *_with_difference(a.value(self.criterion), b.value(self.criterion))
            )
        yield ""
        yield table
        table = table_of("word's frequency", figures=("in references", "F1 A", "F1 B", "B - A"))
        for row_a, row_b in self.by_frequency:
            table.add_row(row_a.times, f"{row_a.words:,}", *_with_difference(row_a.f1, row_b.f1))
        yield ""
        yield table
        for sentence in self.apart:
            heading = Text(f"\nsentence {sentence.number:,}", "bold")
            yield heading.append(f"  chrF {sentence.chrf_a:.1f} and {sentence.chrf_b:.1f}", "not bold")
            yield f"source     {sentence.source}\nreference  {sentence.reference}"
            yield f"A          {sentence.a}\nB          {sentence.b}"

    def _metrics_table(self) -> Table:
        columns = ["A", "B", "B - A"]
        if any(row.tested for row in self.metrics):
            columns += ["p (bootstrap)", "p (randomization)"]
        table = table_of("metric", figures=columns)
        for row in self.metrics:
            a, b, figures = f"{row.a:.2f}", f"{row.b:.2f}", []
            if tested := row.tested:
                a, b = f"{a} ± {tested.interval_a:.2f}", f"{b} ± {tested.interval_b:.2f}"
                figures = [f"{tested.bootstrap:.4f}", f"{tested.randomization:.4f}"]
            table.add_row(row.name, a, b, Text(f"{row.b - row.a:+.2f}", "bold"), *figures)
        return table


def compare(
    sources: Sequence[str],
    outputs: Sequence[tuple[str, Sequence[str]]],
    references: ReferenceSets,
    counts: Mapping[str, int],
    words: Callable[[str], list[str]],
    *,
    significance: bool = True,
    samples: int = 3,
    tokenize: str = DEFAULT,
    lowercase: bool = False,
) -> Comparison:
    """Compare the translations of two systems.

    Args:
        sources: the sources of the test set.
        outputs: names and translations of A and B.
        references: sets of references with one reference per sentence.
        counts: the count of each word in the training text.
        words: a function that splits a text into words.
        significance: whether the differences are tested.
        samples: the number of sentences to show on which B is better, and on which it is worse.
        tokenize: sacreBLEU's tokenizer for BLEU.
        lowercase: whether case is ignored.

    Raises:
        UserError: there is nothing to compare, sets have unequal lengths, the tokenizer is unknown, or there are too
            many sentences to test.
    """
    (name_a, a), (name_b, b) = outputs
    if significance:
        refuse_too_many(len(a))
    scores_a = corpus_scores(a, references, tokenize=tokenize, lowercase=lowercase)
    scores_b = corpus_scores(b, references, tokenize=tokenize, lowercase=lowercase)
    equal = sum(map(eq, a, b))
    tested: dict[str, Significance] = {}
    # Sentences with equal translations do not contribute to a difference.
    if significance and len(a) - equal >= FEWEST_TESTED:
        tested = _significance_tests(a, b, references, tokenize=tokenize, lowercase=lowercase)
    rows = []
    for score_a, score_b in zip(scores_a, scores_b, strict=True):
        rows.append(MetricRow(score_a.name, score_a.value, score_b.value, score_a.signature, tested.get(score_a.name)))
    criterion = Criterion(references, tokenize=tokenize, lowercase=lowercase)
    criterion.choose_metric(a)
    lengths_a = by_length(sources, a, references, tokenize=tokenize, lowercase=lowercase)
    lengths_b = by_length(sources, b, references, tokenize=tokenize, lowercase=lowercase)
    first_references = list(map(_first_reference, zip(*references, strict=True)))
    frequency_a = by_frequency(a, first_references, counts, words)
    frequency_b = by_frequency(b, first_references, counts, words)
    return Comparison(
        (name_a, name_b),
        len(a),
        equal,
        rows,
        list(zip(lengths_a, lengths_b, strict=True)),
        list(zip(frequency_a, frequency_b, strict=True)),
        _differing_sentences(sources, a, b, references, samples, lowercase=lowercase),
        criterion.name,
    )


def refuse_too_many(sentences: int) -> None:
    """Check that there are not too many sentences for a significance test.

    Raises:
        UserError: there are.
    """
    if sentences > MOST_TESTED:
        what = f"significance is tested on up to {MOST_TESTED:,} sentences, these are {sentences:,}"
        raise UserError(what, fix="Give fewer, or `significance=False`.")


def _first_reference(texts: Iterable[str | None]) -> str:
    """Return the first reference of a sentence."""
    return next(text for text in texts if text is not None)


def _significance_tests(
    a: Sequence[str], b: Sequence[str], references: ReferenceSets, *, tokenize: str, lowercase: bool
) -> dict[str, Significance]:
    from sacrebleu.significance import PairedTest

    tests: list[tuple[dict[str, Any], dict[str, list[Any]]]] = []
    for kind in ("bs", "ar"):  # paired bootstrap resampling, approximate randomization
        scorers = metrics(tokenize=tokenize, lowercase=lowercase)
        by_name = dict(zip(METRICS, scorers, strict=True))
        # sacreBLEU takes None for a missing reference, though its types do not say so.
        tests.append(PairedTest([("A", a), ("B", b)], by_name, references, kind)())  # type: ignore[arg-type]
    (signatures, bootstrap), (other_signatures, randomization) = tests
    tested = {}
    for name in signatures:
        a_result, b_result = bootstrap[name]
        tested[plain_name(name)] = Significance(
            float(a_result.ci),
            float(b_result.ci),
            float(b_result.p_value),
            float(randomization[name][1].p_value),
            (str(signatures[name]), str(other_signatures[name])),
        )
    return tested


def _differing_sentences(
    sources: Sequence[str],
    a: Sequence[str],
    b: Sequence[str],
    references: ReferenceSets,
    samples: int,
    *,
    lowercase: bool,
) -> list[DifferingSentence]:
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF(lowercase=lowercase)
    sentences = []
    for number, (source, text_a, text_b, *texts) in enumerate(zip(sources, a, b, *references, strict=True), 1):
        if text_a != text_b:
            sentence_references = [text for text in texts if text is not None]
            chrf_a = chrf.sentence_score(text_a, sentence_references).score
            chrf_b = chrf.sentence_score(text_b, sentence_references).score
            sentences.append(DifferingSentence(number, source, sentence_references[0], text_a, text_b, chrf_a, chrf_b))
    # From the largest gain of B to its largest loss.
    sentences.sort(key=lambda sentence: sentence.chrf_a - sentence.chrf_b)
    better = [sentence for sentence in sentences[:samples] if sentence.chrf_b > sentence.chrf_a]
    worse = [sentence for sentence in sentences[::-1][:samples] if sentence.chrf_b < sentence.chrf_a]
    return [*better, *worse]


def _with_difference(a: float, b: float) -> tuple[str, str, str]:
    return f"{a:.1f}", f"{b:.1f}", f"{b - a:+.1f}"
