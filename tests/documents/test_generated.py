"""Properties of all XML formats and string files, on random documents that are checked with other libraries."""

import json
import zipfile
from collections import Counter
from dataclasses import replace
from io import BytesIO
from random import Random
from xml.etree import ElementTree

import pytest
from fluent import syntax

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import all_changed, changed, shouted
from tests.probes.documents import MAKERS, XML_MAKERS

LANGUAGES = ("en", "de")
DOCUMENTS, SEGMENTS = 15, 150
RUNS = {"r", "t", "rPr", "b", "i", "sz", "lang", "hlinkClick"}
"""Elements of Office formats that wrap split text."""
BILINGUAL = ("a.xlf", "b.xliff", "c.tmx", "app.ts")
DROPPED = {"proofErr", "soft-page-break"}


def random_document(name, number):
    return MAKERS[name](Random(f"{name} {number}"))


def with_moved_marks(marked, rng):
    """Return a translation with the marks at random offsets, in their order."""
    text = changed(marked).text
    offsets = sorted(rng.randrange(len(text) + 1) for _ in marked.marks)
    return TaggedText(
        text, tuple(replace(mark, offset=offset) for mark, offset in zip(marked.marks, offsets, strict=True))
    )


def roots(content):
    """Return the root of a file, or the roots of the XML files in a package."""
    if not content.startswith(b"PK"):
        return [ElementTree.fromstring(content)]
    archive = zipfile.ZipFile(BytesIO(content))
    assert archive.testzip() is None
    return [ElementTree.fromstring(archive.read(n)) for n in archive.namelist() if n.endswith(("ml", "ncx", "opf"))]


def local_name(element):
    return element.tag.partition("}")[2] or element.tag


def is_seen(element):
    return local_name(element) not in DROPPED and "T1" not in element.attrib.values()


def parts_by_name(element):
    return {local_name(part): part for part in element}


def translated(name, root):
    """Return pairs of source and target elements of a bilingual file."""
    if name == "c.tmx":
        units = [list(unit.iter("seg")) for unit in root.iter("tu")]
        return [(unit[0], unit[1]) for unit in units]
    if name == "app.ts":
        translations = []
        for message in root.iter("message"):
            source, translation = message.find("source"), message.find("translation")
            if translation.get("type") not in ("vanished", "obsolete"):
                translations += [(source, form) for form in translation.findall("numerusform") or [translation]]
        return translations
    if name.startswith(("a.", "b.")):
        elements = (element for element in root.iter() if element.get("translate") != "no")
        units = [unit for unit in map(parts_by_name, elements) if "source" in unit and "target" in unit]
        return [(unit.get("seg-source", unit["source"]), unit["target"]) for unit in units]
    return []


def pairs(name, content, filled):
    """Return pairs of elements that must have the same marks."""
    if name in BILINGUAL:
        return translated(name, *roots(filled))
    return list(zip(roots(content), roots(filled), strict=True))


def letters_with_tags(element, around=()):
    """Yield each letter of a text in lower case with the tags around it."""
    properties = next((ElementTree.tostring(part) for part in element if local_name(part) == "rPr"), b"")
    if is_seen(element) and local_name(element) != "t":
        formatting = b"" if b"}b" not in properties and b":b" not in properties else b"bold"
        formatting += b"italic" if b":i " in properties else b""
        around = (*around, (local_name(element), tuple(sorted(element.attrib.items())), formatting))
    for text, tags in ((element.text, around), *((child, around) for child in element)):
        if isinstance(text, str):
            yield from ((character.lower(), tags) for character in text if not character.isspace())
        elif text is not None:
            yield from letters_with_tags(text, tags)
            yield from ((character.lower(), tags) for character in text.tail or "" if not character.isspace())


def words(marked):
    return "".join(marked.text.split())


def inner_letters(element):
    """Return the letters of an element with their tags, without the outermost tag."""
    return [(letter, around[1:]) for letter, around in letters_with_tags(element)]


