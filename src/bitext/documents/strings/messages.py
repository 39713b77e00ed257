"""Messages of programs: strings that may contain tags and the plurals and selections of ICU MessageFormat.

Values that only programs read are no messages: colors, file names, date patterns, time zones, style sheets, formulas.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import NamedTuple

from bitext.documents.document import Segment, SegmentList
from bitext.documents.markup.html_elements import BLOCKS, VOID
from bitext.documents.spans import Part, Span, Spans, spanned
from bitext.documents.strings.documentation_markup import Markup, markup_of, markup_parts
from bitext.documents.tagged_text import Side, TaggedText
from bitext.protected_spans import (
    SHORTCUT,
    SHORTCUT_OF_GTK,
    STYLE_OR_SCRIPT,
    PlaceholderSyntax,
    is_non_translatable,
    kept_parts,
)

DEEPEST = 20
"""The largest depth of nested plurals and selections."""
_TAG = re.compile(
    r"<(?P<kept>code|kbd|samp|var|pre|ph|bpt|ept|it)\b[^<>]*>[^<]*</(?P=kept)>"
    rf"|{STYLE_OR_SCRIPT}|{SHORTCUT_OF_GTK}"
    r"|<!--[^<-]*+(?:(?:<(?!!--)|-(?!->))[^<-]*+)*-->|<!(?i:doctype)\b[^<>]*+>"
    # Ruby's %<count>d is not a tag.
    r"|(?<!%)<(?P<close>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(?P<single>/?)>",
    re.DOTALL,
)
_ARGUMENT = re.compile(
    r"\{\{\s*(?i:PLURAL|GENDER)\s*:[^{}|]*+\|"
    r"|\{\s*[\w.-]+\s*,\s*(plural|select|selectordinal)\s*,"
    r"|(?<!\{)\{\s*[\w.-]+\s*,\s*"  # but not i18next's {{count, number}}
)
_WIKI = re.compile(r"\{\{\s*(?:PLURAL|GENDER)\s*:[^{}|]*+\|", re.IGNORECASE)
"""A plural or selection of MediaWiki, whose cases are between bars: `{{PLURAL:$1|a house|$1 houses}}`."""
_WIKI_CASE = re.compile(r"(?:\d+=)?((?:[^{}|]|\{\{[^{}]*\}\})*)(\||\}\})")
_CASE = re.compile(r"\s*(?:offset\s*:\s*\d+\s+)?[=\w-]+\s*\{")
QUOTED = re.compile(r"'(?:[{}]++|\{[^{}'\n]*+\}|\{\{[^{}'\n]*+\}\})'")
"""Quoted braces, which are text in ICU MessageFormat."""
_BRACE = re.compile(rf"(?P<quoted>{QUOTED.pattern})|<[A-Za-z/][^<>]*>|(?P<brace>[{{}}])")
_SIGN = re.compile(rf"(?P<quoted>{QUOTED.pattern})|#")
_WITH_KEY = re.compile(r"^(?:_(?=[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f])|([A-Z])_(?=[a-z]+$))")
"""A word with the marker of its access key, such as `_File` and `E_xit`."""
_INTERVAL = r"(?:\{\d[\d, ]*+\}|[\[\]]\s*(?:-?\d+|-?Inf|\*)\s*,\s*(?:-?\d+|\+?Inf|\*)\s*[\[\]])\s*"
"""The numbers for which a form of a message holds, as in Symfony and Laravel: `{0}`, `]1,Inf]`, `[2,*]`."""
_BREAK = re.compile(
    # A bar between the plural forms of a message, between the parts of a title, or those of a filter of files.
    rf"(?:(?<!\s)\s*+|)(?P<bar>\||;;)(?:\s*{_INTERVAL}|\s*)|\A\s*(?P<first>{_INTERVAL})(?=[^|]*\|)"
    # A shortcut at the end, as in `Save (Ctrl+S)`.
    rf"|(?:(?<!\s)\s*+|)[(\[](?:{SHORTCUT})[)\]]\s*\Z"
    # The patterns of a filter of files, as in `Pictures (*.png *.jpg);;All files (*)`.
    r"|(?:(?<!\s)\s*+|)\(\*[^()\n]{0,300}\)\s*(?=\||;;|\Z)"
    # Line ends, also where a string is escaped twice.
    r"|(?:(?<![ \t])[ \t]*+|)(?P<line>\r?\n|\r|(?<![:\\])\\r?\\n(?![\[\\]))(?:[ \t]*(?:\r?\n|\r))*[ \t]*"
    r"|(?:(?<![ ])[ ]*+|)\t[ \t]*"
)
_LINE_END = re.compile(r"\r?\n|\r|\\n")
_MAY_BREAK = re.compile(r"[\n\r\t|]|;;|\\n|[)\]]\s*\Z")
_OTHER_BARS = re.compile(rf"\A\s*\||\|\s*\Z|-\|-|\|\||\s\|\S(?<!\|[*{{\[\]])|\S\|\s(?!{_INTERVAL})")
"""Bars of a table, of a formula, and those that are beside a space."""
_ITEM = re.compile(r"(?:[-*•·+>#–—]|\d{1,3}[.)])\s")
"""The beginning of an item of a list."""
WRAPPED = 40
"""The fewest characters of a line whose end may wrap a sentence."""
_LINE = 400
"""The number of characters of a line that are looked at."""
DIVIDER = "\n"
"""The name of parts that separate blocks, which no tag has."""
_START = attrgetter("start")


def is_language(text: str, key: str = "") -> bool:
    """Whether a string is a text for people, not an address, a path, an identifier, a color or a date.

    >>> list(filter(is_language, ("Save", "user_name", "img/a.png", "#fff", "2024-01-31T10:00", "en-US")))
    ['Save']
    """
    text = _WIKI.sub(" ", text.strip())
    if not text or is_non_translatable(text, PlaceholderSyntax.message):
        return False
    return not is_code(_WITH_KEY.sub(r"\1", text), key)


def has_cases(text: str) -> bool:
    """Whether a message has an ICU plural or selection."""
    return any(argument.cases for argument in _arguments(text, 0, len(text)))


def message_spans(
    text: str,
    *,
    syntax: PlaceholderSyntax = PlaceholderSyntax.message,
    accelerators: bool = False,
    doubled: bool | None = None,
    decode: Callable[[str], str] = str,
    markup: Markup | None = None,
) -> list[Span]:
    """Return the spans of a message: its blocks and lines, and each case of its ICU plurals and selections.

    A plural or selection is a mark in the text around it. Forms between bars are spans of their own.

    Args:
        text: the message.
        syntax: the syntax of its placeholders.
        accelerators: whether `_` or `&` may mark the letter of an access key.
        doubled: whether apostrophes are written twice; by default, this is inferred from the message.
        decode: turns parts of the text into characters.
        markup: the markup of documentation in it; by default, this is inferred from the message.
    """
    if _doubles(text, doubled):
        decode = partial(_undoubled, decode)
    message = _Message(text, partial(spanned, text, decode=decode, syntax=syntax), syntax, markup or markup_of(text))
    if accelerators and not message.has_arguments:
        message.key = _accelerator(text)
        if message.key is None and not is_language(text):
            return []
    return list(message.spans(0, len(text)))


def add_message(
    segments: SegmentList,
    text: str,
    template: Segment,
    *,
    syntax: PlaceholderSyntax = PlaceholderSyntax.message,
    accelerators: bool = False,
    doubled: bool | None = None,
) -> tuple[range, Spans]:
    """Add the spans of a message as segments, and return their numbers, none without text, and the spans.

    `template`: a segment with the place, the note and the translations of the whole message in the document, without
    marks; other arguments as for `message_spans`.
    """
    spans, write, first = Spans(text), message_writer(text, doubled=doubled), len(segments)
    parse = partial(message_spans, syntax=syntax, accelerators=accelerators, doubled=doubled)
    message = parse(text)
    existing = by_span(template.existing, len(message), parse)
    drafts = by_span(template.draft, len(message), parse)
    for i, span in enumerate(message):
        segment = replace(template, source=span.marked, existing=existing[i], draft=drafts[i])
        spans.add(segments.add(segment), span, write)
    return range(first, len(segments)), spans


def by_span(
    translation: TaggedText | None, count: int, parse: Callable[[str], Sequence[Span]]
) -> Sequence[TaggedText | None]:
    """Return the translations of the spans of a message; the whole one for each if it has another number of spans.

    `translation`: that of the message; `count`: its number of spans; `parse`: returns the spans of a message.
    """
    if translation is None:
        return [None] * count
    spans = parse(translation.text)
    return [span.marked for span in spans] if len(spans) == count else [translation] * count


def message_writer(text: str, *, doubled: bool | None = None) -> Callable[[str], str]:
    """Return a function that encodes words for a message, with apostrophes that ICU does not misread.

    `doubled`: whether apostrophes are written twice, as for `message_spans`.
    """
    if _doubles(text, doubled):
        return lambda words: words.replace("'", "''")
    if doubled is None and (has_cases(text) or QUOTED.search(text)):
        # An apostrophe starts a quote only before a brace; the text after the words may start with a brace.
        return lambda words: re.sub(r"'(?=[{}]|\Z)", "''", words)
    return str


def _doubles(text: str, doubled: bool | None) -> bool:
    """Whether each apostrophe of a message is written twice."""
    if doubled is not None:
        return doubled
    return "''" in text and (has_cases(text) or bool(QUOTED.search(text)))


def _undoubled(decode: Callable[[str], str], raw: str) -> str:
    return decode(raw).replace("''", "'")


def _accelerator(text: str) -> int | None:
    """Return the offset of the only marker of an access key, at the beginning of a word or in a short label."""
    placeholders: list[str] | None = None
    for marker in "_&":
        position = text.find(marker)
        if text.count(marker) != 1 or not text[position + 1 : position + 2].isalnum():
            continue
        if placeholders is None:  # computed late, because most messages have no marker
            placeholders = [part for part, _, _ in kept_parts(text, PlaceholderSyntax.message)]
        if any(marker in part for part in placeholders):
            continue
        if position == 0:
            return position
        previous = text[position - 1]
        is_label = len(text.split()) <= 4 and text[:1].isupper() and text[position + 1].islower()
        if previous.isspace() or previous in "([" or (previous.isalpha() and is_label):
            return position
    return None


class _Message:
    """A message, from which spans are read."""

    key: int | None = None
    """The offset of the marker of its access key."""

    def __init__(
        self,
        text: str,
        to_span: Callable[[Iterable[Part]], Span | None],
        syntax: PlaceholderSyntax,
        markup: Markup | None,
    ) -> None:
        self.text, self.to_span, self.markup = text, to_span, markup
        self.breaks = line_breaks(text, syntax)
        has_other_braces = markup in (Markup.texinfo, Markup.latex)
        self.has_arguments = not has_other_braces and bool(_arguments(text, 0, len(text)))

    def spans(self, start: int, end: int, depth: int = 0, *, in_plural: bool = False) -> Iterator[Span]:
        """Yield the spans of a part of the text; `in_plural`: whether `#` stands for a number."""
        parts: list[Part] = []
        position = start
        arguments = _arguments(self.text, start, end) if depth < DEEPEST and self.has_arguments else []
        for argument in arguments:
            parts += self._parts(position, argument.start, in_plural=in_plural)
            parts.append(Part(argument.start, argument.end, Side.alone, word=True))
            position = argument.end
        parts += self._parts(position, end, in_plural=in_plural)
        for block in divided(parts):
            if span := self.to_span(block):
                yield span
        for argument in arguments:
            for case_start, case_end in argument.cases:
                yield from self.spans(case_start, case_end, depth + 1, in_plural=argument.counts)

    def _parts(self, start: int, end: int, *, in_plural: bool) -> Iterator[Part]:
        tagged = partial(tagged_parts, self.text, in_plural=in_plural, breaks=self.breaks, markup=self.markup)
        if self.key is not None and start <= self.key < end:
            yield from tagged(start, self.key)
            yield Part(self.key, self.key + 1, Side.alone)
            start = self.key + 1
        yield from tagged(start, end)


def divided(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield the parts of each block; the parts that separate blocks are left out."""
    block: list[Part] = []
    for part in parts:
        if part.name == DIVIDER:
            yield block
            block = []
        else:
            block.append(part)
    yield block


