# ruff: noqa: E501 (tables of tokens)
"""Reading takes time and memory that grow with the size of a document, not with its square, whatever is repeated.

    python -m pytest benchmarks/reader_growth.py

Several minutes. What it still finds: `[` in a table cell of Markdown, and the names of columns of tables.
"""

import importlib
import json
import pkgutil
import re
import zipfile
from io import BytesIO
from pathlib import Path
from time import process_time

import pytest

import translucid
from translucid import data, documents
from translucid.documents.document import Target
from translucid.documents.kinds import KINDS, read_document
from translucid.ground.errors import UserError

DOUBLED = 3
"""How often what is repeated is doubled."""
MOST = 20
"""Times the seconds of the smallest that one of eight times its size may take; a square would be 64."""
TOKENS = [
    # Markup
    *("<", "<a ", '<a href="', "<a href='", "<a b='\">", "</", "</b>", "<b>", "<i><b></i>", "<br>", "<b>a</b>"),
    *("<!--", "<!-", "-->", "<![CDATA[", "]]>", "<?", "<?a ", "<!", "<!DOCTYPE ", "<script>", "<style>", "<pre>"),
    *("<code>", "<title>", "<img alt='a b'>", "&", "&#", "&amp;", "&a", "<v a>", "<00:01.000>"),
    # Placeholders and messages
    *("{", "}", "{{ ", "{{", "}}", "{% ", "{%", "%}", "{# ", "{a", "{a}", "{a, plural, other {", "{n, select, ", "''"),
    *("%", "%(", "%(a", "%1$", "%-0", "%{", "${", "$(", "$t(", "$", "$a$", "[[", "⟦", "__a", "@:", "#{", "= {", "<%= "),
    # Markdown
    *("[", "![", "[a](", '[a](b "', "](", "[^a", "[a]: b\n", "`", "``` ", "```\n", "*", "*a ", "**a", "_", "_a ", "~~"),
    *("$$\n", "\\(", "\\", "\\begin{", ":::{note}\n", "!!! note\n", "# a\n\n", "- ", "- a\n", "> ", "|a", "+ ", "===\n"),
    *("<div>\n\n", "a\n\n", "a  \n", "    a\n", "{a}`", "- [ ] a\n", ": a\n", "---\n", "[TOC]\n"),
    # Strings and tables
    *('"', '""', "'", ":", "a: ", "a = b\n", "= ", ";", ",", '"a" = "b c";\n', "/*", "//", "\\u00e9", "\\n", "\\\n", "!a "),
    *('msgid "', 'msgid "a"\nmsgstr ""\n\n', "#~ ", "#, ", "#, c-format\n", "- a b\n", "&a ", "? ", "|\n", ">\n"),
    # Subtitles
    *("00:00:01,000 --> 00:00:02,000\n", "1\n00:00:01,000 --> 00:00:02,000\na b\n\n", "1\n", " --> ", "{\\an8", "♪ ", "[a] "),
    # Characters
    *("a", "a ", "a.", ". ", "é", "1", "1,", "12 ", "(", ")", "/", "a/", "@", "a@", "a.@", "www.", "http://", "http://a."),
    *(" ", "\t", "\n", "\r", "\r\n", "\x00", "\u00a0", "\u200e", "\u2028", "\u0301", "😀", "👩\u200d", "足", "。", "-", "--"),
    *("<file>", "<unit>", "<g id='1'>", "<x/>", "<seg>", "<string name='a'>a b</string>", "<tu>", "<p>a"),
]  # fmt: skip


def zipped(**members):
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return packed.getvalue()


def escaped(text):
    return "".join(c for c in text if c in "\n\t" or c >= " ").replace("&", "&amp;").replace("<", "&lt;")


def quoted(text):
    return json.dumps(text)[1:-1].replace("\\u", "u")


_PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
_XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en">{}</file></xliff>'
)
_TMX = '<tmx><header srclang="en"/><body>{}</body></tmx>'
_TU = '<tu><tuv xml:lang="en"><seg>a b {}</seg></tuv><tuv xml:lang="es"><seg/></tuv></tu>'
_CUE = "00:00:01{0}000 --> 00:00:02{0}000\na b {1}\n"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)


def docx(text):
    inside = f"<w:r><w:t>a b {escaped(text)}</w:t></w:r>"
    document = f"<w:document {_W}><w:body><w:p>{inside}</w:p></w:body></w:document>"
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("word/document.xml", document)
    return packed.getvalue()


