"""The projection of tags onto translations, case by case."""

import pytest

from bitext.documents.tag_projection import project_tags, readable
from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.documents.test_tag_projection import parse, put


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one<br/>two", "one <br/>two"),
        ("one.<br/>Two", "one. <br/>Two"),
        ("one<br/>, two", "one<br/>, two"),
        ("<br/>one", "<br/>one"),
        ("one<br/>", "one<br/>"),
        ("a <x/><y/>, b", "a<x/><y/>, b"),
        ("a <x/>b", "a <x/>b"),
        (" <x/>, a", " <x/>, a"),
        ("日<br/>本", "日 <br/>本"),
        ("a<wbr/>b", "a<wbr/>b"),
        ("a<!-- x -->b", "a<!-- x -->b"),
        ("one <b></b>, two", "one<b></b>, two"),
        ("one <i>x</i>, <y/>, two", "one <i>x</i>,<y/>, two"),
        ("<u>x</u> <y/>.", "<u>x</u><y/>."),
        ("a<i> </i><y/>.", "a<i></i><y/>."),
    ],
)
def test_what_the_model_reads_around_single_tags(text, expected):
    assert readable(parse(text)).full_text == expected


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        # Adjacent and nested elements.
        ("<b>one</b> <i>two</i> three", "uno dos tres", "", "<b>uno</b> <i>dos</i> tres"),
        ("<b>one <i>two</i></b> three", "uno dos tres", "0-0 1-1 2-2", "<b>uno <i>dos</i></b> tres"),
        ("one <b>two</b>, <i>three</i>", "dos, tres uno", "0-2 1-0 2-1", "<b>dos</b>, <i>tres</i> uno"),
        ("<b>one</b> two", "dos uno", "0-1 1-0", "dos <b>uno</b>"),
        ("a <b>b c</b> d", "x y z w", "0-0 1-1 2-3 3-2", "x <b>y</b> z w"),
        ("<i>a</i><b>b</b>", "x", "", "<i>x</i><b></b>"),
        ("<i>a</i> <b>b</b>", "x y", "0-1 1-1", "<i>x y</i><b></b>"),
        ("<b>a <x/>b</b> c", "z y x", "0-2 1-1 2-0", "z <b><x/>y x</b>"),
        ("<b><x/>a</b>", "x", "", "<b><x/>x</b>"),
        ("<b>a<x/></b>", "x", "", "<b>x<x/></b>"),
        ("<x/><b>a</b><y/>", "x", "", "<x/><b>x</b><y/>"),
        # Elements without translated words, at both ends and in the middle.
        ("<b>a</b> b c", "x y z", "1-1 2-2", "<b></b>x y z"),
        ("a b <b>c</b>", "x y z", "0-0 1-1", "x y z<b></b>"),
        ("a <b>b</b> c", "x y z", "0-0 2-2", "x <b></b>y z"),
        ("<b>a b</b> c", "w x y z", "1-1 2-3", "<b>w x</b> y z"),
        # Elements without letters enclose the nearest equal characters.
        ("a <b>12</b> b", "x 12 y", "", "x <b>12</b> y"),
        ("a <b>12</b> 12 b", "x 12 12 y", "", "x <b>12</b> 12 y"),
        ("a 12 <b>12</b> b", "x 12 12 y", "", "x 12 <b>12</b> y"),
        ("a b c d <b>1</b> e f g h", "1 y 1 y y y 1 y 1", "", "1 y <b>1</b> y y y 1 y 1"),
        ("a b c d e <b>1</b> f g h", "1 y 1 y y y 1 y 1", "", "1 y 1 y y y <b>1</b> y 1"),
        ("<b>1</b> a b c d e", "x y z 1 w 1", "", "x y z <b>1</b> w 1"),
        ("a b c d e <b>1</b>", "1 x 1 y z w", "", "1 x <b>1</b> y z w"),
        ("<b>(1)</b> a <i>(1)</i>", "(1) x (1)", "", "<b>(1)</b> x <i>(1)</i>"),
        # Punctuation and quotes at the ends of elements.
        ("a <b>b</b>", "x y.", "", "x <b>y</b>."),
        ("a <b>b.</b>", "x y.", "", "x <b>y.</b>"),
        ("a <b>b.</b>", "x y!", "", "x <b>y!</b>"),
        ("a <b>b.</b> c", "x y! z", "", "x <b>y</b>! z"),
        ("<b>a</b>", "¿x?", "0-0", "<b>¿x?</b>"),
        ("<b>a?</b> b", "¿x? y", "0-0 1-1", "<b>¿x?</b> y"),
        ("b <b>a!</b> c", "y ¡x! z", "0-0 1-1 2-2", "y <b>¡x!</b> z"),
        ("b <b>a</b>! c", "y ¡x! z", "0-0 1-1 2-2", "y ¡<b>x</b>! z"),
        ("b <b>a!</b> c", "y «x! z", "0-0 1-1 2-2", "y «<b>x!</b> z"),
        ("b <b>(a</b> c)", "y (x z)", "0-0 1-1 2-2", "y <b>(x</b> z)"),
        ("b (<b>a</b>) c", "y (x) z", "0-0 1-1 2-2", "y (<b>x</b>) z"),
        ('b <b>"a"</b> c', "y «x» z", "0-0 1-1 2-2", "y <b>«x»</b> z"),
        ("b <b>“a”</b>, c", "y ‘x’, z", "0-0 1-1 2-2", "y <b>‘x’</b>, z"),
        ("b “<b>a</b>” c", "y «x» z", "0-0 1-1 2-2", "y «<b>x</b>» z"),
        ("b <b>a</b>… c", "y x… z", "0-0 1-1 2-2", "y <b>x</b>… z"),
        # White space within elements.
        ("a<b> b </b>c", "x y z", "", "x<b> y </b>z"),
        ("<b> a</b>", "x", "", "<b> x</b>"),
        ("a <b>b </b>c", "x y z", "", "x <b>y </b>z"),
        # Single tags.
        ("one <x/> <y/> two", "uno dos", "", "uno <x/> <y/> dos"),
        ("<b>a</b> b <x/>c", "y x z", "0-1 1-0 2-2", "y <b>x</b> <x/>z"),
        ("a <x/>b c", "z x y", "0-1 1-2 2-0", "z x <x/>y"),
        ("a<x/> b c", "z x y", "0-1 1-2 2-0", "z x<x/> y"),
        ("a b<x/>.", "y x.", "0-1 1-0", "y<x/> x."),
        ("a <x/>. b", "x. y", "", "x <x/>. y"),
        (" <x/> a", "x", "", " <x/> x"),
        ("a <x/> ", "x", "", "x <x/> "),
        ("<x/>", "", "", "<x/>"),
        ("a<x/>b", "xy", "", "xy<x/>"),
        ("a<br/>b", "x y", "", "x<br/>y"),
        ("a<br/>b", "x", "", "x<br/>"),
        ("a.<br/>b", "x. y", "", "x.<br/>y"),
        ("a,<x/> b", "x, y", "", "x,<x/> y"),
        ("one two <x/> three four", "a b c d", "0-3 1-2 2-1 3-0", "<x/> a b c d"),
        # Fewer words than tags.
        ("¿d? <b>a</b> a", "1", "", "1<b></b>"),
        ("b, <i> b</i>", "1", "", "1<i></i>"),
        ("a a. x <x/> a.", "x uv", "0-1 1-0 2-0", "x uv <x/>"),
        ("<u>c</u> <b>a <x/>b</b>", "12", "0-0 2-0", "<u></u><b><x/>12</b>"),
        ("<br/><br/>", "uv", "", "<br/><br/> uv"),
        ("b (c) e_f <b>12</b>", "12", "", "_<b>12</b>"),
        ("<b>1</b> <i>1</i> a", "1 x", "", "<b>1</b> <i></i>x"),
        ("<b>12</b> <i> b</i> <i>b c</i> b", "12 12", "1-0", "<i>12</i> <i></i><b>12</b>"),
        # Markers of access keys.
        ("c _d", "uv", "", "_uv"),
        ("e_f", "y", "", "_y"),
        ("O_pen it", "abrirlo", "0-0 1-0", "_abrirlo"),
        ("O_pen it", "ello apre", "0-1 1-0", "ello a_pre"),
        ("a O_pen", "x sPap", "0-0 1-1", "x s_Pap"),
        ("_Xy", "abc", "0-0", "_abc"),
    ],
)
def test_each_tag_has_its_place(source, target, links, expected):
    assert put(source, target, links) == expected


