"""Which words of a pair are annotated and how, with a scripted random generator."""

import pytest

from bitext.pair import Pair
from bitext.words import words_in
from translucid.ground.errors import UserError
from translucid.terminology import glossary, mining
from translucid.terminology.glossary import read_terms, terms_of
from translucid.terminology.marking import Marking, _adjacent, _annotations, _lemma, _similar_word
from translucid.terminology.matching import Occurrence, TermList, terms_in
from translucid.terminology.mining import Lexicon, content
from translucid.terminology.term_forms import TermForms

PAIR = Pair("The white house (blue boat) near Paris", "La casa blanca (barco azul) cerca de París")
LEXICON = Lexicon(
    {
        "white": {"blanca": 1.0},
        "house": {"casa": 1.0},
        "blue": {"azul": 1.0},
        "true": {"cierto": 1.0},
        "boat": {"barco": 1.0},
        "near": {"cerca": 1.0},
        "paris": {"parís": 1.0},
        "tennis": {"tenis": 1.0},
        "the": {"la": 1.0},
    },
    common=["the"],
)


class Feminine:
    """Dictionary forms: `blanca` is a form of `blanco`."""

    def of(self, word):
        return word.casefold().replace("blanca", "blanco")


class ScriptedRandom:
    """Returns scripted numbers: the first annotated term, then one per decision; `choice` returns the last word."""

    def __init__(self, first, *numbers):
        self.first, self.numbers = first, list(numbers)

    def randrange(self, count):
        assert self.first < count
        return self.first

    def random(self):
        return self.numbers.pop(0)

    def choice(self, words):
        return words[-1]


def annotate(pair, scripted_random):
    markings = _annotations(pair, LEXICON, Feminine(), scripted_random)
    assert not scripted_random.numbers, "each number is for one decision"
    return markings


def test_words_side_by_side_are_one_term_and_others_may_be_replaced():
    numbers = [0.49]  # white house: one term, and the first term is annotated without a random number
    numbers += [0.33, 0.5, 0.29]  # blue: annotated, not joined with boat, replaced by a word with the same ending
    numbers += [1 / 3]  # boat: not annotated
    numbers += [0.1, 0.3]  # near: annotated, not replaced
    numbers += [0.1, 0.2]  # Paris: annotated and replaced
    assert annotate(PAIR, ScriptedRandom(0, *numbers)) == [
        Marking(4, 15, "casa blanco"),
        Marking(17, 21, "azul", "true"),
        Marking(28, 32, "cerca"),
        Marking(33, 38, "París", "Tennis"),
    ]


def test_only_the_term_that_was_drawn_is_sure_to_be_annotated():
    assert annotate(PAIR, ScriptedRandom(4, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9)) == [Marking(28, 32, "cerca")]
    assert _annotations(Pair("Nothing here", "Nada aquí"), LEXICON, Feminine(), ScriptedRandom(0)) == []


@pytest.mark.parametrize(
    ("source", "target", "links", "adjacent"),
    [
        ("a b c", "x y z", ((0, 0), (1, 1)), True),
        ("a b c", "x y z", ((0, 1), (1, 0)), True),
        ("a b c", "x y z", ((1, 2), (2, 1)), True),
        ("a b c", "x y z", ((0, 0), (2, 1)), False),
        ("a b c", "x y z", ((0, 0), (1, 2)), False),
        ("a, b c", "x y z", ((0, 0), (1, 1)), False),
        ("a b c", "x y-z", ((1, 1), (2, 2)), False),
        ("a b-c", "x y z", ((1, 1), (2, 2)), False),
    ],
)
def test_adjacent_words_have_only_a_space_between_them_in_both_languages(source, target, links, adjacent):
    assert _adjacent(*links, Pair(source, target), words_in(source), words_in(target)) is adjacent


def test_capitals_of_words_and_dictionary_forms():
    (first, second) = words_in("Blanca blancA")
    assert [_lemma(first, Feminine(), first=True), _lemma(first, Feminine(), first=False)] == ["blanco", "Blanco"]
    assert _lemma(second, Feminine(), first=False) == "blanco"
    assert [_similar_word(word, LEXICON, ScriptedRandom(0)) for word in ("Blue", "bluE", "xyz")] == [
        "True",
        "true",
        "xyz",
    ]


def test_terms_are_linked_words_of_three_letters_or_more_that_are_not_common():
    lexicon = Lexicon({"ox": {"buey": 1.0}, "cat": {"gato": 0.5, "felino": 0.4}, "the": {"el": 1.0}}, common=["the"])
    source, target = content("The ox, the cat"), content("El buey, el gato felino")
    assert lexicon.links(source, target) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert lexicon.terms(source, target) == [(3, 3)]
    assert lexicon.ending("hat") == ["cat"] and lexicon.ending("the") == ["the"]