PLACES = {
    "whole.html": str,
    "text.html": lambda text: f"<p>a b {text} a</p>",
    "attribute.html": lambda text: f'<p>a <img alt="a b {text}"> b</p>',
    "whole.md": str,
    "text.md": lambda text: f"a b {text} a",
    "cell.md": lambda text: f"| a | b |\n|---|---|\n| a b {text} | a b |\n",
    "whole.po": lambda text: _PO + text,
    "text.po": lambda text: f'{_PO}#, c-format, python-brace-format\nmsgid "a b {quoted(text)}"\nmsgstr ""\n',
    "whole.srt": str,
    "text.srt": lambda text: "1\n" + _CUE.format(",", text) + "\n2\n" + _CUE.format(",", "a"),
    "text.vtt": lambda text: "WEBVTT\n\n" + _CUE.format(".", text),
    "whole.json": str,
    "text.json": lambda text: json.dumps({"a": f"a b {text}"}),
    "case.json": lambda text: json.dumps({"a": f"a {{n, plural, one {{a b {text}}} other {{b}}}} b"}),
    "whole.yaml": str,
    "text.yaml": lambda text: f"a: {json.dumps('a b ' + text)}\n",
    "whole.strings": str,
    "text.strings": lambda text: f'"a" = "a b {quoted(text)}";\n',
    "whole.properties": str,
    "text.properties": lambda text: f"a=a b {text}",
    "whole.csv": str,
    "text.csv": lambda text: 'source,target\n"a b ' + text.replace('"', '""') + '",\n',
    "whole.txt": str,
    "whole.xml": lambda text: f"<resources>{text}</resources>",
    "text.xml": lambda text: f"<resources><string name='a'>a b {escaped(text)}</string></resources>",
    "cdata.xml": lambda text: f"<resources><string name='a'><![CDATA[a b {text}]]></string></resources>",
    "whole.xlf": _XLIFF.format,
    "text.xlf": lambda text: _XLIFF.format(f"<trans-unit><source>a b {escaped(text)}</source></trans-unit>"),
    "whole.tmx": _TMX.format,
    "text.tmx": lambda text: _TMX.format(_TU.format(escaped(text))),
    "text.docx": docx,
}


def seconds(name, text):
    """Return how long a document takes to be read and filled with its own texts."""
    content = PLACES[name](text)
    content = content if isinstance(content, bytes) else content.encode()
    begun = process_time()
    try:
        document = read_document(name, content, ("en", "es"))
        document.filled({i: Target(segment.source) for i, segment in enumerate(document.segments)})
    except UserError:
        pass
    return process_time() - begun


def grows(measured, largest, nothing):
    """Return the seconds of sizes that double three times, if they grow too fast; else nothing.

    Args:
        measured: gives the seconds of a size.
        largest: of the sizes at first; if these look wrong, larger ones decide.
        nothing: seconds of the largest that are not worth a look.
    """
    if measured(largest) < nothing:
        return None
    for most in (largest, largest << DOUBLED):
        times = [min(measured(most >> DOUBLED - size) for _ in range(2)) for size in range(DOUBLED + 1)]
        if times[-1] < MOST * max(times[0], nothing / MOST):
            return None
    return [round(each, 4) for each in times]


def test_there_is_a_place_for_every_kind_of_text():
    tried = {Path(name).suffix for name in PLACES}
    assert all(
        tried & {*kind.endings} for kind in KINDS if kind.name not in ("PowerPoint", "OpenDocument text", "EPUB")
    )


@pytest.mark.parametrize("name", PLACES)
def test_what_is_repeated_takes_time_by_its_length(name):
    grown = {token: grows(lambda size, token=token: seconds(name, token * size), 320, 0.008) for token in TOKENS}
    assert not {token: times for token, times in grown.items() if times}


def patterns():
    """Return the patterns of the readers, with the ways in which the sources use them."""
    every = "\n".join(file.read_text() for file in Path(translucid.__file__).parent.rglob("*.py"))
    found = {}
    for package in (documents, data):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            loaded = importlib.import_module(module.name)
            for name, value in vars(loaded).items():
                if isinstance(value, re.Pattern):
                    sources = Path(loaded.__file__).read_text() if name.startswith("_") else every
                    uses = {*re.findall(rf"\b{name}\.(fullmatch|match|search|finditer|findall|sub|split)\b", sources)}
                    found[f"{module.name.rpartition('.')[2]} {name}"] = value, {*uses, "match"}
    return found


def used(pattern, ways, text):
    """Return how long a pattern takes, used in some ways."""
    text = text if isinstance(pattern.pattern, str) else text.encode()
    begun = process_time()
    for way in ways:
        if way == "finditer":
            list(pattern.finditer(text))
        else:
            getattr(pattern, way)(*((text[:0], text) if way == "sub" else (text,)))
    return process_time() - begun


SHORT = {"messages _CODE"}
"""Patterns that only see texts of a bounded length."""


def test_no_pattern_looks_at_a_character_again_and_again():
    grown = {
        (name, token): grows(lambda size, one=one, ways=ways, token=token: used(one, ways, token * size), 800, 0.004)
        for name, (one, ways) in patterns().items()
        for token in TOKENS
        if name not in SHORT
    }
    assert not {key: times for key, times in grown.items() if times}
