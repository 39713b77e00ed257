import numpy as np
import pytest

from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import Pair
from translucid.data.stores import encoded
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions

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
    assert corpus.source_lengths.tolist() == [len(corpus.source(i)) for i in range(3)]
    assert corpus.target_lengths.tolist() == [len(corpus.target(i)) for i in range(3)]
    assert (corpus.source_ids.dtype, corpus.source_offsets.dtype) == (np.int32, np.int64)


def test_pairs_too_long_on_either_side_are_skipped_and_counted(tokenizer):
    whole = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100)
    longest = np.maximum(whole.source_lengths, whole.target_lengths)
    limit = int(longest[0])
    assert longest[2] > limit > longest[1], "the end token counts: the first pair just fits"
    skipped = Skipped()
    corpus = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=limit, skipped=skipped)
    assert len(corpus) == 2
    assert corpus.source(1).tolist() == whole.source(1).tolist()
    assert dict(skipped.reasons) == {"too long": 1}
    only_target = [Pair("yes", PAIRS[2].target)]
    assert len(EncodedCorpus.encode(only_target, tokenizer, max_tokens=5)) == 0


def test_no_pairs_make_an_empty_corpus(tokenizer):
    corpus = EncodedCorpus.encode([], tokenizer, max_tokens=10)
    assert len(corpus) == 0
    assert corpus.source_lengths.tolist() == []


def test_a_corpus_in_many_chunks_is_the_same(tokenizer, monkeypatch):
    whole = EncodedCorpus.encode(PAIRS * 4, tokenizer, max_tokens=15)
    monkeypatch.setattr(encoded, "CHUNK", 5)
    chunked = EncodedCorpus.encode(PAIRS * 4, tokenizer, max_tokens=15)
    assert np.array_equal(whole.source_ids, chunked.source_ids)
    assert np.array_equal(whole.target_offsets, chunked.target_offsets)