def test_a_lexicon_is_learned_from_the_first_pairs_up_to_a_number_of_links(monkeypatch):
    pairs = [Pair("a b", "x y"), Pair("c", "z")]
    monkeypatch.setattr(mining, "MOST_LINKS", 5)
    assert set(Lexicon.learn(pairs).likely) == {"a", "b", "c"}
    monkeypatch.setattr(mining, "MOST_LINKS", 4)
    assert set(Lexicon.learn(pairs).likely) == {"a", "b"}
    monkeypatch.setattr(mining, "MOST_LINKS", 3)
    assert Lexicon.learn(pairs).likely == {}
    monkeypatch.setattr(mining, "MOST_LINKS", 9)
    monkeypatch.setattr(mining, "COMMON", 1)
    assert Lexicon.learn([Pair("a a b", "x x y")]).common == {"a", "x"}


def test_terms_beside_a_placeholder_count_and_terms_within_do_not():
    terms = TermList(terms_of([("house", "casa")]))
    text = "house{house}house house"
    assert [(match.start, match.end) for match in terms_in(terms, text)] == [(0, 5), (12, 17), (18, 23)]


def test_occurrences_have_the_places_of_all_their_words():
    terms = TermList(terms_of([("old age", "tercera edad"), ("Big Ben", "el Big Ben", "case"), ("Acme",)]))
    matches = terms.matches("Old age, Big Ben and Acme and Acme")
    assert terms.occurrences(matches, "El Big Ben: la tercera edad y Acme") == [
        Occurrence(15, 27, False),
        Occurrence(0, 10, False),
        Occurrence(30, 34, False),
        None,
    ]


def test_a_file_has_terms_and_a_term_has_words_up_to_a_limit(tmp_path, monkeypatch):
    file = tmp_path / "terms.tsv"
    monkeypatch.setattr(glossary, "MOST", 2)
    file.write_text("source\ttarget\na\tb\nc\td\n")
    assert len(read_terms(file)) == 2
    for heading in (
        "English\tSpanish",
        "en\tes-MX",
        "English (US)\tEspañol",
        "source term\tTranslation",
        "en_US\tspa_Latn",
    ):
        file.write_text(f"{heading}\na\tb\nc\td\n")
        assert [entry.source for entry in read_terms(file)] == ["a", "c"]
    not_headings = "English\tEnglish", "Spanish\tespañol", "ice\tis", "car\tbar", "e-mail\tco-op"
    for entry in ("English\tinglés", *not_headings, "house\tcasa", "Spanish\t"):
        file.write_text(f"{entry}\nc\td\n")
        assert len(read_terms(file)) == 2
    file.write_text("a\tb\nc\td\ne\tf\n")
    with pytest.raises(UserError, match=r"terms\.tsv:3: has more than 2 terms"):
        read_terms(file)
    words = " ".join(["w"] * 32)
    assert terms_of([(words, words)])
    for entry in ((f"{words} w", "b"), ("a", f"{words} w")):
        with pytest.raises(UserError, match="has more than 32 words"):
            terms_of([entry])
    assert terms_of([("w" * 500, "w" * 500)])
    for entry in (("w" * 501, "b"), ("a", "w" * 501)):
        with pytest.raises(UserError, match="has more than 500 characters"):
            terms_of([entry])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("terms.tsv", "a|b\n\nc|d\n", "terms.tsv:1: has no tabs, but a bar in each line"),
        ("terms.csv", 'a,b\n"c"d,e\n', "terms.csv:2: has a quote out of place"),
        ("terms.tsv", "a\tb\nsource\ttarget\n...\tx\n", "terms.tsv:3: has no source word"),
    ],
)
def test_wrong_lines_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as error:
        read_terms(tmp_path / name)
    assert message in str(error.value)


def test_words_begin_and_end_at_the_edges_of_pieces():
    class Vocabulary:
        target_vocabulary = ("<pad>", "<unk>", "<s>", "</s>", "▁casa", "s", "足", "x足", "足x", ".", "(a", "a(")

    edges = TermForms(Vocabulary()).edges
    continues_word, ends_word = (part.tolist() for part in edges)
    pieces = Vocabulary.target_vocabulary
    assert [piece for piece, within in zip(pieces, continues_word, strict=True) if within] == ["s", "x足", "a("]
    assert [piece for piece, ends in zip(pieces, ends_word, strict=True) if ends] == ["足", "x足", ".", "a("]
