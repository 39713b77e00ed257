"""gettext files as documents."""

import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import polib
import pytest
from babel.messages.pofile import read_po
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.document import Target, read_document
from bitext.documents.strings.messages import message_spans
from bitext.documents.strings.plural_forms import PluralForms
from bitext.documents.strings.po import broken_format, quoted
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import Edit, splice
from bitext.readers.po import unescaped
from tests.documents.changing import ENGLISH_SPANISH, all_changed, changed
from translucid.ground.errors import UserError

HEADER = r"""msgid ""
msgstr ""
"Project-Id-Version: x 1\n"
"Language: es\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

"""
TEMPLATE = (
    HEADER.replace("UTF-8", "CHARSET").replace(": es", ": ").replace("2; plural=(n != 1)", "INTEGER; plural=EXPRESSION")
)
GETTEXT = pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")


def read(text, languages=ENGLISH_SPANISH, name="a.po"):
    return read_document(name, text.encode(), languages)


def filled(text, *translations, origin="model", languages=ENGLISH_SPANISH, **fields):
    document = read(HEADER + text, languages)
    assert len(document.segments) == len(translations), document.segments
    targets = {
        i: Target(TaggedText(translation, segment.source.marks), origin=origin, **fields)
        for i, (translation, segment) in enumerate(zip(translations, document.segments, strict=True))
        if translation is not None
    }
    return document.filled(targets).decode().removeprefix(HEADER)


