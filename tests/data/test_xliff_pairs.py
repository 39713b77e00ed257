"""Sentence pairs of .xliff: translated segments with their lines, and segments that are left out."""

import gzip

import pytest

from bitext.pair import Pair
from tests.data.test_messages_and_memories import placed
from translucid.data.readers.corpus import read_pairs

XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="es-ES" original="a" datatype="plaintext"><body><group>
<trans-unit id="1"><source>Hello <g id="1">you</g></source><target>Hola</target>
  <alt-trans><source>Hi</source><target>Ey</target></alt-trans></trans-unit>
<trans-unit id="2"><source>later</source></trans-unit>
<trans-unit id="3"><source>copy</source><target state="new">copy</target></trans-unit>
<trans-unit id="4" translate="no"><source>ID</source><target>ID</target></trans-unit>
<group translate="no"><trans-unit id="5"><source>ID</source><target>ID</target></trans-unit></group>
<trans-unit id="6"><source>One. Two.</source>
  <seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
  <target><mrk mtype="seg" mid="0">Uno.</mrk> <mrk mtype="seg" mid="1">Dos.</mrk></target></trans-unit>
</group></body></file></xliff>
"""
XLIFF_2 = """<x:xliff version="2.0" srcLang="en" trgLang="es" xmlns:x="urn:oasis:names:tc:xliff:document:2.0">
<x:file id="f"><x:unit id="1"><x:originalData><x:data id="d">%s</x:data></x:originalData>
<x:segment state="translated"><x:source>Hello <x:pc id="1">you</x:pc></x:source><x:target>Hola</x:target></x:segment>
<x:ignorable><x:source> </x:source></x:ignorable>
<x:segment state="initial"><x:source>copy</x:source><x:target>copy</x:target></x:segment>
<x:segment><x:source>One</x:source><x:target>Uno</x:target></x:segment></x:unit></x:file></x:xliff>
"""


@pytest.mark.parametrize("ending", ["xliff", "xlf", "xlf.gz"])
@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        (XLIFF_1, [(4, "Hello you", "Hola"), (10, "One.", "Uno."), (10, "Two.", "Dos.")]),
        (XLIFF_2, [(2, "Hello you", "Hola"), (2, "One", "Uno")]),
    ],
)
def test_translated_segments_of_an_xliff_file_are_read(tmp_path, content, pairs, ending):
    file = tmp_path / f"a.{ending}"
    file.write_bytes(gzip.compress(content.encode()) if ending.endswith("gz") else content.encode())
    expected = [(line, Pair(source, target)) for line, source, target in pairs]
    assert placed(file) == expected
    assert placed(file, languages=("en", "es")) == expected
    assert placed(file, languages=("es", "en")) == [(line, pair.swapped) for line, pair in expected]


XLIFF_EDGES = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="es"><body>
<trans-unit id="1"><source>a</source><target/></trans-unit>
<trans-unit id="2"><target>b</target></trans-unit>
<trans-unit id="3"><source>c</source><target state="needs-translation">d</target></trans-unit>
<trans-unit id="4"><source>e</source><target state="translated">f</target></trans-unit>
<trans-unit id="5" translate="yes"><source><mrk mtype="seg" mid="1">g</mrk></source>
<target><g id="1"><mrk mtype="seg" mid="1">h</mrk></g></target></trans-unit>
<trans-unit id="6"><source>i j</source><seg-source><mrk mtype="seg" mid="1">i</mrk></seg-source>
<target><mrk mtype="seg" mid="2">k</mrk> l</target></trans-unit>
<trans-unit id="7"><source><mrk mtype="term" mid="1">m</mrk> n</source>
<target><mrk mtype="term" mid="1">o</mrk></target></trans-unit></body></file></xliff>
"""


def test_segments_of_xliff_and_their_states(tmp_path):
    (tmp_path / "a.xlf").write_text(XLIFF_EDGES)
    pairs = [(6, "e", "f"), (7, "g", "h"), (9, "i j", "k l"), (11, "m n", "o")]
    assert placed(tmp_path / "a.xlf") == [(line, Pair(*pair)) for line, *pair in pairs]


@pytest.mark.parametrize(
    ("languages", "is_reversed"),
    [
        (("es", "en"), True),
        (("es-MX", "en-GB"), False),
        (("es", "en_US"), True),
        (("fr", "en"), False),
        (("es", "fr"), False),
        (("es", None), False),
        ((None, "en"), False),
        (("en", "en"), False),
    ],
)
def test_which_files_are_read_in_the_other_direction(tmp_path, languages, is_reversed):
    content = XLIFF_1.replace('"en"', '"en-US"')
    (tmp_path / "a.xlf").write_text(content)
    (line, pair), *_ = placed(tmp_path / "a.xlf", languages=languages)
    assert pair == (("Hola", "Hello you") if is_reversed else ("Hello you", "Hola")) and line == 4
    (tmp_path / "a.xlf").write_text(content.replace('target-language="es-ES"', ""))
    assert placed(tmp_path / "a.xlf", languages=languages)[0][1] == ("Hello you", "Hola")


def test_a_unit_with_an_entity_is_reported_and_the_others_are_read(tmp_path):
    bad = []
    content = XLIFF_1.replace("<source>Hello", "<source>&what;Hello").replace(
        "<xliff", "<!DOCTYPE xliff SYSTEM 'x'><xliff", 1
    )
    (tmp_path / "a.xlf").write_text(content)
    assert len(list(read_pairs(tmp_path / "a.xlf", on_bad=bad.append))) == 2
    assert [(bad_line.line, bad_line.what) for bad_line in bad] == [(4, "refers to &what;, which is not defined")]
    assert bad[0].text == "Hello youHola\n  HiEy"
