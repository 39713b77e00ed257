"""XLIFF units with all their constructs: the exact translated file, by the origin of each translation."""

import re

import pytest

from bitext.documents.document import NearMatch, Target
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import changed
from tests.documents.test_xliff import ONE, TWO, read
from translucid.ground.errors import UserError

STATES = {
    "model": 'state="needs-review-translation" state-qualifier="mt-suggestion"',
    "memory": 'state="needs-review-translation" state-qualifier="exact-match"',
    "person": 'state="translated"',
    None: 'state="needs-translation"',
}


ENDS = '<x:ex id="3"/>'


def file_content(content):
    """Return the content of the <file> element."""
    return content[content.index("<file") : content.rindex("</file>")].partition(">")[2]


def filled(template, units, *origins):
    """Return the units with translations of these origins; None leaves a segment untranslated."""
    document = read(template.format(units))
    targets = {}
    for number, (segment, origin) in enumerate(zip(document.segments, origins, strict=True)):
        if origin:
            targets[number] = Target(changed(segment.source), origin=origin)
    return file_content(document.filled(targets).decode())


def mrk(name, text):
    return f'<mrk mtype="seg" mid="{name}">{text}</mrk>'


@pytest.mark.parametrize(
    ("origins", "inside_target"),
    [
        (("model", "person"), ("ONE.", "TWO.")),
        (("memory", "person"), ("ONE.", "TWO.")),
        (("memory", "model"), ("ONE.", "TWO.")),
        (("person", "person"), ("ONE.", "TWO.")),
        ((None, "person"), ("", "TWO.")),
        (("model", None), ("ONE.", "")),
    ],
)
def test_the_weakest_origin_of_its_segments_is_that_of_a_target(origins, inside_target):
    source = f"<source>One. Two.</source><seg-source>{mrk('a', 'One.')}{mrk('b', 'Two.')}</seg-source>"
    weakest = next(origin for origin in (None, *STATES) if origin in origins)
    target = f"<target {STATES[weakest]}>{mrk('a', inside_target[0])}{mrk('b', inside_target[1])}</target>"
    unit = "<trans-unit>{}{}</trans-unit>"
    assert filled(ONE, unit.format(source, ""), *origins) == unit.format(source, target)


def test_a_rich_unit_of_version_1():
    before = (
        '<x:trans-unit id="1" maxwidth="40" size-unit="char" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">\n'
        '  <x:source xml:lang="en" xml:space="preserve"> One <x:bpt id="1" rid="p">&lt;b></x:bpt>two '
        'six<x:ept id="9" rid="p">&lt;/b></x:ept> <x:bx id="3"/><x:mrk mtype="x">ten<x:x id="4"/></x:mrk>nil'
        '<x:ex id="3"/>'
        "<x:ph id='5'>%d</x:ph>end</x:source>{}\n"
        '  <x:note from="dev"> First </x:note><x:note/>{}<x:note>Second</x:note></x:trans-unit>'
    )
    old_notes = (
        '<x:note from="translucid">a</x:note><x:alt-trans origin="translucid"><x:target>b</x:target></x:alt-trans>'
    )
    document = read(ONE.format(before.format("", old_notes)))
    (segment,) = document.segments
    assert segment.source.full_text == (
        'One <x:bpt id="1" rid="p">&lt;b></x:bpt>two six<x:ept id="9" rid="p">&lt;/b></x:ept> <x:bx id="3"/>'
        '<x:mrk mtype="x">ten<x:x id="4"/></x:mrk>nil<x:ex id="3"/><x:ph id=\'5\'>%d</x:ph>end'
    )
    assert [mark.pair for mark in segment.source.marks] == [0, 0, 1, 2, None, 2, 1, None]
    assert (segment.place, segment.existing, segment.note, segment.longest) == ("line 2", None, "First\nSecond", 40)
    matches = NearMatch(90, "a", "b"), NearMatch(80, "c", "d")
    target = Target(changed(segment.source), confidence=0.126, doubts=("loop: <a>", "length: 1"), matches=matches)
    expected = (
        f'\n  <x:target xml:lang="es" xml:space="preserve" {STATES["model"]}> '
        'ONE <x:bpt id="1" rid="p">&lt;b></x:bpt>TWO '
        'SIX<x:ept id="9" rid="p">&lt;/b></x:ept> <x:bx id="3"/><x:mrk mtype="x">TEN<x:x id="4"/></x:mrk>NIL'
        f"{ENDS}<x:ph id='5'>%d</x:ph>END</x:target>"
        '<x:note from="translucid" annotates="target">confidence 0.13; loop: &lt;a&gt;; length: 1</x:note>'
    )
    for percent, match_source, match_target in (90, "a", "b"), (80, "c", "d"):
        texts = f"<x:source>{match_source}</x:source><x:target>{match_target}</x:target>"
        expected += f'<x:alt-trans match-quality="{percent}%" origin="translucid">{texts}</x:alt-trans>'
    assert file_content(document.filled({0: target}).decode()) == before.format(expected, "")


