"""What no translation may change is found, and missed where it is missing."""

import pytest

from translucid.data.non_translatable import fixed_parts, lost_and_invented, stands_alone


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
def test_what_has_nothing_to_translate_stands_alone(text):
    assert stands_alone(text)


@pytest.mark.parametrize("text", ["", "  ", "%s files", "see www.example.com", "a", "足", "<b>go</b>"])
def test_what_has_words_does_not(text):
    assert not stands_alone(text)


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
def test_what_is_lost_or_invented_is_said(source, target, lost, invented):
    assert lost_and_invented(source, target) == (lost, invented)
