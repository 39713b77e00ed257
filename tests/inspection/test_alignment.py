"""From attention to links, the best way to read them, and two directions joined."""

import torch

from translucid.evaluation.alignment import AlignmentOptions, Gold
from translucid.inspection.alignment import choose, grow_diagonal, read_alignment
from translucid.inspection.inspected import Inspected


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


def test_the_best_layer_is_found_on_gold():
    gold = [Gold(*[frozenset([(0, 0), (1, 1), (2, 2)])] * 2)]
    ways = choose([example()], gold)
    assert len(ways) == 6
    best, score = next(iter(ways.items()))
    assert best in (AlignmentOptions(layer=0, shift=True), AlignmentOptions(layer=None, shift=True))
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
