"""Scores by the length of the source sentence."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from translucid.data.words import spaced
from translucid.evaluation.metrics import DEFAULT, ReferenceSets, bleu_metric

EDGES = (1, 6, 11, 16, 21, 31, 41, 61)
"""The smallest source length, in words, of each bucket; the last bucket is open."""


class LengthRow(NamedTuple):
    """The sentences of one bucket."""

    words: str
    """The source lengths, such as `6-10` or `61+`."""
    sentences: int
    bleu: float
    chrf: float
    length_ratio: float
    """The number of words per word of the first reference."""


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
    # Lengths below the first edge belong to no bucket.
    buckets = defaultdict[int, list[int]](list)
    for i, source in enumerate(sources):
        buckets[bisect_right(edges, _words(source)) - 1].append(i)
    rows = []
    for bucket, first in enumerate(edges):
        inside, name = buckets[bucket], f"{first}+"
        if not inside:
            continue
        if bucket + 1 < len(edges):
            name = f"{first}-{edges[bucket + 1] - 1}"
        texts = list(map(hypotheses.__getitem__, inside))
        wanted = [list(map(reference.__getitem__, inside)) for reference in references]
        scores = bleu.corpus_score(texts, wanted).score, chrf.corpus_score(texts, wanted).score  # type: ignore[arg-type]
        ratio = sum(map(_words, texts)) / max(sum(map(_words, wanted[0])), 1)
        rows.append(LengthRow(name, len(inside), *scores, ratio))
    return rows


def _words(text: str | None) -> int:
    return len(spaced(text or "").split())
