"""Batches of an epoch, for corpora of one or several blocks, in one or several processes."""

from collections import Counter

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.training.data_loader import PairDataLoader
from translucid.training.hardware.ddp import Workers

PAIRS = [Pair(p.source, p.target) for p in generate(300, max_words=9)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=200), seed=1)


@pytest.fixture(scope="module")
def corpus(tokenizer):
    return EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=99)


def epochs(corpus, *, sizes=(300,), max_tokens=99, seed=1, **options):
    return PairDataLoader(corpus, sizes, max_tokens=max_tokens, batch_tokens=200, seed=seed, **options)


def labels_of(batch):
    return int((batch.rows.labels != SPECIAL.pad).sum())


def sentences(batches):
    counts = Counter()
    for batch in batches:
        labels, packing = batch.rows.labels, batch.rows.packing
        for row in packing.target.padded(labels) if packing else labels:
            counts[tuple(row[row != SPECIAL.pad].tolist())] += 1
    del counts[()]  # the filling of packed batches
    return counts


@pytest.mark.parametrize("block", [10**6, 70])
def test_an_epoch_has_every_pair_once_in_batches_of_its_own(corpus, block):
    data = epochs(corpus, block=block)
    first, second = list(data.batches(0)), list(data.batches(1))
    assert sentences(first) == sentences(second) == Counter(tuple(corpus.target(i).tolist()) for i in range(300))
    assert [b.rows.labels.tolist() for b in first] != [b.rows.labels.tolist() for b in second]
    assert all(b.rows.source.numel() <= 200 or len(b.rows.source) == 1 for b in first)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block", [10**6, 70])
def test_an_epoch_resumes_at_any_batch(corpus, block, packed):
    def batches(first=0):
        return [batch.rows.labels.tolist() for batch in epochs(corpus, block=block, packed=packed).batches(3, first)]

    whole_epoch = batches()
    for first in range(0, len(whole_epoch) + 1, 3):
        assert batches(first) == whole_epoch[first:]


def shapes(batch):
    """Return the shapes of everything in a packed batch that a graph reads, with its longest sentences."""
    rows = batch.rows
    tensors = [rows.source, rows.targets_in, rows.labels]
    for side in rows.packing:
        tensors += [side.offsets, side.number, side.position]
    return (*(tuple(tensor.shape) for tensor in tensors), *(side.longest for side in rows.packing))


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("block", [10**6, 70])
def test_all_packed_batches_have_one_shape_and_no_token_is_lost(corpus, block, processes):
    expected = Counter(tuple(corpus.target(i).tolist()) for i in range(300))
    parts = []
    for rank in range(processes):
        parts.append(list(epochs(corpus, block=block, packed=True, workers=Workers(rank, processes)).batches(0)))
    assert sentences(batch for part in parts for batch in part) == expected
    # Also in the second epoch of a resumed training, whose first pairs have other lengths.
    parts_of_second = epochs(corpus, block=block, packed=True, workers=Workers(0, processes)).batches(1)
    assert len({shapes(batch) for part in [*parts, parts_of_second] for batch in part}) == 1
    for shares in zip(*parts, strict=True):
        assert {part.target_tokens for part in shares} == {sum(labels_of(part) for part in shares)}
    filling = sum(int((batch.rows.source == SPECIAL.pad).sum()) for batch in parts[0])
    assert filling / sum(batch.rows.source.numel() for batch in parts[0]) < (0.2 if processes == 1 else 0.8)


def test_a_pair_that_is_too_long_for_the_shape_has_a_larger_batch(corpus):
    data = PairDataLoader(corpus, [300], max_tokens=99, batch_tokens=12, seed=1, packed=True)
    batches = list(data.batches(0))
    assert sentences(batches).total() == 300
    assert len({shapes(batch) for batch in batches}) > 1


@pytest.mark.parametrize("block", [10**6, 70])
def test_the_finished_share_rises_from_0_to_1(corpus, block):
    data = epochs(corpus, block=block)
    count = len(list(data.batches(0)))
    progress = [data.done(0, batch) for batch in range(count + 1)]
    assert (progress[0], progress[-1]) == (0, 1)
    assert progress == sorted(progress)
    assert progress[count // 2] == pytest.approx(0.5, abs=0.05)
    assert data.size(0) == pytest.approx(count, rel=0.1)


def test_each_process_gets_its_rows_and_all_know_the_tokens_of_the_batch(corpus):
    whole_batches = list(epochs(corpus).batches(0))
    shares = [list(epochs(corpus, workers=Workers(rank, 3)).batches(0)) for rank in range(3)]
    for batch, *parts in zip(whole_batches, *shares, strict=True):
        assert {part.target_tokens for part in parts} == {batch.target_tokens} == {labels_of(batch)}
        assert sentences([part for part in parts if part.rows]) == sentences([batch])
        assert sum(labels_of(part) for part in parts if part.rows) == batch.target_tokens


def test_a_batch_of_fewer_rows_than_processes_leaves_some_without(corpus):
    last = list(epochs(corpus, workers=Workers(400, 401)).batches(0))
    assert all(part.rows is None for part in last)


def test_a_small_corpus_can_be_as_large_a_part_as_another(corpus):
    counts = sentences(epochs(corpus, sizes=(200, 100), shares=[1, 1]).batches(0))
    second = {tuple(corpus.target(i).tolist()) for i in range(200, 300)}
    assert sum(count for sentence, count in counts.items() if sentence in second) == 150


def test_the_seed_decides_which_pairs_an_epoch_reads_of_a_corpus_that_it_does_not_read_whole(corpus):
    def first_epoch(seed):
        return sentences(epochs(corpus, sizes=(100, 200), shares=(2, 1), seed=seed).batches(0))

    assert first_epoch(1) == first_epoch(1)
    assert first_epoch(1) != first_epoch(2)


def test_pairs_with_too_many_pieces_are_left_out_of_an_epoch(tokenizer):
    varied = VariedCorpus(PAIRS, tokenizer, 0.5, 1)
    data = epochs(varied, max_tokens=20)
    first, second = (list(data.batches(epoch)) for epoch in (0, 1))
    assert all(batch.rows.labels.shape[1] <= 20 for batch in first)
    assert 0 < sentences(first).total() < 300
    assert sentences(first) != sentences(second)


def test_a_pair_of_exactly_the_longest_length_is_in_an_epoch(corpus):
    longest = int(np.maximum(*corpus.lengths_of(np.arange(300))).max())
    assert sentences(epochs(corpus, max_tokens=longest).batches(0)).total() == 300
    assert sentences(epochs(corpus, max_tokens=longest - 1).batches(0)).total() < 300


def test_an_epoch_without_pairs_is_an_error(corpus):
    with pytest.raises(UserError, match=r"every training pair has more than 2 tokens.*data\.max_tokens"):
        next(epochs(corpus, max_tokens=2).batches(0))


def test_batches_are_the_same_tensors_whether_ids_take_two_bytes_or_four(corpus):
    narrow = EncodedCorpus(
        corpus.source_ids.astype("uint16"),
        corpus.source_offsets,
        corpus.target_ids.astype("uint16"),
        corpus.target_offsets,
    )
    for batch, narrow_batch in zip(epochs(corpus).batches(0), epochs(narrow).batches(0), strict=True):
        assert torch.equal(batch.rows.source, narrow_batch.rows.source) and torch.equal(
            batch.rows.labels, narrow_batch.rows.labels
        )
        assert batch.rows.source.dtype == narrow_batch.rows.source.dtype == torch.int64
