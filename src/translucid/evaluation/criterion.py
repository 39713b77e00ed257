"""The metric by which translations are judged where something is decided: BLEU, or chrF where BLEU cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

from translucid.evaluation.metrics import bleu_metric, bleu_tokenizer

NGRAM = 4
"""Words of the longest n-grams that BLEU counts: without any of that length it is 0, however good a translation is."""
SHARE = 0.1
"""Share of the sentences that must have a reference of so many words, for BLEU to speak for the others as well."""
TELLS = {"BLEU": 1.0, "chrF": 10.0}
"""Figures below which a difference is one of chance: there are hardly any words right."""

References = Sequence[Sequence[str | None]]
"""Sets of references, each with one a sentence, None where it has none."""


class Criterion:
    """A figure of a whole test set, the higher the better."""

    name: str
    """`BLEU` or `chrF`."""

    def __init__(self, references: References, language: str | None = None) -> None:
        """Choose the metric for some references: BLEU, unless they are too short for it.

        Args:
            references: at least one set.
            language: code of theirs, if it is known.
        """
        from sacrebleu.metrics.chrf import CHRF

        self.references = references
        tokenize = bleu_tokenizer(language, references)
        self._bleu, self._chrf = bleu_metric(tokenize), CHRF()
        self.name = "BLEU" if long_enough(references, tokenize) else "chrF"

    def bleu(self, hypotheses: Sequence[str]) -> float:
        """Return the BLEU of translations, 0 to 100."""
        found: float = self._bleu.corpus_score(hypotheses, self.references).score  # type: ignore[arg-type]
        return found

    def chrf(self, hypotheses: Sequence[str]) -> float:
        """Return the chrF of translations, 0 to 100."""
        found: float = self._chrf.corpus_score(hypotheses, self.references).score  # type: ignore[arg-type]
        return found

    def score(self, hypotheses: Sequence[str]) -> float:
        """Return the figure of translations, 0 to 100."""
        return self.bleu(hypotheses) if self.name == "BLEU" else self.chrf(hypotheses)

    def tells(self, score: float) -> bool:
        """Whether a figure is high enough for a difference to mean something."""
        return score >= TELLS[self.name]

    def settle(self, hypotheses: Sequence[str]) -> float:
        """Return the figure of the translations that others are to be compared with.

        From then on the figure is chrF, where BLEU does not tell how good these are.
        """
        score = self.score(hypotheses)
        if self.name == "BLEU" and not self.tells(score):
            self.name = "chrF"
            score = self.chrf(hypotheses)
        return score


def long_enough(references: References, tokenize: str) -> bool:
    """Whether BLEU with one of sacreBLEU's tokenizers can tell good translations from bad ones, by the references."""
    cut = bleu_metric(tokenize).tokenizer
    long = 0
    for row in zip(*references, strict=True):
        long += any(text is not None and len(cut(text).split()) >= NGRAM for text in row)
    return long >= SHARE * len(references[0])
