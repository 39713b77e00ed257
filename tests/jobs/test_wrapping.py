"""Hard-wrapped lines are joined into paragraphs, and translated paragraphs are wrapped again."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translucid.jobs.job import paragraphs, unwrapped, wrapped
from translucid.jobs.windows import Reader


def test_paragraphs_end_at_empty_lines():
    assert paragraphs(["a", "b", "", " ", "c"]) == [[0, 1], [2], [3], [4]]
    assert paragraphs([]) == []


def test_a_paragraph_is_one_line():
    assert unwrapped(["I like soccer and", "  tennis."]) == "I like soccer and tennis."
    assert unwrapped(["a well-", "known dash -", "and 1-", "2"]) == "a well-known dash - and 1- 2"


def test_lines_are_as_full_as_their_own_and_as_far_indented():
    assert wrapped("Me gusta el fútbol y el tenis.", ["I like soccer and", "tennis."]) == [
        "Me gusta el fútbol y",
        "el tenis.",
    ]
    assert wrapped("uno dos", ["  one", "    two"]) == ["  uno", "    dos"]
    assert wrapped("我喜欢足球", ["I like", "soccer"]) == ["我喜", "欢足球"]
    assert wrapped("", ["..", ".."]) == ["", ""]


@given(st.lists(st.text("ab ", min_size=1), min_size=1, max_size=6), st.text("xy ", max_size=40))
def test_nothing_is_lost_on_the_way(lines, text):
    text = " ".join(text.split())
    wrapped_lines = wrapped(text, lines)
    assert len(wrapped_lines) == len(lines)
    assert "".join("".join(wrapped_lines).split()) == text.replace(" ", "")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_windows_end_with_a_paragraph(size):
    lines = ["a", "b", "c", "", "d", "", "", "e", "f", "g"]
    text = "".join(f"{line}\n" for line in lines).encode()
    windows = list(Reader(io.BytesIO(text), size, wrapped=True).windows())
    assert [line.decode() for window in windows for line in window.lines] == lines
    assert all(len(window.lines) <= 2 * size for window in windows)
    for window in windows[:-1]:
        assert window.complete
        assert window.lines[-1] == b"" or len(window.lines) == 2 * size
        # Reading the window's bytes separately gives the same window.
        part = text[window.before.bytes : window.after.bytes]
        (reread,) = Reader(io.BytesIO(part), size, wrapped=True).windows()
        assert reread.lines == window.lines
    assert not windows[-1].complete or windows[-1].lines[-1] == b"" or len(windows[-1].lines) == 2 * size