def line_breaks(text: str, syntax: PlaceholderSyntax = PlaceholderSyntax.message) -> list[Part]:
    """Return the line ends, tabs and bars of a message, in order: marks in a sentence, or dividers between blocks.

    A line end divides two lines, unless it wraps a long line in the middle of a sentence. Line ends and bars in
    placeholders such as `{{ x | upper }}` do not count.
    """
    if not _MAY_BREAK.search(text):
        return []
    bars = _bars(text)
    breaks: list[Part] = []
    placeholders = kept_parts(text, syntax)
    placeholder = next(placeholders, None)
    line_start = 0
    for match in _BREAK.finditer(text):
        while placeholder and placeholder[2] <= match.start():
            placeholder = next(placeholders, None)
        if placeholder and placeholder[1] <= match.start() and match.end() <= placeholder[2]:
            continue  # for example the bar in `{{ x | upper }}`
        if match["bar"]:
            spaces = match[0][0].isspace(), match[0][-1].isspace()
            if match["bar"] == "|" and spaces != (True, True) and not bars:
                continue
            breaks.append(Part(*match.span(), Side.alone, DIVIDER))
        elif match["line"] and wraps(text[max(line_start, match.start() - _LINE) : match.start()], text, match):
            breaks.append(Part(*match.span(), Side.alone))
        else:
            breaks.append(Part(*match.span(), Side.alone, DIVIDER))
        line_start = match.end()
    return breaks


