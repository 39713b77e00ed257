"""XLIFF files as documents: the exact translated files."""

from xml.etree import ElementTree

import pytest

from bitext.documents.document import NearMatch, Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, changed
from translucid.data.readers.corpus import read_pairs
from translucid.ground.errors import UserError

ONE = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    '<file source-language="en" original="a">{}</file></xliff>'
)
TWO = '<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">{}</file></xliff>'


def read(content, languages=ENGLISH_SPANISH):
    return read_document("a.xlf", content.encode(), languages)


def filled(content, **fields):
    """Return the content of the <file> element of the translated file."""
    document = read(content)
    targets = {i: Target(changed(segment.source), **fields) for i, segment in enumerate(document.segments)}
    text = document.filled(targets).decode()
    return text[text.index("<file") : text.index("</file>")].partition(">")[2]


def test_a_target_is_put_behind_its_source_with_the_same_margin():
    unit = (
        '<trans-unit id="1">\r\n  <source xml:lang="en">Hi <x id="1"/>you &amp; me</source>\r\n'
        "  <note>n</note></trans-unit>"
    )
    target = (
        '<target xml:lang="es" state="needs-review-translation" state-qualifier="mt-suggestion">'
        'HI <x id="1"/>YOU &amp; ME</target>'
    )
    assert filled(ONE.format(unit)) == unit.replace("</source>", f"</source>\r\n  {target}")
    assert read(ONE.format(unit)).segments[0].note == "n"


@pytest.mark.parametrize(
    ("target", "existing"),
    [
        ('<target state="final">hecho</target>', "hecho"),
        ('<target state="final">he<ph id="1">&lt;b></ph>cho</target>', "hecho"),
        ("<target>hecho</target>", "hecho"),
        ('<target state="new">one</target>', None),
        ("<target/>", None),
        ("", None),
    ],
)
def test_translations_that_are_there_are_known(target, existing):
    content = ONE.format(f'<trans-unit id="1"><source>one</source>{target}</trans-unit>')
    assert [segment.existing and segment.existing.text for segment in read(content).segments] == [existing]


def test_a_target_that_is_replaced_keeps_its_other_attributes():
    unit = '<trans-unit id="1" approved="no"><source>one</source><target state=\'new\' phase-name="p"/></trans-unit>'
    target = '<target state="translated" phase-name="p">ONE</target>'
    assert filled(ONE.format(unit), origin="person") == unit.replace("<target state='new' phase-name=\"p\"/>", target)


def test_the_target_language_is_named_where_it_was_not():
    for content, attribute in ((ONE, ' target-language="es"'), (TWO, ' trgLang="es"')):
        unit = '<unit id="1"><segment><source>one</source></segment></unit>'
        unit = unit if content is TWO else "<trans-unit><source>one</source></trans-unit>"
        document = read(content.format(unit))
        assert attribute in document.filled(all_changed(document)).decode()


def test_what_is_not_to_be_translated_stays():
    units = (
        '<group translate="no"><trans-unit id="1"><source>one</source></trans-unit></group>'
        '<trans-unit id="2" translate="no"><source>one</source></trans-unit>'
        '<trans-unit id="3"><source>%s</source></trans-unit>'
        '<trans-unit id="4"><source>to <mrk mtype="protected">one <g id="1">two</g></mrk></source></trans-unit>'
    )
    (segment,) = read(ONE.format(units)).segments
    assert (segment.source.text, len(segment.source.marks)) == ("to ", 1)


def test_segments_of_a_source_that_is_cut_are_put_into_one_target():
    seg_source = (
        '<seg-source><g id="1"><mrk mtype="seg" mid="a">One.</mrk> <mrk mtype="seg" mid="b">Two.</mrk></g></seg-source>'
    )
    content = ONE.format(f"<trans-unit><source>One. Two.</source>{seg_source}</trans-unit>")
    document = read(content)
    assert [segment.source.text for segment in document.segments] == ["One.", "Two."]
    partial = document.filled({1: Target(TaggedText("Dos."))}).decode()
    target = '<g id="1"><mrk mtype="seg" mid="a">{}</mrk> <mrk mtype="seg" mid="b">Dos.</mrk></g></target>'
    assert f'<target state="needs-translation">{target.format("")}' in partial
    assert [segment.existing and segment.existing.text for segment in read(partial).segments] == [None, None]
    complete = read(partial).filled({0: Target(TaggedText("Uno.")), 1: Target(TaggedText("Dos."))}).decode()
    assert target.format("Uno.") in complete
    assert [segment.existing and segment.existing.text for segment in read(complete).segments] == ["Uno.", "Dos."]


def test_segments_without_words_are_in_the_target_too():
    segments = '<mrk mtype="seg" mid="a">One.</mrk> <mrk mtype="seg" mid="b">12 %</mrk><mrk mtype="seg" mid="c"/>'
    content = ONE.format(f"<trans-unit><source>One. 12 %</source><seg-source>{segments}</seg-source></trans-unit>")
    document = read(content)
    assert [segment.source.text for segment in document.segments] == ["One."]
    assert f">{segments.replace('One.', 'UNO.')}</target>" in document.filled({0: Target(TaggedText("UNO."))}).decode()


