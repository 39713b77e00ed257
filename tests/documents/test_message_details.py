"""Syntax of messages and of Android strings in detail."""

import pytest

from bitext.documents.document import read_document
from bitext.documents.strings.messages import is_language, message_spans, message_writer
from tests.documents.changing import all_changed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_File", "File"),
        ("E_xit", "Exit"),
        ("Save _As", "Save As"),
        ("(_F)ile", "(F)ile"),
        ("[_x] y", "[x] y"),
        ("_1st file", "1st file"),
        ("Ab_c d e f", "Abc d e f"),
        ("Ab_c d e f g", "Ab_c d e f g"),
        ("a_B c", "a_B c"),
        ("Sa&ve", "Save"),
        ("A&b", "Ab"),
        ("x &y", "x y"),
        ("&File _x", "&File x"),
        ("%(a_b)s c", "%(a_b)s c"),
        ("%(a_b)s &c", "%(a_b)s c"),
        ("R&D", "R&D"),
        ("x& y", "x& y"),
        ("x_ y", "x_ y"),
        ("A1_b c", "A1_b c"),
        ("Save & Quit", "Save & Quit"),
        ("&amp; x", "&amp; x"),
        ("a_b", None),
        ("_File_x", None),
        ("12 _", None),
    ],
)
def test_markers_of_access_keys(text, expected):
    spans = message_spans(text, accelerators=True)
    assert [span.marked.text for span in spans] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a | b", ["a", "b"]),
        ("a  |  b", ["a", "b"]),
        (" | a", ["a"]),
        ("a |b", ["a |b"]),
        ("a| b", ["a| b"]),
        ("a||b", ["a||b"]),
        ("| a |", ["| a |"]),
        ("a {{ b | c }} | d | {{ e }} | f", ["a {{ b | c }}", "d", "f"]),
        ("{{ a }} | b {{ c | d }}", ["b {{ c | d }}"]),
        ("a | {n, plural, other {b}}", ["a", "b"]),
        ("a | <b>c</b>", ["a", "c"]),
        ("{n, plural, one {#} other {# x}}", ["# x"]),
        ("{n, selectordinal, one {#st} other {#th}}", ["#st", "#th"]),
        ("{n,plural,offset:2 =0{a #}other{b}}", ["a #", "b"]),
        ("{g, select, a {# x} other {y}}", ["# x", "y"]),
        ("{n, plural, one {a} other {b", ["{n, plural, one {a} other {b"]),
        ("{n, plural, one {a {b} other {c}}", ["{n, plural, one {a {b} other {c}}"]),
        (
            "x {n, plural, one {a}} y {m, plural, one {b}} z",
            ["x {n, plural, one {a}} y {m, plural, one {b}} z", "a", "b"],
        ),
        ("{n, plural, one {{m, plural, one {# a} other {b}}} other {# c}}", ["# a", "b", "# c"]),
        ("{n, plural, one {in {g, select, x {# a}}}}", ["in {g, select, x {# a}}", "# a"]),
        ("{{n, plural, one {a}}}", ["a"]),
        ("{n, plural, =0 {} one {x}}", ["x"]),
        ("{a.b-c , plural , one {x}}", ["x"]),
        ("{n, number} {d, date, short}", []),
        ("%<a>d", []),
        ("{n, plural, other {it''s}} it''s", ["{n, plural, other {it''s}} it's", "it's"]),
    ],
)
def test_spans(text, spans):
    assert [span.marked.full_text for span in message_spans(text)] == spans


@pytest.mark.parametrize(
    ("text", "words", "marks"),
    [
        ("{n, plural, one {# x}}", " x", ["#"]),
        ("{g, select, a {# x}}", "# x", []),
        ("{n, plural, one {in {g, select, x {# a}}}}", "in ", ["{g, select, x {# a}}"]),
        ("# a", "# a", []),
        ("a '{' b '{c}' d '{{e}}' f '}}'", "a  b  d  f ", ["'{'", "'{c}'", "'{{e}}'", "'}}'"]),
        ("a <code>b</code> <pre>c</pre> <ph>d</ph> e", "a    e", ["<code>b</code>", "<pre>c</pre>", "<ph>d</ph>"]),
        ("a<br>b<x/>c<!-- d -->e", "abce", ["<br>", "<x/>", "<!-- d -->"]),
        ("a <b>c</b> d</i>", "a c d", ["<b>", "</b>", "</i>"]),
        ("<x/>a<code>b</code>", "a", ["<x/>", "<code>b</code>"]),
        ("<br>a<br/>", "a", []),
        ("<b>a</b>", "a", []),
        ("a < b > c", "a < b > c", []),
    ],
)
def test_marks_of_a_message(text, words, marks):
    marked = message_spans(text)[0].marked
    assert (marked.text, [mark.raw for mark in marked.marks]) == (words, marks)


def test_messages_are_read_twenty_levels_deep():
    message = "x"
    for level in range(25):
        message = f"{{n, plural, other {{{level} a {message}}}}}"
    spans = message_spans(message)
    assert len(spans) == 20
    assert spans[-1].marked.text.startswith("5 a {n, plural, other {4 a {n, plural")