def test_a_rich_unit_of_version_2():
    unit = (
        '<unit id="1" slr:sizeRestriction="40" xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0">{}'
        "<originalData/>"
        '<segment state="initial" slr:sizeRestriction="3, 20">{}\n <source>One <sc id="1"/>two<ec startRef="1"/> '
        '<sc id="2" isolated="yes"/><mrk id="3" translate="no">no</mrk></source>{}</segment>'
        "<ignorable><source> </source></ignorable>"
        "<segment><source>Six</source>{}</segment><segment><source>12</source></segment></unit>"
    )
    unit = unit.replace('">{}\n', '">\n', 1)
    document = read(TWO.format(unit.format("", "", "")))
    assert [(segment.source.full_text, segment.longest) for segment in document.segments] == [
        ('One <sc id="1"/>two<ec startRef="1"/> <sc id="2" isolated="yes"/><mrk id="3" translate="no">no</mrk>', 20),
        ("Six", 40),
    ]
    assert [mark.pair for mark in document.segments[0].source.marks] == [0, 0, None, None]
    targets = {
        0: Target(changed(document.segments[0].source), origin="memory", confidence=1.0),
        1: Target(TaggedText("SIX"), origin="person", doubts=("loop: a",), matches=(NearMatch(90, "a", "b"),)),
    }
    notes = "".join(
        f'<note category="translucid">segment {text}</note>'
        for text in ("1: confidence 1.00", "2: loop: a", "2: near match, 90 %: a → b")
    )
    first = (
        '\n <target>ONE <sc id="1"/>TWO<ec startRef="1"/> <sc id="2" isolated="yes"/>'
        '<mrk id="3" translate="no">no</mrk></target>'
    )
    after = unit.format(f"<notes>{notes}</notes>", first, "<target>SIX</target>")
    after = after.replace(
        'state="initial" slr:sizeRestriction="3, 20"',
        'state="translated" slr:sizeRestriction="3, 20" subState="translucid:exact-match"',
    )
    after = after.replace("<segment><source>Six", '<segment state="translated"><source>Six')
    filled_once = document.filled(targets)
    assert file_content(filled_once.decode()) == after
    assert read(filled_once.decode()).filled(targets) == filled_once
    second = read(TWO.format(unit.format("", "", ""))).filled({1: Target(TaggedText("SIX"))}).decode()
    assert file_content(second) == unit.format("", "", "<target>SIX</target>").replace(
        "<segment><source>Six", '<segment state="translated" subState="translucid:mt-suggestion"><source>Six'
    )


def test_a_target_whose_segments_are_unknown_is_translated_as_a_whole():
    source = f"<source>One. Two.</source><seg-source>{mrk('a', 'One.')} {mrk('b', 'Two.')}</seg-source>"
    unit = "<trans-unit>{}<target{}>{}</target></trans-unit>"
    document = read(ONE.format(unit.format(source, "", "Uno dos.")))
    assert [(segment.source.text, segment.existing.text) for segment in document.segments] == [
        ("One. Two.", "Uno dos.")
    ]
    after = filled(ONE, unit.format(source, "", "Uno dos."), "person")
    assert after == unit.format(source, ' state="translated"', "ONE. TWO.")
    code = '<ph id="1">code</ph>'
    assert len(read(ONE.format(unit.format(source, "", code))).segments) == 2


