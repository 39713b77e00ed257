"""The catalogs of the pages' texts: collected from scripts and HTML, complete, with the same terms everywhere."""

import csv
import json
import re
from gettext import c2py
from itertools import product

import pytest

from translucid.inspection.rendering import message_catalogs as catalogs
from translucid.inspection.rendering.message_catalogs import Message

SCRIPT = """
import { gettext, ngettext } from "./messages.js";
// gettext(a) in a comment
const label = gettext("{count} of " + "these");
const one = ngettext('the "one"', "the {count}", count, { a: gettext("inner") });
const why = pgettext("before a word", "Why");
export function gettext(text, values = {}) {}
"""
HTML = """<p title="A title">Two
  words <kbd>Enter</kbd></p><!-- no comment --><svg><title>icon</title></svg><b translate="no">name</b>
<p data-message>Press <kbd>Enter</kbd>,
  now.</p><style>p {}</style><input placeholder="Type"><p>1 ⟨⟩</p><i>last</i>"""


CATALOGS = catalogs.CATALOGS, catalogs.LESSON_CATALOGS, catalogs.FILE_CATALOGS


def test_texts_are_collected_from_scripts():
    collected = [(m.key, m.plural) for m in catalogs.messages_of_script(SCRIPT, "a.js")]
    assert collected == [
        ("{count} of these", None),
        ('the "one"', "the {count}"),
        ("inner", None),
        ("before a word\x04Why", None),
    ]


@pytest.mark.parametrize("argument", ["text", "`${count} words`", '"a" + b', '"a" + `b`', "", "'a"])
def test_a_text_that_is_no_literal_is_refused(argument):
    with pytest.raises(ValueError, match=r"a\.js:2: gettext needs a literal"):
        list(catalogs.messages_of_script(f"\ngettext({argument});", "a.js"))


def test_texts_are_collected_from_html():
    expected = ["A title", "Two words", "Press <kbd>Enter</kbd>, now.", "Type", "last"]
    assert catalogs.texts_of_html(HTML) == expected


def test_catalogs_are_complete_and_up_to_date(capsys):
    assert catalogs.main(["check"]) == 0, capsys.readouterr().out


def test_problems_of_translations_are_found():
    def problems(*translations, source="{a} <b>c</b>", plural=None):
        return [problem.split(":")[0] for problem in Message(source, None, plural, [], list(translations)).problems()]

    assert problems("<b>d</b>") == ["has other placeholders"]
    assert problems("{a} {b} <b>d</b>") == ["has other placeholders"]
    assert problems("{a} <i>d</i>") == ["has other tags"]
    assert problems() == problems("", "x", source="a", plural="{count}") == ["is not translated"]
    assert problems("<i>{a}</i> <b>d</b>", source="<b>{a}</b> <i>c</i>") == []  # languages order words differently
    assert problems("{a} <b>d</b>") == problems("un", "{count}", source="one", plural="{count}") == []


def test_a_catalog_is_written_as_it_was_read(tmp_path):
    header = "Language: ru\nPlural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);\n"
    messages = [
        Message('a\n"b" \\ {c}', "where", None, ["x.js"], ["ä\t{c}"]),
        Message("{count} day", None, "{count} days", ["x.js", "y.js"], ["a", "b", "c"]),
        Message("new", None, None, ["y.js"]),
    ]
    file = tmp_path / "ru.po"
    file.write_text(catalogs.written(header, messages, 3), encoding="utf-8")
    kept_header, kept = catalogs.read_catalog(file)
    assert kept_header == header
    assert [(m.key, m.plural, m.translations or [""]) for m in kept] == [
        (m.key, m.plural, m.translations or [""]) for m in messages
    ]
    renewed = catalogs.merged(file, [Message("{count} day", None, "{count} days", ["z.js"]), Message("newer")])
    assert 'msgstr[2] "c"' in renewed and 'msgid "newer"\nmsgstr ""' in renewed and "where" not in renewed
    script = catalogs.catalog_script("ru", header, kept)
    catalog = json.loads(script.removeprefix("globalThis.pageCatalog = ").removesuffix(";\n"))
    assert catalog["messages"] == {'where\x04a\n"b" \\ {c}': "ä\t{c}", "{count} day": ["a", "b", "c"]}
    form = c2py("(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2)")
    assert catalog["forms"] == "".join(str(form(n)) for n in range(200))


def test_lessons_load_their_own_catalog_and_what_their_script_shares_with_other_pages(monkeypatch, tmp_path):
    texts = {"languages": {"both": "a", "shared": "b", "page": "c"}, "lessons": {"both": "d", "lesson": "e"}}
    for folder, messages in texts.items():
        (tmp_path / folder).mkdir()
        content = catalogs.written("", [Message(text, translations=[own]) for text, own in messages.items()], 2)
        (tmp_path / folder / "es.po").write_text(content, encoding="utf-8")
    monkeypatch.setattr(catalogs, "CATALOGS", tmp_path / "languages")
    monkeypatch.setattr(catalogs, "LESSON_CATALOGS", tmp_path / "lessons")
    scripts = catalogs.lesson_scripts('gettext("shared"); gettext("both"); gettext("lesson");')
    assert '"messages":{"both":"d","shared":"b","lesson":"e"}' in scripts["languages/es.js"]
    (tmp_path / "lessons" / "es.po").unlink()
    scripts = catalogs.lesson_scripts('gettext("shared"); gettext("lesson");')
    assert '"messages":{"shared":"b"}' in scripts["languages/es.js"]
    assert 'pageLanguages = {"es": "es"}' in scripts["language.js"]


def test_fuzzy_translations_are_left_out(tmp_path):
    file = tmp_path / "xx.po"
    file.write_text('msgid ""\nmsgstr "Language: xx\\n"\n\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n', encoding="utf-8")
    header, (message,) = catalogs.read_catalog(file)
    assert message.translations == []
    assert 'messages":{}' in catalogs.catalog_script("xx", header, [message])


def test_terms_have_the_same_translations_everywhere():
    with (catalogs.CATALOGS / "terms.tsv").open(encoding="utf-8", newline="") as lines:
        terms = list(csv.DictReader(lines, delimiter="\t"))
    assert {tuple(term) for term in terms} == {("English", *catalogs.languages())}
    wrong = []
    for folder, code in product(CATALOGS, catalogs.languages()):
        for message in catalogs.read_catalog(folder / f"{code}.po")[1]:
            for term in terms:
                has_term = re.search(rf"\b{term['English']}", _PLAIN.sub(" ", message.source), re.IGNORECASE)
                if has_term and not re.search(term[code], message.translations[0], re.IGNORECASE):
                    wrong.append((code, term["English"], message.source, message.translations[0]))
    assert wrong == []


_PLAIN = re.compile(r"\{\w+\}|<[^>]*>|\w+\.\S+")  # without names of options
