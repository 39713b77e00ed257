"""The metric that decides between translations: BLEU, or chrF where BLEU can't distinguish them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from translucid.evaluation.metrics import bleu_metric, bleu_tokenizer

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

NGRAM = 4
"""The length of BLEU's longest n-grams; without a match of that length, BLEU is 0 however good a translation is."""
SHARE = 0.1
"""The minimum share of sentences with a reference of that many words, so that BLEU is meaningful."""
TELLS = {"BLEU": 1.0, "chrF": 10.0}
"""Scores below which a difference is chance, as hardly any word is correct."""

References = Sequence[Sequence[str | None]]
"""Sets of references with one reference per sentence, or None."""


class Criterion:
    """A score of a whole test set, the higher the better."""

    name: str
    """`BLEU` or `chrF`."""

    def __init__(self, references: References, language: str | None = None) -> None:
        """Choose the metric for some references: BLEU, unless they are too short for it.

        Args:
            references: at least one set.
            language: the code of their language, if it is known.
        """
        from sacrebleu.metrics.chrf import CHRF

        self.references = references
        tokenize = bleu_tokenizer(language, references)
        self._metrics: dict[str, Metric] = {"BLEU": bleu_metric(tokenize), "chrF": CHRF()}
        self.name = "BLEU" if long_enough(references, tokenize) else "chrF"

    def bleu(self, hypotheses: Sequence[str]) -> float:
        """Return the BLEU of translations, 0 to 100."""
        return self._score("BLEU", hypotheses)

    def score(self, hypotheses: Sequence[str]) -> float:
        """Return the score of translations, 0 to 100."""
        return self._score(self.name, hypotheses)

    def _score(self, name: str, hypotheses: Sequence[str]) -> float:
        found: float = self._metrics[name].corpus_score(hypotheses, self.references).score  # type: ignore[arg-type]
        return found

    def tells(self, score: float) -> bool:
        """Return whether a score is high enough for a difference to be meaningful."""
        return score >= TELLS[self.name]

    def settle(self, hypotheses: Sequence[str]) -> float:
        """Return the score of the baseline translations, and change the metric to chrF if their BLEU is too low."""
        score = self.score(hypotheses)
        if self.name == "BLEU" and not self.tells(score):
            self.name = "chrF"
            score = self.score(hypotheses)
        return score


def long_enough(references: References, tokenize: str) -> bool:
    """Return whether the references are long enough for BLEU with one of sacreBLEU's tokenizers."""
    tokenizer = bleu_metric(tokenize).tokenizer
    long = 0
    # One long reference of a sentence is enough for BLEU to count its 4-grams.
    for row in zip(*references, strict=True):
        for text in row:
            if text is not None and len(tokenizer(text).split()) >= NGRAM:
                long += 1
                break
    return long >= SHARE * len(references[0])
