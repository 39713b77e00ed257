"""Text files: encoding, line ends and edits."""

import re

import pytest

from bitext.documents.spans import LINE_END, TextFile
from bitext.documents.tagged_text import LINE_BREAKS
from bitext.protected_spans import Edit, splice
from translucid.ground.errors import UserError


@pytest.mark.parametrize(
    ("content", "text", "line_end", "after"),
    [
        (b"a\n", "a\n", "\n", b"\xef\xbf\xbd\xc3\xa9\n"),
        (b"a\r\nb\n", "a\r\nb\n", "\r\n", b"\xef\xbf\xbd\xc3\xa9\r\nb\n"),
        (b"a\rb", "a\rb", "\r", b"\xef\xbf\xbd\xc3\xa9\rb"),
        (b"a\rb\n", "a\rb\n", "\n", b"\xef\xbf\xbd\xc3\xa9\rb\n"),
        (b"a", "a", "\n", b"\xef\xbf\xbd\xc3\xa9"),
        (b"a\r\r\nb", "a\r\r\nb", "\r\r\n", b"\xef\xbf\xbd\xc3\xa9\r\r\nb"),
        (b"\xff\xfea\0", "a", "\n", b"\xff\xfe\xfd\xff\xe9\0"),
        (b"\xfe\xff\0a", "a", "\n", b"\xfe\xff\xff\xfd\0\xe9"),
        (b"\xef\xbb\xbfa", "a", "\n", b"\xef\xbb\xbf\xef\xbf\xbd\xc3\xa9"),
    ],
)
def test_encoding_and_line_end_are_kept(content, text, line_end, after):
    file = TextFile.of("a.txt", content)
    assert (file.text, file.line_end) == (text, line_end)
    assert file.spliced([]) == content
    assert file.spliced([Edit(0, 1, "\ud800é")]) == after  # half of a surrogate pair


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"a\n\xff", None, "a.txt:2: is not UTF-8. Save it as UTF-8."),
        (b"a\nb\n\xe9", "ascii", "a.txt:3: is not ASCII. Save it as UTF-8."),
        (b"\xff\xfea", "ascii", "a.txt:1: is not UTF-16-LE. Save it as UTF-8."),
        (b"+AGE-", "utf-7", "a.txt: is not UTF-7. Save it as UTF-8."),  # encoding it again gives other bytes
        (b"a", "nosuch", "a.txt: is in an encoding that is not known, nosuch. Save it as UTF-8."),
    ],
)
def test_another_encoding_is_refused(content, encoding, message):
    with pytest.raises(UserError) as error:
        TextFile.of("a.txt", content, encoding)
    assert str(error.value) == message


def test_characters_that_the_encoding_lacks_are_references():
    file = TextFile.of("a.txt", "aé\nb\nc".encode("latin-1"), "latin-1")
    assert file.spliced([Edit(0, 1, "с")]) == b"&#1089;\xe9\nb\nc"
    assert [file.line(offset) for offset in (0, 2, 3, 5)] == [1, 1, 2, 3]


def test_a_non_breaking_space_is_written_as_before():
    assert TextFile.of("a", b"a&nbsp;b").hard_space == "&nbsp;"
    assert TextFile.of("a", "a\xa0b".encode()).hard_space == "\xa0"


def test_edits_may_touch_but_not_overlap():
    assert splice("abc", [Edit(1, 1, "x"), Edit(1, 1, "y")]) == "axybc"
    assert splice("abc", [Edit(1, 2, "y"), Edit(0, 1, "x"), Edit(1, 1, "z")]) == "xzyc"
    for edits in ([Edit(0, 2, "x"), Edit(1, 3, "y")], [Edit(2, 1, "x")]):
        with pytest.raises(ValueError, match="are replaced twice"):
            splice("abc", edits)


def test_line_ends():
    texts = "a\nb", "a \n b", "a\r\n\r\nb", "a\u2028b", "a \x85\tb", "a\v\fb", "a\x1c\x1d\x1eb\u2029"
    assert [LINE_BREAKS.sub("|", text) for text in texts] == [*["a|b"] * 6, "a|b|"]
    assert LINE_BREAKS.sub("|", "a \tb\xa0") == "a \tb\xa0"
    ends = {"a\r\nb": 1, "\r\r\n": 1, "\r": 1, "\r\r": 2, "\n\n": 2, "\r\n\r\n": 2, "\r" * 9 + "\n": 3}
    assert {text: len(re.findall(LINE_END, text)) for text in ends} == ends