def wraps(before: str, text: str, match: re.Match[str]) -> bool:
    """Whether a line end, matched with the white space around it, only wraps a sentence; `before`: the line before."""
    before = before[-_LINE:]
    is_blank = len(_LINE_END.findall(match[0])) > 1 or bool(_LINE_END.match(text, match.end()))
    if len(before.strip()) < WRAPPED or is_blank or match.end() == len(text):
        return False
    is_end = before.rstrip("\"'»”’)*_` ").endswith(tuple(".:;!?…。！？؟।"))
    return not is_end and not _ITEM.match(text, match.end())


def _bars(text: str) -> bool:
    """Whether bars without spaces around them separate the forms of a message, or the parts of a filter of files."""
    return "|" in text and not _OTHER_BARS.search(text)


def tagged_parts(
    text: str,
    start: int,
    end: int,
    in_plural: bool = False,
    *,
    breaks: Sequence[Part] = (),
    markup: Markup | None = None,
) -> Iterator[Part]:
    """Yield words and tags of a range of a message, and dividers between blocks.

    `in_plural`: whether `#` stands for a number; `breaks`: the line ends and bars; `markup`: that of documentation.
    """
    if markup:
        for part in markup_parts(text, start, end, markup):
            if part.side is None:
                has_tags = markup in (Markup.rst, Markup.markdown, Markup.asciidoc)
                yield from _tags(text, part.start, part.end, in_plural, breaks, has_tags=has_tags)
            else:
                yield part
        return
    yield from _tags(text, start, end, in_plural, breaks)


