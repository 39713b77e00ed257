"""Projected marks occur exactly once, well nested, and at the linked words."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.tag_projection import project_tags, readable
from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.growth import assert_linear

_TAGS = re.compile(r"(<[^>]*>|_|\{\w+\})")


def parse(text: str) -> TaggedText:
    """Read `<b>tags</b>`, `<x/>`, `{placeholders}` and `_keys`."""
    result, marks, open_tags = "", [], []
    for number, part in enumerate(_TAGS.split(text)):
        if not _TAGS.fullmatch(part):
            result += part
        elif part.startswith("</"):
            matching = [tag for tag in open_tags if tag[1] == part[2:-1]]
            open_tags = [tag for tag in open_tags if tag not in matching[-1:]]
            marks.append(Mark(len(result), part, Side.closes, matching[-1][0] if matching else None))
        elif part.endswith("/>") or part[0] in "_{":
            marks.append(Mark(len(result), part))
        else:
            marks.append(Mark(len(result), part, Side.opens, number))
            open_tags.append((number, part[1:-1]))
    return TaggedText(result, tuple(marks))


def put(source: str, target: str, links: str) -> str:
    return project_tags(parse(source), target, [(*map(int, link.split("-")), 1.0) for link in links.split()]).full_text


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("I <b>like</b> it", "Me gusta", "0-0 1-1", "Me <b>gusta</b>"),
        ("the <b>white</b> house", "la casa blanca", "0-0 1-2 2-1", "la casa <b>blanca</b>"),
        ("the <b>white</b> <i>house</i>.", "la casa blanca.", "0-0 1-2 2-1", "la <i>casa</i> <b>blanca</b>."),
        ("the <b>white <i>house</i></b>", "la casa blanca", "0-0 1-2 2-1", "la <b><i>casa</i> blanca</b>"),
        ("<b>do</b> you <b>see</b>", "ves", "1-0 2-0", "<b></b><b>ves</b>"),
    ],
)
def test_elements_are_around_the_words_that_theirs_are_linked_to(source, target, links, expected):
    assert put(source, target, links) == expected


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("<b>How are you</b>?", "¿Cómo estás?", "0-0 1-1 2-1", "¿<b>Cómo estás</b>?"),
        ("<b>How are you?</b>", "¿Cómo estás?", "0-0 1-1 2-1", "<b>¿Cómo estás?</b>"),
        ("See, <b>now</b>, a (<b>big</b>) cat.", "Ve, ya, un gato (grande).", "0-0 1-1 2-2 3-4 4-3",
         "Ve, <b>ya</b>, un gato (<b>grande</b>)."),
        ("See a <b>(big)</b> cat.", "Ve un gato (grande).", "0-0 1-1 2-3 3-2", "Ve un gato <b>(grande)</b>."),
        ("Hello<b>!</b> You", "¡Hola! Tú", "0-0 1-1", "¡Hola<b>!</b> Tú"),
        ("I see a cat<x/>.", "Veo un gato.", "0-0 1-0 2-1 3-2", "Veo un gato<x/>."),
        ("(<x/>one) two", "(uno) dos", "0-0 1-1", "(<x/>uno) dos"),
    ],
)  # fmt: skip
def test_punctuation_is_inside_if_it_was(source, target, links, expected):
    assert put(source, target, links) == expected


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("one <br/> two", "uno dos", "0-0 1-1", "uno <br/> dos"),
        ("one<br/> two", "uno dos", "0-0 1-1", "uno<br/> dos"),
        ("one <br/>two", "uno dos", "0-0 1-1", "uno <br/>dos"),
        ("one<br/>two", "uno dos", "0-0 1-1", "uno<br/>dos"),
        ("<br/> one two <x/>", "uno dos", "0-0 1-1", "<br/> uno dos <x/>"),
        (" <b>one</b> ", "uno", "0-0", " <b>uno</b> "),
        ("<b> one</b> ", "uno", "0-0", "<b> uno</b> "),
        ("word<b> bold </b>word", "palabra negra palabra", "0-0 1-1 2-2", "palabra<b> negra </b>palabra"),
        ("a <a><img/></a> cat", "un gato", "0-0 1-1", "un <a><img/></a> gato"),
        ("one {x}, two", "uno, dos", "0-0 1-1", "uno {x}, dos"),
    ],
)
def test_spaces_are_as_in_the_source(source, target, links, expected):
    assert put(source, target, links) == expected


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("Sav<b>e</b> it", "Guardarlo", "0-0 1-0", "Guardarl<b>o</b>"),
        ("<u>S</u>ave", "Guardar", "0-0", "<u>G</u>uardar"),
        ("<b>Tom</b>'s cat", "el gato de Tom", "0-2 0-3 1-1", "el gato de <b>Tom</b>"),
        ("well-<b>known</b> man", "hombre bien conocido", "0-1 0-2 1-0", "hombre bien <b>conocido</b>"),
        ("Save _As", "Guardar como", "0-0 1-1", "Guardar _como"),
        ("E_xit", "Salir", "0-0", "_Salir"),
        ("E_xit", "Exit", "0-0", "E_xit"),
    ],
)
def test_marks_inside_of_words(source, target, links, expected):
    assert put(source, target, links) == expected


def test_elements_that_cross_open_before_they_close():
    assert put("<b>a <i>cat</b> dog</i>", "un gato perro", "0-0 1-1 2-2") == "<b>un <i>gato</b> perro</i>"


def test_elements_that_cross_open_first_where_words_change_places():
    target = put("x <b>a <i>cat</b> dog</i> y", "perro un gato y", "3-0 1-1 2-2 4-3")
    assert target.index("<i>") < target.index("</i>") and target.count("i>") == 2


def test_no_mark_stands_inside_of_a_placeholder():
    source = TaggedText("see one two", (Mark(4, "<b>", Side.opens, 0), Mark(7, "</b>", Side.closes, 0)))
    assert (
        project_tags(source, "ver {{ a b }}", [(0, 0, 1.0), (1, 2, 1.0), (2, 3, 1.0)]).full_text
        == "ver <b></b>{{ a b }}"
    )
    assert (
        project_tags(source, "ver casa&nbsp; &x;", [(0, 0, 1.0), (1, 1, 1.0)]).full_text == "ver <b>casa&nbsp;</b> &x;"
    )


def test_without_links_both_texts_have_the_same_order():
    assert put("one two <b>three</b>", "uno dos tres", "") == "uno dos <b>tres</b>"


def test_nothing_to_put_marks_into():
    assert put("<b>good</b>", "", "") == "<b></b>"
    assert put("", "", "") == ""


def test_the_model_reads_words():
    assert readable(parse("one<br/>two {x}, <b>three</b>")).text == "one two, three"
    assert readable(parse("Sav<b>e</b> E_xit")).text == "Save Exit"


words = st.lists(st.text("aé1.,¿?(-", min_size=1, max_size=4), max_size=6)


@st.composite
def marked(draw):
    """Draw a text with nested pairs and single marks, sometimes also with crossing and incomplete pairs."""
    text = draw(st.sampled_from(["", " "])) + " ".join(draw(words)) + draw(st.sampled_from(["", " ", "\n"]))
    nested = draw(st.booleans())
    count = draw(st.integers(0, 5))
    marks, open_pairs = [], []
    places = sorted(draw(st.lists(st.integers(0, len(text)), min_size=2 * count, max_size=2 * count)))
    for number, place in enumerate(places):
        kind = draw(st.sampled_from(["opens", "closes", "alone"]))
        if kind == "opens":
            open_pairs.append(number)
            marks.append(Mark(place, f"<{number}>", Side.opens, number))
        elif kind == "closes" and open_pairs:
            pair = open_pairs.pop(-1 if nested else draw(st.integers(0, len(open_pairs) - 1)))
            marks.append(Mark(place, f"</{pair}>", Side.closes, pair))
        else:
            marks.append(Mark(place, draw(st.sampled_from([f"<{number}/>", "_", f"%{number}"]))))
    if nested:
        marks += [Mark(len(text), f"</{pair}>", Side.closes, pair) for pair in reversed(open_pairs)]
    return TaggedText(text, tuple(marks)), nested


@settings(max_examples=40, deadline=None)
@given(marked(), words, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0, 1)), max_size=10))
def test_no_mark_is_lost_or_doubled_whatever_the_links(source, target, links):
    source, nested = source
    result = project_tags(source, " ".join(target), links)
    assert sorted(mark.raw for mark in result.marks) == sorted(mark.raw for mark in source.marks)
    assert "".join(result.text.split()) == "".join("".join(target).split())
    places = [mark.offset for mark in result.marks]
    assert places == sorted(places), (
        source.full_text,
        source.marks and [(m.offset, m.raw) for m in source.marks],
        target,
        links,
        result.full_text,
        places,
    )
    assert all(0 <= place <= len(result.text) for place in places)
    open_pairs, closed = [], set()
    for mark in result.marks:
        if mark.side is Side.opens:
            assert mark.pair not in closed
            open_pairs.append(mark.pair)
        elif mark.side is Side.closes:
            assert not nested or open_pairs[-1] == mark.pair
            open_pairs.remove(mark.pair)
            closed.add(mark.pair)


@settings(max_examples=40, deadline=None)
@given(marked())
def test_a_translation_into_the_same_words_gives_the_same(source):
    """With each word linked to itself, the source is reproduced with its marks, except for spaces."""
    source, _ = source
    text = readable(source).text
    result = project_tags(source, text, [(i, i, 1.0) for i in range(len(text.split()))])
    assert "".join(result.text.split()) == "".join(source.text.split())


@pytest.mark.parametrize(
    ("unit", "word"),
    [("a<br/>", "a"), ("<b></b>", ""), ("<b>it</b> ", "it "), ("word<b>,</b> ", "word, "), ("<br/> , a", ", a")],
)
@pytest.mark.parametrize("dense", [False, True])
def test_the_time_grows_with_the_number_of_marks_and_not_with_its_square(unit, word, dense):
    """Guard against quadratic time: four times as many marks once took 50 times as long."""

    def prepare(count):
        source, target = parse(f"x {unit * count} y"), f"x {word * count} y"
        size = min(len(readable(source).text.split()), len(target.split()))
        reach = 8 if dense else 1
        links = [(s, t, 1 / (1 + abs(s - t))) for s in range(size) for t in range(s, min(s + reach, size))]
        return lambda: project_tags(source, target, links)

    assert_linear(prepare, 100, 800)


def test_elements_hundreds_deep_are_put_like_others():
    source = parse("a " + "<b>" * 600 + "cat" + "</b>" * 600)
    result = project_tags(source, "un gato", [(0, 0, 1.0), (1, 1, 1.0)])
    assert [mark.raw for mark in result.marks] == ["<b>"] * 600 + ["</b>"] * 600


def test_a_comment_parts_no_word():
    assert readable(TaggedText("seesaw", (Mark(3, "<!-- a -->"), Mark(3, "<?b?>")))).text == "seesaw"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('They like soc<x id="1"/>cer.', "They like soccer."),
        ("soc<img/>cer, soc<a/>cer.<a/>Next", "soccer, soccer. Next"),
        ('one<x id="1" ctype="lb"/>two<x id="LINE_BREAK"/>six<w:br/>ten<li/>end', "one two six ten end"),
        ("soc\u00adcer ho\u200buse and/\u200bor wo\u2060rd", "soccer house and/or word"),
        ("\u0e44\u0e17\u0e22\u200b\u0e44\u0e17\u0e22 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None),
    ],
)
def test_words_that_something_invisible_cuts_are_whole_for_the_model(text, expected):
    source = parse(text)
    assert readable(source).text == (text if expected is None else expected)
    target = project_tags(source, readable(source).text, [])
    assert [mark.raw for mark in target.marks] == [mark.raw for mark in source.marks]
