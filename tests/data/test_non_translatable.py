"""Parts that no translation may change are found, and reported where they are missing."""

from collections import Counter

import pytest

from translucid.data.non_translatable import (
    differences,
    fixed_parts,
    is_non_translatable,
    kept_parts,
    lost_and_invented,
    lost_numbers,
    numbers,
    without_fixed,
)
from translucid.data.placeholder_syntax import PlaceholderSyntax


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Dear %s, you have %d files.", ["%s", "%d"]),
        ("%(name)s has %1$s of %.2f or %-5d", ["%(name)s", "%1$s", "%.2f", "%-5d"]),
        ("{name} {0} {} {{count}} ${home} %{who}", ["{name}", "{0}", "{}", "{{count}}", "${home}", "%{who}"]),
        ("in $HOME for $5", ["$HOME"]),
        ("50 % de todo, 100 % sure, 3%off", []),
        ("See https://example.com/a?b=1.", ["https://example.com/a?b=1"]),
        ("(www.example.com), me.too@mail.example.org!", ["www.example.com", "me.too@mail.example.org"]),
        ("(see https://a.org/B_(c)), https://a.org/{id}/[x].", ["https://a.org/B_(c)", "https://a.org/{id}/[x]"]),
        ("https://a.org/{{ id }}?x=%s&y. ftp://b.c/d)", ["https://a.org/{{ id }}?x=%s&y", "ftp://b.c/d"]),
        ("mailto:a@b.org?subject=Hi%20you, tel:+1(23)4", ["mailto:a@b.org?subject=Hi%20you", "tel:+1(23)4"]),
        ("看https://a.org/b。app://open/x", ["https://a.org/b", "app://open/x"]),
        ("a<style>p { color: red }</style>b<SCRIPT>if (a<b) c()</SCRIPT>", None),
        ('<b>Bold</b> &amp; <x id="1"/>', ["<b>", "</b>", "&amp;", '<x id="1"/>']),
        ("3 < 4 and 5 > 2, AT&T", []),
        ("no such thing", []),
    ],
)
def test_placeholders_tags_and_addresses_are_found(text, parts):
    if parts is None:
        parts = ["<style>p { color: red }</style>", "<SCRIPT>if (a<b) c()</SCRIPT>"]
    assert fixed_parts(text) == parts


@pytest.mark.parametrize(
    "text", ["%s", "{name}: %d!", "https://example.com/a?b=1", "<br/>", "42", "— 1,000.5 €", "..."]
)
def test_texts_without_words_are_recognised(text):
    assert is_non_translatable(text)


@pytest.mark.parametrize("text", ["", "  ", "%s files", "see www.example.com", "a", "足", "<b>go</b>"])
def test_texts_with_words_are_recognised(text):
    assert not is_non_translatable(text)


@pytest.mark.parametrize(
    ("source", "target", "lost", "invented"),
    [
        ("Dear %s", "Querido %s", [], []),
        ("Dear %s", "Querido", ["%s"], []),
        ("%s and %s", "%s y", ["%s"], []),
        ("Hello {name}", "Hola {nombre}", ["{name}"], ["{nombre}"]),
        ("Hello", "Hola <b>", [], ["<b>"]),
        ("It costs 1,000.5", "Cuesta 1.000,5", [], []),
        ("I have 3 cats", "Tengo tres gatos", [], []),
        ("In 1990 and 1990", "En 1990", ["1990"], []),
        ("In 1990", "En 1991", ["1990"], ["1991"]),
        ("two hundred", "200", [], []),
        ("%s cats", "%sgatos", [], []),
        ("{a}{b} cats", "{b}{a}gatos", [], []),
        ("in $HOME", "en $HOMEPAGE", ["$HOME"], ["$HOMEPAGE"]),
        ("{n} cats", "{{n}} gatos", ["{n}"], ["{{n}}"]),
        ("10kg of it", "kg", ["10"], []),
    ],
)
def test_lost_and_invented_parts_are_reported(source, target, lost, invented):
    assert lost_and_invented(source, target) == (lost, invented)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("see (a@b.org). x@y c.d+e-f@g-h.co.uk", ["a@b.org", "c.d+e-f@g-h.co.uk"]),
        ("1https://b.c ssh://x (www.a.org/(b)c])}).", ["ssh://x", "www.a.org/(b)c"]),
        ("https://a.b/c!?'»\" https://d))", ["https://a.b/c", "https://d"]),
        ("<!-- <b> --> <!-- <!-- x -->", ["<!-- <b> -->", "<!-- x -->"]),
        ("&#160; &amp; & x; <1> </p > <b", ["&#160;", "&amp;", "<1>", "</p >"]),
    ],
)
def test_where_addresses_and_tags_end(text, parts):
    assert fixed_parts(text) == parts


