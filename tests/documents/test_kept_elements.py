"""Elements without translatable letters are kept as one mark with their content."""

import random
import re
import xml.etree.ElementTree as ET
from html import escape
from io import BytesIO

import docx
import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.kept_elements import collapsed, spans_of
from bitext.documents.placeholders import PlaceholderStrategy
from bitext.documents.tag_projection import readable
from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.growth import assert_linear


def tagged(text):
    """Parse a text with the tags `<b>`, `</b>` and `<br/>` into a tagged text."""
    marks, words, opened = [], "", []
    for part in re.split(r"(<[^<>]+>)", text):
        if not part.startswith("<"):
            words += part
        elif part.startswith("</"):
            marks.append(Mark(len(words), part, Side.closes, opened.pop()))
        elif part.endswith("/>"):
            marks.append(Mark(len(words), part))
        else:
            opened.append(len(marks))
            marks.append(Mark(len(words), part, Side.opens, opened[-1]))
    return TaggedText(words, tuple(marks))


def final(source, translate):
    """Return the last text that the model reads, and the translation with marks."""
    strategy = PlaceholderStrategy.first(source)
    while following := strategy.after(translation := translate(strategy.text)):
        strategy = following
    return strategy.text, strategy.target(translation, [])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("The house<sup>2</sup> is here.", "The house is here."),
        ("He came.<sup>12</sup> She left.", "He came. She left."),
        ("<sup>1</sup>The house", "The house"),
        ('The house<a href="#n"><sup>[4]</sup></a><a>[5]</a>, too', "The house, too"),
        ("The <b>house</b><sup> 2 </sup>", "The house 2"),
        ("At the end<g>*</g>.", "At the end."),
        ("Red<x>†</x> wine", "Red wine"),
        ("10<sup>3</sup> grams", "10 grams"),
        ("<b>25</b> years", "25 years"),
        ("I am <b>25 </b>years old", "I am 25 years old"),
        ("See <a>[4]</a> for more", "See [4] for more"),
        ("Costs ($<b>2.50</b>) now", "Costs ($2.50) now"),
        ("You have <b>{count}</b> new", "You have {count} new"),
        ("One<br/><b>2</b> three", "One 2 three"),
        ("She drinks H<sub>2</sub>O, too", "She drinks H2O, too"),
        ("Fill in C<sub>6</sub>H<sub>12</sub>O<sub>6</sub>.", "Fill in C6H12O6."),
        ("Much CO<sub>2</sub> here", "Much CO2 here"),
        ("It has 25 m<sup>2</sup>.", "It has 25 m2."),
        ("Say <i>x</i><sub>1</sub> or <i>x<sub>2</sub></i>", "Say x1 or x2"),
        ("A note on it<sup>2</sup> here", "A note on it here"),
        ("Ask NASA<sup>2</sup> now", "Ask NASA now"),
        ("Ask x<sup>*</sup> now", "Ask x now"),
        ("<sup>1</sup>H<sub>2</sub>O is", "H2O is"),
        ("one<sup>1</sup><br/>two", "one two"),
        ("<i>read</i> <b>—</b> now", "read — now"),
        ("<i>read</i><b>,</b> now", "read, now"),
        ("Tom <b>&</b> Nina", "Tom & Nina"),
        ("我有<b>25</b>本书", "我有25本书"),
        ("房子<sup>2</sup>很大", "房子很大"),
        # Letters that belong to a code of XLIFF, and words that it cuts.
        ("Install v<x/> or SP<ph/> now", "Install or now"),
        ("It is <x/>px and <x/>x<x/> wide", "It is and wide"),
        ("Two <x/>s and <ph/>km here", "Two and here"),
        ("They like soc<x/>cer and <x/>houses", "They like soccer and houses"),
        ("A<x/> house, vo<x/>, 12<x/>, v<i/>", "A house, vo, 12, v"),
        ('One v<br/>, v<x ctype="lb"/> two', "One v, v two"),
    ],
)
def test_the_first_text_for_the_model(source, expected):
    assert PlaceholderStrategy.first(tagged(source)).text == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("The house<sup>2</sup> is here.", "LA CASA ESTÁ AQUÍ.", "LA CASA<sup>2</sup> ESTÁ AQUÍ."),
        ("At the beach<a>1</a>.", "EN LA PLAYA.", "EN LA PLAYA<a>1</a>."),
        ("<b>25</b> years", "AÑOS: 25", "AÑOS: <b>25</b>"),
        ("<b>25</b> years", "AÑOS", "<b>25</b> AÑOS"),
        ("I am <b>25 </b>years old", "TENGO 25 AÑOS", "TENGO <b>25 </b>AÑOS"),
        ("2 of <b>2</b>", "2 DE 2", "2 DE <b>2</b>"),
        ("<b>2</b> of 2", "2 DE 2", "<b>2</b> DE 2"),
        ("Drink H<sub>2</sub>O now", "BEBE H2O AHORA", "BEBE H<sub>2</sub>O AHORA"),
        ("Drink H<sub>2</sub>O now", "BEBE AHORA", "BEBE H<sub>2</sub>O AHORA"),
        ("<i>One <b>{count}</b></i> new", "UNO {count} NUEVO", "<i>UNO <b>{count}</b></i> NUEVO"),
        ("See <a>[4]</a> for more", "MÁS EN", "MÁS <a>[4]</a> EN"),
        ("The v<x/> house", "LA CASA", "LA v<x/> CASA"),
        ("A <x/>px house", "UNA CASA", "UNA <x/>px CASA"),
        ("v<x/>", "", "v<x/>"),
    ],
)
def test_final_translations(source, translation, expected):
    assert final(tagged(source), lambda text: translation)[1].full_text == expected


