"""Word alignments from attention, in Pharaoh format: `0-0 1-2`, source word first, counted from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from translucid.evaluation.alignment import AlignmentOptions, AlignmentScore, Gold, Links, alignment_score
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import WordMap

_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def align(words: WordMap) -> Links:
    """Link each target word to the source word it looked at most. The end tokens take no part."""
    inner = words.weights[:-1, :-1]
    if not inner.numel():
        return []
    return sorted((int(best), target) for target, best in enumerate(inner.argmax(1)))


def read_alignment(inspected: Inspected, options: AlignmentOptions) -> Links:
    """Read a word alignment off the attention, where and how the options say."""
    return align(inspected.words(inspected.cross(options.layer, shift=options.shift)))


def choose(examples: Sequence[Inspected], gold: Sequence[Gold]) -> dict[AlignmentOptions, AlignmentScore]:
    """Score every way to read an alignment off the attention: each layer, plain and shifted; the best comes first."""
    layers = [None, *examples[0].layers] if len(examples[0].layers) > 1 else examples[0].layers
    ways = [AlignmentOptions(layer=layer, shift=shift) for layer in layers for shift in (False, True)]
    scores = {way: alignment_score([read_alignment(one, way) for one in examples], gold) for way in ways}
    return dict(sorted(scores.items(), key=lambda item: item[1].error_rate))


def grow_diagonal(forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]]) -> Links:
    """Join the alignments of two directions (Koehn et al. 2005, IWSLT, section 2): grow-diag.

    What both have is kept; then links that only one of them has are added while they touch a link that is kept, also
    at a corner, and belong to a word without any.

    Args:
        forward: links (source, target) of the model from source to target.
        backward: likewise of the model from target to source, turned round to (source, target) already.
    """
    one, other = set(forward), set(backward)
    kept, union = one & other, one | other
    while True:
        sources, targets = {s for s, _ in kept}, {t for _, t in kept}
        grown = {
            (s, t)
            for s, t in union - kept
            if (s not in sources or t not in targets) and any((s + i, t + j) in kept for i, j in _NEIGHBOURS)
        }
        if not grown:
            return sorted(kept)
        kept.add(min(grown))  # one at a time: the next may no longer belong to a word without a link


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """[(0, 0), (1, 2)] -> `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in links)
