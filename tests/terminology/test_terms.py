"""Term lists: reading them, finding terms in sources, checking translations, and mining pairs of words."""

import itertools

import numpy as np
import pytest

from bitext.pair import Pair
from tests.growth import assert_linear
from translucid.corpora.phrasebook import generate
from translucid.ground.errors import UserError
from translucid.terminology.glossary import Term, read_terms, terms_of
from translucid.terminology.matching import Lemmas, TermList, term_list
from translucid.terminology.mining import Lexicon, content


@pytest.fixture
def write_terms(tmp_path):
    def write(text, name="terms.tsv"):
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return write


def test_a_file_of_terms(write_terms):
    text = "\ufeffSource\tTarget\n\nhouse\tcasa\tnoun\nSave\tGuardar\tcase\tverb\r\nTranslucid\n"
    text += "RAM\tRAM\n  trim \t recortar \n"
    house, save, name, ram, trim = read_terms(write_terms(text))
    assert house == Term("house", "casa", "noun") and house.inflects and not house.kept
    assert save == Term("Save", "Guardar", "verb", case=True)
    assert name == Term("Translucid", "") and name.kept and ram.kept and not ram.inflects
    assert trim == Term("trim", "recortar")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("a\tb\n\tc\n", 2, "no source word"),
        ("...\tb\n", 1, "no source word"),
        ("a\tb\tnuon\n", 1, "'nuon' is no part of speech"),
        ("a\tb\n" + "w " * 40 + "\tb\n", 2, "more than 32 words"),
        (b"a\tb\n\xff\tc\n", 2, "not UTF-8"),
        (b"a\tb\nx\0\tc\n", 2, "NUL"),
    ],
)
def test_errors_name_their_line(text, line, expected, write_terms):
    with pytest.raises(UserError) as error:
        read_terms(write_terms(text))
    message = str(error.value)
    assert f"terms.tsv:{line}: " in message and expected in message and "\n" not in message


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("house;vivienda\nbeach;costa;noun\n", [Term("house", "vivienda"), Term("beach", "costa", "noun")]),
        ('house,vivienda\n"Acme, Inc.",\n', [Term("house", "vivienda"), Term("Acme, Inc.", "")]),
        ("Source;Target\na b;c, d\nAcme\n", [Term("a b", "c, d"), Term("Acme", "")]),
        ("house\tvivienda, casa\n", [Term("house", "vivienda, casa")]),
    ],
)
def test_a_csv_of_terms(text, terms, write_terms):
    assert read_terms(write_terms(text, "terms.csv")) == terms


@pytest.mark.parametrize(
    ("text", "separator"), [("a;b\nc;d\n", "a semicolon"), ("a, b\n", "a comma"), ("a=b\n", "an equals")]
)
def test_other_separators_are_not_read_as_lists_of_names(text, separator, write_terms):
    with pytest.raises(UserError, match=f"has no tabs, but {separator}"):
        read_terms(write_terms(text))
    assert all(term.kept for term in read_terms(write_terms(text + "Acme\n")))


@pytest.mark.parametrize("text", ["\n \t \n", "source\ttarget\n"])
def test_a_file_without_terms_is_refused(text, write_terms):
    with pytest.raises(UserError, match="no terms"):
        read_terms(write_terms(text))


def matches_of(terms, text, **lemmas):
    return [(match.text, match.targets) for match in TermList(terms_of(terms), **lemmas).matches(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The house.", [("house", ("casa",))]),
        ("HOUSE prices", [("HOUSE", ("casa",))]),
        ("The White House, a house", [("White House", ("Casa Blanca",)), ("house", ("casa",))]),
        ("houses, warehouse and house_x", []),
        ("(house)-house's", [("house", ("casa",)), ("house", ("casa",))]),
        ("white", []),
        ("the US and us", [("US", ("EE. UU.",))]),
        ("an iphone", [("iphone", ("iphone",))]),
        ("press the key", [("key", ("tecla", "clave"))]),
        ("", []),
    ],
)
def test_terms_are_whole_words_and_the_longest_is_taken(text, expected):
    terms = [("house", "casa"), ("White House", "Casa Blanca"), ("US", "EE. UU.", "case"), ("iPhone",)]
    assert matches_of([*terms, ("key", "tecla"), ("key", "clave")], text) == expected


def test_terms_in_a_script_without_spaces():
    assert matches_of([("房子", "house")], "我的房子很大") == [("房子", ("house",))]


def test_other_forms_are_found_if_requested():
    terms = [("house", "casa"), ("go out", "salir", "verb"), ("news", "noticias", "name"), ("Word", "")]
    lemmas = Lemmas("en")
    assert matches_of(terms, "Houses went out, new Words") == []
    matches = matches_of(terms, "Houses went out, new Words", source=lemmas)
    assert matches == [("Houses", ("casa",)), ("went out", ("salir",))]


def test_a_term_that_is_given_in_another_form_is_found_in_each_form():
    lemmas = Lemmas("en")
    terms = [("mice", "ratones", "noun"), ("houses of cards", "castillos de naipes", "noun")]
    assert matches_of(terms, "One mouse", source=lemmas) == [("mouse", ("ratones",))]
    assert matches_of(terms, "A house of cards", source=lemmas) == [("house of cards", ("castillos de naipes",))]


