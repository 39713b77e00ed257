"""Protected spans are found, what only looks like one is not, and searching takes linear time."""

from collections import Counter

import pytest

from bitext.protected_spans import (
    TABLE,
    PlaceholderSyntax,
    differences,
    fixed_parts,
    is_non_translatable,
    kept_parts,
    lost_and_invented,
    lost_numbers,
    numbers,
    syntax_of_flags,
    with_patterns,
    without_fixed,
)
from bitext.user_patterns import bounded_pattern
from tests.growth import assert_linear

PROSE, MESSAGE = PlaceholderSyntax.prose, PlaceholderSyntax.message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{a}{b} {{c}}d{{e}}", ["{a}", "{b}", "{{c}}", "{{e}}"]),
        ("{{{raw}}} { spaced } {user.name} {0:dd MMM yyyy} {n, number}", None),
        ("{{#if ok}}Yes{{else}}No{{/if}}", ["{{#if ok}}", "{{else}}", "{{/if}}"]),
        ("{% if a %}b{% endif %}", ["{% if a %}", "{% endif %}"]),
        ("%1$s%2$s %1$dpx %(total).2f %(n)dkm %.1fkg %lldms", None),
        ("%1$tY %-5d %+d %@ %1$@ %#@apples@ %<rate>.1f", None),
        ("%s<b>x</b>", ["%s", "<b>", "</b>"]),
        ("%dpx %sMB", ["%d", "%s"]),
        ("%B %d, %Y", ["%B", "%d", "%Y"]),
        ("%%title%% %count% 5%%", ["%%title%%", "%count%", "%%"]),
        ("$t(common:key) $HOME $USER$ $A$B", ["$t(common:key)", "$HOME", "$USER$", "$A", "$B"]),
        ("<%= user.name %> <% if a %> <?= $x ?> <?php echo 1; ?>", None),
        ("__name__ __a_b__ [[page]] @:app.title. @.upper:a", None),
    ],
)
def test_what_can_hardly_be_anything_else_is_a_placeholder_everywhere(text, parts):
    for syntax in (PROSE, MESSAGE):
        placeholders = fixed_parts(text, syntax)
        if parts is None:  # every letter is in a placeholder, except for units
            rest = text
            for part in placeholders:
                rest = rest.replace(part, "", 1)
            assert set(rest.split()) <= {"px", "km", "kg", "ms", "."}
        else:
            assert placeholders == parts


@pytest.mark.parametrize(
    "text",
    [
        "50 % de todo, 100 % sure, 3%off, 20%discount",
        "the %share of the 5 %items",
        "it costs $5 or 5$, at 10:30, see:this, and a:b",
        "well :) fine :-P ok :D, {see below} [1] [a] a_b snake_case __ __init",
        "either a | b || c, 3 < 4 % 2, 100%-sure, a {b c} d",
        "%-Punkte und % allein, 5 %-ig",
        "me & you @ home, C# and F#, R&D, #1 ~5 ~all",
    ],
)
def test_ordinary_prose_has_none(text):
    assert fixed_parts(text) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hi :name, :first_name (:count)", [":name", ":first_name", ":count"]),
        ("a :smile: b", [":smile:"]),
        ("Width %dogs", ["%dogs"]),
        ("at 10:30 :) see:this a::b :D 50 %off 7%off", []),
    ],
)
def test_strings_of_programs_have_more(text, parts):
    assert fixed_parts(text, MESSAGE) == parts


@pytest.mark.parametrize(
    ("flag", "text", "parts"),
    [
        ("c-format", "%dpx, %ddogs, 100%%, 5%s", ["%d", "%d", "%%", "%s"]),
        ("python-format", "%(a).1f of %(b)sx", ["%(a).1f", "%(b)s"]),
        ("python-brace-format", "{a:.2f} is 100%sure, {b!r}", ["{a:.2f}", "{b!r}"]),
        ("qt-format", "%1 of %L2, %n files, 5% off", ["%1", "%L2", "%n"]),
        ("kde-format", "%1%2 %12", ["%1", "%2", "%12"]),
        ("boost-format", "%1% of %|2$s|", ["%1%", "%|2$s|"]),
        ("scheme-format", "~a and ~s~%", ["~a", "~s", "~%"]),
        ("object-pascal-format", "%0:s of %d", ["%0:s", "%d"]),
        ("ruby-format", "%<n>d of %{all}", ["%<n>d", "%{all}"]),
    ],
)
def test_a_flag_says_what_placeholders_are(flag, text, parts):
    syntax = syntax_of_flags(["fuzzy", flag])
    assert fixed_parts(text, syntax) == parts


def test_other_flags_say_nothing():
    assert syntax_of_flags(["fuzzy", "no-wrap", "no-c-format", "range: 0..9"]) is None


TOKENS = [
    "{{ ",
    "{% ",
    "%(",
    "{",
    "{ a, ",
    "<% ",
    "<?php ",
    "$t(",
    "__a",
    "__",
    "[[",
    "@:a",
    "%<a",
    "%#@a",
    "%a-",
    ":a",
]
TOKENS += [
    "[a=",
    "[a b=",
    "`a ",
    "\\C[",
    "*.a ",
    "/a",
    "--a=",
    "@a.",
    "#a",
    "Ctrl+",
    "+12 ",
    "12 ",
    "1:",
    "1°",
    "a:",
    "1.2.",
]
TOKENS += ["<style>", "<script ", "<!--", "<a ", "&a", "www.", "a://b{{", "mailto:(", "~", "%1", "%0", "a@a.", "'{"]


