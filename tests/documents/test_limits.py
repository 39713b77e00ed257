"""Limits of documents: a document at a limit is read; beyond it, the error message is one line."""

import mmap
from itertools import count
from pathlib import Path

import pytest

from bitext.cancellation import between_steps, call_between_steps
from bitext.documents import document, spans
from bitext.documents.document import (
    LARGEST,
    LONGEST_NOTE,
    LONGEST_PLACE,
    MOST_COLUMNS,
    MOST_SEGMENTS,
    Segment,
    SegmentList,
    limit_segments,
    limit_work,
    max_segments,
    read_document,
)
from bitext.documents.markup import html, markdown
from bitext.documents.strings import yaml_strings
from bitext.documents.tagged_text import TaggedText
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
        ("a.md", markdown, "one *two* *three*", 6),
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


def test_places_and_notes_lose_their_middle_and_segments_share_short_notes():
    segments, note = SegmentList("a.txt"), "n" * 400_000
    for _ in range(3):
        segments.add(Segment(TaggedText("One"), "sheet " * 50_000 + "!B7", note=note))
    assert len(segments[0].place) <= LONGEST_PLACE and segments[0].place.endswith("!B7")
    assert len(segments[0].note) <= LONGEST_NOTE and segments[0].note is segments[2].note
    segments.add(Segment(TaggedText("One"), "line 1", note=note[:LONGEST_NOTE]))
    assert segments[3].note == note[:LONGEST_NOTE]
    segments.add(Segment(TaggedText("One"), "line " * 100))
    assert segments[4].note is None and "…" in segments[4].place


def test_the_characters_that_segments_repeat_are_limited(monkeypatch):
    monkeypatch.setattr(document, "CHARACTERS", 60_000)
    cases = "".join(f"a{i} {{One}} " for i in range(40))
    content = '/* {} */\n"a" = "{{n, select, {}}}";'
    assert len(read_document("a.strings", content.format("c" * 1_000, cases).encode()).segments) == 40
    assert "has far more text than its size" in error_of("a.strings", content.format("c" * 3_000, cases))


@pytest.mark.parametrize(
    ("name", "limit", "step", "message"),
    [("MEMORY", 2 << 20, 1 << 20, "2 MiB of memory"), ("SECONDS", 0.01, 0, "0 seconds of the processor")],
)
def test_a_document_that_needs_too_much_is_refused_in_one_line(name, limit, step, message, monkeypatch):
    memory = count(0, step)
    monkeypatch.setattr(document, "_memory", lambda: next(memory))
    monkeypatch.setattr(document, name, limit)
    monkeypatch.setattr(document, "_CHECK_SECONDS", 0)
    content = "".join(f"the line {i}\n" for i in range(2_000))
    fix = "Split it, or leave out what is repeated in it."
    assert error_of("a.txt", content) == f"a.txt: needs more than {message}. {fix}"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not state the memory")
def test_the_memory_of_the_process_is_measured():
    before = document._memory()
    with mmap.mmap(-1, 64 << 20) as block:  # from the system, not from memory that the process has freed and kept
        for offset in range(0, 64 << 20, mmap.PAGESIZE):
            block[offset] = 1
        assert (60 << 20) < document._memory() - before < (80 << 20)


def test_only_the_work_on_the_document_counts(monkeypatch):
    monkeypatch.setattr(document, "_CHECK_SECONDS", 0)
    used = [0]
    monkeypatch.setattr(document, "_memory", lambda: used[0])

    def other_work():
        used[0] += document.MEMORY

    with call_between_steps(other_work), limit_work("a.txt", 5):
        between_steps()
        between_steps()
        used[0] += document.MEMORY
        between_steps()
        used[0] += 1
        with pytest.raises(UserError, match="needs more than 256 MiB"):
            between_steps()
    with limit_work("a.txt", 2 * document.FREE_BYTES):  # twice the size, twice the memory
        used[0] += 2 * document.MEMORY
        between_steps()


def test_a_document_without_enough_memory_is_refused():
    with pytest.raises(UserError, match=r"^a\.txt: needs more memory than there is"), limit_work("a.txt", 5):
        raise MemoryError


def test_tables_have_a_largest_number_of_columns_and_short_rows_count_whole():
    many = MOST_COLUMNS - 1
    assert read_document("a.csv", f"en{',' * many}\na b\n".encode(), ("en", "es")).segments
    assert error_of("a.csv", f"en{',' * (many + 1)}\na b\n").startswith("a.csv:1: has more than 16,384 columns")
    far = f"en{',' * many}es\n".replace(",es", "es") + "a b\n" * 70
    assert error_of("a.csv", far) == "a.csv: has more than 1,000,000 cells. Split it."
