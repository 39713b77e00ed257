"""Translation memories as documents."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError

FILE = '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>'
UNIT = '<tu>\n <tuv xml:lang="en-US"><seg>One <bpt i="1">&lt;b></bpt>cat<ept i="1">&lt;/b></ept></seg></tuv>{}</tu>'


def read(content, languages=ENGLISH_SPANISH):
    return read_document("a.tmx", content.encode(), languages)


def filled(content, languages=ENGLISH_SPANISH):
    document = read(content, languages)
    return document.filled(all_changed(document)).decode()


def test_the_code_is_the_one_that_the_file_uses():
    translated_unit = '<tu><tuv xml:lang="en-US"><seg>a</seg></tuv><tuv xml:lang="es-MX"><seg>un</seg></tuv></tu>'
    content = FILE.format(translated_unit + UNIT.format(""))
    assert [segment.existing and segment.existing.text for segment in read(content).segments] == ["un", None]
    for languages in (ENGLISH_SPANISH, (None, None), ("eng_Latn", "spa_Latn")):
        assert filled(content, languages).count('<tuv xml:lang="es-MX">') == 2


def test_a_text_keeps_its_attributes():
    content = FILE.format(UNIT.format('<tuv xml:lang="es"><seg x="1"/></tuv>'))
    assert '<seg x="1">ONE <bpt i="1">' in filled(content)


def test_a_region_of_the_same_language_is_another_language():
    content = FILE.format('<tu><tuv xml:lang="en"><seg>color</seg></tuv></tu>')
    assert filled(content, ("en", "en-US")).count("<tuv") == 2


def test_of_several_regions_the_exact_code_is_read():
    variants = '<tuv xml:lang="en-GB"><seg>color</seg></tuv><tuv xml:lang="en"><seg>color</seg></tuv>'
    (segment,) = read(FILE.format(f"<tu>{variants}</tu>")).segments
    assert segment.source.text == "color"


def test_old_attributes_of_languages_are_kept():
    content = '<tmx version="1.1"><header srclang="EN"/><body><tu><tuv lang="EN"><seg>a</seg></tuv></tu></body></tmx>'
    assert '<tuv lang="es"><seg>A</seg></tuv>' in filled(content)


@pytest.mark.parametrize(
    ("languages", "content", "message"),
    [
        ((None, None), FILE.format(UNIT.format("")), "holds en-US: which is the target"),
        (("fr", "es"), FILE.format(UNIT.format("")), "holds en-US, not fr"),
        (ENGLISH_SPANISH, FILE.format("\n<tu>"), "a.tmx:2: is no XML"),
        (ENGLISH_SPANISH, FILE.format(""), "holds no language, not en"),
        (ENGLISH_SPANISH, '<!DOCTYPE tmx [<!ENTITY a "b">]>' + FILE.format(""), "a.tmx:1: declares entities"),
    ],
)
def test_unreadable_files_are_one_line(languages, content, message):
    with pytest.raises(UserError, match=message):
        read(content, languages)


def test_nothing_outside_of_the_file_is_read_and_unknown_entities_stay():
    content = '<!DOCTYPE tmx SYSTEM "/etc/passwd">' + FILE.format(UNIT.format("").replace("One", "One&nbsp;&root;"))
    assert "ONE&nbsp;&root; <bpt" in filled(content)


def test_a_rich_memory():
    seg = (
        '<seg>One <bpt i="2" x="1">&lt;i></bpt><bpt i="1">&lt;b></bpt>two<ept i="1"/><ept i="2"/><ph>&lt;br/></ph>six '
        "<hi type='x'>ten</hi> <bpt i='3'/><it>n</it><ept i='3'/> end</seg>"
    )
    units = (
        '<tu tuid="1">\n  <note> First </note><tuv xml:lang="de"><note>No</note><seg>Eins</seg></tuv>\n  '
        f"<tuv xml:lang='en'><note/><note>Second</note>{seg}</tuv>\t<tuv xml:lang='fr'><seg>Un</seg></tuv>{{}}</tu>\n"
        '<tu><tuv lang="en-GB"><seg>Two</seg></tuv><tuv xml:lang="es" x="1"><prop type="a">b</prop>{}'
        '<seg y="2"> dos<ph>code</ph> </seg></tuv></tu>'
        '<tu><tuv xml:lang="en"><prop>x</prop></tuv></tu><tu><tuv xml:lang="en"><seg>12</seg></tuv></tu>'
        '<tu><tuv xml:lang="es"><seg>Tres</seg></tuv></tu>'
    )
    own_properties = '<prop type="x-translucid-confidence">0.10</prop><prop type="x-translucid-doubt">a</prop>'
    content = FILE.format(units.format("", own_properties))
    document = read(content)
    first_segment, second_segment = document.segments
    assert (first_segment.source.text, first_segment.place, first_segment.existing, first_segment.note) == (
        "One twosix ten  end",
        "line 1",
        None,
        "First\nSecond",
    )
    assert [mark.pair for mark in first_segment.source.marks] == [0, 1, 1, 0, None, 2, 2, 3, None, 3]
    assert (second_segment.source.text, second_segment.place, second_segment.existing, second_segment.note) == (
        "Two",
        "line 4",
        TaggedText("dos"),
        None,
    )
    after = seg
    for word in ("One", "two", "six", "ten", "end"):
        after = after.replace(word, word.upper())
    targets = all_changed(document)
    targets[1] = Target(TaggedText("DOS"), confidence=0.5, doubts=("loop: <a>", "b"))
    new_properties = (
        '<prop type="x-translucid-confidence">0.50</prop><prop type="x-translucid-doubt">loop: &lt;a&gt;</prop>'
    )
    new_properties += '<prop type="x-translucid-doubt">b</prop>'
    expected = units.format(f'\n  <tuv xml:lang="es">{after}</tuv>', "")
    expected = expected.replace('<seg y="2"> dos<ph>code</ph> </seg>', f'{new_properties}<seg y="2">DOS</seg>')
    assert document.filled(targets).decode() == FILE.format(expected)
    second_only = expected.replace(f'\n  <tuv xml:lang="es">{after}</tuv>', "")
    assert document.filled({1: targets[1]}).decode() == FILE.format(second_only)


def test_marks_at_the_ends_of_a_text_belong_to_it():
    (segment,) = read(FILE.format('<tu><tuv xml:lang="en"><seg><ph/>One<it/></seg></tuv></tu>')).segments
    assert segment.source.full_text == "<ph/>One<it/>"


@pytest.mark.parametrize(
    ("srclang", "languages", "code"),
    [
        ("en", (None, "spa"), "es"),
        ("EN-us", (None, "es-MX"), "es-MX"),
        ("*all*", ("en", "es"), "es"),
        ("*ALL*", ("eng_Latn", "spa_Latn"), "es"),
        ("de", ("en", "nonsense"), "nonsense"),
    ],
)
def test_the_languages_of_a_memory(srclang, languages, code):
    unit = '<tu><tuv xml:lang="en-US"><seg>One</seg></tuv></tu>'
    content = FILE.replace("/><body>", "/><header srclang='fr'/><body>").replace('"en"', f'"{srclang}"').format(unit)
    assert f'<tuv xml:lang="{code}"><seg>ONE</seg></tuv>' in filled(content, languages)


@pytest.mark.parametrize(
    ("srclang", "languages", "message"),
    [
        ("*all*", (None, "es"), "holds en, de, not a known source"),
        ("en", (None, None), None),
        ("fr", (None, "es"), "holds en, de, not fr"),
        ("fr", ("en", None), None),
    ],
)
def test_the_languages_of_a_memory_must_be_clear(srclang, languages, message):
    unit = '<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de"><seg>Eins</seg></tuv><tuv/></tu>'
    content = FILE.replace('"en"', f'"{srclang}"').format(unit)
    if message is None:
        assert [segment.existing and segment.existing.text for segment in read(content, languages).segments] == ["Eins"]
    else:
        with pytest.raises(UserError, match=rf"^a\.tmx: {message}\. Name both languages of the translation\."):
            read(content, languages)


def test_of_many_languages_the_first_are_named():
    variants = "".join(f'<tuv xml:lang="x-{number}"><seg>a</seg></tuv>' for number in range(21))
    with pytest.raises(UserError, match=r"^a\.tmx: holds x-0, .*, x-19, not en\."):
        read(FILE.format(f"<tu>{variants}</tu>"))
