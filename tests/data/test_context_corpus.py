"""Batches with document context, compared with ids that are joined by hand."""

import numpy as np
import pytest

from bitext.pair import Pair
from translucid.data.document_context import ContextOptions, preceding
from translucid.data.filtering import Filter
from translucid.data.linked_pairs import LinkedPair
from translucid.data.stores import encoded
from translucid.data.stores.context import ContextCorpus, VariedContext
from translucid.data.stores.encoded import EncodedCorpus, WordStarts
from translucid.data.stores.store import CorpusStore
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

TEXTS = ["he came", "she left", "it was late", "they met", "no one knew", "he was glad", "she too", "the end"]
DOCUMENTS = [0, 0, 0, 0, 1, None, None, 1]
PAIRS = [Pair(text, text[::-1]).of_document(document) for text, document in zip(TEXTS, DOCUMENTS, strict=True)]
AVAILABLE = [0, 1, 2, 3, 0, 0, 0, 0]
END = 3


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=45), seed=0, reserved=[SEPARATOR])


def options(tokenizer, most=2, longest=100):
    return ContextOptions.of(most, tokenizer, longest)


def corpus(tokenizer, pairs=PAIRS, **settings):
    return EncodedCorpus.encode(pairs, tokenizer, max_tokens=100, documents=True, **settings)


def by_hand(tokenizer, row, count, longest=100):
    """Return the ids of a row, after those of the `count` sentences before it."""
    separator = tokenizer.encode_source([f"a{SEPARATOR}"])[0][-1]
    ids = []
    for text in TEXTS[row - count : row]:
        ids += [*tokenizer.encode_source([text])[0], separator]
    return [*ids, *tokenizer.encode_source([TEXTS[row]])[0], END][-longest:]


def rows_of(batch):
    """Return the source ids of a batch without padding, whose id is 0."""
    return [list(filter(None, row)) for row in batch.source.tolist()]


def test_the_sentences_before_a_pair_are_counted_within_its_document():
    assert preceding(DOCUMENTS) == AVAILABLE
    assert preceding([]) == []


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_batch_has_the_sentences_before_each_pair(tokenizer, most):
    joined = ContextCorpus(corpus(tokenizer), options(tokenizer, most), np.zeros(1, np.int64))
    rows = np.array([3, 7, 0, 2, 1, 5, 6])
    batch = joined.batch(rows)
    expected = [by_hand(tokenizer, row, min(AVAILABLE[row], most)) for row in rows]
    assert rows_of(batch) == expected
    assert joined.lengths_of(rows)[0].tolist() == list(map(len, expected))
    plain = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100).batch(rows)
    assert batch.labels.equal(plain.labels) and batch.targets_in.equal(plain.targets_in)
    assert joined.target_tokens(rows) == int((plain.labels > 0).sum())


@pytest.mark.parametrize("longest", [3, 8, 14])
def test_long_contexts_are_truncated_at_the_front(tokenizer, longest):
    joined = ContextCorpus(corpus(tokenizer), options(tokenizer, 3, longest), np.zeros(1, np.int64))
    of_sentence = by_hand(tokenizer, 3, 0)
    (row,) = rows_of(joined.batch([3]))
    assert row == by_hand(tokenizer, 3, 3, longest)
    # Translation does the same, except that it never cuts a sentence.
    before = tokenizer.encode_source(TEXTS[:3])
    context = options(tokenizer, 3, longest).context(before, len(of_sentence))
    assert len(context) == max(longest - len(of_sentence), 0)
    assert [*context, *of_sentence][-longest:] == row


def test_corpora_number_their_documents_separately(tokenizer):
    alone = corpus(tokenizer, [Pair(text, text).of_document(0) for text in TEXTS])
    varied = VariedContext(alone, [3, 5], options(tokenizer, 1))
    counts = {}
    for epoch in range(20):
        for row, ids in enumerate(rows_of(varied.draw([1, epoch]).batch(range(8)))):
            counts.setdefault(row, set()).add(ids.count(options(tokenizer).separator))
    # Rows 0 and 3 are the first sentences of the two corpora.
    assert counts == {row: {0, 1} for row in range(8)} | {0: {0}, 3: {0}}
    assert varied.has_context()
    assert not VariedContext(alone, [1] * 8, options(tokenizer)).has_context()
    assert not VariedContext(corpus(tokenizer, PAIRS[4:]), [4], options(tokenizer)).has_context()


