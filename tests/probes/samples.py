"""Text documents of each kind: rich ones, from which others are derived, and ones around a given text.

A new kind of strings needs an entry in `STRINGS` and one in `SAMPLES`: the tests of growth, hostile input, protected
spans and messages take it from here.
"""

import json
from html import escape
from random import Random

from tests.probes.packed import packed, types

XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"'
    ' target-language="es" original="a" datatype="plaintext"><body><trans-unit id="1" xml:space="preserve">'
    "<source>{}</source></trans-unit></body></file></xliff>"
)
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_NAMES = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


def _docx(text):
    body = f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'
    document = f"<w:document {_NAMES}><w:body>{body}</w:body></w:document>"
    return packed(
        {"[Content_Types].xml": types({"word/document.xml": _WORD}), "word/document.xml": document}, Random(1)
    )


STRINGS = {
    "a.json": lambda text: f'{{"a": {_quoted(text)}}}',
    "a.arb": lambda text: f'{{"a": {_quoted(text)}}}',
    "a.yml": lambda text: f"a: {_quoted(text)}\n",
    "a.strings": lambda text: f'"a" = {_quoted(text)};\n',
    "a.properties": lambda text: "a=" + text.replace("\\", "\\\\").replace("\n", "\\n") + "\n",
    "a.csv": lambda text: 'source,target\n"' + text.replace('"', '""') + '",\n',
    "a.xml": lambda text: (
        '<resources><string name="a">'
        + escape(
            text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"').replace("@", "\\@"), quote=False
        ).replace("\n", "\\n")
        + "</string></resources>"
    ),
    "a.po": lambda text: (
        f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid {_quoted(text)}\nmsgstr ""\n'
    ),
    "a.xlf": lambda text: XLIFF.format(escape(text, quote=False)),
    "a.resx": lambda text: f'<root><data name="a"><value>{escape(text)}</value></data></root>',
    "a.ts": lambda text: (
        f"<TS><context><message><source>{escape(text)}</source><translation/></message></context></TS>"
    ),
    "a.xcstrings": lambda text: _quoted({"sourceLanguage": "en", "strings": {text: {}}}),
}
"""Files around a string, by their name."""
PROSE = {
    "a.txt": lambda text: text + "\n",
    "a.html": lambda text: f"<p>{escape(text)}</p>",
    "a.srt": lambda text: f"1\n00:00:01,000 --> 00:00:09,000\n{text}\n",
    "a.vtt": lambda text: f"WEBVTT\n\n00:01.000 --> 00:09.000\n{escape(text)}\n",
    "a.docx": _docx,
}
"""Documents around a paragraph, by their name."""

_TIMES = "00:00:0{}{}000 --> 00:00:0{}{}500"
_ICU = "{n, plural, one {one red ball} other {# red balls}} for {name}"
_TREE = {"menu": {"file": {"open": "Open the file", "list": ["One word", "Two words"]}, "games": f"You have {_ICU}"}}
_ARB = {
    "@@locale": "en",
    "open": "Open the file",
    "@open": {"description": "A label", "placeholders": {"n": {"type": "int"}}},
    "games": f"You have {_ICU}",
    "@games": {"description": "Mind it"},
}
_CATALOG = {
    "sourceLanguage": "en",
    "version": "1.0",
    "strings": {
        "You have balls": {
            "comment": "Mind it",
            "localizations": {
                "en": {
                    "variations": {
                        "device": {
                            "iphone": {
                                "variations": {
                                    "plural": {
                                        "one": {"stringUnit": {"state": "new", "value": "One red ball"}},
                                        "other": {"stringUnit": {"state": "new", "value": "Many red balls"}},
                                    }
                                }
                            }
                        }
                    }
                }
            },
        }
    },
}
SAMPLES = {
    "plural.xcstrings": json.dumps(_CATALOG),
    "tree.json": json.dumps(_TREE),
    "app.arb": json.dumps(_ARB),
    "tree.yaml": "en:\n  menu:\n    open: Open the file\n    list: [One word, Two words]\n"
    f'  games: "You have {_ICU}"\n  long: |\n    One line\n    and more\n  other: &a {{x: A red ball}}\n  alias: *a\n',
    "app.strings": f'/* Mind it */\n"open" = "Open the file";\n\n// A note\n"games" = "You have {_ICU}";\n',
    "app.properties": f"# Mind it\nopen=Open the file\n\n! A note\ngames = You have {_ICU}\n",
    "app.po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n# Somebody\n#. Mind it\n#: src/a.c:1\n#, c-format\n'
    'msgctxt "menu"\nmsgid "Open %s"\nmsgstr "Abrir %s"\n\n'
    'msgid "One ball"\nmsgid_plural "%d balls"\nmsgstr[0] ""\nmsgstr[1] ""\n\n#. More\n'
    f'msgid "You have {_ICU}"\nmsgstr ""\n',
    "languages.csv": "key,title_en,note,title_de,body_en,body_de\na,A red ball,Mind it,,Two words,\nb,One word\n",
    "source.csv": "en,id,de\nA red ball,1\n\nTwo words,2,Dos palabras\n",
    "text.csv": "text;title\nA red ball;Two words\nOne more; here\n",
    "plain.csv": "c1,c2\nA red ball,Two words\nOne more,here it is\n",
    "icu.csv": f'source,target\n"You have {_ICU}","Tienes {_ICU}"\n',
    "a.txt": "One line.\n\nAnother line, and more.\n",
    "a.srt": "".join(f"{i}\n{_TIMES.format(i, ',', i, ',')}\n- One <i>red</i> ball.\n- Two words.\n\n" for i in (1, 2)),
    "a.vtt": "WEBVTT\n\nNOTE Mind it\n\nSTYLE\n::cue { color: red }\n\n"
    + "".join(f"{i}\n{_TIMES.format(i, '.', i, '.')} align:start\n<v Ann>One <c.red>red</c> ball.\n\n" for i in (1, 2)),
    "page.html": '<!DOCTYPE html>\n<html lang="en"><head><title>A page</title></head><body>'
    '<h1 id="a">A <b>red</b> ball</h1>'
    '<ul><li>One <a href="x.html" title="A link">word</a></li><li>Two<br/>words</li></ul>'
    '<table><tr><td>A cell</td><td><img src="a.png" alt="A picture"/></td></tr></table></body></html>',
    "page.md": "---\ntitle: A page\n---\n\n# A red ball\n\nOne *red* [word](x.md 'A title') and `code`.[^1]\n\n"
    "- One item\n  - Two items\n\n> A quote\n\n| A cell | Two |\n| --- | --- |\n| One word | more |\n\n"
    "![A picture][p]\n\n[p]: a.png 'A ball'\n[^1]: A note.\n\n```sh\nls\n```\n",
    "page.mdx": "import A from 'a'\n\n# A red ball\n\n<A b={1} title=\"A ball\">\n\nOne *red* word {x}.\n\n</A>\n",
}
"""Small documents with all parts that their kind has, by file name."""