def test_a_short_number_that_is_written_out_is_tried_with_one_that_stays():
    model_text, marked = final(tagged("I have <b>3</b> cats"), lambda text: text.replace("3", "TRES"))
    assert model_text == "I have 47 cats" and marked.full_text == "I have <b>3</b> cats"


def test_one_space_is_left_where_an_element_was():
    model_text, marked = final(tagged("We came. <a>[1]</a> She left."), lambda text: text.replace("[1]", ""))
    assert model_text == "We came. She left." and marked.full_text == "We came. <a>[1]</a> She left."


def test_elements_side_by_side_at_the_beginning_are_parted_once():
    marked = final(tagged("<a>[1]</a> <a>[2]</a> Next"), lambda text: "OTRA")[1]
    assert marked.full_text == "<a>[1]</a> <a>[2]</a> OTRA"


def test_elements_placed_by_guess_are_reported():
    strategy = PlaceholderStrategy.first(tagged("See <a>[4]</a> for more"))
    assert not strategy.doubts
    assert strategy.after("MÁS EN").doubts == ["placed: [4]"]
    assert not PlaceholderStrategy.first(tagged("The house<sup>2</sup>")).doubts


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("The house<sup>2</sup> is", "La casa2 está", "La casa<sup>2</sup> está"),
        ("The house<sup>2</sup> is", "La casa está", "La casa<sup>2</sup> está"),
        ("<b>25</b> years", "veinticinco años", "<b>25</b> veinticinco años"),
        ("H<sub>2</sub>O is good", "El H2O es bueno", "El H<sub>2</sub>O es bueno"),
    ],
)
def test_a_translation_that_is_there_gets_the_elements(source, translation, expected):
    tagged_source = tagged(source)
    assert PlaceholderStrategy.of_pair(tagged_source, translation).target(translation, []).full_text == expected


@pytest.mark.parametrize(
    ("text", "model_text", "expected"),
    [
        ("Wool<sup>7</sup> is warm", "Wool is warm", "WOOL<sup>7</sup> IS WARM"),
        ("Warm <b>{n}</b> wool", "Warm {n} wool", "WARM <b>{n}</b> WOOL"),
        ("See <i><b>12</b></i> <u>sheep</u>", "See 12 <u>sheep</u>", "SEE <i><b>12</b></i> <u>SHEEP</u>"),
        ("H<sub>2</sub>O<br>is wet", "H2O<br>is wet", "H<sub>2</sub>O<br>IS WET"),
        ("One<br><sup>2", "One<br><sup>2", "ONE<br><sup>2"),
    ],
)
def test_tags_in_strings_of_programs(text, model_text, expected):
    strategy = PlaceholderStrategy.first(TaggedText(text))
    assert strategy.text == model_text
    translation = re.sub(
        r"<[^<>]+>|\b[A-Za-z]{2,}\b", lambda word: word[0] if "<" in word[0] else word[0].upper(), model_text
    )
    assert strategy.after(translation) is None
    marked = strategy.target(translation, [])
    assert marked.text == expected and not marked.marks


