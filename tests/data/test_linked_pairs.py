"""Links follow their words through all changes of a text, down to the pieces of a batch."""

import pickle

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from translucid.corpora.phrasebook import generate
from translucid.data.filtering import Filter
from translucid.data.linked_pairs import Edit, LinkedPair, edited, moved_words
from translucid.data.placeholders import masked_pairs
from translucid.data.readers.corpus import SyntheticPair
from translucid.data.stores.encoded import EncodedCorpus, WordStarts
from translucid.data.stores.store import CorpusStore
from translucid.data.tokenizing.pieces import TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.evaluation.alignment_error import Gold
from translucid.inspection.alignment import link_pieces
from translucid.terminology.marking import Marking, marking_edits

DEFAULT_FILTER = Filter()
PAIRS = [LinkedPair.of(Pair(p.source, p.target), p.alignment) for p in generate(60, max_words=12)]


@pytest.fixture(scope="module")
def tokenizer():
    options = TokenizerOptions(vocabulary=200)
    return Tokenizer.learn(PAIRS, options, seed=1, tagged=True, reserved=[*PLACEHOLDERS, *TERM])


def test_a_pair_keeps_its_links():
    pair = LinkedPair.of(Pair("a b", "x y z"), [(0, 2), (1, 0)])
    assert pair == Pair("a b", "x y z") and pair.links == {(0, 2), (1, 0)}
    assert pair.swapped == Pair("x y z", "a b") and pair.swapped.links == {(2, 0), (0, 1)}
    synthetic = pickle.loads(pickle.dumps(LinkedPair.of(SyntheticPair("a b", "x y z"), pair.links)))
    assert isinstance(synthetic, SyntheticPair) and synthetic.links == pair.links


def test_words_move_with_edits():
    assert moved_words("a b c", [Edit(0, 0, "x "), Edit(2, 3, "b y")]) == [1, 2, 4]
    assert moved_words("see {{ a b }}, now", [Edit(4, 13, "⟦1⟧")]) == [0, 1, 1, 1, 1, 2]
    pair = edited(LinkedPair.of(Pair("a b", "c d"), [(0, 0), (1, 1)]), [Edit(3, 3, " e")], [Edit(0, 0, "f ")])
    assert pair == Pair("a b e", "f c d") and pair.links == {(0, 1), (1, 2)}


def test_links_follow_placeholders():
    """A link between words that are both still in the text links the same words."""
    changed = 0
    for before, after in zip(PAIRS, masked_pairs(PAIRS, 0.9, seed=1), strict=True):
        changed += before != after
        assert len(after.links) == len(before.links)
        source, target = map(str.split, before)
        words = {(source[i], target[j]) for i, j in before.links}
        source, target = map(str.split, after)
        for i, j in after.links:
            linked_words = source[i], target[j]
            assert linked_words in words or any("⟦" in word for word in linked_words)
    assert changed > 20


def test_links_follow_the_words_between_the_marks_of_terms():
    pair = LinkedPair.of(Pair("I like green tea", "Me gusta el té verde"), [(1, 1), (2, 4), (3, 3)])
    first, second = pair.source.index("like"), pair.source.index("green")
    edits = marking_edits(pair.source, [Marking(first, first + 4, "gustar"), Marking(second, second + 9, "té verde")])
    marked = edited(pair, edits)
    words = [word.strip("".join(TERM)) for word in marked.source.split()]
    assert words == ["I", "like", "gustar", "green", "tea", "té", "verde"]
    assert marked.links == {(1, 1), (3, 4), (4, 3)}


def dense(batch):
    """Return the weights of a batch [B, T, S]."""
    shape = *batch.labels.shape, batch.source.size(1)
    weights = torch.zeros(shape).flatten()
    weights[batch.links.positions] = batch.links.weights
    return weights.view(shape)


def expected(corpus, i, pair, tokenizer, opening=0):
    """Return the weights of a pair as alignment layers learn them, computed from its pieces."""
    source, target = corpus.source(i).tolist(), corpus.target(i).tolist()
    gold = Gold(frozenset(pair.links), frozenset(pair.links))
    words = tuple(len(text.split()) for text in pair)
    shares = link_pieces(tokenizer, source[opening:], target, gold, words).shares
    return torch.cat([torch.zeros(len(shares), opening), shares], 1)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_links_between_words_become_weights_of_pieces(tokenizer, dropout):
    tagged = [LinkedPair.of(SyntheticPair(*pair), pair.links) for pair in PAIRS[:10]]
    pairs = [*PAIRS, *tagged]
    starts = WordStarts.of(tokenizer)
    corpora = [EncodedCorpus.encode(pairs, tokenizer, max_tokens=100, starts=starts)]
    if dropout:
        varied = VariedCorpus(pairs, tokenizer, dropout, 1, starts)
        corpora = [varied.draw([1]), varied.draw([2])]
        assert not np.array_equal(corpora[0].source_ids, corpora[1].source_ids)
    for corpus in corpora:
        rows = [3, 65, 0, 20]
        weights = dense(corpus.batch(rows))
        for row, i in zip(weights, rows, strict=True):
            expected_weights = expected(corpus, i, pairs[i], tokenizer, opening=int(i >= len(PAIRS)))
            torch.testing.assert_close(row[: len(expected_weights), : expected_weights.size(1)], expected_weights)
            assert row.sum() == pytest.approx(expected_weights.sum().item())


@pytest.mark.parametrize(
    ("source", "target", "link"),
    [
        ("\u200b I like", "Me gusta", (2, 1)),  # the tokenizer reads nothing in the first word
        ("I\u00a0like", "Me gusta", (0, 1)),  # and two words in this one
        ("I like", "Me \ufeff gusta", (1, 2)),
    ],
)
def test_links_of_words_that_the_tokenizer_cuts_otherwise(tokenizer, source, target, link):
    pairs = [PAIRS[0], LinkedPair.of(Pair(source, target), [link]), Pair("I", "Yo"), PAIRS[1]]
    corpus = EncodedCorpus.encode(pairs, tokenizer, max_tokens=100, starts=WordStarts.of(tokenizer))
    weights = dense(corpus.batch([0, 1, 2, 3]))
    assert [bool(row.any()) for row in weights] == [True, True, False, True]
    # The last target word is linked to all pieces of its source words.
    last_word = dense(corpus.batch([1]))[0][-2]
    pieces = corpus.source(1)[:-1].tolist()
    words = [piece.startswith("▁") for piece in tokenizer.source_pieces(pieces)]
    first = 0 if source == "I\u00a0like" else len(words) - 1 - words[::-1].index(True)
    assert (last_word > 0).nonzero().flatten().tolist() == [*range(first, len(pieces))]


def test_a_store_has_the_links_of_all_chunks(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.data.stores.encoded.CHUNK", 7)
    pairs = [*PAIRS[:20], Pair("x " * 120, "y"), *PAIRS[20:]]
    store = CorpusStore(tmp_path / "corpus", WordStarts.of(tokenizer))
    corpora = [pairs[:30], [], pairs[30:]]
    store.build(corpora, [tokenizer] * 3, DEFAULT_FILTER, identity="one", max_tokens=100, processes=1)
    corpus = store.open("one").pairs
    assert len(corpus) == len(PAIRS)
    for i in (0, 19, 20, 29, 30, 59):
        torch.testing.assert_close(dense(corpus.batch([i]))[0], expected(corpus, i, PAIRS[i], tokenizer))
