"""Word alignments, in Pharaoh format: `0-0 1-2`, source word first, counted from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, Links, alignment_score, spread
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import WordMap, parted

FAINT = 0.01
"""Smaller weights are left out."""
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def read_alignment(inspected: Inspected, options: AlignmentOptions, reverse: Inspected | None = None) -> Links:
    """Read a word alignment where and how the options say, between the words of the texts by white space.

    `reverse` is the same pair as a model of the other direction saw it: a link is as strong as what the two gave it,
    multiplied.
    """
    shares = _shares(inspected, options)
    if reverse is not None:
        shares = shares * _shares(reverse, options).T
    links = link(shares, both=options.both)
    weighted = _between_texts([(s, t, 1.0) for s, t in links], inspected)
    return [(s, t) for s, t, _ in weighted]


def _shares(inspected: Inspected, options: AlignmentOptions) -> Tensor:
    words = weights_between(inspected, options)
    return source_shares(words) if options.both else words.between_words


def weights_between(inspected: Inspected, options: AlignmentOptions) -> WordMap:
    """Return the weights that alignments are read off: of the alignment layer if there is one, else the attention."""
    if options.learned and inspected.links is not None:
        return inspected.words(inspected.links)
    return inspected.words(inspected.cross(options.layer, shift=options.shift))


def source_shares(words: WordMap) -> Tensor:
    """Return the attention [T, S] that each source word got, as shares of the target words; without what is no word.

    A verb that half the sentence looks at would otherwise be the strongest link of all these words.
    """
    inner = words.between_words
    return inner / inner.sum(0, keepdim=True).clamp(min=1e-9)


def word_weights(inspected: Inspected, options: AlignmentOptions) -> list[tuple[int, int, float]]:
    """Return how much source and target words have to do with each other, for each target word 1 in the sum.

    That is the square of what `source_shares` gives: by 1,000 phrasebook pairs, marks are placed better by it than by
    links, or by the shares themselves (docs/placeholders.md).
    """
    squares = source_shares(weights_between(inspected, options)) ** 2
    squares = squares / squares.sum(1, keepdim=True).clamp(min=1e-9)
    links = [(s, t, squares[t, s].item()) for t, s in (squares >= FAINT).nonzero().tolist()]
    return _between_texts(links, inspected)


def _between_texts(links: list[tuple[int, int, float]], inspected: Inspected) -> list[tuple[int, int, float]]:
    """Return links between the words of the texts by white space: a placeholder may be several of them."""
    sources = [len(parted([word])) for word, _, _ in inspected.source_spans]
    targets = [len(parted([word])) for word, _, _ in inspected.target_spans]
    if {*sources, *targets} == {1}:
        return links
    return spread(links, [sources, targets])


def link(weights: Tensor, *, both: bool) -> Links:
    """Link each target word to the source word of the greatest weight [T, S].

    With `both`, each source word is linked to the target word of the greatest weight as well, and `grow_diagonal`
    joins the two.
    """
    if not weights.numel():
        return []
    forward = [(int(best), target) for target, best in enumerate(weights.argmax(1))]
    if not both:
        return sorted(forward)
    return grow_diagonal(forward, [(source, int(best)) for source, best in enumerate(weights.argmax(0))])


def choose(examples: Sequence[Inspected], gold: Sequence[Gold]) -> dict[AlignmentOptions, AlignmentScore]:
    """Score every way to read an alignment; the best comes first.

    The ways are the alignment layer, if there is one, and of the attention each layer and their average, plain and
    shifted; all from one side and from both.
    """
    taught = [AlignmentOptions(both=both) for both in (True, False) if examples[0].links is not None]
    layers = [None, *examples[0].layers] if len(examples[0].layers) > 1 else examples[0].layers
    ways = [
        AlignmentOptions(learned=False, layer=layer, shift=shift, both=both)
        for layer in layers
        for shift in (False, True)
        for both in (True, False)
    ]
    scores = {way: alignment_score([read_alignment(one, way) for one in examples], gold) for way in [*taught, *ways]}
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
