"""Two systems on one test set: their scores, whether chance explains the difference, and where they part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from translucid.evaluation.by_length import LengthRow, by_length
from translucid.evaluation.metrics import DEFAULT, ReferenceSets, corpus_scores, metrics, plain_name
from translucid.evaluation.rare_words import FrequencyRow, by_frequency
from translucid.ground.errors import UserError

MOST_TESTED = 20_000
"""Sentences of a test of significance; sacreBLEU holds a thousand samples of them in memory, 1.4 GB."""


FEWEST_TESTED = 6
"""Sentences that differ, below which nothing is tested: of 5 there are 32 ways to exchange the systems, of which 2 are
as far apart as what was found, so that no p-value is below 1/16. sacreBLEU does not count what is as far, only what is
further, and would give 1/10,001."""


class Tested(NamedTuple):
    """What the two tests of one metric's difference say; sacreBLEU makes them (Koehn 2004; Riezler and Maxwell 2005).

    A p-value is how often a difference as large would come of two systems that are equally good.
    """

    interval_a: float
    """Half of the 95 % interval of A's score, from the bootstrap."""
    interval_b: float
    bootstrap: float
    """p-value by paired bootstrap resampling."""
    randomisation: float
    """p-value by approximate randomisation."""
    signatures: tuple[str, str]
    """Of both tests."""


class MetricRow(NamedTuple):
    """One metric of both systems."""

    name: str
    a: float
    b: float
    signature: str
    tested: Tested | None
    """None if it was not wanted, or too few sentences differ."""


class Apart(NamedTuple):
    """A sentence that the two translate differently."""

    number: int
    """Of the sentence, from 1."""
    source: str
    reference: str
    """The first one."""
    a: str
    b: str
    chrf_a: float
    """Sentence chrF of A's translation."""
    chrf_b: float


@dataclass(frozen=True)
class Comparison:
    """Two systems, A and B."""

    names: tuple[str, str]
    sentences: int
    equal: int
    """Sentences that both translate alike."""
    metrics: list[MetricRow]
    by_length: list[tuple[LengthRow, LengthRow]]
    by_frequency: list[tuple[FrequencyRow, FrequencyRow]]
    apart: list[Apart]
    """First those on which B's chrF is the furthest above A's, then those on which it is the furthest below."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        rows: list[dict[str, Any]] = []
        for row in self.metrics:
            record = {**row._asdict(), "difference": row.b - row.a}
            rows.append({**record, "tested": row.tested and row.tested._asdict()})
        frequency = [
            {"times": a.times, "words": a.words, "f1_a": a.f1, "f1_b": b.f1, "written_a": a.written}
            | {"written_b": b.written}
            for a, b in self.by_frequency
        ]
        return {
            "a": self.names[0],
            "b": self.names[1],
            "sentences": self.sentences,
            "equal": self.equal,
            "metrics": rows,
            "by_length": [{"a": a._asdict(), "b": b._asdict()} for a, b in self.by_length],
            "by_frequency": frequency,
            "apart": [one._asdict() for one in self.apart],
        }

    def render(self) -> Iterator[RenderableType]:
        """Yield what a person wants to see."""
        yield f"A  {self.names[0]}\nB  {self.names[1]}"
        few = ": too few differ to test" if self.sentences - self.equal < FEWEST_TESTED else ""
        yield f"{self.sentences:,} sentences, {self.equal:,} of them translated alike{few}\n"
        tested = any(row.tested for row in self.metrics)
        table = _table("metric", "A", "B", "B - A", *["p (bootstrap)", "p (randomisation)"] * tested)
        for row in self.metrics:
            t = row.tested
            a, b = (f"{value:.2f}" for value in (row.a, row.b))
            if t:
                a, b = f"{a} ± {t.interval_a:.2f}", f"{b} ± {t.interval_b:.2f}"
            figures = [f"{t.bootstrap:.4f}", f"{t.randomisation:.4f}"] if t else []
            table.add_row(row.name, a, b, Text(f"{row.b - row.a:+.2f}", "bold"), *figures)
        yield table
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column()
        table.add_column(style="dim", overflow="fold")
        for row in self.metrics:
            table.add_row(row.name, row.tested.signatures[0] if row.tested else row.signature)
        yield ""
        yield table
        table = _table("source words", "sentences", "BLEU A", "BLEU B", "B - A")
        for one, other in self.by_length:
            figures = [f"{one.bleu:.1f}", f"{other.bleu:.1f}", f"{other.bleu - one.bleu:+.1f}"]
            table.add_row(one.words, f"{one.sentences:,}", *figures)
        yield ""
        yield table
        table = _table("word's frequency", "in references", "F1 A", "F1 B", "B - A")
        for first, second in self.by_frequency:
            figures = [f"{first.f1:.1f}", f"{second.f1:.1f}", f"{second.f1 - first.f1:+.1f}"]
            table.add_row(first.times, f"{first.words:,}", *figures)
        yield ""
        yield table
        for sentence in self.apart:
            marked = Text(f"\nsentence {sentence.number:,}", "bold")
            yield marked.append(f"  chrF {sentence.chrf_a:.1f} and {sentence.chrf_b:.1f}", "not bold")
            yield f"source     {sentence.source}\nreference  {sentence.reference}"
            yield f"A          {sentence.a}\nB          {sentence.b}"


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
        sources: of the test set.
        outputs: names and translations of A and B.
        references: sets of references, each with one a sentence.
        counts: how often the training text has each word.
        words: cuts a text into the words that are counted.
        significance: whether the differences are tested.
        samples: how many sentences are shown on which B is the better one, and as many on which it is the worse one.
        tokenize: sacreBLEU's tokenizer for BLEU.
        lowercase: ignore case.

    Raises:
        UserError: nothing to compare, sets of unequal length, an unknown tokenizer, or too much to test.
    """
    (name_a, a), (name_b, b) = outputs
    if significance and len(a) > MOST_TESTED:
        what = f"significance is tested on up to {MOST_TESTED:,} sentences, these are {len(a):,}"
        raise UserError(what, fix="Give fewer, or --no-significance.")
    both = [corpus_scores(one, references, tokenize=tokenize, lowercase=lowercase) for one in (a, b)]
    equal = sum(one == other for one, other in zip(a, b, strict=True))
    enough = significance and len(a) - equal >= FEWEST_TESTED
    tested = _tested(a, b, references, tokenize=tokenize, lowercase=lowercase) if enough else {}
    rows = [
        MetricRow(one.name, one.value, other.value, one.signature, tested.get(one.name))
        for one, other in zip(*both, strict=True)
    ]
    lengths = [by_length(sources, one, references, tokenize=tokenize, lowercase=lowercase) for one in (a, b)]
    first = [next(text for text in texts if text is not None) for texts in zip(*references, strict=True)]
    rare = [by_frequency(one, first, counts, words) for one in (a, b)]
    return Comparison(
        (name_a, name_b),
        len(a),
        equal,
        rows,
        list(zip(*lengths, strict=True)),
        list(zip(*rare, strict=True)),
        _apart(sources, a, b, references, samples, lowercase=lowercase),
    )