@pytest.mark.parametrize("syntax", [PROSE, MESSAGE])
def test_searching_takes_linear_time(syntax):
    """These have most rows of the table; tests/documents/test_growth.py measures the pattern of each."""
    for token in TOKENS:
        assert_linear(lambda count, token=token: lambda: list(kept_parts(token * count, syntax)), 300, 4_800)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_span_is_found_in_the_texts_of_its_row_only(row):
    assert row.examples
    for syntax in PlaceholderSyntax:
        for example in row.examples:
            found = [part for part, _, _ in kept_parts(f"They see {example} here.", syntax)]
            if syntax in row.syntaxes:
                assert found == [example]
            exact = fixed_parts(f"They see {example} here.", syntax)
            assert exact == ([example] if row.is_exact and syntax in row.syntaxes else exact)


@pytest.mark.parametrize(
    "text",
    [
        "and/or, he/she, 24 km/h, a - b, well-known, x-ray, alt-right, win-win",
        "see [1], section 3.2, the [optional] part, a|b, 5 | 6, so (a) and [a b]",
        "me @ home, C#, F#, #1, it's 5 o'clock: go, 10:30:15, a::b, don't `go",
        "Use `foo' and `bar' here, 2 * 3 * 4, e.g. this, i.e. that, etc. It is.go",
        "costs $1.50 or $12, R&D, AT&T, § 12, 100 % sure, ~5, 1/2",
    ],
)
def test_ordinary_sentences_have_no_spans_that_are_kept(text):
    assert list(kept_parts(text)) == []


@pytest.mark.parametrize(
    "number",
    [
        "10:30",
        "12:00-14:30",
        "2024-01-31",
        "2024-01-31T10:30:00Z",
        "31/12/2024",
        "12–15",
        "1920×1080",
        "4x4",
        "16:9",
        "1/2",
    ]
    + ["+34 600 123 456", "(555) 123-4567", "600 123 456", "978-3-16-148410-0", "0-306-40615-X", "9001:2015", "5′11″"]
    + ["v1.2.3", "1.2.3-beta.1", "192.168.0.1", "10.0.0.0/8", "40°25′N", "40.4168, -3.7038", "00:1A:2B:3C:4D:5E"]
    + ["ES91 2100 0418 4502 0005 1332", "123e4567-e89b-12d3-a456-426614174000", "0x1F", "10 × 20", "-5", "1,000,000.5"],
)
def test_what_belongs_to_a_number_is_one_part(number):
    assert list(numbers(f"See {number} here")) == [(number, 4, 4 + len(number))]


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("at 10:30", "a las 1030", ["10:30"]),
        ("at 10:30", "a las 10 30", ["10:30"]),
        ("in 30 years", "en 1030 años", ["30"]),
        ("on 2024-01-31", "el 2024‑01‑31", []),
        ("pages 12-15", "páginas 12–15", []),
        ("12 to 15 houses", "12–15 casas", []),
        ("1,000.5 and 1,000,000", "1.000,5 y 1 000 000", []),
        ("1920×1080", "1920 x 1080", ["1920×1080"]),
        ("1920 × 1080", "1920×1080", []),
        ("version 1.2.3", "versión 1,2,3", ["1.2.3"]),
        ("+34 600 123 456", "+34600123456", []),
        ("+34 600 123 456", "34 600 123", ["+34 600 123 456"]),
    ],
)
def test_numbers_are_compared_as_a_whole(source, target, lost):
    assert lost_numbers(source, target) == lost


def test_a_user_adds_patterns():
    syntax = with_patterns(PlaceholderSyntax.prose, ["ACME-[A-Z]+", r"(?i:the club) \d+", r"<<.*?!"])
    text = "They like ACME-X and The Club 12, %s, <<a b! or ACME-"
    assert [part for part, _, _ in kept_parts(text, syntax)] == ["ACME-X", "The Club 12", "%s", "<<a b!"]
    assert fixed_parts("ACME-X", syntax) == ["ACME-X"] and fixed_parts("ACME-X") == []
    assert lost_and_invented("Buy ACME-X", "Compra ACME", syntax)[0] == ["ACME-X"]
    assert with_patterns(syntax, []) is PlaceholderSyntax.prose


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "is not a regular expression"),
        ("x*", "also matches nothing"),
        ("(?P<a>b)", "a group with a name"),
        ("(a+)+b", "could take very long"),
        ("(a|a)*b", "could take very long"),
        ("(a|ab){40}c", "could take very long"),
        (".*.*.*x", "could take very long"),
        (r"(a)\1+", "could take very long"),
        ("(?>a+)b", "could take very long"),
        ("a{100000}", "could take very long"),
    ],
)
def test_patterns_of_a_user_that_could_hang_are_refused(pattern, problem):
    with pytest.raises(ValueError, match=problem):
        bounded_pattern(pattern)


def test_patterns_of_a_user_take_linear_time():
    for pattern, token in ((".*x", "a"), ("a+b+c", "ab"), (r"\w+-\w+", "a"), ("[a-c]*?z{2,}", "abc")):
        syntax = with_patterns(PlaceholderSyntax.prose, [pattern])
        assert_linear(lambda count, s=syntax, t=token: lambda: list(kept_parts(t * count, s)), 300, 3_000)


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
def test_texts_without_words_are_recognized(text):
    assert is_non_translatable(text)


@pytest.mark.parametrize("text", ["", "  ", "%s files", "see www.example.com", "a", "足", "<b>go</b>"])
def test_texts_with_words_are_recognized(text):
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
