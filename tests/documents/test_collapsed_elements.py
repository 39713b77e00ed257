"""Elements without letters: which ones the model sees, and where their copies are in a translation."""

import pytest

from bitext.documents.kept_elements import collapsed, expanded, find_copies, spans_of
from bitext.documents.tagged_text import KeptElement, Mark, Side, TaggedText
from tests.documents.test_kept_elements import tagged


def text_and_copies(source, *hidden, **options):
    """Return the text for the model, with `{…}` for hidden elements, and the elements that it sees."""
    result = collapsed(tagged(source) if isinstance(source, str) else source, hidden, **options)
    text = ""
    for part in result.source.parts:
        text += f"{{{part.raw}}}" if isinstance(part, KeptElement) else part if isinstance(part, str) else part.raw
    copies = {copy.start: copy for copy in result.copies}
    assert all(result.source.text[copy.start : copy.end] == copy.core for copy in copies.values())
    return text, [copy.element.raw for copy in result.copies]


@pytest.mark.parametrize(
    ("source", "text", "copies"),
    [
        ("One <br/> two", "One <br/> two", []),
        ("<b>One</b> <i></i> two", "<b>One</b> <i></i> two", []),
        ("<b>One <i>2</i></b> six", "<b>One 2</b> six", ["<i>2</i>"]),
        ("<b><i>2</i> </b> six", "2  six", ["<b><i>2</i> </b>"]),
        ("See <a> [4] </a>now", "See  [4] now", ["<a> [4] </a>"]),
        # An element at the end of a word or a sentence is no word, unless white space or a break separates them.
        ("The end.<a>4</a> See", "The end.{<a>4</a>} See", []),
        ("The end,<a>4</a> see", "The end,{<a>4</a>} see", []),
        ("The end<a> 4</a> see", "The end 4 see", ["<a> 4</a>"]),
        ("The end<br/><a>4</a> see", "The end<br/>4 see", ["<a>4</a>"]),
        ("The end <a>4</a><br/>see", "The end 4<br/>see", ["<a>4</a>"]),
        ("See <a>4 </a>houses", "See 4 houses", ["<a>4 </a>"]),
        ("See <a>4</a>houses", "See {<a>4</a>}houses", []),
        ("See (<a>4</a>) now", "See (4) now", ["<a>4</a>"]),
        ("See 3<b>4</b> now", "See 3{<b>4</b>} now", []),
        ("See 3<b>-4</b> now", "See 3{<b>-4</b>} now", []),
        ("See 10<sup>3</sup> now", "See 10{<sup>3</sup>} now", []),
        # Adjacent elements have the same neighbors.
        ("A house<b>1</b><i>2</i> here", "A house{<b>1</b>}{<i>2</i>} here", []),
        ("A house<b>1</b><i>2</i><u>3</u> here", "A house{<b>1</b>}{<i>2</i>}{<u>3</u>} here", []),
        ("A <b>[1]</b><i>[2]</i> here", "A [1][2] here", ["<b>[1]</b>", "<i>[2]</i>"]),
        ("A <b>1</b> <i>2</i> here", "A 1 2 here", ["<b>1</b>", "<i>2</i>"]),
        # Punctuation belongs to the sentence, unless it is separate from words.
        ("Tom <b>&</b> Ann", "Tom & Ann", ["<b>&</b>"]),
        ("Tom<b>,</b> Ann", "Tom<b>,</b> Ann", []),
        ("A<b>—</b> b", "A<b>—</b> b", []),
        ("One <b> </b> two", "One <b> </b> two", []),
        ("<b>—</b>", "<b>—</b>", []),
        ("<b>—</b> Ann", "— Ann", ["<b>—</b>"]),
        ("Ann <b>—</b>", "Ann —", ["<b>—</b>"]),
        ("Ann<b>*</b> here", "Ann{<b>*</b>} here", []),
        # Words with an element between letters, excluding punctuation at the ends.
        ('Say "H<sub>2</sub>O", too', 'Say "H2O", too', ["H<sub>2</sub>O"]),
        ("Say (<i>x<sub>1</sub></i>)", "Say (<i>x1</i>)", ["x<sub>1</sub>"]),
        ("Say (<i>x<sub>1</sub>y</i>z)", "Say (x1yz)", ["<i>x<sub>1</sub>y</i>z"]),
        ("Say C<sub>2</sub>H<sub>6</sub>O now", "Say C2H6O now", ["C<sub>2</sub>H<sub>6</sub>O"]),
        (
            "Say C<sub>2</sub>H<sub>6</sub>O and <b>3</b> now",
            "Say C2H6O and 3 now",
            ["C<sub>2</sub>H<sub>6</sub>O", "<b>3</b>"],
        ),
        ("Say 5<H<sub>2</sub>O now", "Say 5<H2O now", ["H<sub>2</sub>O"]),
        ("我H<sub>2</sub>O本", "我{H<sub>2</sub>O}本", []),
        ("x<br/>H<sub>2</sub>O", "x<br/>{H<sub>2</sub>O}", []),
        ("H<sub>2</sub>O<br/>x", "{H<sub>2</sub>O}<br/>x", []),
        ("H<sub>2</sub><br/>x", "H2<br/>x", ["H<sub>2</sub>"]),
        ("Use <b>a<i>2</i>b</b> now", "Use <b>a2b</b> now", ["a<i>2</i>b"]),
        ("Use a<i>2</i>b<br/>c", "Use {a<i>2</i>b}<br/>c", []),
        ("x<b>y<i>2</i></b>z one", "xy2z one", ["x<b>y<i>2</i></b>z"]),
        # Symbols with a number: short ones before a subscript, units and letters before a superscript.
        ("Abcd<sub>2</sub> is", "Abcd2 is", ["Abcd<sub>2</sub>"]),
        ("Abcde<sub>2</sub> is", "Abcde{<sub>2</sub>} is", []),
        ("5 km<sup>2</sup> is", "5 km2 is", ["km<sup>2</sup>"]),
        ("ab<sup>2</sup> is", "ab{<sup>2</sup>} is", []),
        ("x<sup>2</sup> is", "x2 is", ["x<sup>2</sup>"]),
        ("x<sup>*</sup> is", "x{<sup>*</sup>} is", []),
        ("x<b>2</b> is", "x{<b>2</b>} is", []),
        ("我有<b>25</b>本", "我有25本", ["<b>25</b>"]),
        ("我有<sup>25</sup>本", "我有{<sup>25</sup>}本", []),
        ("我有<b>25%</b>本", "我有25%本", ["<b>25%</b>"]),
        ("我有<b>%25</b>本", "我有{<b>%25</b>}本", []),
        ("我有<b>*</b>本", "我有{<b>*</b>}本", []),
        # Elements that split a placeholder are unchanged.
        ("See {a<b>1</b>} now", "See {a<b>1</b>} now", []),
        ("See {a<b>1</b>} and <i>2</i>", "See {a<b>1</b>} and 2", ["<i>2</i>"]),
        ("See <b>{a}</b> now", "See {a} now", ["<b>{a}</b>"]),
        # Equal contents are distinguished by position.
        ("2 of <b>2</b> and <i>2</i>", "2 of 2 and 2", ["<b>2</b>", "<i>2</i>"]),
    ],
)
def test_what_the_model_sees(source, text, copies):
    assert text_and_copies(source) == (text, copies)


