"""HTML as a document."""

import pytest
from bs4 import BeautifulSoup
from bs4.element import Comment
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.document import Target, read_document
from bitext.documents.markup.html import DEEPEST, Html
from bitext.documents.tagged_text import Side, TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, changed, installed
from translucid.ground.errors import UserError


def read(text):
    return read_document("a.html", text.encode(), ENGLISH_SPANISH)


def texts(text):
    return [segment.source.text for segment in read(text).segments]


def filled(text, *translations):
    document = read(text)
    assert len(document.segments) == len(translations)
    targets = []
    for translation, segment in zip(translations, document.segments, strict=True):
        if isinstance(translation, str):
            translation = TaggedText(translation, segment.source.marks)
        targets.append(Target(translation))
    return document.filled(dict(enumerate(targets))).decode()


_WORD = st.sampled_from(["cat", "the", "&amp;", "&nbsp;", "é", "a<b", "x &copy y", " ", "\n", "1", "%s", "{% if x %}"])
_TAGS = """
<b> </b> <i> </i> <p> </p> <br> <br/> <div> </div> <!--x--> <img alt='a'> <code>x</code> <li> <ul> </ul> <td> <tr>
<table> </table> <p/> <b/> </x> <span/translate=no> </span> <a/title=t> </a> <![CDATA[x]]> <?php > <! <script> </script>
<pre> </pre> <textarea> </textarea> <svg> </svg> <title> </title> < & <b
"""
_PIECE = _WORD | st.sampled_from(_TAGS.split())


@given(st.lists(_PIECE, max_size=40).map(" ".join))
@settings(max_examples=40, deadline=None)
def test_any_text_is_restored_and_accepts_translations(text):
    document = read(text)
    assert document.filled({}) == text.encode()
    document.filled(all_changed(document))


def structure(page):
    """Return the names of a page's tags and of their attributes."""
    return [(tag.name, sorted(tag.attrs)) for tag in BeautifulSoup(page, "html.parser").find_all(True)]


def test_real_pages_keep_their_structure():
    changed_structure = []
    for file in installed(".html", ".htm", ".xhtml", most=8):
        content = file.read_bytes()
        try:
            document = read_document(file.name, content, ENGLISH_SPANISH)
        except UserError:  # for example, an unknown encoding
            continue
        assert document.filled({}) == content, file
        if structure(content) != structure(document.filled(all_changed(document))):
            changed_structure.append(file)
    assert not changed_structure


_INLINE = st.recursive(
    st.sampled_from(["word", "other", "cats &amp; dogs", "%s", "{name}", "e&nbsp;f", "12 kg"]),
    lambda inner: (
        st.builds(
            lambda tag, parts: f"<{tag} id=i>" + " ".join(parts) + f"</{tag}>",
            st.sampled_from("bius"),
            st.lists(inner, min_size=1),
        )
        | st.sampled_from(["<img src=x alt='some picture'>", "<br>", "<code>a &lt; b</code>", "<!-- no -->", "<wbr>"])
    ),
    max_leaves=6,
)


@given(st.lists(st.lists(_INLINE, min_size=1, max_size=6).map(" ".join), min_size=10, max_size=10))
@settings(max_examples=25, deadline=None)
def test_paragraphs_keep_each_tag_once(paragraphs):
    text = "".join(f"<p>{paragraph}</p>\n" for paragraph in paragraphs)
    document = read(text)
    soup, after = (
        BeautifulSoup(data, "html.parser") for data in (text, document.filled(all_changed(document)).decode())
    )
    assert [tag.name for tag in soup.find_all(True)] == [tag.name for tag in after.find_all(True)]
    assert [str(c) for c in soup.find_all("code")] == [str(c) for c in after.find_all("code")]
    assert len(soup.find_all(string=lambda s: isinstance(s, Comment))) == text.count("<!--")
    text_before, text_after = (" ".join(soup.get_text(" ").split()) for soup in (soup, after))
    for code in soup.find_all("code"):
        code.decompose()
    assert text_before.casefold() == text_after.casefold()


def test_blocks_are_segments_and_inline_elements_marks():
    (segment,) = read("<p>Save <b>now</b>, or\n never.</p>").segments
    assert segment.source.text == "Save now, or never."
    assert [(mark.offset, mark.raw, mark.side) for mark in segment.source.marks] == [
        (5, "<b>", Side.opens),
        (8, "</b>", Side.closes),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p> <b> all of it </b>\n</p>", ["all of it"]),
        ("<ul><li>one<ul><li translate=no>two<li>three</ul></ul>", ["one", "three"]),
        ("<div translate=no><p>one</p>two</div>three", ["three"]),
        ("<div translate=no>one</b>two</div>three", ["three"]),
        ("the <b0>house</b0> and <a12>the beach</a12>", ["the house and the beach"]),
        ("the <x1/> house <h2>of</h2> Ana", ["the  house", "of", "Ana"]),
        ("<p>12</p><p>&nbsp;</p><p>https://example.com</p><p>{{ name }}</p>", []),
        ("<a title='A &amp; B'>x</a>", ["A & B", "x"]),
        ("<pre><img alt=no></pre>", []),
        ("<textarea placeholder='a name'>one</textarea><input placeholder=no translate=no>", ["a name"]),
        ("a <b>misnested <i>tags</b> here</i>", ["a misnested tags here"]),
        ("<p>Use <code>x</code>", ["Use "]),
    ],
)
def test_texts_that_are_translated(text, expected):
    assert texts(text) == expected


def test_only_what_needs_it_is_escaped():
    assert filled("<p title=a>b &lt; c", 'say "x"', 'á < "b"') == '<p title="say &quot;x&quot;">á &lt; "b"'
    assert filled("<p title='a'>", "it's") == "<p title='it&#39;s'>"
    assert filled("<p>one two &nbsp; x</p>", "uno\xa0dos") == "<p>uno&nbsp;dos</p>"


def test_an_attribute_in_a_mark_is_translated_with_it():
    text = "<p>One <img alt=two src=a> three <img alt=two src=a>.</p>"
    document = read(text)
    sources = [segment.source.text for segment in document.segments]
    assert sources == ["two", "two", "One  three "] or sources == ["two", "two", "One  three ."]
    source = document.segments[2].source
    targets = {0: Target(TaggedText("dos")), 1: Target(TaggedText("deux")), 2: Target(changed(source))}
    assert document.filled(targets).decode() == '<p>ONE <img alt="dos" src=a> THREE <img alt="deux" src=a>.</p>'
    assert document.filled({0: targets[0]}).decode() == text.replace("alt=two", 'alt="dos"', 1)


def test_the_encoding_that_a_page_names_is_kept():
    content = "<meta charset=iso-8859-1><p>caf\xe9".encode("latin-1")
    document = read_document("a.html", content, ENGLISH_SPANISH)
    assert document.filled({0: Target(TaggedText("té с"))}) == "<meta charset=iso-8859-1><p>t\xe9 &#1089;".encode(
        "latin-1"
    )


def test_too_deep_nesting_is_refused_with_its_line():
    with pytest.raises(UserError, match=r"^a.html:2: has elements nested more than 500 levels deep"):
        read("<p>\n" + "<b>" * DEEPEST)
    assert isinstance(read("<p>" * 20_000), Html)
