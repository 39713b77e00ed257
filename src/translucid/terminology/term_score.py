"""The outcomes of terms in the translations of a test set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from rich.table import Table

from translucid.evaluation.metrics import Criterion, ReferenceSets
from translucid.ground.console import table_of
from translucid.terminology.matching import TermList


@dataclass(frozen=True)
class TermScore:
    """The counts and the quality of one set of translations."""

    asked: int
    """The number of terms in the sources."""
    used: int
    """The number of terms whose targets are in the translations."""
    inflected: int
    """The number of terms of which the translations have another form."""
    missing: int
    bleu: float
    chrf: float
    seconds: float
    """The duration of the translation."""

    @classmethod
    def of(
        cls,
        terms: TermList,
        sources: Sequence[str],
        texts: Sequence[str],
        references: ReferenceSets,
        seconds: float,
        language: str | None = None,
    ) -> Self:
        """Count the outcomes, and compute BLEU and chrF.

        Args:
            terms: the terms.
            sources: the sources of the test set.
            texts: the translations.
            references: one list of references or more.
            seconds: the duration of the translation.
            language: the code of the target language.
        """
        outcomes = Counter[str]()
        for source, text in zip(sources, texts, strict=True):
            outcomes.update(use.outcome for use in terms.uses(terms.matches(source), text))
        counts = outcomes.total(), outcomes["used"], outcomes["inflected"], outcomes["missing"]
        bleu, chrf = Criterion(references, language).scores(texts)
        return cls(*counts, bleu.value, chrf.value, seconds)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


def terms_table(without: TermScore, constrained: TermScore) -> Table:
    """Return a table of translations without and with constraints."""
    table = table_of("terms", figures=("asked", "used", "inflected", "missing", "BLEU", "chrF", "seconds"))
    for name, score in (("unconstrained", without), ("constrained", constrained)):
        counts = (score.used, score.inflected, score.missing)
        shares = [f"{count:,} ({count / max(score.asked, 1):.1%})" for count in counts]
        table.add_row(
            name, f"{score.asked:,}", *shares, f"{score.bleu:.2f}", f"{score.chrf:.2f}", f"{score.seconds:.1f}"
        )
    return table