def test_contents_are_hidden_on_demand_and_footnotes_shown():
    assert text_and_copies("I have <b> 3 </b> cats, <i>4</i> dogs", "3") == (
        "I have {<b> 3 </b>} cats, 4 dogs",
        ["<i>4</i>"],
    )
    assert text_and_copies("A house<sup>2</sup> here", attached=True) == ("A house2 here", ["<sup>2</sup>"])
    assert text_and_copies("A house<sup>2</sup> here", "2", attached=True) == ("A house{<sup>2</sup>} here", [])


def test_the_number_of_copies_is_limited():
    for count in (24, 24 + 2):
        source = "One " + " ".join(f"<b>{number}</b>" for number in range(100, 100 + count))
        text, copies = text_and_copies(source)
        assert copies == [f"<b>{number}</b>" for number in range(100, 100 + 24)]
        assert text.count("{") == count - 24


@pytest.mark.parametrize("before", [3, 20, 36])
def test_a_long_word_is_translated(before):
    for size in (40, 40 + 1):
        word = "a" * before + "<b>2</b>" + "b" * (size - before - 1)
        is_kept = size == 40
        assert text_and_copies(f"One {word} six") == (
            ("One " + word.replace("<b>2</b>", "2") + " six", [word])
            if is_kept
            else (f"One {word.replace('<b>2</b>', '{<b>2</b>}')} six", [])
        )


