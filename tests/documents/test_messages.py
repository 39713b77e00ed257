"""The translatable spans of messages, and which strings are language."""

import pytest

from bitext.documents.strings.messages import is_language, message_spans, message_writer


def span_texts(text):
    return [span.marked.full_text for span in message_spans(text)]


@pytest.mark.parametrize(
    "text", ["Save", "Yes/No", "e-mail", "JavaScript", "and/or", "I am here.", "GitHub", "Wi-Fi", "OK"]
)
def test_language(text):
    assert is_language(text)


_CODES = """
https://x.org/a user_name userName img/a.png ./a/b /usr/bin #fff #a0b1c2d3 rgb(1,2,3) 2024-01-31 10px v1.2.3 en-US %s
com.example.app index.html {name} 12 text/html --verbose @scope/name 123e4567-e89b-12d3-a456-426614174000
"""


@pytest.mark.parametrize("text", _CODES.split())
def test_no_language(text):
    assert not is_language(text)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("Hello {name}", ["Hello {name}"]),
        ("{n, plural, =0 {none} one {one {x}} other {{y} left}}", ["none", "one {x}", "{y} left"]),
        ("{g, select, male {He} other {They}} came", ["{g, select, male {He} other {They}} came", "He", "They"]),
        ("on {d, date, long} at", ["on {d, date, long} at"]),
        ("a <b>c</b><br/>", ["a <b>c</b>"]),
        ("run <code>x y</code>", ["run <code>x y</code>"]),
        ("Give a <name>", ["Give a <name>"]),
        ("you have {{count, number}} cats", ["you have {{count, number}} cats"]),
        ("it's '{'a'}' and '{b}' {n}", ["it's '{'a'}' and '{b}' {n}"]),
        ("{n, plural, one {a '{' b} other {'{c}' # d}}", ["a '{' b", "'{c}' # d"]),
        ("{n, plural, =1 {<x a='}'/> one} other {<x a='{{n}}'/> two}}", ["<x a='}'/> one", "<x a='{{n}}'/> two"]),
        ("%<n>d and %<all>s", ["%<n>d and %<all>s"]),
        ("<style>p { color: red }</style>go", ["go"]),
    ],
)
def test_spans(text, segments):
    assert span_texts(text) == segments


@pytest.mark.parametrize(
    ("message", "words", "expected"),
    [
        ("{n, plural, other {it''s}}", "c'est", "c''est"),
        ("{n, plural, other {it is}}", "c'est l'{a}", "c'est l''{a}"),
        ("{n, plural, other {it is #}}", "l'", "l''"),
        ("it is {a}", "c'est l'{a}", "c'est l'{a}"),
        ("''it'' is", "''c'est", "''c'est"),
    ],
)
def test_apostrophes_are_written_as_icu_reads_them(message, words, expected):
    assert message_writer(message)(words) == expected


@pytest.mark.parametrize("text", ["_File", "E_xit", "%Y more", "50% off", "Note: {a}"])
def test_words_with_signs_are_language(text):
    assert is_language(text)


@pytest.mark.parametrize("text", ["%Y-%m-%d", "%B %d, %Y", "%u%n", ":year", "$t(a)", "__name__", "_private", "{ a }"])
def test_placeholders_alone_are_not(text):
    assert not is_language(text)
