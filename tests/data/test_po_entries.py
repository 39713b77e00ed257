r"""The entries of .po files: strings, flags, notes and offsets, and what is reported about invalid lines."""

import polib
import pytest

from bitext.readers import po
from bitext.readers.po import LONGEST_ENTRY, entries, unescaped

FILE = r"""# a comment alone

msgid ""
msgstr "Language: es\n"
# by a translator
#. for the menu
#. of the editor
#: a.c:1
#, fuzzy, c-format
#| msgid "Sve"
  msgctxt "menu"
msgid "Save"
  "as"SPACES
 "\t\"x\""
msgstr ""
"Guardar"
msgid "next"
msgstr "siguiente"
#, no-wrap
#,c-format,
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d archivo"
msgstr[1] "%d archivos"
#~ msgid "old"
#~ msgstr "viejo"
msgid "last"
msgstr "último"
""".replace("SPACES", " \t ")


def read(text):
    """Return the entries of a text, and the reports on invalid lines."""
    reports = []
    parsed = list(entries(text.splitlines(keepends=True), lambda *report: reports.append(report)))
    return parsed, reports


def texts_of(entry):
    """Return the text of each form."""
    return {form: value.text for form, value in entry.forms.items()}


def test_entries_have_their_strings_notes_and_flags():
    parsed, reports = read(FILE)
    assert reports == []
    facts = [(e.number, e.source, e.plural, texts_of(e)) for e in parsed]
    assert facts == [
        (3, "", None, {0: "Language: es\n"}),
        (11, 'Saveas\t"x"', None, {0: "Guardar"}),
        (17, "next", None, {0: "siguiente"}),
        (21, "%d file", "%d files", {0: "%d archivo", 1: "%d archivos"}),
        (27, "last", None, {0: "último"}),
    ]
    assert [e.flags for e in parsed] == [[], ["fuzzy", "c-format"], [], ["no-wrap", "c-format"], []]
    assert [e.fuzzy for e in parsed] == [False, True, False, False, False]
    assert [e.note for e in parsed] == [None, "menu; for the menu; of the editor", None, None, None]


def test_offsets_are_those_of_the_text():
    parsed, _ = read(FILE)
    lines = FILE.splitlines(keepends=True)
    header, save, following, files, _ = parsed
    assert FILE[save.start :].startswith("# by a translator")
    assert [FILE[first:end] for first, end in save.comments] == lines[4:10]
    assert FILE[slice(*save.flag_line)] == lines[8] and FILE[slice(*files.flag_line)] == lines[18]
    assert header.flag_line is None and following.start == FILE.index('msgid "next"')
    values = [value for entry in parsed for value in (*entry.values.values(), *entry.forms.values())]
    assert [FILE[value.start : value.end].strip() for value in values] == [
        '""',
        r'"Language: es\n"',
        '"menu"',
        '"Save"\n  "as" \t \n "\\t\\"x\\""',
        '""\n"Guardar"',
        *('"next"', '"siguiente"', '"%d file"', '"%d files"', '"%d archivo"', '"%d archivos"', '"last"', '"último"'),
    ]
    for value in values:
        line = FILE[value.line :].splitlines()[0]
        assert line == lines[value.number - 1].rstrip("\n") and line.strip().startswith(value.keyword)
    assert [value.keyword for value in files.forms.values()] == ["msgstr[0]", "msgstr[1]"]


def test_polib_reads_the_same():
    entries_by_source = {entry.source: entry for entry in read(FILE)[0] if entry.source}
    expected_entries = [entry for entry in polib.pofile(FILE.replace("#,c", "#, c")) if not entry.obsolete]
    assert len(entries_by_source) == len(expected_entries) == 4
    for entry in expected_entries:
        parsed = entries_by_source[entry.msgid]
        forms = entry.msgstr_plural or {0: entry.msgstr}
        assert texts_of(parsed) == forms
        assert (parsed.plural or "", parsed.flags) == (entry.msgid_plural, [flag for flag in entry.flags if flag])


@pytest.mark.parametrize(
    ("invalid", "line", "message"),
    [
        ("msgid what", 1, "is not a line of a .po file"),
        ('"alone"', 1, "is not a line of a .po file"),
        ('msgid "a" b\nmsgstr "b"', 1, "is not a line of a .po file"),
        ('msgid "a"\n# in between\n"b"\nmsgstr "c"', 3, "is not a line of a .po file"),
        ('msgid "a"\nmsgstr[1234] "b"', 2, "is not a line of a .po file"),
        ('msgid "a"\nmsgid "b"\nmsgid "c"\nmsgstr "b"', 2, "is a second msgid of an entry"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"', 3, "is a second msgstr of an entry"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "b"\nmsgstr[1] "c"', 4, "is a second msgstr[1] of an entry"),
        ('# note\nmsgctxt "c"\nmsgstr "b"', 2, "is an entry without msgid or msgstr"),
        ('msgid "a"', 1, "is an entry without msgid or msgstr"),
        ('msgid "a"\nmsgstr[0] "b"\nmsgstr[2] "c"', 3, "has forms of a plural, but no msgid_plural"),
    ],
)
def test_the_first_invalid_line_of_an_entry_is_reported_and_the_next_entry_read(invalid, line, message):
    parsed, reports = read(f'{invalid}\n\nmsgid "good"\nmsgstr "bueno"\n')
    assert [entry.source for entry in parsed] == ["good"]
    assert parsed[0].start == len(invalid) + 2
    assert [(number, problem) for number, problem, _, _ in reports] == [(line, message)]
    parsed, reports = read(f'msgid "good"\nmsgstr "bueno"\n\n{invalid}')
    assert [entry.source for entry in parsed] == ["good"] and len(reports) == 1


def test_forms_without_a_plural():
    (entry,), reports = read('msgid "a"\nmsgid_plural "b"\nmsgstr[2] "c"\nmsgstr[0] "d"\n')
    assert list(entry.forms) == [2, 0] and not reports
    (entry,), reports = read('msgid "a"\nmsgstr[0] "b"\n')
    assert (entry.forms[0].keyword, entry.forms[0].text, reports) == ("msgstr[0]", "b", [])
    assert read("# a comment\n\n#~ obsolete\n# the last one") == ([], [])


def test_an_unreadable_line_spoils_its_entry_only():
    lines = ['msgid "a"\n', None, 'msgstr "b"\n', "\n", None, "\n", 'msgid "c"\n', 'msgstr "d"\n']
    reports = []
    assert [entry.source for entry in entries(lines, lambda *report: reports.append(report))] == ["c"]
    assert reports == []


def test_an_entry_may_have_so_many_characters(monkeypatch):
    monkeypatch.setattr(po, "LONGEST_ENTRY", 30)
    good = '# 345678\nmsgid "a"\nmsgstr "b"\n'
    assert len(good) == 30 and len(read(good)[0]) == 1
    for long in (f"#{good}", good + '"c"\n', good.replace("b", "bb")):
        parsed, reports = read(f'{long}\nmsgid "c"\nmsgstr "d"\n')
        assert [entry.source for entry in parsed] == ["c"]
        assert [report[1:3] for report in reports] == [("is in an entry of more than 30 characters", "Split it.")]
    assert LONGEST_ENTRY == 1_000_000


def test_escapes():
    assert unescaped(r"\x41\x4a\x4b1 \101\1019\8 \n\t\r\a\b\f\v \\n \" \q \é") == ('AJK1 AA98 \n\t\r\a\b\f\v \\n " q é')
