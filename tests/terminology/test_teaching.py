"""Sources with terms pointed out, and the pieces of the vocabulary that do it."""

import itertools

import pytest

from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import Pair, SyntheticPair
from translucid.data.tokenizing.extending import reserving
from translucid.data.tokenizing.reserved import TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.special import SPECIAL
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.marking import Marking, marked
from translucid.terminology.mining import Lexicon, content
from translucid.terminology.teaching import with_terms


def shown(text):
    return text.translate({ord(mark): sign for mark, sign in zip(TERM, "{|}", strict=True)})


def bare(text):
    """The text without what was pointed out."""
    kept, inside = [], False
    for character in text:
        inside = (inside or character == TERM.target) and character != TERM.end
        if not inside and character not in TERM:
            kept.append(character)
    return "".join(kept)


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
    found = marked(source, [Marking(*each) for each in markings])
    assert shown(found) == expected
    assert bare(found) == source


@pytest.fixture(scope="module")
def pairs():
    return [Pair(one.source, one.target) for one in itertools.islice(generate(1500, max_words=10), 1500)]


@pytest.fixture(scope="module")
def lexicon(pairs):
    return Lexicon.learn(pairs)


def test_the_first_word_of_a_sentence_is_taught_too(pairs, lexicon):
    links = [(pair, lexicon.terms(content(pair.source), content(pair.target))) for pair in pairs]
    known = [pair for pair, terms in links if terms and terms[0][0] == 0]
    taught = list(with_terms(known, lexicon, Lemmas("es"), 1.0, 1))
    assert sum(one.source.startswith(TERM.source) for one in taught) > len(known) / 2 > 20


def test_pairs_teach_dictionary_forms_and_stay_what_they_are(pairs, lexicon):
    lemmas = Lemmas("es")
    taught = list(with_terms(pairs, lexicon, lemmas, 0.5, 1))
    pointed = [(one, pair) for one, pair in zip(taught, pairs, strict=True) if TERM.source in one.source]
    assert 0.25 < len(pointed) / len(pairs) < 0.55
    right = total = replaced = 0
    for one, pair in pointed:
        assert one.target == pair.target
        words, others = pair.source.split(), bare(one.source).split()
        assert len(words) == len(others)
        replaced += sum(a != b for a, b in zip(words, others, strict=True))
        assert all(a.strip(".,?!")[-2:] == b.strip(".,?!")[-2:] for a, b in zip(words, others, strict=True))
        forms = {lemmas.of(word.strip(".,¿?¡!")) for word in pair.target.split()}
        for part in one.source.split(TERM.target)[1:]:
            words = part.split(TERM.end)[0].split()
            total, right = total + len(words), right + sum(word.casefold() in forms for word in words)
    assert right == total > 300
    assert 0.1 < replaced / total < 0.35
    assert list(with_terms(pairs[::-1], lexicon, lemmas, 0.5, 1)) == taught[::-1]
    assert list(with_terms(pairs, lexicon, lemmas, 0.5, 2)) != taught
    assert list(with_terms(pairs, lexicon, lemmas, 0.0, 1)) == pairs


def test_synthetic_pairs_stay_synthetic(pairs, lexicon):
    taught = with_terms([SyntheticPair(*pair) for pair in pairs[:200]], lexicon, Lemmas("es"), 0.9, 1)
    assert all(isinstance(pair, SyntheticPair) for pair in taught)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_pieces_are_added_to_the_vocabulary(kind, pairs):
    without = Tokenizer.learn(pairs, TokenizerOptions(kind=kind, vocabulary=300), seed=1)
    tokenizer = reserving(without, TERM)
    assert tokenizer.marks_terms and not without.marks_terms
    assert (without.source_size, tokenizer.source_size) == (300, 300 + len(TERM))
    text, unseen = marked("I see houses.", [Marking(6, 12, "casa")]), "I see houses."
    assert tokenizer.encode_source([unseen]) == without.encode_source([unseen])
    (ids,) = tokenizer.encode_source([text])
    pieces = tokenizer.source_pieces(ids)
    assert SPECIAL.unknown not in ids
    assert [piece for piece in pieces if piece in TERM] == list(TERM)
    between = pieces[pieces.index(TERM.target) + 1 : pieces.index(TERM.end)]
    assert between == tokenizer.target_pieces(tokenizer.encode_target(["casa"])[0])
    assert tokenizer.decode_source(ids) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_words_are_cut_in_other_ways_around_them(kind, pairs, lexicon):
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(kind=kind, vocabulary=300), seed=1, reserved=TERM)
    taught = list(with_terms(pairs[:100], lexicon, Lemmas("es"), 0.9, 1))
    corpus = VariedCorpus(taught, tokenizer, 0.3, 1).draw([1])
    marks = tokenizer.encode_source(["".join(TERM)])[0][-3:]
    for i, pair in enumerate(taught):
        ids = corpus.source(i).tolist()
        assert tokenizer.decode_source(ids[:-1]) == pair.source
        assert [one for one in ids if one in marks] == [marks[TERM.index(c)] for c in pair.source if c in TERM]
