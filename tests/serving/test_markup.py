"""HTML in, HTML out: tags stay, text is translated, inline tags follow their words."""

from dataclasses import dataclass

import pytest

from translucid.serving.markup import Document


@dataclass
class Found:
    text: str
    alignment: list


def backwards(texts):
    """A translator that turns the order of words round and writes them in capitals, aligned as they should be."""
    found = []
    for text in texts:
        words = text.split()
        count = len(words)
        found.append(Found(" ".join(word.upper() for word in words[::-1]), [(i, count - 1 - i) for i in range(count)]))
    return found


def translate_html(html, translate):
    document = Document(html)
    return document.filled(translate([run.text for run in document.runs]))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        ("plain text", "TEXT PLAIN"),
        ("<p>one two</p>\n<p>three</p>", "<p>TWO ONE</p>\n<p>THREE</p>"),
        ("<p>one <b>two</b> three</p>", "<p>THREE <b>TWO</b> ONE</p>"),
        ("<p>one <b>two <i>three</i></b></p>", "<p><b><i>THREE</i> TWO</b> ONE</p>"),
        ('<p>see <a href="x?a=1&amp;b=2">this page</a></p>', '<p><a href="x?a=1&amp;b=2">PAGE THIS</a> SEE</p>'),
        ("<p> one </p>", "<p> ONE </p>"),
        ("<p>one</p><script>var two = 1;</script>", "<p>ONE</p><script>var two = 1;</script>"),
        ("<!-- note --><p>one</p>", "<!-- note --><p>ONE</p>"),
        ('<p translate="no">one two</p>', '<p translate="no">one two</p>'),
        ("<ul><li>one two</li><li>three</li></ul>", "<ul><li>TWO ONE</li><li>THREE</li></ul>"),
        ("<p>1 &lt; 2 &amp; 3</p>", "<p>3 &amp; 2 &lt; 1</p>"),
        ("<p>…</p>", "<p>…</p>"),
    ],
)
def test_tags_follow_their_words(given, expected):
    assert translate_html(given, backwards) == expected


def test_no_element_is_lost_whatever_the_alignment_says():
    def nothing_aligned(texts):
        return [Found(" ".join(text.split()[:1]), []) for text in texts]

    html = '<p>one <b>two</b> <a href="x">three</a><br>four <img src="y"></p>'
    translated = translate_html(html, nothing_aligned)
    for part in ("<b>", '<a href="x">', "<br", '<img src="y"'):
        assert part in translated


def test_broken_html_is_no_error():
    for html in ("<p>one <b>two", "</p></b>one", "<", "<p <b>one", "&nosuch; one", "<a>" * 300 + "one"):
        assert "ONE" in translate_html(html, backwards) or "one" not in html