def tag_counts(name, root):
    """Count the tags in an element with their attributes, except for wrappers of split text in Office formats."""
    ignored = RUNS if name[0] in "dei" else set()
    return Counter(
        (item.tag, *sorted(item.attrib.items()))
        for item in root.iter()
        if item is not root and is_seen(item) and local_name(item) not in ignored
    )


def name_counts(root):
    """Count the names of elements, except for wrappers of split text."""
    return Counter(local_name(item) for item in root.iter() if is_seen(item) and local_name(item) not in RUNS)


@pytest.mark.parametrize("name", MAKERS)
def test_without_translations_the_bytes_are_the_same(name):
    for number in range(DOCUMENTS):
        content = random_document(name, number)
        document = read_document(name, content, LANGUAGES)
        assert document.filled({}) == content
        assert document.segments


@pytest.mark.parametrize("name", XML_MAKERS)
def test_every_letter_stays_in_its_tags(name):
    for number in range(DOCUMENTS):
        content = random_document(name, number)
        document = read_document(name, content, LANGUAGES)
        filled = document.filled(all_changed(document))
        element_pairs = pairs(name, content, filled)
        assert element_pairs
        for pair in element_pairs:
            source, target = map(inner_letters, pair)
            assert source == target
        if name not in BILINGUAL:
            texts = [words(segment.source) for segment in read_document(name, filled, LANGUAGES).segments]
            assert texts == [words(changed(segment.source)) for segment in document.segments]


@pytest.mark.parametrize("name", XML_MAKERS)
def test_marks_at_other_places_come_out_once(name):
    tested = number = 0
    while tested < SEGMENTS:
        rng = Random(number)
        content, number = random_document(name, number), number + 1
        document = read_document(name, content, LANGUAGES)
        targets = {i: Target(with_moved_marks(item.source, rng)) for i, item in enumerate(document.segments)}
        tested += len(targets)
        for source, target in pairs(name, content, document.filled(targets)):
            assert tag_counts(name, source) == tag_counts(name, target)


@pytest.mark.parametrize("name", XML_MAKERS)
def test_a_translation_that_lost_its_marks_breaks_nothing(name):
    """Lost marks are appended."""
    content = random_document(name, 1)
    document = read_document(name, content, LANGUAGES)
    targets = {i: Target(TaggedText("bare", item.source.marks[::-1][:1])) for i, item in enumerate(document.segments)}
    for source, target in pairs(name, content, document.filled(targets)):
        assert name_counts(source) - name_counts(target) <= Counter({"source": 1, "seg-source": 1})


def test_fluent_reads_the_same_structure():
    for number in range(DOCUMENTS):
        content = random_document("k.ftl", number)
        document = read_document("k.ftl", content, LANGUAGES)
        serialized = []
        for file in (content, document.filled(all_changed(document))):
            resource = syntax.parse(file.decode())
            assert not any(isinstance(entry, syntax.ast.Junk) for entry in resource.body)
            serialized.append("".join(syntax.serialize(resource).split()))
        assert serialized[0].lower() == serialized[1].lower() and serialized[0] != serialized[1]


def units(localization):
    """Return the texts of a localization by their paths."""
    if "value" in localization:
        return {(): localization["value"]}
    children = {key: units(value) for key, value in localization.items() if isinstance(value, dict)}
    return {(key, *path): text for key, texts in children.items() for path, text in texts.items()}


def test_catalogs_change_only_in_the_target_language():
    for number in range(DOCUMENTS):
        content = random_document("j.xcstrings", number)
        document = read_document("j.xcstrings", content, LANGUAGES)
        before, after = (json.loads(file) for file in (content, document.filled(all_changed(document))))
        for key, entry in before["strings"].items():
            target = after["strings"][key].get("localizations", {}).pop("de", {})
            localizations = entry.get("localizations", {})
            existing, source = localizations.pop("de", {}), localizations.get("en", {"stringUnit": {"value": key}})
            if entry.get("shouldTranslate") is False or entry.get("extractionState") == "stale":
                assert target == existing
            else:
                assert units(target) == {path: shouted(text) for path, text in units(source).items()}
            if not entry.get("localizations"):
                entry.pop("localizations", None)
                after["strings"][key].pop("localizations", None)
        assert before == after
