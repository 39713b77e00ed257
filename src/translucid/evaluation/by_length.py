"""Scores by the length of the source sentence."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
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
) -> list[LengthRow]:
    """Score the sentences of each bucket of source lengths; empty buckets are left out."""
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = bleu_metric(tokenize, lowercase=lowercase), CHRF(lowercase=lowercase)
    # Lengths below the first edge belong to no bucket.
    buckets = defaultdict[int, list[int]](list)
    for i, source in enumerate(sources):
        buckets[bisect_right(EDGES, _words(source)) - 1].append(i)
    rows = []
    for bucket, name in enumerate(interval_names(EDGES)):
        inside = buckets[bucket]
        if not inside:
            continue
        texts = list(map(hypotheses.__getitem__, inside))
        wanted = [list(map(reference.__getitem__, inside)) for reference in references]
        scores = bleu.corpus_score(texts, wanted).score, chrf.corpus_score(texts, wanted).score  # type: ignore[arg-type]
        ratio = sum(map(_words, texts)) / max(sum(map(_words, wanted[0])), 1)
        rows.append(LengthRow(name, len(inside), *scores, ratio))
    return rows


def interval_names(edges: Sequence[int]) -> list[str]:
    """Return the names of the intervals between whole numbers, such as `0`, `5-9` and, for the last, `1000+`."""
    names = []
    for first, after in pairwise(edges):
        names.append(f"{first}-{after - 1}" if after - first > 1 else f"{first}")
    return [*names, f"{edges[-1]}+"]


def _words(text: str | None) -> int:
    return len(spaced(text or "").split())
