"""Statistical word links: forward-backward against an enumeration of all alignments, and learned links."""

from itertools import product

import numpy as np
import torch

from bitext.pair import Pair
from translucid.api.fitting.alignment_fitting import LONG, LinkedPairs
from translucid.corpora.phrasebook import generate
from translucid.evaluation.alignment_error import Gold, alignment_score
from translucid.inspection.statistical_alignment import LONGEST_JUMP, UNLINKED, _forward_backward, statistical_links


def enumerate_alignments(emission, unlinked, jumps):
    """Return the posteriors of links [T, S] and the expected jumps of a pair: a sum over all alignments.

    An alignment is a source word for each target word, or none. The first position is drawn uniformly before the first
    word, which does not move.
    """
    length, size = emission.shape
    links, counts, total = np.zeros((length, size)), np.zeros(len(jumps)), 0.0
    start, to = np.indices((size, size))
    transitions = jumps[to - start + LONGEST_JUMP]  # [S, S]
    transitions /= transitions.sum(1, keepdims=True)
    for first, alignment in product(range(size), product([None, *range(size)], repeat=length)):
        probability, position = 1 / size, first
        jump_indices = []
        for word, partner in enumerate(alignment):
            if partner is None:
                probability *= UNLINKED * unlinked[word]
            elif word == 0:
                probability *= (1 - UNLINKED) * emission[word, partner] * (partner == first)
            else:
                probability *= (1 - UNLINKED) * transitions[position, partner] * emission[word, partner]
                jump_indices.append(partner - position + LONGEST_JUMP)
            position = position if partner is None else partner
        total += probability
        for word, partner in enumerate(alignment):
            if partner is not None:
                links[word, partner] += probability
        for jump in jump_indices:
            counts[jump] += probability
    return links / total, counts / total


def test_forward_backward_sums_over_all_alignments():
    generator = np.random.default_rng(1)
    jumps = generator.random(2 * LONGEST_JUMP + 1)
    sizes = [(3, 3), (3, 2), (2, 3), (1, 1)]
    emission, unlinked, counts = np.zeros((4, 3, 3)), np.ones((4, 3)), 0.0
    links = np.zeros((4, 3, 3))
    for row, (length, size) in enumerate(sizes):
        emission[row, :length, :size] = generator.random((length, size))
        unlinked[row, :length] = generator.random(length)
        links[row, :length, :size], row_counts = enumerate_alignments(
            emission[row, :length, :size], unlinked[row, :length], jumps
        )
        counts += row_counts
    lengths = torch.tensor([size for _, size in sizes])
    expected = _forward_backward(
        *(torch.from_numpy(array) for array in (emission, unlinked)), lengths, torch.from_numpy(jumps)
    )
    np.testing.assert_allclose(expected.links, links, atol=1e-6)
    np.testing.assert_allclose(expected.jumps, counts, atol=1e-6)


def test_it_finds_most_gold_links_of_the_phrasebook():
    phrases = list(generate(400, split="train"))
    links = statistical_links([Pair(phrase.source, phrase.target) for phrase in phrases], 100)
    gold = [Gold(frozenset(phrase.alignment), frozenset(phrase.alignment)) for phrase in phrases[:100]]
    sure = alignment_score([sorted(link.sure) for link in links], gold)
    possible = alignment_score([sorted(link.possible) for link in links], gold)
    assert sure.precision > 0.95
    assert possible.error_rate < 0.2


def test_links_are_between_words_separated_by_spaces():
    pairs = [Pair("A cat!", "¡Un gato!"), Pair("A dog , it", "Un perro , lo"), Pair("", "Un"), Pair("a Cat", "UN gato")]
    links = statistical_links(pairs * 20, 4)
    assert [sorted(link.sure) for link in links] == [
        [(0, 0), (1, 1)],
        [(0, 0), (1, 1), (2, 2), (3, 3)],
        [],
        [(0, 0), (1, 1)],
    ]


def test_joined_pairs_keep_their_links():
    pairs = [Pair("a b", "x y z"), Pair("c", "w")]
    links = [Gold(frozenset([(0, 0)]), frozenset([(0, 0), (1, 2)])), Gold(frozenset([(0, 0)]), frozenset([(0, 0)]))]
    joined = LinkedPairs(pairs, links).joined(30, seed=1)
    lengths = set()
    for pair, gold in zip(*joined, strict=True):
        source, target = pair.source.split(), pair.target.split()
        partners = {"a": "x", "b": "z", "c": "w"}
        assert all(partners[source[s]] == target[t] for s, t in gold.possible)
        assert len(gold.possible) == len(source)
        assert len(gold.sure) == source.count("a") + source.count("c")
        lengths.add(len(source))
    assert max(lengths) > LONG // 2 and min(lengths) < LONG // 4 and max(lengths) <= LONG