def test_signs_of_the_sentence_are_not_put_around_letters():
    target = final(tagged("don<b>'</b>t sing<i>,</i> well<b>-</b>known"), lambda text: "NO CANTES BIEN SABIDO")[1]
    assert not re.search(r"<(\w)>[^<]*\w[^<]*</\1>", target.full_text)


def test_words_and_numbers_of_their_own():
    assert spans_of("[4]", "a[4], [4]") == [(1, 4), (6, 9)]
    assert spans_of("H2O", "H2O, H2O2, CH2O") == [(0, 3)]


def test_marks_that_cross_an_element_stay_marks():
    crossing = (
        Mark(4, "<b>", Side.opens, 0),
        Mark(4, "<i>", Side.opens, 1),
        Mark(5, "</b>", Side.closes, 0),
        Mark(8, "</i>", Side.closes, 1),
    )
    marked = final(TaggedText("See 2 of", crossing), str.upper)[1]
    assert sorted(mark.raw for mark in marked.marks) == ["</b>", "</i>", "<b>", "<i>"]


def xliff(source):
    unit = f'<trans-unit id="1"><source>{source}</source></trans-unit>'
    names = 'xmlns="urn:oasis:names:tc:xliff:document:1.2"'
    file = f'<file source-language="en" target-language="es" original="a" datatype="html"><body>{unit}</body></file>'
    return f'<xliff version="1.2" {names}>{file}</xliff>'


@pytest.mark.parametrize(
    ("name", "content", "after"),
    [
        ("a.html", "<p>Wool<sup>7</sup> is warm.</p>", "<p>WOOL<sup>7</sup> IS WARM.</p>"),
        ("a.html", "<p>Iron: Fe<sub>2</sub>O<sub>3</sub>.</p>", "<p>IRON: Fe<sub>2</sub>O<sub>3</sub>.</p>"),
        ("a.md", "Wool<sup>7</sup> is warm. See **12** sheep.\n", "WOOL<sup>7</sup> IS WARM. SEE **12** SHEEP.\n"),
        ("a.md", "Iron is Fe~2~O~3~ and 5 km^2^ wide.\n", "IRON IS Fe~2~O~3~ AND 5 km^2^ WIDE.\n"),
        ("a.md", "Wool^12^ is ~~warm~~ ==12== m^-1^.\n", "WOOL^12^ IS ~~WARM~~ ==12== m^-1^.\n"),
        ("a.xlf", xliff('Warm wool<g id="1">7</g>.'), '>WARM WOOL<g id="1">7</g>.</target>'),
        ("a.xlf", xliff('Buy <g id="1">12</g> sheep'), '>BUY <g id="1">12</g> SHEEP</target>'),
        ("a.xml", "<resources><string name='a'>Wool<sup>7</sup> is</string></resources>", ">WOOL<sup>7</sup> IS<"),
        ("a.json", '{"a": "Wool<sup>7</sup> is warm"}', '"WOOL<sup>7</sup> IS WARM"'),
        ("a.json", '{"a": "See <b>12</b> {n} sheep"}', '"SEE <b>12</b> {n} SHEEP"'),
        (
            "a.yml",
            'en:\n  a: "Iron is Fe<sub>2</sub>O<sub>3</sub> here"\n',
            'IRON IS Fe<sub>2</sub>O<sub>3</sub> HERE"',
        ),
        (
            "a.strings",
            '"a" = "Wool<a href=\\"#n\\"><sup>[7]</sup></a>, warm";',
            '"WOOL<a href=\\"#n\\"><sup>[7]</sup></a>, WARM"',
        ),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nI see <i>12</i> sheep\n", "\nI SEE <i>12</i> SHEEP\n"),
    ],
)
def test_documents_of_all_kinds(name, content, after):
    document = read_document(name, content.encode(), ("en", "es"))
    targets = {i: Target(final(segment.source, shouted)[1]) for i, segment in enumerate(document.segments)}
    assert after in document.filled(targets).decode()