def _tested(
    a: Sequence[str], b: Sequence[str], references: ReferenceSets, *, tokenize: str, lowercase: bool
) -> dict[str, Tested]:
    from sacrebleu.significance import PairedTest

    found: list[tuple[dict[str, Any], dict[str, list[Any]]]] = []
    for kind in ("bs", "ar"):
        known = {metric.__class__.__name__: metric for metric in metrics(tokenize=tokenize, lowercase=lowercase)}
        # sacreBLEU takes None for a missing reference, though its types do not say so.
        found.append(PairedTest([("A", a), ("B", b)], known, references, kind)())  # type: ignore[arg-type]
    (signatures, bootstrap), (other_signatures, randomisation) = found
    return {
        plain_name(name): Tested(
            float(bootstrap[name][0].ci),
            float(bootstrap[name][1].ci),
            float(bootstrap[name][1].p_value),
            float(randomisation[name][1].p_value),
            (str(signatures[name]), str(other_signatures[name])),
        )
        for name in signatures
    }


def _apart(
    sources: Sequence[str],
    a: Sequence[str],
    b: Sequence[str],
    references: ReferenceSets,
    samples: int,
    *,
    lowercase: bool,
) -> list[Apart]:
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF(lowercase=lowercase)
    found = []
    for i, (source, one, other) in enumerate(zip(sources, a, b, strict=True)):
        if one != other:
            there = [text for reference in references if (text := reference[i]) is not None]
            scores = (chrf.sentence_score(text, there).score for text in (one, other))
            found.append(Apart(i + 1, source, there[0], one, other, *scores))
    found.sort(key=lambda one: one.chrf_a - one.chrf_b)
    better = [one for one in found[:samples] if one.chrf_b > one.chrf_a]
    worse = [one for one in found[::-1][:samples] if one.chrf_b < one.chrf_a]
    return [*better, *worse]


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table