def test_one_segment_of_a_cut_target_is_replaced_and_the_other_stays():
    template = '<{0}><mrk mtype="seg" mid="a">{1}</mrk><mrk mtype="seg" mid="b">{2}</mrk></{0}>'
    contents = template.format("seg-source", "One.", "Two.") + template.format("target", '<x id="1"/>Uno.', "Dos.")
    document = read(ONE.format(f"<trans-unit><source>One. Two.</source>{contents}</trans-unit>"))
    assert (
        '<mrk mtype="seg" mid="a"><x id="1"/>Uno.</mrk><mrk mtype="seg" mid="b">DOS</mrk>'
        in document.filled({1: Target(TaggedText("DOS"))}).decode()
    )


def test_version_2_marks_its_segments():
    unit = '<unit id="1"><segment state="initial"><source>One <pc id="1">two</pc></source></segment></unit>'
    after = '<segment state="translated" subState="translucid:mt-suggestion">'
    target = '<target>ONE <pc id="1">TWO</pc></target>'
    expected = unit.replace('<segment state="initial">', after).replace("</source>", f"</source>{target}")
    assert filled(TWO.format(unit)) == expected


NEAR_MATCHES = NearMatch(83, "one & two", "uno y <dos>"), NearMatch(75, "one", "uno")


def test_near_matches_stand_beside_the_target_in_version_1(tmp_path):
    foreign_match = '<alt-trans match-quality="99" origin="tm"><target>x</target></alt-trans>'
    unit = f'<trans-unit id="1"><source>one two</source>{foreign_match}</trans-unit>'
    document = read(ONE.format(unit))
    target = Target(TaggedText("uno dos"), confidence=0.5, matches=NEAR_MATCHES)
    filled_once = document.filled({0: target})
    alt_trans = [
        '<alt-trans match-quality="83%" origin="translucid"><source>one &amp; two</source>'
        "<target>uno y &lt;dos&gt;</target></alt-trans>",
        '<alt-trans match-quality="75%" origin="translucid"><source>one</source><target>uno</target></alt-trans>',
    ]
    assert f"0.50</note>{''.join(alt_trans)}{foreign_match}</trans-unit>" in filled_once.decode()
    assert read_document("a.xlf", filled_once, ENGLISH_SPANISH).filled({0: target}) == filled_once
    without_matches = (
        read_document("a.xlf", filled_once, ENGLISH_SPANISH).filled({0: Target(TaggedText("uno dos"))}).decode()
    )
    assert foreign_match in without_matches and "translucid" not in without_matches
    (tmp_path / "a.xlf").write_bytes(filled_once)
    assert [tuple(pair) for pair in read_pairs(str(tmp_path / "a.xlf"), languages=ENGLISH_SPANISH)] == [
        ("one two", "uno dos")
    ]


@pytest.mark.parametrize("notes", ["", "<notes><note>old</note></notes>"])
def test_near_matches_are_notes_in_version_2(notes):
    document = read(TWO.format(f'<unit id="1">{notes}<segment><source>one two</source></segment></unit>'))
    target = Target(TaggedText("uno dos"), matches=NEAR_MATCHES)
    filled_once = document.filled({0: target})
    note = '<note category="translucid">near match, 83 %: one &amp; two → uno y &lt;dos&gt;</note>'
    assert filled_once.decode().count(note) == 1 and ("<note>old</note>" in filled_once.decode()) == bool(notes)
    reread = read_document("a.xlf", filled_once, ENGLISH_SPANISH)
    assert reread.filled({0: target}) == filled_once and reread.segments[0].note == ("old" if notes else None)


def test_line_ends_count_where_white_space_does():
    unit = '<trans-unit id="1"{}><source>One\n  two</source></trans-unit>'
    (default,) = read(ONE.format(unit.format(""))).segments
    assert default.source == TaggedText("One two")
    preserved = read(ONE.format(unit.format(' xml:space="preserve"'))).segments
    assert [segment.source for segment in preserved] == [TaggedText("One"), TaggedText("two")]


def test_prefixes_of_names_are_kept():
    content = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file source-language="en">'
        '<x:trans-unit id="1"><x:source>one</x:source></x:trans-unit></x:file></x:xliff>'
    )
    document = read(content)
    ElementTree.fromstring(document.filled(all_changed(document)))
    assert ">ONE</x:target>" in document.filled(all_changed(document)).decode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xliff>\n<file>\n", r"a.xlf:3: is no XML \(no element found\)"),
        ("<tmx/>", r"a.xlf:1: begins with <tmx>, not with <xliff>"),
        (ONE.format("\n<trans-unit/>"), r"a.xlf:2: has a <trans-unit> without a <source>"),
        ("", r"a.xlf: is empty"),
    ],
)
def test_broken_files_are_one_line(content, message):
    with pytest.raises(UserError, match=message):
        read(content)
