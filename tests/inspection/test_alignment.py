"""From attention to links, the best way to read them, and two directions joined."""

import numpy as np
import torch

from translucid.evaluation.alignment_error import AlignmentOptions, Gold
from translucid.inspection.alignment import choose, read_alignment
from translucid.inspection.inspected import Inspected
from translucid.inspection.word_weights import grow_diagonal, link, source_shares


def one_hot(*columns):
    return torch.eye(4)[list(columns)][None]


def example():
    """Layer 0 looks right one step late, layer 1 looks nowhere in particular."""
    maps = {"decoder.0.cross": one_hot(3, 0, 1, 2), "decoder.1.cross": torch.full((1, 4, 4), 0.25)}
    return Inspected(["▁a", "▁b", "▁c", "</s>"], ["▁x", "▁y", "▁z", "</s>"], maps, [-1.0] * 4)


def test_shifted_attention_is_read_when_the_word_is_fed():
    right = [(0, 0), (1, 1), (2, 2)]
    assert read_alignment(example(), AlignmentOptions(layer=0, shift=True)) == right
    assert read_alignment(example(), AlignmentOptions(layer=0)) != right


def test_a_verb_that_all_look_at_does_not_take_every_link():
    # "I had it" -> "lo tenía": both target words look at "had" most, and "I" is looked at by the second more.
    weights = np.array([[0.0, 0.6, 0.4], [0.2, 0.8, 0.0]])
    assert link(weights, both=False) == [(1, 0), (1, 1)]
    shares = source_shares(weights)
    np.testing.assert_allclose(shares.sum(0), np.ones(3))
    assert link(shares, both=False) == [(0, 1), (2, 0)]
    assert link(shares, both=True) == [(0, 1), (1, 1), (2, 0)]


def test_the_other_direction_is_asked_as_well():
    options = AlignmentOptions(layer=0, both=False)
    seen = Inspected(["▁a", "▁b", "</s>"], ["▁x", "▁y", "</s>"], {"decoder.0.cross": torch.eye(3)[None]}, [-1.0] * 3)
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])[None]
    unsure = Inspected(seen.source, seen.target, {"decoder.0.cross": 0.4 * weights + 0.2}, [-1.0] * 3)
    turned = Inspected(seen.target, seen.source, seen.maps, [-1.0] * 3)
    assert read_alignment(unsure, options) == [(0, 1), (1, 0)]
    assert read_alignment(unsure, options, turned) == [(0, 0), (1, 1)]


def test_the_best_layer_is_found_on_gold():
    gold = [Gold(*[frozenset([(0, 0), (1, 1), (2, 2)])] * 2)]
    ways = choose([example()], gold)
    assert len(ways) == 12
    best, score = next(iter(ways.items()))
    assert best.shift
    assert best.layer in (0, None)
    assert score.error_rate == 0
    assert max(score.error_rate for score in ways.values()) > 0.3


def test_two_directions_grow_together():
    forward, backward = [(0, 0), (1, 1), (3, 1)], [(0, 0), (1, 2), (4, 4)]
    # (1, 1) and (1, 2) touch what is kept and belong to words without links; (3, 1) and (4, 4) touch nothing.
    assert grow_diagonal(forward, backward) == [(0, 0), (1, 1), (1, 2)]
    assert grow_diagonal([(0, 0)], [(1, 1)]) == []
    assert grow_diagonal(forward, forward) == sorted(forward)
    # Neither of its words is without a link, so it is not added though it touches.
    assert grow_diagonal([(0, 0), (1, 1), (0, 1)], [(0, 0), (1, 1)]) == [(0, 0), (1, 1)]


def test_a_piece_without_a_character_is_no_word():
    # An untrained model may end a translation with a lone "▁", of which the text has nothing.
    maps = {"decoder.0.cross": torch.eye(4)[None]}
    seen = Inspected(["▁a", "▁b", "▁c", "</s>"], ["▁x", "▁y", "▁", "</s>"], maps, [-1.0] * 4)
    assert seen.text_words == (["a", "b", "c"], ["x", "y"])
    assert read_alignment(seen, AlignmentOptions(layer=0, both=False)) == [(0, 0), (1, 1)]
