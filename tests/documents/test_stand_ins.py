"""Stand-ins for placeholders: which parts get one, how it is chosen, and where spaces are needed."""

import pytest

from bitext.documents.placeholders import LAST_LEVEL, Unit, merged, needed_spaces, numbers_of, stand_in_names, unit_of
from bitext.documents.tagged_text import Mark, TaggedText, cut_at_marks, letters_before, parts_of, spans_between
from bitext.protected_spans import PlaceholderSyntax, StandIn, is_address, is_sign, restored
from bitext.words import is_letter


def message(text, *marks):
    return TaggedText(text, marks, PlaceholderSyntax.message)


def units_of(text, *marks):
    marked = message(text, *marks)
    return list(merged(marked, parts_of(marked)))


def test_signs_are_parts_that_no_word_can_stand_in_for():
    signs = [
        "<b>",
        "</b>",
        "&amp;",
        "_",
        "&",
        "{{#if}}",
        "{{/if}}",
        "{{^a}}",
        "{{!a}}",
        "{{else}}",
        "{#x}",
        "{/x}",
        "{:else}",
        "{@x}",
        "...",
        "->",
        "😀",
        "<?php",
    ]
    signs += ["<% x %>", "<?php x ?>", "{% x %}", "{{> a}}"]
    others = ["{x}", "{}", "%s", "%%", "$x", "#x", "$", "#", "⟦1⟧", "a", "12", "{{elsewhere}}"] + [
        "{{ x }}",
        "<%= x %>",
        "<?= x ?>",
    ]
    assert list(filter(is_sign, signs + others)) == signs


def test_addresses():
    addresses = ["a@b.c", "A.B+c-d@e", "https://x", "git+ssh://x", "www.x", "mailto:x", "tel:1", "sms:1"]
    assert list(filter(is_address, [*addresses, "x", "1://x", "x.www."])) == addresses


def test_letters_are_those_of_scripts_with_spaces():
    assert "".join(filter(is_letter, "a1ßéЖ -'日あกဂក\ufa10가")) == "a1ßéЖ가"
    assert not is_letter("")


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("a %s d", ["%s"]),
        ("%s{a}{b} %d", ["%s{a}{b}", "%d+"]),
        ("{n}s %dkg %spx", ["{n}s+", "%dkg+", "%spx"]),  # with the symbol of a unit of measurement
        ("{name}s {a}in %din %ss", ["{name}", "{a}", "%din", "%s"]),  # letters that may be the ending of a word
        ("<b>%s</b>{x}", ["<b>!", "%s", "</b>!", "{x}"]),
        ("%s😀{b} 😀%s", ["%s", "😀!", "{b}", "😀!", "%s"]),
        (
            "{0} {total} %(n)s %(count)d {12} %lld %hhu",
            ["{0}+", "{total}+", "%(n)s+", "%(count)d+", "{12}+", "%lld+"] + ["%hhu+"],
        ),
        ("%(x)d %c %% {no}", ["%(x)d", "%c", "%%", "{no}"]),
        ("none", []),
    ],
)
def test_adjacent_parts_are_one_unit(text, units):
    assert [unit.raw + "!" * unit.is_sign + "+" * unit.counts for unit in units_of(text)] == units


def test_marks_end_units_and_their_units_of_measurement():
    marks = Mark(4, "<b>"), Mark(9, "<i>"), Mark(12, "<u>")
    marked = message("a %s{x}b %dkg {n}s", *marks)
    assert cut_at_marks(marked) == "a %s\0{x}b \0%dk\0g {n}s"
    units = list(
        merged(message("a %s{x}b %d km", Mark(4, "<b>"), Mark(11, "<i>")), [("%s", 2, 4), ("{x}", 4, 7), ("%d", 9, 11)])
    )
    assert [(unit.raw, unit.start, unit.end) for unit in units] == [("%s", 2, 4), ("{x}", 4, 7), ("%d", 9, 11)]
    assert [unit.raw for unit in units_of("%dkg", Mark(2, "<b>"))] == ["%d"]
    assert parts_of(message("a %sb%d", Mark(0, "<a>"), Mark(4, "<b>"), Mark(7, "<c>"))) == [("%s", 2, 4), ("%d", 5, 7)]


def test_numbers_are_units_with_their_unit_of_measurement():
    marked = message("a 10kg 10 5 x10 10km", Mark(4, "<b>"))
    assert list(numbers_of(marked, {"10", "5"})) == [
        Unit("10", 2, 4, counts=True),
        Unit("10", 7, 9, counts=True),
        Unit("5", 10, 11, counts=True),
        Unit("10", 13, 15, counts=True),
        Unit("10km", 16, 20, counts=True, has_letters=True),
    ]
    assert list(numbers_of(marked, {"5"})) == [Unit("5", 10, 11, counts=True)]
    (unit,) = numbers_of(message("since 1.23 dogs", Mark(9, " \n")), {"1.2"})  # a line end is in between
    assert unit == Unit("1.2", 6, 9, counts=True)