def test_units_and_files_without_text_or_languages_stay():
    units = (
        '<trans-unit id="1"><source/></trans-unit><trans-unit id="2"><source>12</source><target/></trans-unit>'
        '<trans-unit id="3"><source>#aabbcc</source></trans-unit><group translate="no"><trans-unit id="4">'
        '<source>No</source></trans-unit><trans-unit id="5" translate="yes"><source>Yes</source></trans-unit></group>'
    )
    document = read(ONE.format(units))
    assert [segment.source.text for segment in document.segments] == ["Yes"]
    content = ONE.replace(' source-language="en"', "").format("<trans-unit><source>One</source></trans-unit>")
    for languages in (("en", "es"), ("en", None)):
        document = read(content, languages)
        assert "target-language" not in document.filled({0: Target(TaggedText("Uno"))}).decode()
    two_files = ONE.format("<trans-unit><source>One</source></trans-unit>").replace(
        "</file>", '</file><file source-language="en-GB"><trans-unit><source>Six</source></trans-unit></file>'
    )
    filled_files = read(two_files, ("en", "nonsense")).filled({1: Target(TaggedText("Seis"))}).decode()
    assert filled_files.count(' target-language="nonsense">') == 2
    assert read(two_files, ("en", None)).filled({1: Target(TaggedText("Seis"))}).decode().count("target-language") == 0


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<g id='1'>One cat\nTwo dogs</g>", ["One cat", "Two dogs"]),
        ("One <g id='1'>cat\nTwo</g> dogs", ["One <g id='1'>cat", "Two</g> dogs"]),
        (
            "<g id='1'>One <g id='2'>cat\n\n</g>Two\n3\n<x id='4'/>dogs</g>",
            ["One <g id='2'>cat", "Two", "<x id='4'/>dogs"],
        ),
        ("<g id='1'>&lt;p&gt;One cat&lt;/p&gt;&lt;p&gt;Two dogs&lt;/p&gt;</g>", ["One cat", "Two dogs"]),
        (
            "<bpt id='1'/>One cat\n<bpt id='2'/>Two<ept id='1'/> dogs<ept id='2'/>",
            ["One cat", "<bpt id='2'/>Two<ept id='1'/> dogs<ept id='2'/>"],
        ),
        ("<g id='1'>" * 9 + "One cat\nTwo dogs" + "</g>" * 9, ["One cat \nTwo dogs"]),  # too deep
    ],
)
def test_lines_and_blocks_in_elements_are_segments(source, texts):
    unit = '<trans-unit xml:space="preserve"><source>{}</source>{}</trans-unit>'
    document = read(ONE.format(unit.format(source, "")))
    assert [segment.source.full_text for segment in document.segments] == texts
    after = filled(ONE, unit.format(source, ""), *["model"] * len(texts))
    upper = re.sub(
        r"<[^<>]*>|&[^&;]*;(?:/?p)?|([^<>&;]+)", lambda part: part[1].upper() if part[1] else part[0], source
    )
    assert after.replace(" \n", "\n") == unit.format(source, f"<target {STATES['model']}>{upper}</target>")


@pytest.mark.parametrize(
    ("languages", "attributes", "message"),
    [
        (("de", "es"), 'source-language="en"', "a.xlf:2: is from en to [?], the translator from de to es"),
        (
            ("en", "es"),
            'source-language="en" target-language="de"',
            "a.xlf:2: is from en to de, the translator from en to es",
        ),
        (("eng_Latn", "deu_Latn"), 'source-language="en" target-language="de"', None),
        (("x", None), 'source-language="en" target-language="de"', None),
        (("en", "es"), 'source-language="en-US" target-language="es-MX"', None),
        ((None, None), 'source-language="en" target-language="de"', None),
        (("en", "nonsense"), 'source-language="en" target-language="de"', None),
    ],
)
def test_the_languages_of_a_file_must_be_those_of_the_translation(languages, attributes, message):
    content = ONE.replace("<file", "\n<file").replace('source-language="en"', attributes)
    content = content.format("<trans-unit><source>One</source></trans-unit>")
    if message is None:
        assert read(content, languages).segments
    else:
        with pytest.raises(UserError, match=f"^{message}"):
            read(content, languages)