def msgfmt(content, tmp_path, *options):
    (tmp_path / "a.po").write_bytes(content)
    command = ["msgfmt", "--check", *options, "-o", str(tmp_path / "a.mo"), str(tmp_path / "a.po")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


_WORD = st.sampled_from(
    [
        "cat",
        "the",
        "é",
        'say "x"',
        "\\",
        "%(name)s",
        "<b>e</b>",
        "<br/>",
        "😀",
        "\n",
        "\t",
        "_File",
        "日本語の文字",
        "12",
        "%d",
        "100%%",
    ]
    + ["a very long word-that-goes-on-and-on", "and", "so", "on", "it's"]
)
_TEXT = st.lists(_WORD, min_size=1, max_size=20).map(" ".join)


@given(
    st.lists(st.tuples(_TEXT, st.none() | _TEXT, st.booleans()), max_size=8, unique_by=lambda message: message[0]),
    st.sampled_from([40, 78, 0]),
)
@settings(max_examples=40, deadline=None)
def test_other_readers_see_the_same_messages_and_the_new_translations(messages, width):
    before = polib.POFile(wrapwidth=width)
    before.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=2; plural=(n != 1);"}
    for source, plural, fuzzy in messages:
        entry = polib.POEntry(msgid=source, msgid_plural=plural or "", flags=["fuzzy"] if fuzzy else [])
        if plural:
            entry.msgstr_plural = {0: "", 1: "x"}
        before.append(entry)
    text = str(before)
    document = read(text)
    assert document.filled({}) == text.encode()
    after = polib.pofile(document.filled(all_changed(document)).decode())
    assert [(entry.msgid, entry.msgid_plural) for entry in after] == [
        (entry.msgid, entry.msgid_plural) for entry in before
    ]
    for entry in after:
        for form, translation in entry.msgstr_plural.items() if entry.msgid_plural else [(0, entry.msgstr)]:
            source = entry.msgid_plural if form else entry.msgid
            spans = message_spans(source, accelerators=True)
            edits = [Edit(span.start, span.end, changed(span.marked).full_text) for span in spans]
            if spans:
                assert translation == splice(source, edits)
                assert "fuzzy" in entry.flags


def _real():
    """Yield .po files of the wheels in $TRANSLUCID_WHEELS, such as those of django, sphinx and wagtail."""
    for wheel in sorted(Path(os.environ.get("TRANSLUCID_WHEELS", "wheels")).glob("*.whl")):
        with zipfile.ZipFile(wheel) as members:
            names = sorted(name for name in members.namelist() if name.endswith((".po", ".pot")))
            for name in names[:: max(1, len(names) // 20)]:
                yield name, members.read(name)


def test_real_files(tmp_path):
    tested = 0
    for name, content in _real():
        document = read_document(name, content, ("en", name.split("locale/")[-1].split("/")[0]))
        assert document.filled({}) == content
        after = document.filled(all_changed(document))
        tested += 1
        old_file, new_file = polib.pofile(content.decode()), polib.pofile(after.decode())
        assert [(entry.msgctxt, entry.msgid) for entry in old_file] == [
            (entry.msgctxt, entry.msgid) for entry in new_file
        ]
        assert len(old_file.obsolete_entries()) == len(new_file.obsolete_entries())
        if shutil.which("msgfmt"):
            completed = msgfmt(after, tmp_path, "--use-fuzzy")
            assert "syntax" not in completed.stderr and "end-of-line" not in completed.stderr, completed.stderr
    if not tested:
        pytest.skip("none is installed")


def test_messages_and_what_is_said_of_them():
    text = '#. For the menu\n#: a.c:1\nmsgctxt "verb"\nmsgid "_Open"\nmsgstr ""\n\nmsgid "Bye"\nmsgstr "Chao"\n'
    text += '\n#, fuzzy\nmsgid "Hi"\nmsgstr "Ho"\n\nmsgid "%s"\nmsgstr ""\n'
    first, second, third = read(HEADER + text).segments
    assert (first.source, first.note, first.existing, first.place) == (
        TaggedText("Open"),
        "verb; For the menu",
        None,
        "line 13",
    )
    assert (second.existing, third.existing) == (TaggedText("Chao"), None)


def test_what_a_model_says_is_fuzzy_with_what_is_known_of_it():
    text = '#: a.c:1\nmsgid "One"\nmsgstr ""\n'
    after = filled(text, "Uno", confidence=0.834, doubts=("number: 3 is lost",))
    assert (
        after
        == '# translucid: The confidence is 83%. Number: 3 is lost.\n#: a.c:1\n#, fuzzy\nmsgid "One"\nmsgstr "Uno"\n'
    )
    retranslated = filled(after, "Una", confidence=0.5)
    assert retranslated == '# translucid: The confidence is 50%.\n#: a.c:1\n#, fuzzy\nmsgid "One"\nmsgstr "Una"\n'
    assert filled(after, "Una", origin="person") == text.replace('""', '"Una"')


def test_flags_stay_and_only_what_was_not_seen_is_fuzzy():
    text = '#, python-format\nmsgid "One %s"\nmsgstr ""\n'
    assert filled(text, "Uno %s") == '#, fuzzy, python-format\nmsgid "One %s"\nmsgstr "Uno %s"\n'
    assert filled(text, "Uno %s", origin="memory") == text.replace('""', '"Uno %s"')
    assert filled(text, "Uno", origin="memory").startswith(
        "# translucid: Check the placeholders: %s is lost.\n#, fuzzy, python-format\n"
    )
    assert filled(text, "Uno %s", origin="person") == text.replace('""', '"Uno %s"')


def test_obsolete_entries_and_line_ends_stay():
    text = '#~ msgid "old"\n#~ msgstr "viejo"\n\n#| msgid "x"\nmsgid "One\\n"\nmsgstr ""\n\n#~ msgid "a"\n'
    after = filled(text.replace("\n", "\r\n"), "Uno")
    assert after == text.replace("#|", "#, fuzzy\n#|").replace('""', '"Uno\\n"').replace("\n", "\r\n")


def test_plurals_have_the_forms_of_the_language():
    text = '#, c-format\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    document = read(TEMPLATE + text, ("en", "ru"), "a.pot")
    assert [segment.source.text for segment in document.segments] == ["%d file", "%d files", "%d files"]
    assert [segment.place for segment in document.segments][1] == "line 11, for 2, 3, 4 …"
    after = polib.pofile(document.filled({i: Target(TaggedText(f"%d {i}")) for i in range(3)}).decode())
    assert after[0].msgstr_plural == {0: "%d 0", 1: "%d 1", 2: "%d 2"}
    assert (after.metadata["Language"], after.metadata["Content-Type"]) == ("ru", "text/plain; charset=UTF-8")
    assert after.metadata["Plural-Forms"].startswith("nplurals=3; plural=(n%10==1")
    assert [s.source.text for s in read(TEMPLATE + text, ("en", "ja"), "a.pot").segments] == ["%d files"]
    entry_with_one = '\nmsgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert read(TEMPLATE + entry_with_one, ("en", "ru"), "a.pot").segments[0].source.text == "%d files"


def test_a_form_alone_leaves_the_others():
    text = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "a"\nmsgstr[1] ""\n'
    assert filled(text, None, "b", origin="memory") == text.replace('""', '"b"')


def test_what_an_encoding_lacks_makes_it_utf_8():
    content = (HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "One"\nmsgstr "ú"\n').encode("latin-1")
    document = read_document("a.po", content, ENGLISH_SPANISH)
    assert document.segments[0].existing == TaggedText("ú")
    assert document.filled({0: Target(TaggedText("é"), origin="person")}) == content.replace(b"\xfa", b"\xe9")
    assert (
        document.filled({0: Target(TaggedText("с"), origin="person")}).decode() == HEADER + 'msgid "One"\nmsgstr "с"\n'
    )


@pytest.mark.parametrize("text", ["_File", "Save _As", "E_xit", "&Open", "(_F)ile", "Sa&ve as"])
def test_accelerators_are_marks(text):
    segments = read(f'msgid "{text}"\nmsgstr ""\n').segments
    assert segments[0].source.text.replace("(", "").replace(")", "").isascii()
    assert not set("_&") & set(segments[0].source.text)


@pytest.mark.parametrize(
    "text", ["use file_name here", "R&D", "A &amp; B", "a & b", "%(_x)s y", "__init__ it", "see https://x.org/a_b"]
)
def test_other_signs_are_text(text):
    assert read(f'msgid "{text}"\nmsgstr ""\n').segments[0].source.text == text


@given(st.text(max_size=300))
@settings(max_examples=40, deadline=None)
def test_strings_are_escaped_and_read_again(text):
    raw = quoted(text, "msgstr")
    assert unescaped("".join(line[1:-1] for line in raw.split("\n"))) == text


@GETTEXT
@given(
    st.lists(st.sampled_from(["word", "longer-one", "x\n", "\n", "é", "%s", "x-1"]), min_size=1, max_size=40).map(
        " ".join
    )
)
@settings(max_examples=30, deadline=None)
def test_lines_are_gettexts_own(text):
    content = HEADER + f"msgid {quoted(text, 'msgid')}\nmsgstr {quoted(text, 'msgstr')}\n"
    completed = subprocess.run(["msgcat", "-"], input=content.encode(), capture_output=True, check=True)
    assert completed.stdout.decode() == content


def test_a_line_ends_behind_a_hyphen_but_not_before_a_newline():
    words = "ab " * 24  # leaves five columns for the next word
    assert quoted(words + "two-parts", "msgid").split("\n")[1:] == [f'"{words}two-"', '"parts"']
    assert quoted(words + "two-1", "msgid").split("\n")[1:] == [f'"{words}two-1"']
    assert quoted(words + "two \n", "msgid").split("\n")[1:] == [f'"{words}"', '"two \\n"']


@GETTEXT
def test_lines_end_where_gettexts_do():
    texts = [" ".join(["ab"] * 30) + " " + "c" * i + " d" * j for i in range(1, 8) for j in range(3)]
    texts += [" ".join(["ab"] * 24) + f" two{hyphen}parts" for hyphen in ("-", "--", "-1-", " -", " \n")]
    texts += ['a "quote" and a \\ sign']
    entries = (f"msgid {quoted(text, 'msgid')}\nmsgstr {quoted(text, 'msgstr')}\n" for text in texts)
    content = HEADER + "\n".join(entries)
    completed = subprocess.run(["msgcat", "-"], input=content.encode(), capture_output=True, check=True)
    assert completed.stdout.decode() == content


@GETTEXT
@pytest.mark.parametrize(
    ("flag", "source", "target", "is_valid"),
    [
        ("c-format", "%d of %s", "%d de %s", True),
        ("c-format", "%d of %s", "%d de", False),
        ("c-format", "%d%%", "%d %%", True),
        ("c-format", "%d", "100% %d", False),
        ("python-format", "%(a)s is %(b)d", "%(b)d y %(a)s", True),
        ("python-format", "%(a)s", "%(c)s", False),
        ("python-brace-format", "{a} is {b}", "{b} y {a}", True),
        ("python-brace-format", "{a}", "{c}", False),
        ("python-brace-format", "{a}", "{a", False),
    ],
)
def test_placeholders_are_judged_as_msgfmt_does(flag, source, target, is_valid, tmp_path):
    text = f'#, {flag}\nmsgid "{source}"\nmsgstr "{target}"\n'
    assert (msgfmt((HEADER + text).encode(), tmp_path).returncode == 0) is is_valid
    assert (broken_format([flag], source, target, False) is None) is is_valid


@GETTEXT
def test_a_template_that_was_filled_is_correct(tmp_path):
    text = '#, c-format\nmsgid "%d file\\n"\nmsgid_plural "%d files\\n"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    text += '\nmsgid "One"\nmsgstr ""\n'
    document = read(TEMPLATE + text, ("en", "pl"), "a.pot")
    after = document.filled(all_changed(document))
    completed = msgfmt(after, tmp_path, "--use-fuzzy", "--statistics")
    assert (completed.returncode, completed.stderr.splitlines()[-1]) == (
        0,
        "0 translated messages, 2 fuzzy translations.",
    )
    assert len(list(read_po(io.BytesIO(after)))) == 3


@pytest.mark.parametrize("code", ["es", "ru", "ar", "ja", "pl", "pt-BR", None, "xx"])
def test_each_language_has_forms(code):
    forms = PluralForms.of_language(code)
    assert PluralForms.of(forms.rule) == forms and all(forms.numbers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', "a.po:2: is not a line of a .po file"),
        ('msgid "a"\n\nmsgid "b"\nmsgstr ""', "a.po:1: is an entry without msgid or msgstr"),
        ("hello\n", "a.po:1: is not a line of a .po file"),
        (HEADER.replace("n != 1", "n !="), "a.po:1: has invalid Plural-Forms"),
        (HEADER.replace("n != 1", "n"), "a.po:1: has invalid Plural-Forms"),
        (HEADER.replace("n != 1", "n % 0"), "a.po:1: has invalid Plural-Forms: it divides by zero"),
        ('msgid "a"\nmsgstr[1] ""\n', "a.po:2: has forms of a plural, but no msgid_plural"),
    ],
)
def test_broken_files_are_refused_with_their_line(text, message):
    with pytest.raises(UserError) as error:
        read(text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("forms", [[1, 2], [1], [0, 2], [2, 0], [0, 1, 2], [7]])
def test_forms_of_a_plural_may_be_missing_or_too_many(forms):
    entry = 'msgid "one cat"\nmsgid_plural "%d cats"\n'
    document = read(HEADER + entry + "".join(f'msgstr[{form}] ""\n' for form in forms))
    assert [segment.source.text for segment in document.segments] == ["one cat", "%d cats"]
    (after,) = polib.pofile(document.filled({1: Target(TaggedText("%d gatos"), "person")}).decode())
    assert after.msgstr_plural == {0: "", 1: "%d gatos"}


def test_line_ends_that_were_converted_twice():
    text = HEADER + 'msgid "a"\n"b"\nmsgstr ""\n\nmsgid "c"\nmsgstr ""\n'
    document = read(text.replace("\n", "\r\r\n"))
    after = document.filled({1: Target(TaggedText("d\ne"), "person")})
    assert after.decode().endswith('msgid "c"\r\r\nmsgstr ""\r\r\n"d\\n"\r\r\n"e"\r\r\n')


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_line_ends_that_some_readers_take_for_one_become_line_feeds(end):
    document = read(HEADER + 'msgid "a"\nmsgstr ""\n')
    (after,) = polib.pofile(document.filled({0: Target(TaggedText(f"b{end}c"), "person")}).decode())
    assert after.msgstr == "b\nc"