def test_at_most_three_tags_around_a_part_of_a_word_belong_to_it():
    def nested(text, names):
        return "".join(f"<{name}>" for name in names) + text + "".join(f"</{name}>" for name in reversed(names))

    for word in (nested("x", "bis") + "<sub>1</sub>", "H<sub>2</sub>" + nested("O", "bis")):
        assert text_and_copies(f"Say {word} now")[1] == [word]
    for word in (nested("x", "bisu") + "<sub>1</sub>", "H<sub>2</sub>" + nested("O", "bisu")):
        assert text_and_copies(f"Say {word} now")[1] == []


def test_marks_that_overlap_a_word_are_not_parted():
    b, i, s = ((Mark(0, f"<{name}>"), Mark(0, f"</{name}>")) for name in "bis")
    places = (b[0], 0, Side.opens, 0), (i[0], 4, Side.opens, 1), (b[1], 5, Side.closes, 0), (s[0], 5, Side.opens, 2)
    places += (s[1], 6, Side.closes, 2), (i[1], 8, Side.closes, 1)
    source = TaggedText(
        "One a2b six", tuple(Mark(position, mark.raw, side, pair) for mark, position, side, pair in places)
    )
    assert text_and_copies(source) == ("<b>One <i>a</b>{<s>2</s>}b </i>six", [])


@pytest.mark.parametrize(
    ("source", "translation", "expected", "expected_missing"),
    [
        ("<b>2</b> and 2", "2 y 2", [(0, "<b>2</b>")], set()),
        ("2 and <b>2</b>", "2 y 2", [(4, "<b>2</b>")], set()),
        ("2 and <b>2</b>", "dos y 2", [(6, "<b>2</b>")], set()),
        ("2, <b>2</b>, 2 and 2", "2 y 2", [(0, "<b>2</b>")], set()),
        ("2, 2, <b>2</b> and 2", "2 y 2", [(4, "<b>2</b>")], set()),
        ("<b>2</b> <i>2</i> 2", "2 2", [(0, "<b>2</b>"), (2, "<i>2</i>")], set()),
        ("2 <b>2</b> <i>2</i>", "2 2", [(0, "<b>2</b>"), (2, "<i>2</i>")], set()),
        ("2 2 <b>2</b> <i>2</i>", "2 2", [(0, "<b>2</b>"), (2, "<i>2</i>")], set()),
        ("<b>2</b> <i>3</i> a", "3 2", [(0, "<i>3</i>"), (2, "<b>2</b>")], set()),
        ("<b>2</b> a", "dos", [], {"2"}),
        ("<b>2</b> a", "2 2", [], {"2"}),
        ("<b>2</b> <i>3</i> a", "3 dos", [(0, "<i>3</i>")], {"2"}),
        ("<b>4</b> <a>[4]</a> a", "[4] 4", [(0, "<a>[4]</a>"), (1, "<b>4</b>")], {"4"}),
        ("a <a>[4]</a><b>5</b>", "[4]5", [(0, "<a>[4]</a>"), (3, "<b>5</b>")], set()),
    ],
)
def test_where_the_copies_are(source, translation, expected, expected_missing):
    copies, missing = find_copies(translation, collapsed(tagged(source)))
    assert [(start, copy.element.raw) for start, _, copy in copies] == expected
    assert all(translation[start:end] == copy.core for start, end, copy in copies)
    assert missing == expected_missing


@pytest.mark.parametrize(
    ("core", "text", "starts"),
    [
        ("2", "2, 12, 2.5, 2,5, 1.2, 2. 2; a2b .2 ,2", [0, 22, 25, 29, 33, 36]),
        ("a", "a, ba, ab, _a, a1, 1a", [0, 12]),
        ("a-", "a-b ba- a-", [0, 8]),
        ("-2", "-2 1-2 -25 -2.", [0, 4, 11]),
        ("{a}", "x{a}y{a}", [1, 5]),
    ],
)
def test_contents_as_words(core, text, starts):
    assert spans_of(core, text) == [(start, start + len(core)) for start in starts]


def test_elements_are_written_with_their_content():
    element = KeptElement(0, "<b>2</b>", parts=("<b>", "2"))
    assert list(expanded(["a", Mark(0, "<i>"), element])) == ["a", Mark(0, "<i>"), "<b>", "2"]
