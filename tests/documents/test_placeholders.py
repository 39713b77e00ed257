"""Placeholders occur exactly once in a translation, whatever the model answers."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.placeholders import LAST_LEVEL, PlaceholderStrategy, lost_and_invented_doubts
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.protected_spans import PlaceholderSyntax, differences, kept_parts
from tests.growth import assert_linear


def in_turn(source: str, *answers: str) -> tuple[list[str], str]:
    """Return the texts that a model reads, one for each answer, and the final translation."""
    strategy, model_texts = PlaceholderStrategy.first(TaggedText(source)), []
    for answer in answers:
        model_texts.append(strategy.text)
        following = strategy.after(answer)
        if following is None:
            return model_texts, strategy.target(answer, []).full_text
        strategy = following
    raise AssertionError(f"{strategy.text} would be asked for")


def test_complete_translations_are_unchanged():
    assert in_turn("%s files of {n}", "%s archivos de {n}") == (["%s files of {n}"], "%s archivos de {n}")


@pytest.mark.parametrize("broken", ["archivos de {n}", "%s %s archivos de {n}", "%s archivos de {n} {m}"])
def test_names_and_numbers_stand_in_for_what_is_lost_doubled_or_invented(broken):
    model_texts, translation = in_turn("%s files of {n}", broken, "Tom archivos de 47")
    assert model_texts == ["%s files of {n}", "Tom files of 47"]
    assert translation == "%s archivos de {n}"


def test_then_numbers_and_names_then_nothing():
    model_texts, translation = in_turn("I like %s.", "Me gusta.", "Me gusta.", "Me gusta.", "Me gusta.")
    assert model_texts == ["I like %s.", "I like Tom.", "I like 47.", "I like."]
    assert translation == "Me gusta %s."


def test_a_name_that_the_text_has_stands_in_for_nothing():
    assert in_turn("%s and Tom", "y Tom", "Max y Tom")[1] == "%s y Tom"


def test_the_same_part_twice_is_the_same_name_twice():
    assert in_turn("%s and %s", "%s", "Tom y Tom")[1] == "%s y %s"


@pytest.mark.parametrize(
    ("source", "answers", "expected_text", "expected"),
    [
        ("a {b}{c} d", ["x", "x Tom y"], "a Tom d", "x {b}{c} y"),
        ("{{a}}She sings{{b}}", ["x", "Tom ella canta Max"], "Tom She sings Max", "{{a}}ella canta{{b}}"),
        ("a {n}cats", ["x", "47 gatos"], "a 47 cats", "{n}gatos"),
        ("a %dpx b", ["x", "y 47 z"], "a 47 b", "y %dpx z"),
        ("{hours}h {minutes}m", ["x", "Tom Max"], "Tom Max", "{hours}h {minutes}m"),
        ("cat{s} {name}s", ["x", "gato Tom Max s"], "cat Tom Max s", "gato{s} {name}s"),
        ("in %1$s%2$s.", ["x", "en Tom."], "in Tom.", "en %1$s%2$s."),
        ("%(n)ddogs", ["x", "Tom perros"], "47 dogs", None),
        ("it weighs 10kg", ["pesa kg", "pesa 47"], "it weighs 47", "pesa 10kg"),
        ("her 25th day", ["su día", "su 47º día"], "her 47 th day", "su 25º día"),
        ("a %s<b>dogs</b>", ["x", "x Tom perros"], "a Tom dogs", "x %s<b>perros</b>"),
    ],
)
def test_what_touches_letters_or_other_placeholders_comes_out_once(source, answers, expected_text, expected):
    strategy = PlaceholderStrategy.first(TaggedText(source, syntax=PlaceholderSyntax.message))
    following = strategy.after(answers[0])
    assert following is not None and following.text == expected_text
    if expected is not None:
        assert following.after(answers[1]) is None
        assert following.target(answers[1], []).full_text == expected


def test_a_mark_ends_a_placeholder():
    source = TaggedText("a %sdogs", (Mark(4, "<b>", Side.opens, 0), Mark(8, "</b>", Side.closes, 0)))
    strategy = PlaceholderStrategy.first(source).after("perros")
    assert strategy.text == "a Tom dogs"
    assert strategy.target("x Tom perros", [(i, i, 1.0) for i in range(3)]).full_text == "x %s<b>perros</b>"
    assert PlaceholderStrategy.first(source).after("x %sperros") is None


def test_letters_do_not_touch_an_address():
    strategy = PlaceholderStrategy.first(TaggedText("two,a@b.org"))
    while strategy.level < LAST_LEVEL:
        strategy = strategy.after("")
    assert strategy.target("dos", []).full_text == "dos a@b.org"


def test_what_stood_in_but_was_lost_is_not_overlooked():
    strategy = PlaceholderStrategy.first(TaggedText("a {b}{c} d")).after("x")
    assert strategy.after("x y").level == 2
    assert strategy.after("x Tomás y").level == 2


def test_a_block_of_a_template_is_a_pair_of_marks():
    strategy = PlaceholderStrategy.first(TaggedText("a {{#if x}}white{{/if}} house")).after("x")
    assert strategy.text == "a white house"
    links = [(0, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)]
    assert strategy.target("una casa blanca", links).full_text == "una casa {{#if x}}blanca{{/if}}"


def test_pieces_stand_in_first_if_the_model_knows_them():
    strategy = PlaceholderStrategy.first(TaggedText("a {b}{c}d <b>e</b>"), pieces=True)
    assert strategy.text == "a ⟦1⟧ d ⟦2⟧e⟦3⟧"
    assert strategy.target("x ⟦1⟧ y ⟦2⟧z⟦3⟧", []).full_text == "x {b}{c}y <b>z</b>"
    assert strategy.after("x ⟦1⟧ y").level == 1


def test_doubts_name_what_the_source_has():
    source, target = TaggedText("10kg of %s{a}"), TaggedText("kg {b}%s")
    assert lost_and_invented_doubts(source, target) == ["lost: {a} 10", "invented: {b}"]
    assert lost_and_invented_doubts(source, TaggedText("%s{a}"), numbers=False) == []
    two_numbers = TaggedText("see 1234 dogs", (Mark(6, " \n"),))  # a line end is in between
    assert lost_and_invented_doubts(two_numbers, TaggedText("ver 12 34 perros")) == []
    assert lost_and_invented_doubts(two_numbers, TaggedText("ver 1234 perros")) == ["lost: 12 34"]
    assert PlaceholderStrategy.first(TaggedText("{a}x")).after("").restored("repeated: Tom Tom") == "repeated: {a} {a}"


def test_tags_and_signs_are_placed_as_marks():
    model_texts, translation = in_turn("a <b>white</b> house 😀", "una casa <b>", "una casa blanca")
    assert model_texts[1] == "a white house"
    assert translation == "una <b>casa</b> blanca 😀"  # without links: in the order of the source


def test_tags_in_another_order_are_broken():
    assert in_turn("<b>a</b> b", "</b>a<b> b", "a b")[1] == "<b>a</b> b"


def test_shorter_numbers_stand_in_for_those_that_are_lost():
    model_texts, translation = in_turn("I have 1,250 books.", "Tengo 150 libros.", "Tengo 47 libros.")
    assert model_texts == ["I have 1,250 books.", "I have 47 books."]
    assert translation == "Tengo 1,250 libros."


def test_the_last_attempt_is_without_placeholders():
    answers = ["Tengo libros."] * (LAST_LEVEL + 2)
    model_texts, translation = in_turn("I have 1,250 books.", *answers)
    assert model_texts[-1] == "I have  books."
    assert translation == "Tengo libros 1,250."  # without links: in the order of the source


@pytest.mark.parametrize(("source", "expected"), [("_File", "File"), ("Save &As", "Save As"), ("E_xit", "Exit")])
def test_the_sign_of_a_key_is_no_text_for_the_model(source, expected):
    strategy = PlaceholderStrategy.first(TaggedText(source))
    assert strategy.text == expected
    assert strategy.target(expected, [(i, i, 1.0) for i in range(2)]).full_text == source


@pytest.mark.parametrize("text", ["R&D", "Tom & Mary", "file_name", "_a_", "a &amp; b", "https://a.b/_c"])
def test_other_texts_have_no_key(text):
    assert PlaceholderStrategy.first(TaggedText(text)).text == text


def test_marks_stay_around_what_stood_in():
    source = TaggedText("Hi %s!", (Mark(3, "<b>", Side.opens, 0), Mark(5, "</b>", Side.closes, 0)))
    strategy = PlaceholderStrategy.first(source).after("Hola!")
    links = [(0, 0, 1.0), (1, 1, 1.0)]
    assert strategy.target("¡Hola Tom!", links).full_text == "¡Hola <b>%s</b>!"


def test_a_person_is_told_what_only_its_neighbors_have_placed():
    strategy = PlaceholderStrategy.first(TaggedText("I like %s."))
    for _ in range(LAST_LEVEL):
        strategy = strategy.after("")
    assert strategy.doubts == ["placed: %s"]
    assert PlaceholderStrategy.first(TaggedText("I like %s.")).doubts == []


parts = st.sampled_from(
    ["%s", "{a}", "<b>", "</b>", "&nbsp;", "😀", "25", "one", "two,", "Tom", "a@b.org", "%1$d", "{{#if x}}", "{{b}}"]
)


def without_addresses(texts):
    return [text for text in texts if "@" not in text]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(parts, max_size=7),
    st.lists(st.lists(parts, max_size=6), min_size=1, max_size=8),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_nothing_is_lost_or_doubled_whatever_a_model_answers(source, answers, between, pieces):
    if not between:  # adjacent letters would become part of an address
        source = without_addresses(source)
        answers = list(map(without_addresses, answers))
    text = between.join(source)
    strategy, number = PlaceholderStrategy.first(TaggedText(text), pieces=pieces), 0
    while (following := strategy.after(" ".join(answers[number % len(answers)]))) is not None:
        strategy, number = following, number + 1
        assert number < 20
    answer = " ".join(answers[number % len(answers)])
    target = strategy.target(answer, [])
    # On the last level, the model has not seen any placeholders, so those in its answer are its own.
    lost, invented = differences(Counter(part for part, _, _ in kept_parts(text)), target.full_text)
    assert not lost
    assert strategy.level == LAST_LEVEL or not invented


@pytest.mark.parametrize("token", ["%s ", "{a}", "<b>", "<br> ", "{{ ", "%(", "a 25 ", "{{#if x}}", "Tom "])
def test_the_ways_take_linear_time(token):
    def try_all(text):
        strategy = PlaceholderStrategy.first(TaggedText(text, syntax=PlaceholderSyntax.message))
        while (following := strategy.after("x")) is not None and following.level < LAST_LEVEL:
            strategy = following

    assert_linear(lambda count: lambda: try_all(token * count), 250, 2_000)
