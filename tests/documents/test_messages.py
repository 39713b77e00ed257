"""What in a message is translated, and what is language at all."""

import pytest

from translucid.documents.messages import is_language, message_spans


def found(text, icu=True):
    return [span.marked.whole for span in message_spans(text, icu=icu)]


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
        ("{n, plural, one {# item} other {# items}}", ["# item", "# items"]),
        ("{n, plural, =0 {none} one {one {x}} other {{y} left}}", ["none", "one {x}", "{y} left"]),
        ("{g, select, male {He} other {They}} came", ["{g, select, male {He} other {They}} came", "He", "They"]),
        ("{a, select, x {in {b, plural, other {# there}}}}", ["in {b, plural, other {# there}}", "# there"]),
        ("{n, plural, offset:1 one {you} other {you and #}}", ["you", "you and #"]),
        ("on {d, date, long} at", ["on {d, date, long} at"]),
        ("broken {n, plural, one {x", ["broken {n, plural, one {x"]),
        ("<b>all</b>", ["all"]),
        ("a <b>c</b><br/>", ["a <b>c</b>"]),
        ("run <code>x y</code>", ["run <code>x y</code>"]),
        ("Give a <name>", ["Give a <name>"]),
    ],
)
def test_spans(text, segments):
    assert found(text) == segments


def test_without_icu_a_plural_is_text():
    assert found("{n, plural, one {# item} other {# items}}", icu=False) == [
        "{n, plural, one {# item} other {# items}}"
    ]
