"""Tokens that can make a reader slow when they are repeated, and places for them in documents."""

import json
from functools import partial
from pathlib import Path

from tests.probes import samples
from tests.probes.packed import packed, types

MARKUP = [
    *("<", "<a ", '<a href="', "<a href='", "<a b='\">", "</", "</a ", "</b>", "<b>", "<i><b></i>", "<br>", "<b>a</b>"),
    *("<!--", "<!-", "-->", "<![CDATA[", "]]>", "<?", "<?a ", "<!", "<!DOCTYPE ", "<script>", "<style>", "<pre>"),
    *(
        "<code>",
        "<title>",
        "<img alt='a b'>",
        "&",
        "&#",
        "&amp;",
        "&a",
        "<v a>",
        "<c",
        "<00:01.000>",
        "<a a=",
        "a='b' ",
    ),
]
MESSAGES = [
    *("{", "}", "{{ ", "{{", "}}", "{% ", "{%", "%}", "{# ", "{a", "{a}", "{a, plural, other {", "{n, select, ", "''"),
    *("%", "%(", "%(a", "%1$", "%-0", "%{", "${", "$(", "$t(", "$", "$a$", "[[", "⟦", "__a", "@:", "#{", "= {", "<%= "),
    *("%s ", "{a} ", ":a ", "a | "),
]
MARKDOWN = [
    *("[", "[a", "![", "[a](", '[a](b "', "[a][", "](", "]", "[]", "[^a", "[a]: b\n", "`", "`a", "``` ", "```\n", "~~"),
    *("*", "*a ", "**a", "_", "_a ", "*a*", "$$\n", "\\(", "\\", "\\begin{", ":::{note}\n", "!!! note\n", "# a\n\n"),
    *("- ", "- a\n", "> ", "|a", "+ ", "===\n", "<div>\n\n", "a\n\n", "a  \n", "    a\n", "{a}`", "- [ ] a\n", ": a\n"),
    *("---\n", "[TOC]\n", "{/*", "==a", "++", "~a"),
]
STRINGS = [
    *(
        '"',
        '""',
        "'",
        ":",
        "a: ",
        "a = b\n",
        "= ",
        ";",
        ",",
        '"a" = "b c";\n',
        "/*",
        "//",
        "\\u00e9",
        "\\n",
        "\\\n",
        "!a ",
    ),
    *(
        'msgid "',
        'msgid "a"\nmsgstr ""\n\n',
        "#~ ",
        "#, ",
        "#, c-format\n",
        "- a b\n",
        "&a ",
        "? ",
        "|\n",
        ">\n",
        "a,b\n",
    ),
]
SUBTITLES = [
    *("00:00:01,000 --> 00:00:02,000\n", "1\n00:00:01,000 --> 00:00:02,000\na b\n\n", "1\n", " --> ", "{\\an8", "♪ "),
    *("[a] ", "(a ", "- a ", "NOTE a\n\n"),
]
CHARACTERS = [
    *(
        "a",
        "a ",
        "a.",
        ". ",
        "é",
        "1",
        "1,",
        "12 ",
        "(",
        ")",
        "/",
        "a/",
        "@",
        "a@",
        "a.@",
        "www.",
        "http://",
        "http://a.",
    ),
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\x00",
        "\u00a0",
        "\u200e",
        "\u2028",
        "\u0301",
        "😀",
        "👩\u200d",
        "足",
        "。",
        "-",
        "--",
    ),
]
TOKENS = [*MARKUP, *MESSAGES, *MARKDOWN, *STRINGS, *SUBTITLES, *CHARACTERS]
"""Tokens that are repeated for each pattern."""
IN_TEXTS = [
    *("<", "<a ", "</", "<b>", "<b>a</b>", "<!--", "&", "&amp;", "{", "{{ ", "{a}", "{n, select, ", "%", "%s ", "${"),
    *("a", "a ", "a.", "é", "1,", "(", "http://a.", "a@", " ", "\n", "\x00", "\u0301", "😀", "足", "-"),
]
"""Tokens that are repeated in the texts of every format, as the same functions read them."""

_PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
_XLIFF = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{}</xliff>'
_FILE = '<file source-language="en" target-language="es">{}</file>'
_TMX = '<tmx><header srclang="en"/><body>{}</body></tmx>'
_TU = '<tu><tuv xml:lang="en"><seg>a b {}</seg></tuv><tuv xml:lang="es"><seg/></tuv></tu>'
_CUE = "00:00:01{0}000 --> 00:00:02{0}000\na b {1}\n"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_ODT = f'xmlns:office="{_OASIS}:office:1.0" xmlns:text="{_OASIS}:text:1.0" xmlns:table="{_OASIS}:table:1.0"'


def _escaped(text):
    """Escape a text for XML and remove characters that XML does not allow."""
    return _printable(text).replace("&", "&amp;").replace("<", "&lt;")


def _printable(text):
    return "".join(c for c in text if c in "\n\t" or c >= " ")


def _within(make, text):
    return make(f"a b {_printable(text)}")


def _quoted(text):
    return json.dumps(text)[1:-1].replace("\\u", "u")


def _docx(runs):
    parts = {"word/document.xml": f"{_OFFICE}.wordprocessingml.document.main+xml"}
    document = f"<w:document {_W}><w:body><w:p>{runs}</w:p></w:body></w:document>"
    return packed({"[Content_Types].xml": types(parts), "word/document.xml": document})


def _pptx(runs):
    kind = f"{_OFFICE}.presentationml"
    parts = {"ppt/presentation.xml": f"{kind}.presentation.main+xml", "ppt/slides/slide1.xml": f"{kind}.slide+xml"}
    members = {
        "[Content_Types].xml": types(parts),
        "ppt/presentation.xml": f"<p:presentation {_P}/>",
        "ppt/slides/slide1.xml": f"<p:sld {_P} {_A}><p:txBody><a:p>{runs}</a:p></p:txBody></p:sld>",
    }
    return packed(members)


def _xlsx(strings):
    kind = f"{_OFFICE}.spreadsheetml"
    cells = "".join(f'<c t="s"><v>{i}</v></c>' for i in range(strings.count("<si>")))
    parts = {"xl/workbook.xml": "sheet.main", "xl/sheet1.xml": "worksheet", "xl/sharedStrings.xml": "sharedStrings"}
    members = {
        "[Content_Types].xml": types({name: f"{kind}.{part}+xml" for name, part in parts.items()}),
        "xl/workbook.xml": f"<workbook {_S}/>",
        "xl/sheet1.xml": f"<worksheet {_S}><row>{cells}</row></worksheet>",
        "xl/sharedStrings.xml": f"<sst {_S}>{strings}</sst>",
    }
    return packed(members)


def _opendocument(kind, content):
    body = f"<office:body><office:{kind}>{content}</office:{kind}></office:body>"
    members = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": f"<office:document-content {_ODT}>{body}</office:document-content>",
    }
    return packed(members)


_CELL = "<table:table><table:table-row><table:table-cell>{}</table:table-cell></table:table-row></table:table>"


def _epub(body):
    book = '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/>'
    container = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    page = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": f"{container}<rootfiles>{book}</rootfiles></container>",
        "book.opf": f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{page}</manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "a.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>',
    }
    return packed(members)


