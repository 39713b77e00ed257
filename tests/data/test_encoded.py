from copy import copy
from itertools import repeat

import numpy as np
import pytest

from bitext.pair import Pair
from translucid.data.filtering import Skipped
from translucid.data.stores import encoded
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError

PAIRS = [
    Pair("I like soccer", "me gusta el fútbol"),
    Pair("yes", "sí"),
    Pair("I like cats and dogs", "me gustan los gatos"),
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=50), seed=0)


def test_both_sides_hold_the_ids_and_the_end_token(tokenizer):
    corpus = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100)
    assert len(corpus) == 3
    for i, pair in enumerate(PAIRS):
        assert corpus.source(i).tolist() == [*tokenizer.encode_source([pair.source])[0], 3]
        assert corpus.target(i).tolist() == [*tokenizer.encode_target([pair.target])[0], 3]
    source_lengths, target_lengths = corpus.lengths_of(np.arange(3))
    assert source_lengths.tolist() == [len(corpus.source(i)) for i in range(3)]
    assert target_lengths.tolist() == [len(corpus.target(i)) for i in range(3)]
    assert (corpus.source_ids.dtype, corpus.source_offsets.dtype) == (np.int32, np.int64)


def test_pairs_too_long_on_either_side_are_skipped_and_counted(tokenizer):
    full = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100)
    longest = np.maximum(*full.lengths_of(np.arange(3)))
    limit = int(longest[0])
    assert longest[2] > limit > longest[1], "the end token counts: the first pair just fits"
    skipped = Skipped()
    corpus = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=limit, skipped=skipped)
    assert len(corpus) == 2
    assert corpus.source(1).tolist() == full.source(1).tolist()
    assert dict(skipped.reasons) == {"too long": 1}
    only_target = [Pair("yes", PAIRS[2].target)]
    assert len(EncodedCorpus.encode(only_target, tokenizer, max_tokens=5)) == 0


def test_no_pairs_make_an_empty_corpus(tokenizer):
    corpus = EncodedCorpus.encode([], tokenizer, max_tokens=10)
    assert len(corpus) == 0
    assert corpus.lengths_of(np.arange(0))[0].tolist() == []


def test_a_corpus_in_many_chunks_is_the_same(tokenizer, monkeypatch):
    full = EncodedCorpus.encode(PAIRS * 4, tokenizer, max_tokens=15)
    monkeypatch.setattr(encoded, "CHUNK", 5)
    chunked = EncodedCorpus.encode(PAIRS * 4, tokenizer, max_tokens=15)
    assert np.array_equal(full.source_ids, chunked.source_ids)
    assert np.array_equal(full.target_offsets, chunked.target_offsets)


def test_lengths_and_batches_of_some_pairs(tokenizer):
    corpus = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100)
    rows = np.array([2, 1])
    source, target = corpus.lengths_of(rows)
    assert source.tolist() == [len(corpus.source(2)), len(corpus.source(1))]
    assert target.tolist() == [len(corpus.target(2)), len(corpus.target(1))]
    assert corpus.target_tokens(rows) == len(corpus.target(2)) + len(corpus.target(1))
    batch = corpus.batch([1])
    assert batch.source.tolist() == [corpus.source(1).tolist()]
    assert batch.labels.tolist() == [corpus.target(1).tolist()]
    assert batch.targets_in.tolist() == [[2, *corpus.target(1).tolist()[:-1]]]


def test_chunks_have_a_size():
    assert [len(chunk) for chunk in encoded.chunks(repeat(PAIRS[0], 50_001))] == [50_000, 1]


class Pool:
    """A pool that computes results when they are requested."""

    def __init__(self, processes, context, begin, arguments):
        self.submitted, self.most, self.closed = 0, 0, []
        Pool.last = self
        begin(*arguments)

    def submit(self, work, chunk):
        self.submitted += 1
        self.most = max(self.most, self.submitted)
        return LazyResult(self, work, chunk)

    def shutdown(self, **options):
        self.closed.append(options)


class LazyResult:
    def __init__(self, pool, work, chunk):
        self.pool, self.work, self.chunk = pool, work, chunk

    def result(self):
        self.pool.submitted -= 1
        return self.work(self.chunk)


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(encoded, "CHUNK", 2)
    monkeypatch.setattr(encoded, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(encoded.signal, "signal", lambda *_: None)
    Pool.last = None


@pytest.mark.parametrize(
    ("count", "processes", "in_process"), [(6, 3, True), (7, 3, False), (30, 1, True), (30, 2, False)]
)
def test_few_chunks_are_encoded_by_this_process(tokenizer, pool, count, processes, in_process):
    pairs = (PAIRS * 10)[:count]
    chunks = list(encoded.encode_chunks(pairs, copy(tokenizer), 15, processes))
    assert [size for size, _ in chunks] == [2] * (count // 2) + [1] * (count % 2)
    full = EncodedCorpus.encode(pairs, tokenizer, max_tokens=15)
    assert np.concatenate([chunk.source_ids for _, chunk in chunks]).tolist() == full.source_ids.tolist()
    assert (Pool.last is None) is in_process
    if not in_process:
        assert Pool.last.most == min(2 * processes + 1, (count + 1) // 2)
        assert Pool.last.closed == [{"wait": False, "cancel_futures": True}]


def test_a_process_that_was_killed_is_reported(tokenizer, pool, monkeypatch):
    def fail(result):
        raise encoded.BrokenProcessPool

    monkeypatch.setattr(LazyResult, "result", fail)
    with pytest.raises(UserError, match="a process that encodes the corpus was killed"):
        list(encoded.encode_chunks(PAIRS * 10, copy(tokenizer), 15, 2))
    assert Pool.last.closed
