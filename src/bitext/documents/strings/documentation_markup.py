"""The markup of documentation in catalogs: reStructuredText (Sphinx), Markdown; POD, AsciiDoc, Texinfo, LaTeX (po4a).

An entry says by a flag or a reference which markup it has; otherwise, the message itself shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum

from bitext.documents.spans import Part
from bitext.documents.tagged_text import Side


class Markup(Enum):
    """The markup of a message."""

    rst = "rst"
    pod = "pod"
    markdown = "markdown"
    asciidoc = "asciidoc"
    texinfo = "texinfo"
    latex = "latex"


_FLAGS = {"rst-text": Markup.rst, "md-text": Markup.markdown, "markdown-text": Markup.markdown}
_REFERENCES = (
    (Markup.rst, re.compile(r"\.rst(?=[:\s]|\Z)|docstring of")),
    (Markup.pod, re.compile(r"\.(?:pod|man|[1-8][a-z]?|[1-8][a-z]?\.in)(?=:\d|\s|\Z)")),
    (Markup.markdown, re.compile(r"\.(?:md|mdx|markdown)(?=[:\s]|\Z)")),
    (Markup.asciidoc, re.compile(r"\.(?:adoc|asciidoc|asc)(?=[:\s]|\Z)")),
    (Markup.texinfo, re.compile(r"\.(?:texi|texinfo|txi)(?=[:\s]|\Z)")),
    (Markup.latex, re.compile(r"\.(?:tex|latex)(?=[:\s]|\Z)")),
)
_CONTENTS = (
    (
        Markup.rst,
        re.compile(
            r"(?<![\w`:]):[A-Za-z][\w:+.-]{0,40}:`|\{[A-Za-z][\w:-]{0,40}\}`|(?<![\w`])``[^`\s]|`_{1,2}(?!\w)|\]_(?!\w)|\w::\s*\Z"
        ),
    ),
    (Markup.pod, re.compile(r"(?<![\w&;])(?:[BCFLSXZU]|[IE](?!<[a-z]{1,6}>\w*</))<(?!/)[^\s<>]")),
    (Markup.markdown, re.compile(r"\]\([^()\s]{1,500}\)|\*\*[^\s*]")),
    (
        Markup.asciidoc,
        re.compile(r"\b(?:link|xref|linkgit|footnote):[^\s\[\]]{0,500}\["),
    ),
    (Markup.texinfo, re.compile(r"@(?:code|samp|file|var|option|command|emph|strong|(?:p?x)?ref|uref|url|dots|dfn)\{")),
    (Markup.latex, re.compile(r"\\(?:emph|text[a-z]{2}|ref|cite|url|footnote|label)\{")),
)

# An explicit title of a link is translated: `:ref:`the beach <the-beach>``, `` `the house <https://…>`_ ``.
_RST = re.compile(
    r"(?P<alone>``[^`\n](?:[^`]|`(?!`))*?``(?!`)"
    r"|(?<![\w`|])\|[A-Za-z][^|\n]{0,60}\|_{0,2}|\[(?:\d{1,4}|#[\w.-]{0,40}|\*|[A-Za-z][\w.-]{0,40})\]_(?!\w)"
    r"|\\[ *`|_]|(?<![\w`])[A-Za-z][\w-]*[A-Za-z0-9]__?(?![\w`])|::?(?=\s*\Z)(?<=::))"
    r"|(?P<role>(?<![\w`:]):[A-Za-z][\w:+.-]{0,40}:|\{[A-Za-z][\w:-]{0,40}\})?"
    r"`(?![\s`])(?P<title>[^`<>]{0,500}?)(?P<target>\s*<[^`<>]{1,500}>)?`(?P<end>_{0,2})(?!\w)"
    r"|(?P<strong>(?<![\w*])\*\*(?![\s*]))|(?P<strong_end>(?<![\s*])\*\*(?![\w*]))"
    r"|(?P<emphasis>(?<![\w*])\*(?![\s*]))|(?P<emphasis_end>(?<![\s*])\*(?![\w*]))"
)
_TRANSLATED_ROLES = re.compile(r"[:{](?:emphasis|strong|sup|superscript|sub|subscript|dfn|title)[:}]")
_POD = re.compile(
    r"(?P<alone>[BI]<[\w.:+-]{1,60}>\(\d\w{0,3}\)|[CFEXZL]<[^<>]*+>|[CFL]<<\s[^>]*+(?:>(?!>)[^>]*+)*>>|[BI]<-[^<>]*+>)"
    r"|(?P<opens>(?<![\w&;])[BISU]<(?:<\s)?)|(?P<closes>\s?>>|>)"
)
_MARKDOWN = re.compile(
    r"(?P<alone>`{1,3}[^`\n][^`]{0,500}`{1,3}|<[a-z][a-z0-9+.-]{1,20}:[^<>\s]*+>|\{#[\w-]{1,60}\}"
    r"|(?<![^\n])(?:#{1,6}|[-*+>]|\d{1,3}[.)])[ \t]+)"
    r"|(?P<link>!?\[)(?P<text>[^\[\]\n]{1,500})(?P<address>\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)"
    r"|\]\[[^\[\]\n]{0,200}\])"
    r"|(?P<strong>(?<![\w*])\*\*(?![\s*]))|(?P<strong_end>(?<![\s*])\*\*(?![\w*]))"
    r"|(?P<emphasis>(?<![\w*])[*_](?![\s*_]))|(?P<emphasis_end>(?<![\s*_])[*_](?![\w*]))"
)
_ASCIIDOC = re.compile(
    r"(?P<alone>(?<![\w`])`[^`\n]{1,500}`(?!\w)|(?<![\w+])\+\+?[^+\s][^+\n]{0,200}\+\+?(?!\w)|\{[A-Za-z][\w-]{0,60}\}"
    r"|<<[^<>,\n]{1,200}>>|\[\[[^\[\]\n]{1,200}\]\]"
    r"|\b(?:kbd|btn|menu|stem|latexmath|asciimath|pass|image|icon|indexterm2?|anchor):{1,2}[^\s\[\]]{0,200}\[[^\]\n]{0,500}\]"
    r"|\b[a-z]{2,20}:{1,2}[^\s\[\]]{1,500}\[[^\]A-Za-z\n]{0,100}\])"
    r"|(?P<link>\b(?:footnote:|[a-z]{2,20}:{1,2}[^\s\[\]<>]{1,500})\[)(?P<text>[^\[\]\n]{1,500})(?P<address>\])"
    r"|(?P<reference><<[^<>,\n]{1,200},\s{0,9})(?P<title>[^<>\n]{1,500})(?P<end>>>)"
    r"|(?P<strong>(?<![\w*])\*\*?(?![\s*]))|(?P<strong_end>(?<![\s*])\*\*?(?![\w*]))"
    r"|(?P<emphasis>(?<!\w)__?(?![\s_]))|(?P<emphasis_end>(?<![\s_])__?(?!\w))"
)
_BRACES = r"\{[^{}]{0,500}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,9}\}"
_TEXINFO = re.compile(
    r"(?P<alone>@(?:code|samp|file|command|option|env|kbd|key|verb|var|math|url|uref|email|(?:p?x)?ref|inforef|anchor|value|image)"
    rf"{_BRACES}|@[A-Za-z]{{1,20}}\{{\}}|@[^A-Za-z\s])"
    r"|(?P<opens>@(?:emph|strong|dfn|cite|acronym|abbr|asis|footnote|titlefont|sc|[biwrt])\{)|(?P<closes>\})"
)
_LATEX = re.compile(
    r"(?P<alone>\\(?:[a-z]{0,9}ref|[a-z]{0,9}cite[a-z]{0,9}|label|url|texttt|code|input|includegraphics|index)"
    rf"(?:\[[^\[\]]{{0,200}}\])?{_BRACES}|\\verb(?P<verb>[^\w\s])[^\n]{{0,200}}?(?P=verb)|\$[^$\n]{{1,200}}\$"
    r"|\\[A-Za-z]{1,30}(?:\{\}|(?![A-Za-z{\[]))|\\[^A-Za-z\s])"
    r"|(?P<opens>\\[A-Za-z]{1,30}\*?\{|\{)|(?P<closes>\})"
)
_NESTED = {Markup.pod: _POD, Markup.texinfo: _TEXINFO, Markup.latex: _LATEX}
"""The markup in which a bracket closes what was opened last."""


def markup_of(text: str, flags: Iterable[str] = (), references: str = "") -> Markup | None:
    """Return the markup of a message; None if it has none.

    `flags`: those of its entry, such as `md-text`; `references`: the places in the sources from which it comes.
    """
    for flag in flags:
        if flag in _FLAGS:
            return _FLAGS[flag]
    for markup, pattern in _REFERENCES if references else ():
        if pattern.search(references):
            return markup
    for markup, pattern in _CONTENTS:
        if pattern.search(text):
            return markup
    return None


def markup_parts(text: str, start: int, end: int, markup: Markup | None) -> Iterator[Part]:
    """Yield the words and the markup of a range of a message."""
    if markup is None:
        yield Part(start, end)
    elif pattern := _NESTED.get(markup):
        yield from _nested_parts(pattern, text, start, end)
    elif markup is Markup.rst:
        yield from _rst_parts(text, start, end)
    else:
        yield from _inline_parts(_ASCIIDOC if markup is Markup.asciidoc else _MARKDOWN, text, start, end)


def _nested_parts(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Part]:
    position, depth = start, 0
    for match in pattern.finditer(text, start, end):
        if match["closes"] and not depth:
            continue
        yield Part(position, match.start())
        position = match.end()
        if match["alone"]:
            yield Part(*match.span(), Side.alone, word=True)
            continue
        depth += -1 if match["closes"] else 1
        yield Part(*match.span(), Side.of_tag(closes=match["closes"]), "<", word=True)
    yield Part(position, end)


def _rst_parts(text: str, start: int, end: int) -> Iterator[Part]:
    position = start
    for match in _RST.finditer(text, start, end):
        yield Part(position, match.start())
        position = match.end()
        has_title = match["title"] and (match["target"] or _TRANSLATED_ROLES.fullmatch(match["role"] or ""))
        if match["title"] is not None and has_title:
            yield Part(match.start(), match.start("title"), Side.opens, "`", word=True)
            yield Part(*match.span("title"))
            yield Part(match.end("title"), match.end(), Side.closes, "`", word=True)
        elif match["alone"] or match["title"] is not None:
            yield Part(*match.span(), Side.alone, word=match[0] != "::")
        else:
            yield _emphasis(match)
    yield Part(position, end)


def _inline_parts(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Part]:
    position = start
    for match in pattern.finditer(text, start, end):
        yield Part(position, match.start())
        position = match.end()
        if match["link"]:
            yield Part(*match.span("link"), Side.opens, "[", word=True)
            yield from _inline_parts(pattern, text, *match.span("text"))
            yield Part(*match.span("address"), Side.closes, "[", word=True)
        elif pattern is _ASCIIDOC and match["reference"]:
            yield Part(*match.span("reference"), Side.opens, "<", word=True)
            yield Part(*match.span("title"))
            yield Part(*match.span("end"), Side.closes, "<", word=True)
        elif match["alone"]:
            yield Part(*match.span(), Side.alone, word=not match[0][-1].isspace())
        else:
            yield _emphasis(match)
    yield Part(position, end)


def _emphasis(match: re.Match[str]) -> Part:
    return Part(*match.span(), Side.of_tag(closes=match["strong_end"] or match["emphasis_end"]), match[0])
