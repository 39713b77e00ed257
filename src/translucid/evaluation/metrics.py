"""BLEU, chrF and TER with their signatures; sacreBLEU (Post 2018, arXiv 1804.08771) does the counting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


ReferenceSets: TypeAlias = Sequence[Sequence[str | None]]
"""Sets of references, each with one a sentence; None where a sentence has none of that set."""


@dataclass(frozen=True)
class CorpusScore:
    """One figure of one metric."""

    name: str
    """`BLEU`, `chrF` or `TER`."""
    value: float
    """0 to 100; TER, an error rate, is best at 0 and may be above 100."""
    signature: str
    """sacreBLEU's record of everything that decides the figure."""


def corpus_scores(
    hypotheses: Sequence[str],
    references: ReferenceSets,
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[CorpusScore]:
    """Score translations against one or more references.

    Args:
        hypotheses: one translation a sentence.
        references: sets of references, each with one a sentence, or None where a sentence has none.
        tokenize: sacreBLEU's tokenizer for BLEU; `none` for text that is tokenised already.
        lowercase: ignore case, in all three.

    Raises:
        UserError: nothing to score, sets of unequal length, or an unknown tokenizer.
    """
    _check(hypotheses, references)
    scores = []
    for metric in metrics(tokenize=tokenize, lowercase=lowercase):
        found = metric.corpus_score(hypotheses, references)  # type: ignore[arg-type]
        scores.append(CorpusScore(plain_name(found.name), found.score, str(metric.get_signature())))
    return scores


def metrics(*, tokenize: str = "13a", lowercase: bool = False) -> list[Metric]:
    """Return sacreBLEU's BLEU, chrF and TER; arguments as for `corpus_scores`.

    Raises:
        UserError: there is no such tokenizer.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"sacreBLEU has no tokenizer {tokenize!r}", fix=nearest(tokenize, BLEU.TOKENIZERS))
    return [
        # `force`: sacreBLEU warns that text looks tokenised; who says `none` knows.
        BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none"),
        CHRF(lowercase=lowercase),
        TER(case_sensitive=not lowercase),
    ]


def plain_name(name: str) -> str:
    """Return a metric's name without the beta of chrF, which its signature has."""
    return name.rstrip("2")


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return sacreBLEU's chrF of each translation against its reference, 0 to 100."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    return [metric.sentence_score(text, [right]).score for text, right in zip(hypotheses, references, strict=True)]


def reference_sets(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Turn the references of each source into sets with one for each, None where one has fewer than others.

    An empty string would count as a reference of no words; sacreBLEU takes None, though its types do not say so.
    """
    return [list(row) for row in zip_longest(*references)]


def without_blank(references: Sequence[Sequence[str]]) -> ReferenceSets:
    """Let a blank line be no reference, as files have it where a sentence has fewer; one of each sentence stays."""
    if len({len(of_set) for of_set in references}) != 1:  # which is refused where they are scored
        return references
    sets: list[list[str | None]] = [list(of_set) for of_set in references]
    for i, of_sentence in enumerate(zip(*references, strict=True)):
        if any(text.strip() for text in of_sentence):
            for of_set in sets:
                of_set[i] = of_set[i] if (of_set[i] or "").strip() else None
    return sets


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> CorpusScore:
    """Return BLEU alone, with sacreBLEU's settings; in a set of references, None where a sentence has none of them."""
    from sacrebleu.metrics.bleu import BLEU

    _check(hypotheses, references)
    metric = BLEU(force=True)
    score: float = metric.corpus_score(hypotheses, references).score  # type: ignore[arg-type]
    return CorpusScore("BLEU", score, str(metric.get_signature()))


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> float:
    """Return the figure of `corpus_bleu`."""
    return corpus_bleu(hypotheses, references).value


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> None:
    if not hypotheses or not references:
        raise UserError("there are no sentences to score", fix="Give translations and references.")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            counts = f"{len(hypotheses):,} translations but {len(reference):,} references"
            raise UserError(f"{counts} in set {number}", fix="Each sentence needs a reference in each set.")
