"""Word links from attention, the choice of the best options, and the combination of two directions."""

import numpy as np
import torch

from translucid.evaluation.alignment_error import AlignmentOptions, Gold
from translucid.inspection.alignment import choose, read_alignment
from translucid.inspection.inspected import Inspected
from translucid.inspection.word_weights import grow_diagonal, link, source_shares


def one_hot(*columns):
    return torch.eye(4)[list(columns)][None]


def example():
    """Return a pair whose layer 0 attends to the right word one step late and whose layer 1 is uniform."""
    maps = {"decoder.0.cross": one_hot(3, 0, 1, 2), "decoder.1.cross": torch.full((1, 4, 4), 0.25)}
    return Inspected(["▁a", "▁b", "▁c", "</s>"], ["▁x", "▁y", "▁z", "</s>"], maps, [-1.0] * 4)


def test_shifted_attention_is_read_when_the_word_is_fed():
    expected = [(0, 0), (1, 1), (2, 2)]
    assert read_alignment(example(), AlignmentOptions(layer=0, shift=True)) == expected
    assert read_alignment(example(), AlignmentOptions(layer=0)) != expected


def test_source_shares_keep_one_word_from_taking_every_link():
    # "I had it" -> "lo tenía": both target words attend to "had" most, and only the second attends to "I".
    weights = np.array([[0.0, 0.6, 0.4], [0.2, 0.8, 0.0]])
    assert link(weights, both=False) == [(1, 0), (1, 1)]
    shares = source_shares(weights)
    np.testing.assert_allclose(shares.sum(0), np.ones(3))
    assert link(shares, both=False) == [(0, 1), (2, 0)]
    assert link(shares, both=True) == [(0, 1), (1, 1), (2, 0)]


def test_the_reverse_direction_is_used_too():
    options = AlignmentOptions(layer=0, both=False)
    confident = Inspected(
        ["▁a", "▁b", "</s>"], ["▁x", "▁y", "</s>"], {"decoder.0.cross": torch.eye(3)[None]}, [-1.0] * 3
    )
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])[None]
    uncertain = Inspected(confident.source, confident.target, {"decoder.0.cross": 0.4 * weights + 0.2}, [-1.0] * 3)
    reverse = Inspected(confident.target, confident.source, confident.maps, [-1.0] * 3)
    assert read_alignment(uncertain, options) == [(0, 1), (1, 0)]
    assert read_alignment(uncertain, options, reverse) == [(0, 0), (1, 1)]


def test_the_best_layer_is_found_on_gold():
    gold = [Gold(*[frozenset([(0, 0), (1, 1), (2, 2)])] * 2)]
    scores = choose([example()], gold)
    assert len(scores) == 2 * 12  # all of the source, and its content
    best, score = next(iter(scores.items()))
    assert best.shift
    assert best.layer in (0, None)
    assert score.error_rate == 0
    assert max(score.error_rate for score in scores.values()) > 0.3


def test_two_directions_grow_together():
    forward, backward = [(0, 0), (1, 1), (3, 1)], [(0, 0), (1, 2), (4, 4)]
    # (1, 1) and (1, 2) are adjacent to kept links and belong to unlinked words; (3, 1) and (4, 4) are adjacent to none.
    assert grow_diagonal(forward, backward) == [(0, 0), (1, 1), (1, 2)]
    assert grow_diagonal([(0, 0)], [(1, 1)]) == []
    assert grow_diagonal(forward, forward) == sorted(forward)
    # (0, 1) is adjacent to a link, but it is not added because both of its words have links.
    assert grow_diagonal([(0, 0), (1, 1), (0, 1)], [(0, 0), (1, 1)]) == [(0, 0), (1, 1)]


def test_a_piece_without_a_character_is_no_word():
    # An untrained model may end a translation with a lone "▁", which adds nothing to the text.
    maps = {"decoder.0.cross": torch.eye(4)[None]}
    inspected = Inspected(["▁a", "▁b", "▁c", "</s>"], ["▁x", "▁y", "▁", "</s>"], maps, [-1.0] * 4)
    assert inspected.text_words == (["a", "b", "c"], ["x", "y"])
    assert read_alignment(inspected, AlignmentOptions(layer=0, both=False)) == [(0, 0), (1, 1)]
