"""Placeholders of many toolkits are found, what only looks like one is not, and searching takes linear time."""

import pytest

from tests.growth import assert_linear
from translucid.data.non_translatable import fixed_parts
from translucid.data.placeholder_syntax import PlaceholderSyntax, syntax_of_flags

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
TOKENS += ["<style>", "<script ", "<!--", "<a ", "&a", "www.", "a://b{{", "mailto:(", "~", "%1", "%0", "a@a.", "'{"]


@pytest.mark.parametrize("syntax", PlaceholderSyntax)
def test_searching_takes_linear_time(syntax):
    for token in TOKENS:
        assert_linear(lambda count, token=token: lambda: fixed_parts(token * count, syntax), 1_000, 16_000)