def test_raised_numbers_of_word():
    original = docx.Document()
    paragraph = original.add_paragraph("Warm wool")
    paragraph.add_run("7").font.superscript = True
    paragraph.add_run(" and H")
    paragraph.add_run("2").font.subscript = True
    paragraph.add_run("O.")
    original.save(out := BytesIO())
    document = read_document("a.docx", out.getvalue(), ("en", "es"))
    (segment,) = document.segments
    filled = document.filled({0: Target(final(segment.source, shouted)[1])})
    runs = docx.Document(BytesIO(filled)).paragraphs[-1].runs
    assert [(run.text, run.font.superscript, run.font.subscript) for run in runs] == [
        ("WARM WOOL", None, None),
        ("7", True, False),
        (" AND H", None, None),
        ("2", False, True),
        ("O.", None, None),
    ]


def shouted(text):
    return re.sub(r"(?<![<{/])\b[A-Za-z]{2,}\b", lambda word: word[0].upper(), text)


WORDS = ["house", "beach,", "end.", "(so)", "H", "25", "3", "{n}", "%s", "well-known", "12.5"]
CONTENTS = ["2", "[4]", "*", "25", " 3", "3 ", "1,000", "{n}", "%s", "—", ",", "👋", "12 000", "."]


def random_markup(rng, depth=0):
    """Return a random text with tags."""
    parts = []
    for _ in range(rng.randrange(1, 6)):
        kind = rng.random()
        if kind < 0.5:
            parts.append(escape(rng.choice(WORDS)))
        elif kind < 0.8:
            parts.append(f"<e>{escape(rng.choice(CONTENTS))}</e>")
        elif kind < 0.85:
            parts.append("<br/>")
        elif depth < 2:
            parts.append(f"<b>{random_markup(rng, depth + 1)}</b>")
        parts.append(rng.choice(["", " ", " "]))
    return "".join(parts)


@pytest.mark.parametrize("seed", range(100))
def test_any_text_with_any_translation_keeps_each_element_with_its_content(seed):
    rng = random.Random(seed)
    source = tagged("word " + random_markup(rng))
    state = rng.random() + seed

    def translate_word(word):
        is_placeholder = "{" in word or "%" in word
        return word if is_placeholder else word.upper()

    def translate(text):
        words = text.split()
        shuffler = random.Random(str(state) + text)
        shuffler.shuffle(words)
        translated = [translate_word(word) for word in words if shuffler.random() < 0.8]
        return " ".join([*translated, *shuffler.choices(words, k=shuffler.randrange(2))])

    marked = final(source, translate)[1]
    before, after = (ET.fromstring(f"<r>{content.full_text}</r>") for content in (source, marked))
    assert [tag.tag for tag in before.iter("br")] == [tag.tag for tag in after.iter("br")]
    assert len(list(before.iter("b"))) == len(list(after.iter("b")))
    signs = {",", ".", "—", ""}  # punctuation of the sentence, which may be missing in the translation

    def contents(root):
        texts = sorted("".join(element.itertext()) for element in root.iter("e"))
        return [text for text in texts if text not in signs]

    assert contents(before) == contents(after)


def test_the_text_for_the_model_and_the_elements_make_up_the_source():
    for seed in range(100):
        source = tagged("word " + random_markup(random.Random(seed)))
        result = collapsed(source)
        assert all(result.source.text[copy.start : copy.end] == copy.core for copy in result.copies)
        assert len(readable(result.source).text) <= len(readable(source).text)


@pytest.mark.parametrize("token", ["<b>2</b>", " <b>2</b>", "H<b>2</b>", "<b>2</b>, ", "x<br/>"])
def test_time_grows_with_the_length(token):
    def collapsing(count):
        source = tagged("word " + token * count)
        return lambda: collapsed(source)

    assert_linear(collapsing, 400, 3_200)
