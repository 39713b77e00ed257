"""Sources with marked terms, and the vocabulary pieces that mark them."""

import itertools

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import SyntheticPair
from translucid.data.tokenizing.extending import with_reserved
from translucid.data.tokenizing.pieces import TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.special import SPECIAL
from translucid.terminology.marking import Marking, marked, with_terms
from translucid.terminology.matching import Lemmas
from translucid.terminology.mining import Lexicon, content


def readable(text):
    return text.translate({ord(mark): sign for mark, sign in zip(TERM, "{|}", strict=True)})


def without_marks(text):
    """Remove the marks and the target terms from a text."""
    characters, is_target = [], False
    for character in text:
        is_target = (is_target or character == TERM.target) and character != TERM.end
        if not is_target and character not in TERM:
            characters.append(character)
    return "".join(characters)


@pytest.mark.parametrize(
    ("source", "markings", "expected"),
    [
        ("I see houses.", [(6, 12, "casa")], "I see{ houses| casa}."),
        ("houses (and dogs)", [(0, 6, "casa"), (12, 16, "perro")], "{houses| casa} (and{ dogs| perro})"),
        ("a b c", [(2, 3, "x"), (4, 5, "y z")], "a{ b| x}{ c| y z}"),
        ("(a)", [(1, 2, "x")], "({a| x})"),
        ("a", [], "a"),
    ],
)
def test_a_term_is_pointed_out_where_it_stands(source, markings, expected):
    marked_text = marked(source, [Marking(*marking) for marking in markings])
    assert readable(marked_text) == expected
    assert without_marks(marked_text) == source


@pytest.fixture(scope="module")
def pairs():
    return [Pair(phrase.source, phrase.target) for phrase in itertools.islice(generate(1500, max_words=10), 1500)]


@pytest.fixture(scope="module")
def lexicon(pairs):
    return Lexicon.learn(pairs)


def test_the_first_word_of_a_sentence_is_taught_too(pairs, lexicon):
    links = [(pair, lexicon.terms(content(pair.source), content(pair.target))) for pair in pairs]
    with_linked_start = [pair for pair, terms in links if terms and terms[0][0] == 0]
    marked_pairs = list(with_terms(with_linked_start, lexicon, Lemmas("es"), 1.0, 1))
    assert sum(pair.source.startswith(TERM.source) for pair in marked_pairs) > len(with_linked_start) / 2 > 20


def test_pairs_teach_dictionary_forms_and_stay_what_they_are(pairs, lexicon):
    lemmas = Lemmas("es")
    marked_pairs = list(with_terms(pairs, lexicon, lemmas, 0.5, 1))
    with_marks = [
        (marked_pair, pair)
        for marked_pair, pair in zip(marked_pairs, pairs, strict=True)
        if TERM.source in marked_pair.source
    ]
    assert 0.25 < len(with_marks) / len(pairs) < 0.55
    correct = total = replaced = 0
    for marked_pair, pair in with_marks:
        assert marked_pair.target == pair.target
        words, marked_words = pair.source.split(), without_marks(marked_pair.source).split()
        assert len(words) == len(marked_words)
        replaced += sum(a != b for a, b in zip(words, marked_words, strict=True))
        assert all(a.strip(".,?!")[-2:] == b.strip(".,?!")[-2:] for a, b in zip(words, marked_words, strict=True))
        forms = {lemmas.of(word.strip(".,¿?¡!")) for word in pair.target.split()}
        for part in marked_pair.source.split(TERM.target)[1:]:
            words = part.split(TERM.end)[0].split()
            total, correct = total + len(words), correct + sum(word.casefold() in forms for word in words)
    assert correct == total > 300
    assert 0.1 < replaced / total < 0.35
    assert list(with_terms(pairs[::-1], lexicon, lemmas, 0.5, 1)) == marked_pairs[::-1]
    assert list(with_terms(pairs, lexicon, lemmas, 0.5, 2)) != marked_pairs
    assert list(with_terms(pairs, lexicon, lemmas, 0.0, 1)) == pairs


def test_synthetic_pairs_stay_synthetic(pairs, lexicon):
    marked_pairs = with_terms([SyntheticPair(*pair) for pair in pairs[:200]], lexicon, Lemmas("es"), 0.9, 1)
    assert all(isinstance(pair, SyntheticPair) for pair in marked_pairs)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_pieces_are_added_to_the_vocabulary(kind, pairs):
    plain_tokenizer = Tokenizer.learn(pairs, TokenizerOptions(kind=kind, vocabulary=300), seed=1)
    tokenizer = with_reserved(plain_tokenizer, TERM)
    assert tokenizer.marks_terms and not plain_tokenizer.marks_terms
    assert (plain_tokenizer.source_size, tokenizer.source_size) == (300, 300 + len(TERM))
    text, plain_text = marked("I see houses.", [Marking(6, 12, "casa")]), "I see houses."
    assert tokenizer.encode_source([plain_text]) == plain_tokenizer.encode_source([plain_text])
    (ids,) = tokenizer.encode_source([text])
    pieces = tokenizer.source_pieces(ids)
    assert SPECIAL.unknown not in ids
    assert [piece for piece in pieces if piece in TERM] == list(TERM)
    target_pieces = pieces[pieces.index(TERM.target) + 1 : pieces.index(TERM.end)]
    assert target_pieces == tokenizer.target_pieces(tokenizer.encode_target(["casa"])[0])
    assert tokenizer.decode_source(ids) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subword_dropout_does_not_split_the_marks(kind, pairs, lexicon):
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(kind=kind, vocabulary=300), seed=1, reserved=TERM)
    marked_pairs = list(with_terms(pairs[:100], lexicon, Lemmas("es"), 0.9, 1))
    corpus = VariedCorpus(marked_pairs, tokenizer, 0.3, 1).draw([1])
    marks = tokenizer.encode_source(["".join(TERM)])[0][-3:]
    for i, pair in enumerate(marked_pairs):
        ids = corpus.source(i).tolist()
        assert tokenizer.decode_source(ids[:-1]) == pair.source
        assert [token for token in ids if token in marks] == [marks[TERM.index(c)] for c in pair.source if c in TERM]
