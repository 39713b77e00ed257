"""Texts are split into windows at line ends, and positions are recognized again."""

import io
from itertools import pairwise

import pytest

from translucid.jobs.windows import Place, Reader

TEXT = "".join(f"line {i}\n" for i in range(10)).encode()


@pytest.mark.parametrize("size", [1, 3, 5, 10, 11])
def test_concatenated_windows_are_the_text(size):
    windows = list(Reader(io.BytesIO(TEXT), size).windows())
    assert b"".join(line + b"\n" for window in windows for line in window.lines) == TEXT
    assert windows[0].before == Place()
    assert all(first.after == second.before for first, second in pairwise(windows))
    assert windows[-1].after.lines == 10 and windows[-1].after.bytes == len(TEXT)


def test_lines_end_at_a_line_feed_and_nowhere_else():
    (window,) = Reader(io.BytesIO("a\u2028b\x0bc\x85d\re\r\n\nf".encode()), 9).windows()
    assert window.lines == ["a\u2028b\x0bc\x85d\re".encode(), b"", b"f"]


def test_only_a_full_window_that_has_ended_is_complete():
    assert [window.complete for window in Reader(io.BytesIO(TEXT), 4).windows()] == [True, True, False]
    assert [window.complete for window in Reader(io.BytesIO(TEXT[:-1]), 5).windows()] == [True, False]


def test_reading_resumes_at_a_position():
    windows = list(Reader(io.BytesIO(TEXT), 3).windows())
    reader = Reader(io.BytesIO(TEXT), 3)
    assert reader.skip_to(windows[1].after)
    assert list(reader.windows()) == windows[2:]


@pytest.mark.parametrize("text", [TEXT[:30], b"", TEXT.replace(b"1", b"2")])
def test_a_different_text_is_detected(text):
    place = list(Reader(io.BytesIO(TEXT), 3).windows())[1].after
    assert not Reader(io.BytesIO(text), 3).skip_to(place)


def test_a_change_after_the_position_is_ignored():
    place = list(Reader(io.BytesIO(TEXT), 3).windows())[1].after
    assert Reader(io.BytesIO(TEXT.replace(b"9", b"nine") + b"more\n"), 3).skip_to(place)