def test_units_of_copies():
    counts = {text: unit_of(text, 3).counts for text in ("12", "%d", "x", "[4]", "H2O")}
    assert counts == {"12": True, "%d": True, "x": False, "[4]": False, "H2O": False}
    assert unit_of("[4]", 3) == Unit("[4]", 3, 6)


def test_letters_outside_of_parts():
    assert letters_before("ab %s1c", [("%s", 3, 5)]) == [0, 1, 2, 2, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("level", "pieces", "names"),
    [
        (0, True, {"%s": "⟦1⟧", "{n}": "⟦2⟧", "<b>": "⟦3⟧", "12": "47"}),
        (1, False, {"%s": "Tom", "{n}": "47", "12": "58"}),
        (1, True, {"%s": "Tom", "{n}": "47", "12": "58"}),
        (2, False, {"%s": "47", "{n}": "Tom", "12": "58"}),
        (2, True, {"%s": "47", "{n}": "Tom", "12": "58"}),
        (LAST_LEVEL, False, {}),
        (LAST_LEVEL, True, {}),
    ],
)
def test_the_level_chooses_names_numbers_or_pieces(level, pieces, names):
    text = "%s {n} 12 <b> %s"
    units = [*units_of(text), *numbers_of(message(text), {"12"})]
    assert stand_in_names(text, units, level, pieces) == names


def test_each_word_stands_in_for_one_unit_and_is_not_in_the_text():
    text = " ".join(f"{{a{number}}}" for number in range(10))
    names = ["Tom", "Max", "Nina", "Oscar", "Eva", "Victor", "Sonia", "Martin"]
    assert list(stand_in_names(text, units_of(text), 1, False).values()) == names
    assert list(stand_in_names(f"{text} Max and Tomas", units_of(text), 1, False).values()) == names[2:]
    text = "%d 47"
    assert stand_in_names(text, units_of(text), 1, False) == {"%d": "58"}


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("a{x}b", "1", "1"),
        ("1{x}2", "1", "1"),
        ("ab%s", "1", "0"),
        ("a%s", "0", "0"),  # the letter belongs to it
        ("{x}", "0", "0"),
        ("日{x}本", "0", "0"),
        ("{x} {y}", "00", "00"),
        ("a {x}.{y}b", "00", "01"),
        ("a {x}<br>b", "00", "00"),
        ("a<br>{x}", "00", "00"),
        ("a&nbsp;{x}<hr/>b", "000", "000"),
        ("{x}<b>a", "00", "10"),
        ("a<b>{x}", "01", "00"),
        ("{x}<b>{y}", "001", "000"),  # one space is enough
        ("{x}😀%d", "001", "000"),
        ("a😀{x}", "01", "00"),
        ("ab{x} ba{y}", "11", "00"),
        ("{x}a {y}a", "00", "11"),
    ],
)
def test_letters_that_touch_a_stand_in_are_separated_from_it(text, left, right):
    units = units_of(text)
    sides = needed_spaces(message(text), units, stand_in_names(text, units, 1, False))
    assert [digits(side) for side in sides] == [left, right]


def test_a_line_end_separates_a_stand_in_from_letters():
    for marks, left, right in (((), True, True), ((Mark(2, "\n"),), False, True), ((Mark(5, "<br/>"),), True, False)):
        marked = message("ab{x}ba", *marks)
        assert needed_spaces(marked, units_of("ab{x}ba"), {"{x}": "Tom"}) == ([left], [right])


def digits(needs):
    """Return one digit for each stand-in: 1 if it needs a space."""
    return "".join(str(int(needs_space)) for needs_space in needs)


def test_a_stand_in_is_found_as_a_word():
    def spans(word, text, *marks, is_term=False):
        stand_in = StandIn(word, "{x}", "{x}", is_term)
        assert stand_in.count(text) == len(list(stand_in.found_in(text)))
        return spans_between(TaggedText(text, marks), [mark.offset for mark in marks], stand_in.found_in)

    assert spans("Tom", "Tom, Tomas aTom Tom1 éTom (Tom)") == [(0, 3), (27, 30)]
    assert spans("47", "47kg 147 47.5 4.47 47, 47. 4,47 470") == [(0, 2), (19, 21), (23, 25)]
    assert spans("⟦1⟧", "a⟦1⟧⟦1⟧b") == [(1, 4), (4, 7)]
    assert spans("Tom", "Max") == spans("Tom", "tom TOM") == []
    assert spans("Tom", "Tomは Tomы") == [(0, 3), (5, 8)]
    assert spans("golf", "Golf golf GOLF golfы golfs", is_term=True) == [(0, 4), (5, 9)]
    marks = Mark(1, "<b>"), Mark(4, "</b>"), Mark(7, "<i>")
    assert spans("Tom", "aTomb Tom", *marks) == [(1, 4)]  # marks end words and split them


def test_stand_ins_are_replaced_once():
    stand_ins = [StandIn("Ana", "Tom", "golf", True), StandIn("golf", "Ana", "Ana", True), StandIn("47", "%d", "%d")]
    assert restored("Ana golf 47 Golf 147", stand_ins) == "golf Ana %d Ana 147"