def _tags(
    text: str, start: int, end: int, in_plural: bool, breaks: Sequence[Part], *, has_tags: bool = True
) -> Iterator[Part]:
    """Yield words, tags, and dividers between blocks."""
    position = start
    previous: Part | None = None
    for match in _TAG.finditer(text, start, end) if has_tags else ():
        yield from _signs(text, position, match.start(), in_plural, breaks)
        is_blank = not text[position : match.start()].strip()
        position = match.end()
        name = (match["name"] or "").lower()
        is_element = name != "" and name not in VOID
        side = Side.alone
        if is_element and not match["single"]:
            side = Side.of_tag(closes=match["close"])
        # As in HTML, two line breaks separate paragraphs.
        is_divider = name in BLOCKS or match[0].startswith("<!d") or match[0].startswith("<!D")
        if is_divider or (name == "br" and is_blank and previous is not None):
            yield Part(*match.span(), Side.alone, DIVIDER)
            previous = None
            continue
        previous = Part(*match.span(), side, match["name"] or "", word=is_element or bool(match["kept"]))
        yield previous
        if name != "br":
            previous = None
    yield from _signs(text, position, end, in_plural, breaks)


def _signs(text: str, start: int, end: int, in_plural: bool, breaks: Sequence[Part]) -> Iterator[Part]:
    """Yield words, line ends, quoted braces, and `#` signs that stand for a number."""
    position = start
    for match in _SIGN.finditer(text, start, end):
        if match["quoted"] or in_plural:
            yield from _lines(position, match.start(), breaks)
            yield Part(*match.span(), Side.alone, word=True)
            position = match.end()
    yield from _lines(position, end, breaks)