PLACES = {
    **{f"text{Path(name).suffix}": partial(_within, make) for name, make in samples.STRINGS.items() if name != "a.arb"},
    "whole.html": str,
    "text.html": lambda text: f"<p>a b {text} a</p>",
    "attribute.html": lambda text: f'<p>a <img alt="a b {text}"> b</p>',
    "whole.md": str,
    "text.md": lambda text: f"a b {text} a",
    "cell.md": lambda text: f"| a | b |\n|---|---|\n| a b {text} | a b |\n",
    "whole.mdx": str,
    "whole.po": lambda text: _PO + text,
    "text.po": lambda text: f'{_PO}#, c-format, python-brace-format\nmsgid "a b {_quoted(text)}"\nmsgstr ""\n',
    "whole.srt": str,
    "text.srt": lambda text: "1\n" + _CUE.format(",", text) + "\n2\n" + _CUE.format(",", "a"),
    "whole.vtt": lambda text: "WEBVTT\n\n" + text,
    "text.vtt": lambda text: "WEBVTT\n\n" + _CUE.format(".", text),
    "whole.json": str,
    "case.json": lambda text: json.dumps({"a": f"a {{n, plural, one {{a b {text}}} other {{b}}}} b"}),
    "whole.yaml": str,
    "whole.strings": str,
    "whole.properties": str,
    "whole.csv": str,
    "head.csv": lambda text: '"a' + text.replace('"', '""') + '",b\na b,a b\n',
    "whole.txt": str,
    "whole.xml": lambda text: f"<resources>{text}</resources>",
    "cdata.xml": lambda text: f"<resources><string name='a'><![CDATA[a b {text}]]></string></resources>",
    "whole.resx": "<root>{}</root>".format,
    "whole.ts": lambda text: f"<TS><context>{text}</context></TS>",
    "whole.xcstrings": lambda text: f'{{"sourceLanguage": "en", "strings": {{{text}}}}}',
    "whole.ftl": str,
    "text.ftl": lambda text: f"a = a b {text}",
    "whole.xlf": lambda text: _XLIFF.format(_FILE.format(text)),
    "whole.tmx": _TMX.format,
    "text.tmx": lambda text: _TMX.format(_TU.format(_escaped(text))),
    "text.docx": lambda text: _docx(f"<w:r><w:t>a b {_escaped(text)}</w:t></w:r>"),
    "text.pptx": lambda text: _pptx(f"<a:r><a:t>a b {_escaped(text)}</a:t></a:r>"),
    "text.xlsx": lambda text: _xlsx(f"<si><t>a b {_escaped(text)}</t></si>"),
    "text.odt": lambda text: _opendocument("text", f"<text:p>a b {_escaped(text)}</text:p>"),
    "text.ods": lambda text: _opendocument("spreadsheet", _CELL.format(f"<text:p>a b {_escaped(text)}</text:p>")),
    "text.epub": lambda text: _epub(f"<p>a b {_escaped(text)}</p>"),
}
"""Documents around a text by file name: `whole` is the text alone, others contain it in a segment."""


_MARKUP = (".xml", ".resx", ".ts", ".xlf", ".tmx")
_PACKED = (".docx", ".pptx", ".xlsx", ".odt", ".ods", ".epub")
_SYNTAX = {
    **dict.fromkeys((".html", *_MARKUP), MARKUP),
    ".md": MARKDOWN,
    ".mdx": ["{", "{/*", "{a}`", "<a {", "import ", "export a", "[a](", "- a\n", "> ", "`", "*a ", "|a"],
    **dict.fromkeys((".srt", ".vtt"), SUBTITLES),
    **dict.fromkeys(_PACKED, ()),
}
_EVERYTHING = {"text.json": [*MARKUP, *MESSAGES, *CHARACTERS], "text.md": [*MARKUP, *MESSAGES, *CHARACTERS]}
"""Places for the tokens of all texts; elsewhere, `IN_TEXTS` stands for them."""


def tokens_of(name):
    """Return the tokens that are repeated at a place: of texts, and of the syntax of its format."""
    ending = Path(name).suffix
    if name == "cell.md":
        return [*IN_TEXTS, "|", "|a", "`", "\\|", "*a ", "[a]("]
    # The syntax of XML is escaped in its texts.
    syntax = [] if name.startswith("text.") and ending in _MARKUP else _SYNTAX.get(ending, STRINGS)
    return [*dict.fromkeys([*_EVERYTHING.get(name, IN_TEXTS), *syntax])]
