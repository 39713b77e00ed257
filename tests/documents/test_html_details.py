"""HTML syntax in detail: tokens, segments and output."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.markup.html import tokens
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, placed_and_filled
from translucid.ground.errors import UserError

PAGE = """<!DOCTYPE html>
<html lang=en xml:lang='en'>
<head><title>One</title><meta name=description content='two three'><meta property="og:title" content=four>
<meta name=author content=no><link title=no><style title=no>no</style></head>
<body title='five'>
<p>six <b>seven</b> <code>no</code> eight<br>nine<br/> <br>ten
<ul><li>eleven<li>twelve<ol><li>thirteen</ol><li>fourteen</ul><dl><dt>A1<dd>A2<dt>A3</dl>
<table><tr><td>B1<td>B2<tr><th>B3<tbody><tr><td>B4</table>
<select><option label=C1>C2<option>C3</select><input type=submit value=C4><input type=text value=no placeholder=C5>
<track label=D1><optgroup label=D2></optgroup><img alt='D3 "x"' src=no><a-b>E1</a-b> E2<div aria-label=E3>E4</div>
</body></html>"""


def read_and_fill(text):
    return placed_and_filled("a.html", text)


def test_a_page():
    lines, after = read_and_fill(PAGE)
    assert lines == [
        "3: One", "3, content: two three", "3, content: four", "5, title: five",
        "6: six <b>seven</b> <code>no</code> eight <br>nine", "6: ten",
        "7: eleven", "7: twelve", "7: thirteen", "7: fourteen", "7: A1", "7: A2", "7: A3",
        "8: B1", "8: B2", "8: B3", "8: B4", "9, label: C1", "9: C2", "9: C3", "9, value: C4", "9, placeholder: C5",
        "10, label: D1", "10, label: D2", '10, alt: D3 "x"', "10, aria-label: E3", "10: <a-b>E1</a-b> E2", "10: E4",
    ]  # fmt: skip
    expected = PAGE.replace("lang=en", "lang=es").replace("lang='en'", "lang='es'").replace("eight<br>", "eight <br>")
    for word in (
        "One",
        "two three",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        ">ten",
        "eleven",
        "twelve",
        "thirteen",
        '"x"',
    ):
        expected = expected.replace(word, word.upper())
    expected = expected.replace("fourteen", "FOURTEEN").replace("content=four", 'content="FOUR"')
    for word in ("C1", "C4", "C5", "D1", "D2", "E3"):  # unquoted values are quoted
        expected = expected.replace(f"={word}", f'="{word}"')
    assert after == expected


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        ("<p>One<p>two<div>three<p>four</div>five", "1: One|1: two|1: three|1: four|1: five", None),
        (
            "<p>a <span translate=no>no</span> b <span class='x notranslate'>no</span> c",
            "1: a <span translate=no>no</span> b <span class='x notranslate'>no</span> c",
            "<p>A <span translate=no>no</span> B <span class='x notranslate'>no</span> C",
        ),
        (
            "<div translate=no>no <span translate=yes>yes</span> <p translate=yes>so it is</p></div>x",
            "1: yes|1: so it is|1: x",
            "<div translate=no>no <span translate=yes>YES</span> <p translate=yes>SO IT IS</p></div>X",
        ),
        ("<div translate=no title=no>no<p title=no>no</p></div><p translate=NO>no", "", None),
        (
            "<p>a<span translate=no>x<b>y</span>z</b>",
            "1: a<span translate=no>x<b>y</span>z",
            "<p>A<span translate=no>x<b>y</span>Z</b>",
        ),
        (
            "<p>a <span translate=no>x <code>y</code> z</span> b <code>c <i>d</i>",
            "1: a <span translate=no>x <code>y</code> z</span> b <code>c <i>d</i>",
            "<p>A <span translate=no>x <code>y</code> z</span> B <code>c <i>d</i>",
        ),
        (
            "<p>{% if a %}One{% endif %} {# no #} two &lrm; three</p>",
            "1: One{% endif %} {# no #} two &lrm; three",
            "<p>{% if a %}ONE{% endif %} {# no #} TWO &lrm; THREE</p>",
        ),
        (
            "<p>{% a { b % c } %}One {# { # } #}two</p>",
            "1: One {# { # } #}two",
            "<p>{% a { b % c } %}ONE {# { # } #}TWO</p>",
        ),
        (
            "<p>a &amp; b &lt; c &copy; d&nbsp;e \xa0f</p>",
            "1: a & b < c © d\xa0e \xa0f",
            "<p>A &amp; B &lt; C © D&nbsp;E &nbsp;F</p>",
        ),
        ("<p>a \xa0b</p>", "1: a \xa0b", "<p>A \xa0B</p>"),
        (
            "<pre>no</pre><textarea placeholder=one>no</textarea>two<script>no</script>three<style>no</style>",
            "1, placeholder: one|1: two|1: three",
            '<pre>no</pre><textarea placeholder="ONE">no</textarea>TWO<script>no</script>THREE<style>no</style>',
        ),
        (
            "<p>a<!-- b --><?php c ?><![CDATA[d]]>e",
            "1: a<!-- b --><?php c ?><![CDATA[d]]>e",
            "<p>A<!-- b --><?php c ?><![CDATA[d]]>E",
        ),
        ("One</b>two</p>three", "1: One</b>two|1: three", None),
        ("<p>One<b/>two<i>three</i/>", "1: One<b/>two<i>three</i/>", "<p>ONE<b/>TWO<i>THREE</i/>"),
        (
            "<svg><text>no</text></svg> One <math>no</math>",
            "1: <svg><text>no</text></svg> One <math>no</math>",
            "<svg><text>no</text></svg> ONE <math>no</math>",
        ),
        ("<img alt=one><img alt=''><img alt>", "1, alt: one", "<img alt=\"ONE\"><img alt=''><img alt>"),
        ("<img alt='one' alt='two'>", "1, alt: one", "<img alt='ONE' alt='two'>"),
        (
            "<p title=\"a &quot;b&quot; 'c'\">One",
            "1, title: a \"b\" 'c'|1: One",
            "<p title=\"A &quot;B&quot; 'C'\">ONE",
        ),
        ("<html lang=en><html lang=fr>One", "1: One", "<html lang=es><html lang=fr>ONE"),
        ("<html><html lang=en>One", "1: One", "<html><html lang=es>ONE"),
        (
            "<p>one <br> two <br><br> three <br>\n <br>four",
            "1: one <br>two|1: three|2: four",
            "<p>ONE <br>TWO <br><br> THREE <br>\n <br>FOUR",
        ),
        ("<p>one <br> <i></i><br> two", "1: one <br><i></i><br>two", "<p>ONE <br><i></i><br>TWO"),
        ("<p>one<wbr>two", "1: one<wbr>two", "<p>ONE<wbr>TWO"),
        ("One<p/>two", "1: One|1: two", None),
        (
            "<button>One</button><label>two</label> three",
            "1: One|1: <label>two</label> three",
            "<button>ONE</button><label>TWO</label> THREE",
        ),
        (
            "<p>One\n<p>two\n\n<p>three<img alt=four>\n<p>five",
            "1: One|2: two|4, alt: four|4: three|5: five",
            '<p>ONE\n<p>TWO\n\n<p>THREE<img alt="FOUR">\n<p>FIVE',
        ),
        (
            "<p><img alt='one two'> three <img alt='one two'> four",
            "1, alt: one two|1, alt: one two|1: three <img alt='one two'> four",
            "<p><img alt='ONE TWO'> THREE <img alt='ONE TWO'> FOUR",
        ),
        ("<p>a <b><img alt=one></b> b", "1, alt: one|1: a <b><img alt=one></b> b", '<p>A <b><img alt="ONE"></b> B'),
        ("<p>a &lt;b&gt; \"c\" 'd'", "1: a <b> \"c\" 'd'", "<p>A &lt;b&gt; \"C\" 'D'"),
    ],
)
def test_segments(text, lines, after):
    segments, filled = read_and_fill(text)
    assert segments == [line for line in lines.split("|") if line]
    expected = text
    for line in segments if after is None else ():
        word = line.partition(": ")[2]
        expected = expected.replace(word, word.upper())
    assert filled == (expected if after is None else after).replace("</B>", "</b>")


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        # Missing end tags: the next start tag closes these elements.
        ("<ul><li translate=no>a<li>b<ul><li>c</ul>d</ul>", ["b", "c", "d"]),
        ("<menu><li translate=no>a<ol><li>b</ol>c<li>d</menu>", ["d"]),
        ("<dl><dt translate=no>a<dd>b<dd translate=no>c<dt>d</dl>", ["b", "d"]),
        ("<dl><dd translate=no>a<dl><dt>b</dl><dd>c</dl>", ["c"]),
        ("<table><tr><td translate=no>a<td>b<tr translate=no><td>c<tr><td>d</table>", ["b", "d"]),
        ("<table><tr><th translate=no>a<table><tr><td>b</table><th>c</table>", ["c"]),
        ("<table><thead translate=no><tr><td>a<tbody><tr><td>b<tfoot><tr><td>c</table>", ["b", "c"]),
        ("<select><option translate=no>a<option>b</select>", ["b"]),
        ("<datalist><option translate=no>a<option>b</datalist>", ["b"]),
        ("<p translate=no>a<p>b<div>c</div>", ["b", "c"]),
        ("<p translate=no>a<b>b<p>c", ["c"]),
        ("<p translate=no>a<div>b<p>c</div>d", ["b", "c", "d"]),
        ("<section translate=no><p>a<p>b</section><p>c", ["c"]),
        ("<div translate=no><p>a<div>b</div><p>c</div>d", ["d"]),
    ],
)
def test_elements_without_end_tag(text, segments):
    assert [
        segment.source.text for segment in read_document("a.html", text.encode(), ENGLISH_SPANISH).segments
    ] == segments


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a<b>c</b>", "words a|opens <b>|words c|closes </b>"),
        ("<!-- a --><!--><!---><!-- x", "other <!-- a -->|other <!-->|other <!--->|words <!-- x"),
        ("<!--->--><!-- a>b -->c", "other <!--->|words -->|other <!-- a>b -->|words c"),
        ("<![CDATA[a>b]]>c<![CDATA[d", "other <![CDATA[a>b]]>|words c|words <![CDATA[d"),
        ("<?a?>b</>c<!d>", "other <?a?>|words b|other </>|words c|other <!d>"),
        ("< a <1", "words < a <1"),
        ("<a href='x>y'>z", "opens <a href='x>y'>|words z"),
        ("<a href='x>y<b c='>'>z", "opens <a href='x>y<b c='>|words '>z"),
        ("<a b='<c>'><d e='>f", "opens <a b='<c>'>|opens <d e='>|words f"),
        ("<a href=x/>", "opens <a href=x/>"),
        ("<a href= x/>", "opens <a href= x/>"),
        ("<a/>", "single <a/>"),
        ("<a b=c />", "single <a b=c />"),
        ("<a b />", "single <a b />"),
        ('<a href="x"/>', 'single <a href="x"/>'),
        ("<a href=a'b/>", "single <a href=a'b/>"),
        ("<br / >", "opens <br / >"),
        ("<SCRIPT>a<b></b></Script >c", "opens <SCRIPT>|words a<b></b>|closes </Script >|words c"),
        ("<script>a</scripts></script/>c", "opens <script>|words a</scripts>|closes </script/>|words c"),
        ("<style>a", "opens <style>|words a"),
        ("<script></script><style></style>", "opens <script>|closes </script>|opens <style>|closes </style>"),
        ("<script/>a<b>", "single <script/>|words a|opens <b>"),
        ("<a\0b>c", "opens <a\0b>|words c"),
        ("<a 'b>c'>d", "opens <a 'b>|words c'>d"),
        ("<a b='c'd>e", "opens <a b='c'd>|words e"),
        ("<a ='>'>b", "opens <a ='>|words '>b"),
        ("<a x='1' y=\"2>3\" z>b", "opens <a x='1' y=\"2>3\" z>|words b"),
        ("</a b>c", "closes </a b>|words c"),
        ("<!a", "words <!a"),
        ("a<b", "words a|words <b"),
        ("<b c>d</b", "opens <b c>|words d|words </b"),
    ],
)
def test_tokens(text, kinds):
    found_tokens = list(tokens(text))
    assert "|".join(f"{token.kind} {text[token.start : token.end]}" for token in found_tokens) == kinds
    names = [token.name for token in found_tokens]
    assert all(
        bool(name) == (token.kind in ("opens", "closes", "single"))
        for name, token in zip(names, found_tokens, strict=True)
    )
    assert names == [name.lower() for name in names]


@pytest.mark.parametrize(
    ("content", "text", "after"),
    [
        (b"<?xml version='1.0' encoding='iso-8859-1'?><p>caf\xe9\x80", "café€", b"CAF\xc9\x80"),
        (b"<meta charset='utf-16'><p>a \xc3\xa9", "a é", b"A \xc3\x89"),
        (b"<meta http-equiv=x content='text/html; charset=windows-1251'><p>\xe0 b", "а b", b"\xc0 B"),
        (b"<p>" + b" " * 2030 + b"a<meta charset=latin-1>\xc3\xa9", "é", b"A<meta charset=latin-1>\xc3\x89"),
        (b"\xef\xbb\xbf<p>a", "a", b"A"),
        (b"\xff\xfe<\0p\0>\0a\0", "a", b"A\0"),
    ],
)
def test_encodings(content, text, after):
    document = read_document("a.html", content, ENGLISH_SPANISH)
    assert document.segments[-1].source.text.strip() == text
    assert document.filled(all_changed(document)).endswith(after)


def test_an_encoding_that_is_not_known_is_refused():
    with pytest.raises(UserError, match=r"^a\.html: is in an encoding that is not known, nosuch"):
        read_document("a.html", b"<meta charset=nosuch><p>a", ENGLISH_SPANISH)


@pytest.mark.parametrize(
    ("language", "code"), [(None, "en"), ("pt_BR", "pt-BR"), ("eng_Latn", "en"), ("zh-Hant", "zh-Hant")]
)
def test_the_language_of_the_page(language, code):
    document = read_document("a.html", b"<html lang=en><p>a", ("en", language))
    assert document.filled({0: Target(TaggedText("b"))}) == f"<html lang={code}><p>b".encode()


def test_a_table_may_have_many_rows_without_end_tags():
    table = "<table>" + "<tr><td>one<td>two" * 600
    assert len(read_document("a.html", table.encode(), ENGLISH_SPANISH).segments) == 1200