def _lines(start: int, end: int, breaks: Sequence[Part]) -> Iterator[Part]:
    position = start
    for i in range(bisect_left(breaks, start, key=_START), bisect_right(breaks, end, key=_START)):
        if breaks[i].end <= end:
            yield Part(position, breaks[i].start)
            yield breaks[i]
            position = breaks[i].end
    yield Part(position, end)


class _Argument(NamedTuple):
    """An argument of a message with a type, such as a plural or a date."""

    start: int
    end: int
    counts: bool
    """Whether it is a plural, in whose cases `#` stands for the number."""
    cases: list[tuple[int, int]]
    """The start and end of each case's text."""


def _arguments(text: str, start: int, end: int) -> list[_Argument]:
    """Return the outermost arguments with a type; from an unclosed argument on, everything is text."""
    arguments: list[_Argument] = []
    position = start
    while match := _ARGUMENT.search(text, position, end):
        if match[0].startswith("{{"):
            argument = _wiki_argument(text, match, end)
            if argument is None:
                break
            arguments.append(argument)
            position = argument.end
            continue
        close = _closing(text, match.start(), end)
        if close is None:
            break
        cases: list[tuple[int, int]] = []
        case_start = match.end()
        while match[1] and (case := _CASE.match(text, case_start, close)):
            case_end = _closing(text, case.end() - 1, close)
            if case_end is None:
                break
            cases.append((case.end(), case_end))
            case_start = case_end + 1
        arguments.append(_Argument(match.start(), close + 1, match[1] in ("plural", "selectordinal"), cases))
        position = close + 1
    return arguments


def _wiki_argument(text: str, opening: re.Match[str], end: int) -> _Argument | None:
    """Return a plural or selection of MediaWiki; None if it is not closed."""
    cases: list[tuple[int, int]] = []
    position = opening.end()
    while case := _WIKI_CASE.match(text, position, end):
        cases.append(case.span(1))
        position = case.end()
        if case[2] == "}}":
            return _Argument(opening.start(), position, False, cases)
    return None


def _closing(text: str, start: int, end: int) -> int | None:
    """Return the offset of the brace that closes the one at `start`; None if there is none before `end`."""
    depth = 0
    for match in _BRACE.finditer(text, start, end):
        if match["brace"]:
            depth += 1 if match["brace"] == "{" else -1
            if depth == 0:
                return match.start()
    return None


