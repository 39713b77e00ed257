"""Word links from sentence pairs alone, without a translation model: the hidden Markov model in both directions.

Each target word is written by one source word or by none. The position of that source word depends on that of the
source word that wrote the previous target word: p(t_i, a_i = j | a_i-1 = k) = p(jump j - k) p(t_i | s_j) (Vogel et al.
1996, C96-2141, section 3). The models of both directions learn together, from the product of their posteriors (Liang et
al. 2006, N06-1014, section 3.2), which excludes most wrong links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitext.pair import Pair
from bitext.words import folded, linked_words, words_in
from translucid.evaluation.alignment_error import Gold
from translucid.inspection.word_weights import grow_diagonal

EVEN_ROUNDS, ROUNDS = 5, 5
"""Rounds of expectation maximization in which all jumps are equally probable, as in IBM model 1; and those after."""
UNLINKED = 0.1
"""The probability that no source word writes a target word."""
LONGEST_JUMP = 12
"""Longer jumps are as probable as this one."""
BATCH_LINKS = 400_000
"""The number of possible links in a batch, padding included."""


class _Words(NamedTuple):
    """The words of a text that are linked."""

    ids: list[int]
    """The number of each word in the vocabulary."""
    position: list[int]
    """For each word, the position among the words as `linked_words` separates them of the one that it is part of."""


class _Batch(NamedTuple):
    """Pairs of similar lengths."""

    rows: list[int]
    """The number of each pair."""
    sources: Tensor
    """[B, S], the number of each source word; 0 for padding, too."""
    targets: Tensor
    """[B, T], the number of each target word; 0 for padding, too."""
    lengths: tuple[Tensor, Tensor]
    """[B] each, the numbers of source and of target words."""
    entries: Tensor
    """[B, T, S], the entry in the table of word pairs of each possible link; the last one for padding."""


def statistical_links(pairs: Sequence[Pair], count: int) -> list[Gold]:
    """Return links between the words, as `linked_words` separates them, of the first `count` of some sentence pairs.

    The model learns from all pairs. Links that both directions have are sure; those that `grow_diagonal` adds are
    possible. Signs at the edges of a word, and case, are ignored.
    """
    sources, source_words = _numbered([pair.source for pair in pairs])
    targets, target_words = _numbered([pair.target for pair in pairs])
    batches, table = _batches(sources, targets, target_words)
    model = _Model(table, source_words, target_words)
    for number in range(EVEN_ROUNDS + ROUNDS):
        model.learn(batches, jumps=number >= EVEN_ROUNDS)
    links = [Gold(frozenset(), frozenset())] * count
    for batch in batches:
        if min(batch.rows) < count:
            forward, backward = model.posteriors(batch)
            for row, pair in enumerate(batch.rows):
                if pair < count:
                    words = sources[pair], targets[pair]
                    links[pair] = _links(forward[row], backward[row], *words)
    return links


def _numbered(texts: Sequence[str]) -> tuple[list[_Words], int]:
    """Return the words of texts, and the size of their vocabulary."""
    numbers: dict[str, int] = {}
    numbered = []
    for text in texts:
        words = _Words([], [])
        for position, token in enumerate(linked_words(text)):
            words_inside = words_in(token)
            # A sign is linked only if it stands alone.
            without_signs = [word for word in words_inside if word.text.isalnum()]
            for word in folded(without_signs or words_inside):
                words.ids.append(numbers.setdefault(word, len(numbers)))
                words.position.append(position)
        numbered.append(words)
    return numbered, len(numbers)


def _batches(
    sources: Sequence[_Words], targets: Sequence[_Words], target_words: int
) -> tuple[list[_Batch], NDArray[np.int64]]:
    """Return batches of pairs of similar lengths, and the table: the distinct word pairs [pairs, 2]."""
    padded, unique_keys = [], []
    for rows in _rows_of_batches([len(words.ids) for words in sources], [len(words.ids) for words in targets]):
        source = _padded([sources[row].ids for row in rows])
        target = _padded([targets[row].ids for row in rows])
        key = source[:, None, :] * target_words + target[:, :, None]
        key[(source[:, None, :] < 0) | (target[:, :, None] < 0)] = -1
        padded.append((rows, source, target, key))
        unique_keys.append(np.unique(key))
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *unique_keys]))
    keys = keys[keys >= 0]
    batches = []
    for rows, source, target, key in padded:
        entries = np.searchsorted(keys, key)
        entries[key < 0] = len(keys)
        lengths = torch.from_numpy((source >= 0).sum(1)), torch.from_numpy((target >= 0).sum(1))
        sides = torch.from_numpy(source.clip(0)), torch.from_numpy(target.clip(0))
        batches.append(_Batch(rows, *sides, lengths, torch.from_numpy(entries)))
    return batches, np.stack([keys // max(target_words, 1), keys % max(target_words, 1)], 1)


def _rows_of_batches(sources: Sequence[int], targets: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of the pairs of each batch, given the numbers of words; pairs without words are left out."""
    rows: list[int] = []
    longest = 0
    order = [row for row in range(len(sources)) if sources[row] and targets[row]]
    for row in sorted(order, key=lambda row: (sources[row], targets[row])):
        longest = max(longest, targets[row])
        if rows and sources[row] * longest * (len(rows) + 1) > BATCH_LINKS:
            yield rows
            rows, longest = [], targets[row]
        rows.append(row)
    if rows:
        yield rows


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return rows of numbers as one array, padded by -1 on the right."""
    array = np.full((len(rows), max(map(len, rows))), -1)
    for row, numbers in enumerate(rows):
        array[row, : len(numbers)] = numbers
    return array


class _Model:
    """The models of both directions."""

    def __init__(self, table: NDArray[np.int64], source_words: int, target_words: int) -> None:
        self.table = torch.from_numpy(table)
        self.sizes = source_words, target_words
        # p(t | s) and p(s | t) of each entry, and 0 for padding; p(t | no word) and p(s | no word).
        self.lexicons = [torch.cat([torch.ones(len(table)), torch.zeros(1)]) for _ in range(2)]
        self.unlinked = [torch.ones(target_words), torch.ones(source_words)]
        self.jumps = [torch.ones(2 * LONGEST_JUMP + 1) for _ in range(2)]

    def _expectations(self, batch: _Batch) -> tuple[_Expectation, _Expectation]:
        """Return the expectations of both directions for a batch; `links` of the second are [B, S, T]."""
        source_lengths, target_lengths = batch.lengths
        forward = _forward_backward(
            self.lexicons[0][batch.entries],
            _ones_at_padding(self.unlinked[0][batch.targets], target_lengths),
            source_lengths,
            self.jumps[0],
        )
        backward = _forward_backward(
            self.lexicons[1][batch.entries].transpose(1, 2),
            _ones_at_padding(self.unlinked[1][batch.sources], source_lengths),
            target_lengths,
            self.jumps[1],
        )
        return forward, backward

    def posteriors(self, batch: _Batch) -> tuple[Tensor, Tensor]:
        """Return the probability of each link in the model of each direction [B, T, S]."""
        forward, backward = self._expectations(batch)
        return forward.links, backward.links.transpose(1, 2)

    def learn(self, batches: Sequence[_Batch], *, jumps: bool) -> None:
        """Do one round of expectation maximization; `jumps`: learn the probabilities of jumps, too."""
        counts = torch.zeros(len(self.table) + 1, dtype=torch.float64)
        unlinked = [torch.zeros(len(words), dtype=torch.float64) for words in self.unlinked]
        jump_counts = [torch.full((2 * LONGEST_JUMP + 1,), 1e-3, dtype=torch.float64) for _ in range(2)]
        for batch in batches:
            expected = self._expectations(batch)
            joint = expected[0].links * expected[1].links.transpose(1, 2)
            counts += torch.bincount(batch.entries.flatten(), joint.flatten().double(), len(counts))
            for side, words in enumerate((batch.targets, batch.sources)):
                no_link = (1 - expected[side].links.sum(2)) * _inside(words, batch.lengths[1 - side])
                unlinked[side] += torch.bincount(words.flatten(), no_link.flatten().double(), len(unlinked[side]))
                jump_counts[side] += expected[side].jumps
        for side in range(2):
            given = self.table[:, side]
            totals = torch.bincount(given, counts[:-1], self.sizes[side]).clamp(min=1e-30)
            self.lexicons[side][:-1] = (counts[:-1] / totals[given]).float()
            self.unlinked[side] = (unlinked[side] / unlinked[side].sum().clamp(min=1e-30)).clamp(min=1e-7).float()
            if jumps:
                self.jumps[side] = (jump_counts[side] / jump_counts[side].sum()).float()


def _inside(words: Tensor, lengths: Tensor) -> Tensor:
    """Return [B, T], True where a position is within the length of its row."""
    return torch.arange(words.size(1)) < lengths[:, None]


def _ones_at_padding(unlinked: Tensor, lengths: Tensor) -> Tensor:
    """Return [B, T], with 1 for padding, which thus certainly has no source word."""
    return unlinked.masked_fill(~_inside(unlinked, lengths), 1.0)


class _Expectation(NamedTuple):
    """The expected links and jumps of one direction for a batch."""

    links: Tensor
    """[B, T, S], the probability that the source word wrote the target word."""
    jumps: Tensor
    """[2 LONGEST_JUMP + 1] float64, the number of jumps of each width, backwards first."""


def _forward_backward(emission: Tensor, unlinked: Tensor, lengths: Tensor, jumps: Tensor) -> _Expectation:
    """Compute the posterior of all links by the forward-backward algorithm.

    A word that no source word writes keeps the position of the previous word (Och and Ney 2003, J03-1002, section 2.1).

    Args:
        emission: [B, T, S], p(t | s); 0 for padding.
        unlinked: [B, T], p(t | no word); 1 for padding.
        lengths: [B], the numbers of source words.
        jumps: [2 LONGEST_JUMP + 1], the probability of each jump, up to a factor.
    """
    size = emission.size(2)
    width = torch.arange(size) - torch.arange(size)[:, None]
    width = width.clamp(-LONGEST_JUMP, LONGEST_JUMP) + LONGEST_JUMP  # [from, to]
    inside = (torch.arange(size) < lengths[:, None]).float()  # [B, S]
    move = jumps[width] * inside[:, None]  # [B, from, to]
    move = (1 - UNLINKED) * move / move.sum(2, keepdim=True)
    alpha = inside / lengths[:, None]  # [B, S], the position of the previous word
    linked, positions = [], [alpha]
    for word in range(emission.size(1)):
        # The first word has no previous word; all positions are equally probable.
        reached = (1 - UNLINKED) * alpha if word == 0 else (alpha[:, None] @ move)[:, 0]
        by_word = reached * emission[:, word]
        by_none = UNLINKED * alpha * unlinked[:, word, None]
        total = (by_word + by_none).sum(1, keepdim=True).clamp(min=1e-30)
        linked.append(by_word / total)
        alpha = (by_word + by_none) / total
        positions.append(alpha)
    # `beta` [B, S]: the probability of the later words, given the position, up to a factor.
    beta, counts = torch.ones_like(alpha), torch.zeros(len(jumps), dtype=torch.float64)
    for word in reversed(range(emission.size(1))):
        scale = (positions[word + 1] * beta).sum(1, keepdim=True).clamp(min=1e-30)
        linked[word] = linked[word] * beta / scale
        written = emission[:, word] * beta
        stay = UNLINKED * unlinked[:, word, None] * beta
        if word:
            moved = positions[word][:, :, None] * move * written[:, None]  # [B, from, to]
            stayed = (positions[word] * stay).sum(1)
            moved = moved / (moved.sum((1, 2)) + stayed).clamp(min=1e-30)[:, None, None]
            counts += torch.bincount(width.flatten(), moved.sum(0).flatten().double(), len(jumps))
            beta = (move @ written[:, :, None])[:, :, 0] + stay
            beta = beta / beta.max(1, keepdim=True).values.clamp(min=1e-30)
    return _Expectation(torch.stack(linked, 1), counts)


def _links(forward: Tensor, backward: Tensor, source: _Words, target: _Words) -> Gold:
    """Return the links of a pair, given the probability of each in both directions [T, S]."""
    shape = len(target.ids), len(source.ids)
    forward, backward = forward[: shape[0], : shape[1]], backward[: shape[0], : shape[1]]
    # A word is linked to its most probable partner, unless it probably has none.
    by_target, by_source = [], []
    for word, partner in enumerate(forward.argmax(1).tolist()):
        if forward[word, partner] > 1 - forward[word].sum():
            by_target.append((partner, word))
    for word, partner in enumerate(backward.argmax(0).tolist()):
        if backward[partner, word] > 1 - backward[:, word].sum():
            by_source.append((word, partner))
    sure = {(source.position[s], target.position[t]) for s, t in set(by_target) & set(by_source)}
    possible = {(source.position[s], target.position[t]) for s, t in grow_diagonal(by_target, by_source)}
    return Gold(frozenset(sure), frozenset(sure | possible))