@pytest.mark.parametrize(
    ("translation", "plain", "forms"),
    [
        ("La casa es grande.", ["used", "missing"], ["used", "missing"]),
        ("Casa y perro", ["used", "used"], ["used", "used"]),
        ("Las casas de los perros", ["missing", "missing"], ["inflected", "inflected"]),
        ("casado, perrito", ["missing", "missing"], ["missing", "missing"]),
        ("casa casas", ["used", "missing"], ["used", "missing"]),
    ],
)
def test_outcomes_of_terms(translation, plain, forms):
    terms = terms_of([("house", "casa"), ("dog", "perro")])
    for lemmas, expected in ((None, plain), (Lemmas("es"), forms)):
        constrained = TermList(terms, target=lemmas)
        uses = constrained.uses(constrained.matches("The house, the dog"), translation)
        assert [use.outcome for use in uses] == expected


def test_the_time_for_outcomes_is_in_proportion_to_the_text():
    def uses(count):
        numbered_terms = [(f"w{i}", f"the y{i}") for i in range(count)]
        terms = TermList(terms_of(numbered_terms))
        text = " ".join(source for source, _ in numbered_terms)
        return lambda: terms.uses(terms.matches(text), "the " * count)

    assert_linear(uses, 250, 2_000)


def test_each_place_of_a_translation_counts_once():
    terms = TermList(terms_of([("house", "casa")]))
    matches = terms.matches("A house is a house.")
    assert [use.outcome for use in terms.uses(matches, "Una casa es un hogar.")] == ["used", "missing"]
    assert [use.outcome for use in terms.uses(matches, "Una casa es una casa.")] == ["used", "used"]


def test_untranslated_terms_are_compared_letter_by_letter():
    terms = TermList(terms_of([("iPhone",), ("Save", "Guardar", "case")]))
    matches = terms.matches("Save the iPhone")
    assert [use.outcome for use in terms.uses(matches, "Guardar el iPhone")] == ["used", "used"]
    assert [use.outcome for use in terms.uses(matches, "guardar el Iphone")] == ["missing", "missing"]


def test_forms_of_a_target_are_those_of_the_dictionary():
    entries = [("house", "casa"), ("new", "nuevo", "adjective"), ("book", "Libro", "name"), ("old age", "tercera edad")]
    constrained = TermList(terms_of(entries), Lemmas("en"), Lemmas("es"))
    assert constrained.forms_of("casa") == ["casas"]
    assert {"nueva", "nuevas", "nuevos"} <= {*constrained.forms_of("nuevo")}
    assert constrained.forms_of("Libro") == constrained.forms_of("tercera edad") == constrained.forms_of("perro") == []
    assert TermList(terms_of(entries), target=Lemmas("es")).forms_of("casa") == []


def test_a_language_without_a_dictionary_is_reported():
    with pytest.raises(UserError, match="no dictionary of the language ja"):
        Lemmas("ja")
    with pytest.raises(UserError, match="names no language"):
        Lemmas(None)


def test_terms_are_accepted_in_any_form(write_terms):
    sources = (
        [("house", "casa")],
        [Term("house", "casa")],
        write_terms("house\tcasa\n"),
        str(write_terms("house\tcasa\n")),
    )
    for terms in sources:
        assert term_list(terms, ("en", "es"), inflect=False).matches("house")[0].targets == ("casa",)
    assert term_list([("house", "casa")], ("en", "es"), inflect=True).matches("houses")


def brute_force(pairs, rounds=6):
    """Return IBM Model 1 of one direction, computed by its definition: {(s, t): p(t | s)}."""
    words = {(s, t) for source, target in pairs for s in source for t in target}
    p = dict.fromkeys(words, 1.0)
    for _ in range(rounds):
        count, total = dict.fromkeys(words, 0.0), {}
        for source, target in pairs:
            for t in target:
                norm = sum(p[s, t] for s in source)
                for s in source:
                    count[s, t] += p[s, t] / norm
                    total[s] = total.get(s, 0.0) + p[s, t] / norm
        p = {(s, t): count[s, t] / total[s] for s, t in words}
    return p


def test_a_lexicon_is_model_1_in_both_directions():
    texts = [("the house", "la casa"), ("the dog", "el perro"), ("a house", "una casa"), ("the house house", "la casa")]
    lexicon = Lexicon.learn([Pair(*pair) for pair in texts])
    tokenized = [(s.split(), t.split()) for s, t in texts]
    forward, backward = brute_force(tokenized), brute_force([(t, s) for s, t in tokenized])
    for (s, t), p in forward.items():
        strength = np.sqrt(p * backward[t, s])
        assert lexicon.likely.get(s, {}).get(t, 0) == pytest.approx(strength if strength >= 0.2 else 0)


def positions_of(words, text):
    return [text[: word.start].count(" ") for word in words]


def test_words_of_the_phrasebook_find_their_translations():
    phrases = list(itertools.islice(generate(3000, min_words=3, max_words=10), 3000))
    lexicon = Lexicon.learn(Pair(phrase.source, phrase.target) for phrase in phrases[:2500])
    correct = incorrect = 0
    for phrase in phrases[2500:]:
        source, target = content(phrase.source), content(phrase.target)
        source_positions = positions_of(source, phrase.source)
        target_positions = positions_of(target, phrase.target)
        for i, j in lexicon.terms(source, target):
            linked = (source_positions[i], target_positions[j]) in phrase.alignment
            correct, incorrect = correct + linked, incorrect + (not linked)
    assert correct > 300
    assert correct / (correct + incorrect) > 0.95


def test_empty_input_gives_an_empty_lexicon():
    assert Lexicon.learn([]).likely == {} and Lexicon.learn([Pair("...", "!")]).likely == {}