def test_a_message_with_cases_is_one_text_of_several_segments():
    message = "{n, plural, =1 {one <g id='1'>cat</g> &amp; dog} other {# cats}}"
    unit = "<trans-unit><source>{}</source>{}</trans-unit>"
    document = read(ONE.format(unit.format(message, "")))
    assert [segment.source.full_text for segment in document.segments] == ["one <g id='1'>cat</g> & dog", "# cats"]
    upper = message.replace("one <", "ONE <").replace("cat<", "CAT<").replace("dog", "DOG").replace("cats", "CATS")
    target = f"<target {STATES['model']}>{upper}</target>"
    assert filled(ONE, unit.format(message, ""), "model", "person") == unit.format(message, target)
    partial = filled(ONE, unit.format(message, ""), None, "person")
    assert partial == unit.format(message, f"<target {STATES[None]}>{message.replace('cats', 'CATS')}</target>")


@pytest.mark.parametrize(
    ("unit", "segment", "longest"),
    [
        ('maxwidth="12" size-unit="char" slr:sizeRestriction="11"', "", 11),
        ('maxwidth="9" size-unit="char" slr:sizeRestriction="11"', "", 9),
        ('maxwidth="9" size-unit="pixel"', "", None),
        ('maxwidth="9"', "", None),
        ('slr:sizeRestriction="0,999999999"', 'slr:sizeRestriction=" 5 , 7 "', 7),
        ('slr:sizeRestriction="1000000000"', "", None),
        ('weblate-flags="read-only, max-length:8" slr:sizeRestriction="9"', "", 8),
        ('weblate-flags="max-length:x"', "", None),
        ('slr:sizeRestriction="٣"', 'slr:sizeRestriction="x"', None),
    ],
)
def test_the_smallest_limit_counts(unit, segment, longest):
    names = 'xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0"'
    content = TWO.format(f'<unit id="1" {names} {unit}><segment {segment}><source>One</source></segment></unit>')
    assert [item.longest for item in read(content).segments] == [longest]


def test_notes_of_ours_alone_make_a_group_that_is_replaced():
    unit = '<unit id="1">{}<segment{}><source>One</source>{}</segment></unit>'
    note = '<note category="translucid">confidence 0.50</note>'
    translated = ' state="translated" subState="translucid:mt-suggestion"', "<target>Uno</target>"
    for group in ("", "<notes/>", "<notes> <note category='translucid'>old</note></notes>"):
        document = read(TWO.format(unit.format(group, "", "")))
        assert document.segments[0].note is None
        after = file_content(document.filled({0: Target(TaggedText("Uno"), confidence=0.5)}).decode())
        assert after == unit.format(f"<notes>{note}</notes>", *translated)
        assert file_content(document.filled({0: Target(TaggedText("Uno"))}).decode()) == unit.format("", *translated)
    mixed = "<notes><note category='translucid'>old</note><note>new</note>{}</notes>"
    document = read(TWO.format(unit.format(mixed.format(""), "", "")))
    after = file_content(document.filled({0: Target(TaggedText("Uno"), confidence=0.5)}).decode())
    assert after == unit.format(f"<notes><note>new</note>{note}</notes>", *translated)


def test_notes_of_version_1_come_behind_the_target():
    unit = "<trans-unit><source>One</source>{}<target{}>Uno</target><note>n</note></trans-unit>"
    document = read(ONE.format(unit.format(f"<seg-source>{mrk('a', 'One')}</seg-source>", "")))
    after = file_content(document.filled({0: Target(TaggedText("Un"), confidence=0.5)}).decode())
    note = '<note from="translucid" annotates="target">confidence 0.50</note>'
    assert f" {STATES['model']}>Un</target>{note}<note>n</note>" in after


def test_line_ends_around_a_text_are_no_part_of_it():
    unit = '<trans-unit><source{}>\n One<x id="1"/>\n</source>{}</trans-unit>'
    space = ' xml:space="preserve"'
    assert read(ONE.format(unit.format(space, ""))).segments[0].source.full_text == 'One<x id="1"/>'
    target = f'<target{space} {STATES["model"]}>\n ONE<x id="1"/>\n</target>'
    assert filled(ONE, unit.format(space, ""), "model") == unit.format(space, target)
    target = f'<target {STATES["model"]}> ONE<x id="1"/> </target>'
    assert filled(ONE, unit.format("", ""), "model") == unit.format("", target)
