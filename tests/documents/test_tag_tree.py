"""Tag trees, and the repair of translations with missing or additional tags."""

import pytest

from bitext.documents import tagged_text as module
from bitext.documents.tagged_text import Mark, Side, TaggedText, complete, tag_tree, walk

OPENS, CLOSES, ALONE = Side.opens, Side.closes, Side.alone


def marked(*marks, text="abcd"):
    return TaggedText(text, tuple(Mark(*mark) for mark in marks))


def listed(node):
    return [(child.span, child.marks, listed(child)) for child in node.children]


@pytest.mark.parametrize(
    ("marks", "tree"),
    [
        (
            ((0, "1", OPENS, 0), (1, "2", OPENS, 1), (2, "3"), (3, "4", CLOSES, 1), (4, "5", CLOSES, 0), (4, "6")),
            [((0, 4), [0, 4], [((1, 3), [1, 3], [((2, 2), [2], [])])]), ((4, 4), [5], [])],
        ),
        # Crossing elements: the second one is ignored.
        (
            ((0, "1", OPENS, 0), (1, "2", OPENS, 1), (2, "3", CLOSES, 0), (3, "4", CLOSES, 1)),
            [((0, 2), [0, 2], [((1, 1), [1], [])]), ((3, 3), [3], [])],
        ),
        # Marks without a partner, and outside the text.
        (
            ((1, "1", CLOSES, 0), (2, "2", OPENS, 0), (9, "3", OPENS, 5), (-1, "4")),
            [((1, 1), [0], []), ((2, 2), [1], []), ((4, 4), [2], []), ((0, 0), [3], [])],
        ),
        (((1, "1", OPENS, 0), (9, "2", CLOSES, 0)), [((1, 4), [0, 1], [])]),
        (((2, "1", OPENS, 0), (1, "2", CLOSES, 0)), [((2, 2), [0, 1], [])]),
        # Two elements with one number.
        (
            ((0, "1", OPENS, 0), (1, "2", OPENS, 0), (2, "3", CLOSES, 0), (3, "4", CLOSES, 0)),
            [((0, 3), [0, 3], [((1, 2), [1, 2], [])])],
        ),
        (
            (
                (0, "1", OPENS, 0),
                (1, "2", OPENS, 1),
                (2, "3", CLOSES, 0),
                (2, "4", OPENS, 2),
                (3, "5", CLOSES, 1),
                (4, "6", CLOSES, 2),
            ),
            [((0, 2), [0, 2], [((1, 1), [1], [])]), ((2, 4), [3, 5], [((3, 3), [4], [])])],
        ),
    ],
)
def test_elements_contain_what_is_between_their_tags(marks, tree):
    root = tag_tree(marked(*marks))
    assert (root.span, root.marks, listed(root)) == ((0, 4), [], tree)
    assert len(list(walk(root))) == 1 + str(tree).count("((")


def test_tags_that_are_too_deep_count_as_single_marks(monkeypatch):
    monkeypatch.setattr(module, "DEEPEST", 2)
    deep = marked(
        (0, "1", OPENS, 0),
        (0, "2", OPENS, 1),
        (0, "3", OPENS, 2),
        (1, "4", CLOSES, 2),
        (2, "5", CLOSES, 1),
        (3, "6", CLOSES, 0),
    )
    inner = [((0, 0), [2], []), ((1, 1), [3], [])]
    assert listed(tag_tree(deep)) == [((0, 3), [0, 5], [((0, 2), [1, 4], inner)])]


SOURCE = marked((0, "<b>", OPENS, 0), (1, "<x/>"), (1, "</b>", CLOSES, 0), (2, "<x/>"), text="ab")


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        (SOURCE.marks, "<b>x<x/></b>y<x/>z"),
        ([Mark(1, "<x/>")], "x<x/>yz<b><x/></b>"),
        ([], "xyz<b><x/></b><x/>"),
        # Badly nested, an additional mark, other elements.
        (
            [Mark(0, "</b>", CLOSES, 0), Mark(1, "<b>", OPENS, 0), Mark(1, "<x/>"), Mark(2, "<x/>")],
            "x<x/>y<x/>z<b></b>",
        ),
        ([Mark(0, "<x/>"), Mark(0, "<x/>"), Mark(1, "<x/>"), *SOURCE.marks[::2]], "<x/><x/>xyz<b></b>"),
        ([*SOURCE.marks, Mark(2, "<i>", OPENS, 1), Mark(2, "</i>", CLOSES, 1)], "x<x/>y<x/>z<b></b>"),
    ],
)
def test_a_translation_gets_each_tag_of_its_source_once(marks, expected):
    target = TaggedText("xyz", tuple(marks))
    assert complete(SOURCE, target).full_text == expected
    assert (complete(SOURCE, target) is target) is (expected == "<b>x<x/></b>y<x/>z")


def test_tags_that_cross_in_the_source_may_cross():
    crossing = marked((0, "<b>", OPENS, 0), (1, "<i>", OPENS, 1), (2, "</b>", CLOSES, 0), (3, "</i>", CLOSES, 1))
    assert complete(crossing, crossing) is crossing
    assert complete(marked((0, "<b>", OPENS, 0)), crossing).full_text == "abcd<b>"
    unclosed = marked((0, "<b>", OPENS, 0), (1, "<i>", OPENS, 1), (2, "</i>", CLOSES, 1))
    translation = marked(*((1, *mark) for mark in [("<i>", OPENS, 1), ("<b>", OPENS, 0), ("</i>", CLOSES, 1)]))
    assert complete(unclosed, translation).full_text == "a<i><b></i>bcd"
