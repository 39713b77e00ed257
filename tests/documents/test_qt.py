"""Qt translation files as documents; TypeScript files are rejected."""

from dataclasses import replace

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError

FILE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1"{}>\n<context>\n    <name>Window</name>\n'
    "    <message{}>\n        <source>{}</source>\n        {}\n    </message>\n</context>\n</TS>\n"
)
EMPTY = '<translation type="unfinished"></translation>'
SPANISH = ' language="es_ES"'


def read(source, translation=EMPTY, numerus="", languages=SPANISH, target="es"):
    content = FILE.format(languages, numerus, source, translation).encode()
    document = read_document("app.ts", content, ("en", target))
    assert document.filled({}) == content
    return document


def filled(document, **changes):
    """Return the content of the translated message after its source."""
    targets = {number: replace(target, **changes) for number, target in all_changed(document).items()}
    after = document.filled(targets).decode().partition("</source>\n        ")[2]
    return after.partition("\n    </message>")[0]


def test_a_message_is_translated_as_qt_writes_it():
    document = read(
        "&amp;Open %1 &quot;&lt;b&gt;now&lt;/b&gt;&quot;", f"<extracomment>a menu</extracomment>\n        {EMPTY}"
    )
    assert [(segment.source.text, segment.note) for segment in document.segments] == [('Open %1 "now"', "a menu")]
    assert filled(document).endswith(">&amp;OPEN %1 &quot;&lt;b&gt;NOW&lt;/b&gt;&quot;</translation>")
    assert 'type="unfinished"' in filled(document) and "type=" not in filled(document, origin="person")


def test_each_plural_form_is_translated_and_existing_ones_stay():
    forms = "<numerusform>%n gato</numerusform><numerusform></numerusform>"
    document = read("%n cat(s)", f"<translation>{forms}</translation>", ' numerus="yes"')
    assert [segment.place for segment in document.segments] == ["line 6, for 1", "line 6, for 0, 2, 3 …"]
    assert [segment.existing and segment.existing.full_text for segment in document.segments] == ["%n gato", None]
    only_second = document.filled({1: all_changed(document)[1]}).decode()
    assert f'<translation type="unfinished">{forms.replace("></", ">%n CAT(S)</")}</translation>' in only_second
    empty = read("%n cat(s)", '<translation type="unfinished"/>', ' numerus="yes"')
    by_person = {0: replace(all_changed(empty)[0], origin="person")}
    assert '<translation type="unfinished">' in empty.filled(by_person).decode()
    macedonian = read("%n cat(s)", '<translation type="unfinished"/>', ' numerus="yes"', "", "mk")
    assert len(macedonian.segments) == 3  # gettext has two forms
    russian = read("%n cat(s)", '<translation type="unfinished"/>', ' numerus="yes"', "", "ru")
    assert filled(russian).count("\n            <numerusform>%n CAT(S)</numerusform>") == 3
    assert '<TS version="2.1" language="ru">' in russian.filled(all_changed(russian)).decode()


def test_the_confidence_becomes_a_comment_that_is_replaced():
    first = filled(read("a cat"), confidence=0.8349, doubts=("lost: %1",))
    comment = "<translatorcomment>translucid: The confidence is 83%. Missing: %1.</translatorcomment>"
    assert first == f'{comment}\n        <translation type="unfinished">A CAT</translation>'
    assert read("a cat", first).segments[0].note is None
    assert filled(read("a cat", first)) == '<translation type="unfinished">A CAT</translation>'
    by_person = f"<translatorcomment>mine</translatorcomment>\n        {EMPTY}"
    assert (
        "mine" in filled(read("a cat", by_person), confidence=0.5)
        and read("a cat", by_person).segments[0].note == "mine"
    )


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("a cat", '<translation type="vanished">un gato</translation>'),
        ("a cat", '<translation type="obsolete">un gato</translation>'),
        ("a cat", '<translation variants="yes"><lengthvariant>un gato</lengthvariant></translation>'),
        ('a <byte value="x7"/> cat', EMPTY),
        ("%1", EMPTY),
    ],
)
def test_untranslated_messages_are_unchanged(source, translation):
    assert not read(source, translation).segments


def test_a_message_without_a_translation_gets_one():
    assert (
        '<source>a cat</source>\n        <translation type="unfinished">A CAT</translation>'
        in read("a cat", "").filled(all_changed(read("a cat", ""))).decode()
    )


def test_a_finished_translation_stays():
    assert read("a cat", "<translation>un gato</translation>").segments[0].existing.text == "un gato"
    unfinished = '<translation type="unfinished">un gato</translation>'
    assert read("a cat", unfinished).segments[0].existing is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"export const a: string = 'a cat';\n", "is not a Qt translation file: it does not begin with <"),
        (b"\x47\x40\x11\x10\0", "is not a Qt translation file"),
        (b"<a/>", "begins with <a>, not with <TS>"),
        (FILE.format(' language="de"', "", "a cat", EMPTY).encode(), "is from . to de, the translator from en to es"),
    ],
)
def test_other_files_are_refused(content, message):
    with pytest.raises(UserError, match=message):
        read_document("app.ts", content, ENGLISH_SPANISH)