@pytest.mark.parametrize(
    ("spans", "expected"),
    [([(4, 7)], "uno <b>dos</b> tres"), ([(4, 12)], "uno <b></b>dos tres"), ([(0, 7), (6, 12)], "<b>uno dos tres</b>")],
)
def test_tags_do_not_split_what_must_stay_together(spans, expected):
    source = TaggedText("one two three", (Mark(4, "<b>", Side.opens, 0), Mark(7, "</b>", Side.closes, 0)))
    links = [(i, i, 1.0) for i in range(3)]
    assert project_tags(source, "uno dos tres", links, spans).full_text == expected
    assert project_tags(source, " uno dos tres\n", links, spans).full_text == expected


def test_a_link_that_crosses_counts_by_its_weight():
    source = TaggedText("a b c", (Mark(2, "<x/>"),))
    weakly_crossing = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 0, 0.2)]
    assert project_tags(source, "x y z", weakly_crossing).full_text == "x <x/>y z"
    strongly_crossing = [(0, 1, 1.0), (0, 2, 0.5), (1, 0, 1.0), (2, 2, 1.0)]
    assert (
        project_tags(source, "x y z", strongly_crossing).full_text
        == project_tags(source, "x y z", [(s, t, w * 7) for s, t, w in strongly_crossing]).full_text
    )