def test_numbers_beside_other_parts():
    assert list(numbers("7 {1} 8 %2$s 9.5,1 x3y 4")) == [
        ("7", 0, 1),
        ("8", 6, 7),
        ("9.5,1", 13, 18),
        ("3", 20, 21),
        ("4", 23, 24),
    ]
    assert list(numbers("{1}2{3}")) == [("2", 3, 4)]


def test_numbers_of_so_many_digits_are_compared():
    assert lost_numbers("1 22 22 3.5", "22 35") == ["22"]
    assert lost_numbers("1 22 22 3.5", "22 35", 1) == ["1", "22"]
    assert lost_numbers("1 22", "", 3) == []


@pytest.mark.parametrize(
    ("expected", "target", "signs", "result"),
    [
        ({"%s": 2}, "%s %s %s", True, ([], ["%s"])),
        ({"%s": 2}, "%sfiles", True, (["%s"], [])),
        ({"%s": 1}, "%sfiles %s", True, ([], [])),
        ({"{a}": 2, "{b}": 1}, "{a}{c}{a}{c}", True, (["{b}"], ["{c}"])),
        ({"$A": 2}, "$AB $A", True, (["$A"], ["$AB"])),
        ({":a_": 1}, "x:a_b", True, ([":a_"], [])),
        ({":a:": 2}, "x:a:b :a:", True, ([], [])),
        ({"%d": 1}, "%d 👋", True, ([], ["👋"])),
        ({"%d": 1}, "%d 👋", False, ([], [])),
        ({"👋": 1}, "%d", True, (["👋"], ["%d"])),
        ({"{n}": 1}, "{{n}} %sx", True, (["{n}"], ["{{n}}", "%s"])),
        ({"%-1d": 1, "%-1": 1}, "%-1dx", True, (["%-1"], [])),
        ({}, "%s<b>%s", True, ([], ["%s", "<b>"])),
    ],
)
def test_what_a_translation_lacks_and_has_in_addition(expected, target, signs, result):
    assert differences(Counter(expected), target, signs=signs) == result


def test_a_hundred_different_parts_are_searched_for_within_words():
    parts = [f"%-{number}d" for number in range(1, 102)]
    lost, invented = differences(Counter(parts), "".join(f"{part}x " for part in parts))
    assert (lost, invented) == (["%-9d"], [])


def test_the_text_without_non_translatable_parts():
    assert without_fixed("a%sb {c}<b>d") == "a%sb   d"
    assert without_fixed("{a}") == " " and without_fixed("a b") == "a b"
    assert list(kept_parts("a 👋🏽%s ©2020 [X12X] ⟦7⟧ ⟦a⟧ 3️⃣")) == [
        ("👋🏽", 2, 4),
        ("%s", 4, 6),
        ("©", 7, 8),
        ("[X12X]", 13, 19),
        ("⟦7⟧", 20, 23),
        ("3️⃣", 28, 31),
    ]
    assert is_non_translatable("1", PlaceholderSyntax.printf) and not is_non_translatable(" ")
    assert is_non_translatable("%1", PlaceholderSyntax.numbered) and not is_non_translatable(
        "%na", PlaceholderSyntax.numbered
    )