def test_the_number_of_sentences_is_uniform_and_depends_on_the_pair_and_the_epoch_alone(tokenizer):
    many = corpus(tokenizer, [Pair("he", "he").of_document(0)] * 3000)
    varied = VariedContext(many, [3000], options(tokenizer, 2))
    lengths = varied.draw([1, 0]).lengths_of(np.arange(2, 3000))[0]
    _, counts = np.unique(lengths, return_counts=True)
    assert len(counts) == 3 and counts.min() > 900
    rows = np.array([2000, 5, 77])
    assert varied.draw([1, 0]).lengths_of(rows)[0].tolist() == lengths[rows - 2].tolist()
    assert varied.draw([1, 1]).lengths_of(np.arange(2, 3000))[0].tolist() != lengths.tolist()


def test_subword_dropout_and_context_go_together(tokenizer):
    pieces = VariedCorpus(PAIRS, tokenizer, 0.5, 1, documents=True)
    varied = VariedContext(pieces, [8], options(tokenizer, 3))
    separator = options(tokenizer).separator
    counts = set()
    for epoch in range(8):
        plain = pieces.draw([1, epoch])
        for row, ids in enumerate(rows_of(varied.draw([1, epoch]).batch(range(8)))):
            count = ids.count(separator)
            counts.add(count)
            expected = []
            for i in range(row - count, row):
                expected += [*plain.source(i).tolist()[:-1], separator]
            assert ids == [*expected, *plain.source(row).tolist()]
    assert len(counts) == 4


def test_word_links_are_those_of_the_sentence_itself(tokenizer):
    linked = [LinkedPair.of(pair, [(0, 1), (1, 0)]) for pair in PAIRS]
    starts = WordStarts.of(tokenizer)
    plain = corpus(tokenizer, linked, starts=starts)
    joined = ContextCorpus(plain, options(tokenizer), np.zeros(1, np.int64))
    for row in (0, 1, 3):
        without_context, with_context = plain.batch([row]), joined.batch([row])
        shift = with_context.source.shape[1] - without_context.source.shape[1]
        targets, sources = np.divmod(without_context.links.positions.numpy(), without_context.source.shape[1])
        assert (
            with_context.links.positions.tolist() == (targets * with_context.source.shape[1] + sources + shift).tolist()
        )
        assert with_context.links.weights.equal(without_context.links.weights)


def test_a_store_has_the_documents_in_chunks_and_after_a_crash(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(encoded, "CHUNK", 3)
    complete = CorpusStore(tmp_path / "whole", documents=True)
    limits = {"identity": "a", "max_tokens": 100, "processes": 1}
    complete.build([PAIRS, PAIRS[:2]], [tokenizer] * 2, Filter(), **limits)
    stored = complete.open("a")
    assert stored.sizes == [8, 2]
    assert stored.pairs.documents.tolist() == [0, 0, 0, 0, 1, -1, -1, 1, 0, 0]

    def interrupted_pairs():
        yield from PAIRS[:5]
        raise KeyboardInterrupt

    partial = CorpusStore(tmp_path / "parts", documents=True)
    with pytest.raises(KeyboardInterrupt):
        partial.build([interrupted_pairs()], [tokenizer], Filter(), **limits)
    partial.build([PAIRS, PAIRS[:2]], [tokenizer] * 2, Filter(), **limits)
    resumed = partial.open("a")
    assert resumed.fingerprint == stored.fingerprint
    assert resumed.pairs.documents.tolist() == stored.pairs.documents.tolist()
    joined = ContextCorpus(resumed.pairs, options(tokenizer), np.cumsum([0, 8]))
    assert rows_of(joined.batch([3]))[0] == by_hand(tokenizer, 3, 2)
