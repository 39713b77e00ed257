"""Fluent messages as documents, checked with fluent.syntax."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, placed_and_filled
from translucid.ground.errors import UserError

FILE = """\
# The license

## Pets
# Of the start page
#   $name (String)
hello = Hello, { $name }, from { -brand }!
-brand = Cat Shop
    .gender = masculine
wrapped =
    The <b>first</b> line
    and the second.

    { DATETIME($day, month: "long") } is a day
cats = { $count ->
    [one] one cat
   *[other] { $count } cats { "}" }
 }
both = You see { $n ->
        [one] { $m ->
           *[x] a dog
        }
       *[other] dogs
    } there
save =
    .label = Save file
    .accesskey = S
    .style = width: 10em
menu-accesskey = F
"""


def test_messages_attributes_and_variants_are_translated():
    places, filled = placed_and_filled("a.ftl", FILE)
    assert places == [
        "6: Hello, { $name }, from { -brand }!",
        "10: The <b>first</b> line",
        "11: and the second.",
        '13: { DATETIME($day, month: "long") } is a day',
        "15: one cat",
        '16: { $count } cats { "}" }',
        "18: You see " + FILE[FILE.index("{ $n ->") : FILE.index(" there")] + " there",
        "20: a dog",
        "22: dogs",
        "25: Save file",
    ]
    assert filled.lower() == FILE.lower()
    changed = [line for line in filled.splitlines() if line not in FILE.splitlines()]
    assert changed == [
        "hello = HELLO, { $name }, FROM { -brand }!",
        "    THE <b>FIRST</b> LINE",
        "    AND THE SECOND.",
        '    { DATETIME($day, month: "long") } IS A DAY',
        "    [one] ONE CAT",
        '   *[other] { $count } CATS { "}" }',
        "both = YOU SEE { $n ->",
        "           *[x] A DOG",
        "       *[other] DOGS",
        "    } THERE",
        "    .label = SAVE FILE",
    ]
    document = read_document("a.ftl", FILE.encode(), ENGLISH_SPANISH)
    assert document.filled({}) == FILE.encode() and document.segments[0].note == "Of the start page\n$name (String)"
    assert document.segments[1].note is None


@pytest.mark.parametrize(
    "text", ["a = [a one]\n    .b = [{ $n } two]\n", "a = { $n ->\n    [x] [a one]\n   *[y] .two\n }\n"]
)
def test_signs_that_do_not_begin_a_line_are_not_escaped(text):
    document = read_document("a.ftl", text.encode(), ENGLISH_SPANISH)
    expected = text.replace("a one", "A ONE").replace("two", "TWO")
    assert document.filled(all_changed(document)).decode() == expected


def test_what_the_syntax_would_misread_is_escaped():
    document = read_document(
        "a.ftl", b"a =\r\n    one line that is so long that it wraps its sentence\r\n    here\r\n", ENGLISH_SPANISH
    )
    marks = document.segments[0].source.marks
    text = TaggedText("[a] {b}.c", tuple(type(mark)(7, mark.raw) for mark in marks))
    output = document.filled({0: Target(text)}).decode()
    assert output == 'a =\r\n    {"["}a] {"{"}b{"}"}\r\n    {"."}c\r\n'
    syntax = pytest.importorskip("fluent.syntax")
    pattern = syntax.parse(output).body[0].value.elements
    parts = [getattr(part, "expression", part).value for part in pattern]  # placeables have an expression, texts do not
    assert "".join(parts) == "[a] {b}\n.c"


def test_fluent_reads_the_same_structure():
    syntax = pytest.importorskip("fluent.syntax")
    document = read_document("a.ftl", FILE.encode(), ENGLISH_SPANISH)
    before, after = syntax.parse(FILE), syntax.parse(document.filled(all_changed(document)).decode())
    serialized = []
    for resource in (before, after):
        text = syntax.FluentSerializer(with_junk=True).serialize(resource)
        assert not any(isinstance(entry, syntax.ast.Junk) for entry in resource.body)
        serialized.append("".join(text.split()).lower())
    assert serialized[0] == serialized[1]


def test_what_is_no_entry_stays():
    text = "a = One { $n }\n\nthis is no entry\n  nor this\nb = { c\n# Note\nd = Two\n<#if x>\ne = Three }\nf = Four\n"
    places, filled = placed_and_filled("a.ftl", text)
    assert places == ["1: One { $n }", "7: Two", "10: Four"]
    assert filled == text.replace("One", "ONE").replace("Two", "TWO").replace("Four", "FOUR")
    syntax = pytest.importorskip("fluent.syntax")
    junk = [entry.content for entry in syntax.parse(text).body if isinstance(entry, syntax.ast.Junk)]
    assert junk == [entry.content for entry in syntax.parse(filled).body if isinstance(entry, syntax.ast.Junk)]


@pytest.mark.parametrize(
    ("content", "line"),
    [("<#if a>\nb", 1), ("\nc { d", 2), ("a = { b", 1), ("a = b }", 1), ("a = " + "{" * 100 + "}" * 100, 1)],
)
def test_other_files_are_refused(content, line):
    with pytest.raises(UserError, match=rf"^a\.ftl:{line}: is not Fluent"):
        read_document("a.ftl", content.encode())