LONGEST_CODE = 200
"""The largest number of characters of a name, an address and the like."""
_CODE = re.compile(
    r"\#[0-9a-fA-F]{3,8}"  # colors
    r"|(?:rgba?|hsla?|url|var|calc|(?:linear|radial)-gradient)\([^\n]*\)"
    r"|(?:\.{0,2}/|~/|[A-Za-z]:\\)\S*|[\w.-]+(?:/[\w.-]+){2,}/?|[\w-]+/[\w-]+\.\w+|(?:application|text|image)/[\w.+-]+"
    r"|[a-z][a-z0-9]*[A-Z]\w*(?:\(\))?|[\w-]+(?:\.[\w-]+)+(?:\(\))?"  # camelCase, dotted names, files
    r"|\w*_\w+|--?[a-z][\w-]*|@[\w/-]+"  # names, switches
    r"|[a-z]{2,3}-(?:[A-Z]{2}|\d{3}|(?:Hans|Hant|Latn|Cyrl|Arab|Deva|Guru)(?:-[A-Z]{2})?)"  # languages
    r"|\{?[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4,12}){1,4}\}?"  # identifiers
    # Versions, dates, sizes; but "2nd", "80s", "5pm" and "3-day" are words.
    r"|v\d[\w.:+-]*|(?!\d+(?:st|nd|rd|th|s|[ap]m)\Z)\d[\w.:+]*|\d[\d.:+-]*(?:T[\d:.+-]*Z?)?|\d[\d.]*\.\d[\w.:+-]*"
    r"|(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d\d)?)?"
)
_ICON = re.compile(
    r"(?:(?:fa[srlbdt]?|fa-(?:solid|regular|brands)|mdi|bi|bx|pi|ti|ri|glyphicon|icon|material-icons) )?"
    r"(?:fa|mdi|bi|bx[sl]?|pi|ti|ri|glyphicon|icon|ion|el-icon|uil|la[srb]?|codicon|octicon|lucide|heroicons?)"
    r"(?:-[a-z0-9]++)+(?: (?:fa|mdi|icon|bx)-[a-z0-9-]++)*"
)
"""Names of icons in fonts and collections of them."""
_DATA = re.compile(r"data:[\w/+.;=-]{0,100},")
_PATH_OF_SVG = re.compile(r"[Mm]\s*-?[\d.][\d\s.,eE+MmZzLlHhVvCcSsQqTtAa-]*+")
_ACCESS_KEY = re.compile(
    r"(?:^|[._-]|(?<=[a-z]))(?:access|hot|shortcut|command|mnemonic)[_-]?keys?$|(?:^|[._-])(?:shortcut|accelerator|hotkey"
    r"|keybinding|mnemonic|KeyboardAccelerators)$",
    re.IGNORECASE,
)
"""Keys of strings that are keys of the keyboard."""
_LAYOUT = re.compile(
    r"\.(?:AccessKey|FlowDirection|ReadingDirection|RightToLeft|(?:Horizontal|Vertical|Text|Content|Check|Image)\w*?Align\w*"
    r"|Font(?:Family|Size|Weight|Style|Stretch)?|Foreground|Background|(?:Fore|Back|Border)(?:Color|Brush)"
    r"|(?:Min|Max)?(?:Width|Height)|(?:Client|Minimum|Maximum)Size|Margin|Padding|Orientation|(?:Image|Uri)Source|Glyph"
    r"|NavigateUri|ImeMode|AutoSize\w*|ShortcutKeys|TextWrapping|TextTrimming)$"
)
"""Properties of elements that decide how a program looks or works, in .NET's keys `element.Property`."""
_VALUE_KEY = re.compile(
    r"(?:^|[._-])(?:icon|iconName|glyph|class|className|cssClass|style|type|align|direction|dir|position|color|theme"
    r"|fontFamily|variant|route|slug|rel|method|component|layout)$",
    re.IGNORECASE,
)
"""Keys whose values, if they are words in lower case without spaces, are for the program."""
_LOWER = re.compile(r"[a-z][a-z0-9-]*")
_KEY_OF_LANGUAGE = re.compile(r"(?:^|[^a-z])(?:lang|language|locale|lng|hreflang)(?:[_-]?code)?$", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")
_FORMULA = re.compile(r"=\s*[-+]?(?:[A-Za-z_.]+\(|\$?[A-Za-z]{1,3}\$?\d|\d|'[^']*'!|\"|\()")
_ZONE = re.compile(r"[A-Z][A-Za-z]+/[\w/+-]+")
_PATTERN = re.compile(r"(?:[GyYuMLdDEeacbBHhKkmsSAzZOvVXxQqwW]|[\s/.,:;()\[\]年月日時分秒-]|'[^']*'|T)+")
_FIELD = re.compile(r"[A-Za-z]+")
_SAME_LETTERS = re.compile(r"([A-Za-z])\1*")
_LETTERS_OF_PATTERN = "yYMdDEHhms"
_PROPERTY = re.compile(
    r"\s*(?:--[\w-]+|(?:-(?:webkit|moz|ms)-)?(?:color|background|fonts?|margin|padding|border|display|width|height"
    r"|min|max|top|left|right|bottom|position|text|line|letter|word|opacity|float|clear|overflow|cursor|z-index"
    r"|transform|transition|animation|flex|grid|gap|align|justify|white-space|visibility|vertical-align|list-style"
    r"|box|outline|fill|stroke)(?:-[a-z]+)*)\s*:\s*\S"
)
_RULES = re.compile(r"(?:[^{}]*+\{[^{}]*+\}\s*+)+")
_BODY = re.compile(r"\{([^{}]*+)\}")
_SCRIPT = re.compile(
    r"javascript:|(?:async\s+)?function\b\s*[\w$]*\s*\(|(?:var|let|const)\s+[\w$]+\s*=|\([\w$, ]*\)\s*=>"
    r"|[\w$]+(?:\.[\w$]+)+\s*=[^=]"
)
_CALL = re.compile(r"[\w$]+(?:\.[\w$]+)*\(")


def is_code(text: str, key: str = "") -> bool:
    """Whether a string, without white space around it, is a value for programs, not a text for people.

    `key`: the key of the string in its file; `en` is a code only under a key such as `lang`.

    >>> list(filter(is_code, ("Save", "user_name", "yyyy-MM-dd", "=SUM(A1:A3)", "color: red;", "2nd")))
    ['user_name', 'yyyy-MM-dd', '=SUM(A1:A3)', 'color: red;']
    """
    if _FORMULA.match(text) or _is_style(text) or _is_script(text) or _DATA.match(text):
        return True
    if _PATH_OF_SVG.fullmatch(text) and sum(map(str.isdigit, text)) > 2:
        return True
    if len(text) > LONGEST_CODE:
        return False
    if _LANGUAGE.fullmatch(text) and _KEY_OF_LANGUAGE.search(key):
        return True
    if _LAYOUT.search(key) or (len(text) < 3 and _ACCESS_KEY.search(key)) or _ICON.fullmatch(text):
        return True
    # A button may be labeled `left`, and so may its alignment: only the key tells.
    if _LOWER.fullmatch(text) and _VALUE_KEY.search(key) and text != key.casefold():
        return True
    if _CODE.fullmatch(text) or _is_date_pattern(text):
        return True
    return bool(_ZONE.fullmatch(text)) and text in _zones()


def _is_date_pattern(text: str) -> bool:
    """Whether a text is a pattern such as `d MMM yyyy` or `HH:mm`; single words such as `Daddy` and `Hmm` are not.

    A pattern has only field letters. At least two of them are repeated; or one is, and each part is one field.
    """
    if not _PATTERN.fullmatch(text):
        return False
    # Letters in quotes and the `T` between date and time are not fields.
    letters = re.sub(r"'[^']*'", " ", text).replace("T", " ")
    parts = _FIELD.findall(letters)
    fields = [match[0] for match in _SAME_LETTERS.finditer(letters)]
    repeated = {field[0] for field in fields if len(field) > 1 and field[0] in _LETTERS_OF_PATTERN}
    if len(repeated) > 1:
        return True
    has_one_field_each = len(fields) == len(parts)
    # Four letters stand for a full name or year: `MMMM` alone is a pattern, `mm` alone could be a unit.
    if any(field[0] in "yYMEL" and len(field) == 4 for field in fields):
        return has_one_field_each
    return bool(repeated) and len(parts) > 1 and has_one_field_each and text[0] not in ".,;"


def _is_style(text: str) -> bool:
    """Whether a text is a style sheet, or declarations such as `color: red; margin: 0`."""
    if text.startswith("@media") and text.endswith("}"):
        return True
    if text.endswith("}"):
        return bool(_RULES.fullmatch(text)) and all(map(_are_declarations, _BODY.findall(text)))
    return ";" in text and _are_declarations(text)


def _are_declarations(text: str) -> bool:
    declarations = list(filter(str.strip, text.split(";")))
    return bool(declarations) and all(map(_PROPERTY.match, declarations))


def _is_script(text: str) -> bool:
    if text.startswith("javascript:"):
        return True
    return text.endswith((";", "}")) and bool(_SCRIPT.match(text) or (_CALL.match(text) and text.endswith(");")))


@cache
def _zones() -> frozenset[str]:
    from babel.core import get_global

    return frozenset(get_global("zone_territories")) | frozenset(get_global("zone_aliases"))
