"""Limits of documents: a document at a limit is read; beyond it, the error message is one line."""

import pytest

from translucid.documents import spans
from translucid.documents.document import LARGEST, MOST_SEGMENTS, SegmentList, limit_segments, max_segments
from translucid.documents.kinds import read_document
from translucid.documents.markup import html, markdown_inline
from translucid.documents.strings import yaml_strings
from translucid.ground.errors import UserError

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
PLURAL = 'msgid "a %d"\nmsgid_plural "b %d"\nmsgstr[0] ""\nmsgstr[1] ""\n'
TIMES = "00:00:01,000 --> 00:00:02,000"
FOUR = {
    "a.json": '["one", "two", "three", "four"]',
    "a.yaml": "[one, two, three, four]",
    "a.strings": '"a"="one";"b"="two";"c"="three";"d"="four";',
    "a.properties": "a=one\nb=two\nc=three\nd=four\n",
    "a.csv": "text\none\ntwo\nthree\nfour\n",
    "a.po": HEADER + 'msgid "one"\nmsgstr ""\n\n' + PLURAL + '\nmsgid "two"\nmsgstr ""\n',
    "a.srt": f"1\n{TIMES}\n- One.\n- Two.\n\n2\n{TIMES}\nThree.\n\n3\n{TIMES}\nFour.\n",
    "a.html": "<p>one<p title=two>three<p>four",
    "a.md": "one\n\n- two\n\n![three](x 'four')\n",
    "a.resx": "<root>"
    + "".join(f"<data><value>{n}</value></data>" for n in ("one", "two", "three", "four"))
    + "</root>",
    "a.ts": "<TS><message><source>one</source></message><message numerus='yes'><source>two</source></message>"
    "<message><source>three</source></message></TS>",
    "a.xcstrings": '{"sourceLanguage": "en", "strings": {"one": {}, "two": {}, "three": {}, "four": {}}}',
    "a.ftl": "a = one\nb = { $n ->\n    [one] two\n   *[other] three\n }\nc = four\n",
    "a.txt": "one\ntwo\nthree\nfour\n",
    "a.xml": '<resources><string name="a">one</string><string-array><item>two</item><item>three</item></string-array>'
    '<string name="b">four</string></resources>',
}


def error_of(name, content):
    with pytest.raises(UserError) as error:
        read_document(name, content.encode(), ("en", "es"))
    return str(error.value)


@pytest.mark.parametrize("name", FOUR)
def test_a_document_has_a_largest_number_of_segments(name):
    with limit_segments(4):
        assert max_segments() == 4
        assert len(read_document(name, FOUR[name].encode(), ("en", "es")).segments) == 4
    with limit_segments(3):
        assert error_of(name, FOUR[name]) == f"{name}: has more than 3 texts. Split it."
    with limit_segments(MOST_SEGMENTS + 1):
        assert max_segments() == SegmentList("a").limit == MOST_SEGMENTS


def test_a_list_of_segments_says_their_numbers():
    segments = SegmentList("a.txt")
    document = read_document("a.txt", b"one\ntwo\n")
    assert [segments.add(segment) for segment in document.segments] == [0, 1]


@pytest.mark.parametrize(
    ("name", "module", "content", "parts"),
    [
        ("a.html", html, "<p>one<b>two</b>three", 5),
        ("a.html", spans, "<p>one<b>two</b>three", 5),
        ("a.json", spans, '["one<br>two<br>three"]', 5),
        ("a.md", markdown_inline, "one *two* *three*", 6),
        ("a.srt", spans, f"1\n{TIMES}\none <i>two</i> three\n", 5),
    ],
)
def test_a_segment_has_a_largest_number_of_parts(name, module, content, parts, monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTS", parts)
    assert len(read_document(name, content.encode(), ("en", "es")).segments) == 1
    monkeypatch.setattr(module, "MOST_PARTS", parts - 2)
    assert error_of(name, content) == f"{name}: has a text with more than 200,000 tags. Split it."


def test_nodes_of_yaml_and_blocks_of_markdown_without_texts_are_limited(monkeypatch):
    with limit_segments(2):
        assert read_document("a.yaml", b"[1, 2, 3, 4, 5, 6, 7]").segments == []
        assert error_of("a.yaml", "[1, 2, 3, 4, 5, 6, 7, 8]") == "has more than 2 texts. Split it."
        monkeypatch.setattr(yaml_strings, "NODES", 5)
        assert read_document("a.yaml", b"[1, 2, 3, 4, 5, 6, 7, 8]").segments == []
        assert read_document("a.md", b"***\n\n" * 12).segments == []
        assert error_of("a.md", "***\n\n" * 14) == "has more than 2 texts. Split it."


def test_a_document_has_a_largest_number_of_bytes():
    assert LARGEST == 64 << 20
    content = b"a" * LARGEST
    with pytest.raises(UserError, match=r"^a\.txt: has more than 64 MiB\. Split it\.$"):
        read_document("a.txt", content + b"a")