@pytest.mark.parametrize(
    ("message", "doubled", "words", "expected", "text"),
    [
        ("a''b", None, "it's", "it's", "a''b"),
        ("a''b", True, "it's", "it''s", "a'b"),
        ("a '{' b", None, "it's {x} l'", "it's {x} l''", "a  b"),
        ("a '{' b", None, "l'{", "l''{", "a  b"),
        ("a '{' b", False, "l'{", "l'{", "a  b"),
        ("a '{' it''s", None, "it's", "it''s", "a  it's"),
        ("{n, plural, other {it''s}}", False, "it's", "it's", "it''s"),
        ("{n, plural, other {it is}}", None, "l'", "l''", "it is"),
    ],
)
def test_apostrophes(message, doubled, words, expected, text):
    assert message_writer(message, doubled=doubled)(words) == expected
    assert message_spans(message, doubled=doubled)[0].marked.text == text


def test_words_with_the_marker_of_a_key_are_language():
    words = "_Save", "E_xit", "A_b c", "_Ñu"
    assert list(
        filter(is_language, [*words, "E_Xit", "e_xit", "_x", "_save", " ", "", " #fff ", "%s", "Éa_b"])
    ) == list(words)


ANDROID = '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">{}</resources>'


def android(content, language="es"):
    """Return the segments of a file, each as `line, note: text`, and its translated content."""
    document = read_document("a.xml", ANDROID.format(content).encode(), ("en", language))
    lines = []
    for segment in document.segments:
        lines.append(f"{segment.place.removeprefix('line ')}, {segment.note}: {segment.source.text}")
    before, _, after = ANDROID.partition("{}")
    return lines, document.filled(all_changed(document)).decode().removeprefix(before).removesuffix(after)


RESOURCES = r"""<!-- N -->
<string name="a">One <b>two</b> <xliff:g id="x">%1$s</xliff:g> <i translatable="false">no</i>\n three\u00e9\u200b\@ &#169;</string>
<string name="lang">no</string><string name="l">yes</string>
<item type="string" name="b">four</item><item type="color" name="c">five</item><item name="c">six</item>
<!-- M -->
<string-array name="d"><item>seven</item><item> @string/x</item><item>eight</item></string-array>
<group translatable="false"><string name="e">no</string></group>
<string name="f"> ?no</string><string name="g">\?nine</string><string name="h">"It  is" so  long \"x  y\" </string>"""  # noqa: E501


def test_resources_of_android():
    lines, after = android(RESOURCES)
    assert lines == [
        "2, N: One two  ",
        "2, N: threeé@ ©",
        "3, None: yes",
        "4, None: four",
        "6, M: seven",
        "6, M: eight",
        "8, None: ?nine",
        '8, None: It  is so  long "x  y"',
    ]
    expected = RESOURCES.replace("&#169;", "©").replace("\\u00e9", "É")
    for word in ("One", "two", "three", "yes", "four", "seven", "eight", "nine", "It  is", "so  long", "x  y"):
        expected = expected.replace(word, word.upper())
    assert after == expected


@pytest.mark.parametrize(
    ("text", "words", "after"),
    [
        (r"One \"x  y\" z", 'One "x y" z', r"ONE \"X Y\" Z"),
        (r"a &lt;b>c&lt;/b> &lt;br> d &lt;/i> f\x \\ g", "a c  d  f \\ g", None),
        ("<![CDATA[a <b>c</b> & d]]>", "a c & d", "<![CDATA[A <b>C</b> & D]]>"),
        (r"\u0020a\u00a0b \u0041", "ab A", r"\u0020A\u00a0B A"),
        ("a &lt;br>b", "a b", "A &lt;br&gt;B"),
        ("&lt;B>a&lt;/b> c", "a c", "&lt;B&gt;A&lt;/b&gt; C"),
        ("&lt;style>x&lt;/style> a", " a", "&lt;style&gt;x&lt;/style&gt; A"),
    ],
)
def test_texts_of_android(text, words, after):
    lines, filled = android(f'<string name="a">{text}</string>')
    assert lines == [f"1, None: {words}"]
    assert after is None or filled == f'<string name="a">{after}</string>'


def items(**texts):
    return "".join(f'<item quantity="{quantity}">{text}</item>' for quantity, text in texts.items())


MILLIONS = "1000000, 2000000, 3000000 …"


@pytest.mark.parametrize(
    ("forms", "language", "lines", "after"),
    [
        (items(one="a cat", few="cats"), "es", ["a cat", "cats", f"for {MILLIONS}: cats", "for 0, 2, 3 …: cats"],
         items(one="A CAT", many="CATS", other="CATS", few="CATS")),
        (items(other="%d", one="one cat"), "pl", ["one cat"], items(other="%d", one="ONE CAT")),
        (items(zero="no cats", other="cats"), "ja", ["cats"], items(other="CATS")),
        (items(zero="no cats", other="cats"), "qqq", ["no cats", "cats"], items(zero="NO CATS", other="CATS")),
        (items(one="a cat", other="cats"), "es", ["a cat", "cats", f"for {MILLIONS}: cats"],
         items(one="A CAT", many="CATS", other="CATS")),
        (items(x="cats"), "es", [], items(x="cats")),
        ("", "es", [], ""),
    ],
)  # fmt: skip
def test_plurals_of_android(forms, language, lines, after):
    segments, filled = android(f"<!-- N --><plurals>{forms}</plurals>", language)
    assert [line.removeprefix("1, ").removeprefix("N: ").replace(" …, N:", " …:") for line in segments] == lines
    assert filled == f"<!-- N --><plurals>{after}</plurals>"
