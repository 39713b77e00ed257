"""Scores by the length of the source sentence: where do long sentences break?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from translucid.data.words import spaced
from translucid.evaluation.metrics import DEFAULT, ReferenceSets, bleu_metric

EDGES = (1, 6, 11, 16, 21, 31, 41, 61)
"""First source length, in words, of each bucket; the last one is open."""


class LengthRow(NamedTuple):
    """The sentences of one bucket."""

    words: str
    """Source lengths, such as `6-10` or `61+`."""
    sentences: int
    bleu: float
    chrf: float
    length_ratio: float
    """Words written for each word of the first reference."""


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: ReferenceSets,
    *,
    tokenize: str = DEFAULT,
    lowercase: bool = False,
    edges: Sequence[int] = EDGES,
) -> list[LengthRow]:
    """Score the sentences of each bucket of source lengths; empty buckets are left out."""
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = bleu_metric(tokenize, lowercase=lowercase), CHRF(lowercase=lowercase)
    lengths = [len(spaced(source).split()) for source in sources]
    rows = []
    for first, after in pairwise([*edges, None]):
        inside = [i for i, n in enumerate(lengths) if n >= (first or 0) and (after is None or n < after)]
        if not inside:
            continue
        found = [hypotheses[i] for i in inside]
        wanted = [[reference[i] for i in inside] for reference in references]
        written, expected = (sum(len(spaced(text or "").split()) for text in texts) for texts in (found, wanted[0]))
        rows.append(
            LengthRow(
                f"{first}+" if after is None else f"{first}-{after - 1}",
                len(inside),
                bleu.corpus_score(found, wanted).score,  # type: ignore[arg-type]
                chrf.corpus_score(found, wanted).score,  # type: ignore[arg-type]
                written / max(expected, 1),
            )
        )
    return rows
