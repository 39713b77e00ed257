"""The messages of a program: strings with tags in them, and ICU's plurals and selections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from translucid.data.non_translatable import STYLE_OR_SCRIPT, kept_parts, stands_alone
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.markup.html_elements import VOID
from translucid.documents.spans import Part, Span, spanned
from translucid.documents.strings.codes import is_code
from translucid.documents.tagged_text import Side

DEEPEST = 20
"""Plurals and selections that may stand in each other."""
_TAG = re.compile(
    r"<(?P<kept>code|kbd|samp|var|pre|ph|bpt|ept|it)\b[^<>]*>[^<]*</(?P=kept)>"
    rf"|{STYLE_OR_SCRIPT}"
    r"|<!--[^<-]*+(?:(?:<(?!!--)|-(?!->))[^<-]*+)*-->"
    # Ruby's %<count>d is no tag.
    r"|(?<!%)<(?P<close>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(?P<single>/?)>",
    re.DOTALL,
)
_ARGUMENT = re.compile(
    r"\{\s*[\w.-]+\s*,\s*(plural|select|selectordinal)\s*,"
    r"|(?<!\{)\{\s*[\w.-]+\s*,\s*"  # but not i18next's {{count, number}}
)
_CASE = re.compile(r"\s*(?:offset\s*:\s*\d+\s+)?[=\w-]+\s*\{")
QUOTED = re.compile(r"'(?:[{}]++|\{[^{}'\n]*+\}|\{\{[^{}'\n]*+\}\})'")
"""Braces that ICU takes for text."""
_BRACE = re.compile(rf"(?P<quoted>{QUOTED.pattern})|<[A-Za-z/][^<>]*>|(?P<brace>[{{}}])")
_SIGN = re.compile(rf"(?P<quoted>{QUOTED.pattern})|#")
_WITH_KEY = re.compile(r"^(?:_(?=[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f])|([A-Z])_(?=[a-z]+$))")
"""A word with the sign of its key, such as `_File` and `E_xit`."""
_BAR = re.compile(r"(?<=\s)\|(?=\s)")
"""Between the plural forms of a message, as vue-i18n has them, or the parts of a title."""


def is_language(text: str, key: str = "") -> bool:
    """Whether a string is to be read by people; not an address, a path, a name in a program, a colour, a date.

    >>> [text for text in ("Save", "user_name", "img/a.png", "#fff", "2024-01-31T10:00", "en-US") if is_language(text)]
    ['Save']

    Args:
        text: the string.
        key: under which a file has it, if it has one.
    """
    text = text.strip()
    if not text or stands_alone(text, PlaceholderSyntax.message):
        return False
    return not is_code(_WITH_KEY.sub(r"\1", text), key)


def has_cases(text: str) -> bool:
    """Whether a message has a plural or a selection in ICU's syntax."""
    return any(argument.cases for argument in _arguments(text, 0, len(text)))


def message_spans(
    text: str,
    *,
    syntax: PlaceholderSyntax = PlaceholderSyntax.message,
    accelerators: bool = False,
    doubled: bool | None = None,
    decode: Callable[[str], str] = str,
) -> list[Span]:
    """Return what is to be translated in a message: all of it, and each case of plurals and selections in ICU's syntax.

    A plural or a selection is a mark in what stands around it. What bars part is translated for itself.

    Args:
        text: of the message.
        syntax: of its placeholders.
        accelerators: a `_` or `&` may stand before the letter of a key.
        doubled: whether an apostrophe is written twice; as the message itself tells if not given.
        decode: gives the characters of what stands in the text.
    """
    reader = _Reader(text, syntax, _undoubling(decode) if _doubles(text, doubled) else decode)
    arguments = _arguments(text, 0, len(text))
    if accelerators and not arguments and (key := _accelerator(text)) is not None:
        sign = Part(key, key + 1, Side.alone)
        parts = [*_parts(text, 0, key, False), sign, *_parts(text, key + 1, len(text), False)]
        found = spanned(text, parts, reader.decode, syntax=syntax)
        return [found] if found else []
    if accelerators and not is_language(text):
        return []
    if not arguments and not _TAG.search(text) and (bars := _bars(text, syntax)):
        edges = [0, *(edge for bar in bars for edge in (bar, bar + 1)), len(text)]
        between = zip(edges[::2], edges[1::2], strict=True)
        return [span for start, end in between for span in reader.spans(start, end, 0)]
    return list(reader.spans(0, len(text), 0))


def message_writer(text: str, *, doubled: bool | None = None) -> Callable[[str], str]:
    """Return what writes words into a message: where ICU reads it, with apostrophes that it does not misread.

    Args:
        text: of the message.
        doubled: see `message_spans`.
    """
    if _doubles(text, doubled):
        return lambda new: new.replace("'", "''")
    if doubled is None and (has_cases(text) or QUOTED.search(text)):
        return lambda new: re.sub(r"'(?=[{}]|\Z)", "''", new)
    return str


def _doubles(text: str, doubled: bool | None) -> bool:
    """Whether each apostrophe of a message is written twice."""
    if doubled is not None:
        return doubled
    return "''" in text and (has_cases(text) or bool(QUOTED.search(text)))


def _undoubling(decode: Callable[[str], str]) -> Callable[[str], str]:
    return lambda raw: decode(raw).replace("''", "'")


def _accelerator(text: str) -> int | None:
    """Return where the only sign of an accelerator stands, at the beginning of a word or within a short label."""
    fixed: list[str] | None = None
    for sign in "_&":
        at = text.find(sign)
        if text.count(sign) != 1 or not text[at + 1 : at + 2].isalnum():
            continue
        if fixed is None:
            fixed = [part for part, _, _ in kept_parts(text, PlaceholderSyntax.message)]
        if any(sign in part for part in fixed):
            continue
        before = text[at - 1 : at] if at else ""
        label = len(text.split()) <= 4 and text[:1].isupper() and text[at + 1].islower()
        if not before or before.isspace() or before in "([" or (before.isalpha() and label):
            return at
    return None


def _bars(text: str, syntax: PlaceholderSyntax) -> list[int]:
    """Return where bars stand between spaces, and in no placeholder, as those of `{{ x | upper }}` do."""
    if " |" not in text:
        return []
    inside = [(first, after) for _, first, after in kept_parts(text, syntax)]
    bars, at = [], 0
    for match in _BAR.finditer(text):
        while at < len(inside) and inside[at][1] <= match.start():
            at += 1
        if at == len(inside) or match.start() < inside[at][0]:
            bars.append(match.start())
    return bars


class _Reader(NamedTuple):
    """Finds what is translated in a message."""

    text: str
    syntax: PlaceholderSyntax
    decode: Callable[[str], str]

    def spans(self, start: int, end: int, depth: int, number: bool = False) -> Iterator[Span]:
        """Yield the spans of a part of the text; `number`: the sign `#` stands for a number."""
        parts: list[Part] = []
        at = start
        arguments = _arguments(self.text, start, end) if depth < DEEPEST else []
        for argument in arguments:
            parts += _parts(self.text, at, argument.start, number)
            parts.append(Part(argument.start, argument.end, Side.alone, word=True))
            at = argument.end
        parts += _parts(self.text, at, end, number)
        found = spanned(self.text, parts, self.decode, syntax=self.syntax)
        if found:
            yield found
        for argument in arguments:
            for first, behind in argument.cases:
                yield from self.spans(first, behind, depth + 1, argument.counts)


def _parts(text: str, start: int, end: int, number: bool) -> Iterator[Part]:
    """Yield words and tags; `number`: the sign `#` stands for a number."""
    at = start
    for match in _TAG.finditer(text, start, end):
        yield from _signs(text, at, match.start(), number)
        at = match.end()
        name = match["name"]
        if not name:
            yield Part(*match.span(), Side.alone, word=bool(match["kept"]))
        elif match["single"] or name.lower() in VOID:
            yield Part(*match.span(), Side.alone, word=match["single"] == "/" and name.lower() not in VOID)
        else:
            yield Part(*match.span(), Side.closes if match["close"] else Side.opens, name, word=True)
    yield from _signs(text, at, end, number)


def _signs(text: str, start: int, end: int, number: bool) -> Iterator[Part]:
    """Yield words, braces in quotes, and signs that stand for a number."""
    at = start
    for match in _SIGN.finditer(text, start, end):
        if match["quoted"] or number:
            yield Part(at, match.start())
            yield Part(*match.span(), Side.alone, word=True)
            at = match.end()
    yield Part(at, end)


class _Argument(NamedTuple):
    """An argument of a message that has a comma in it, such as a plural."""

    start: int
    end: int
    counts: bool
    cases: list[tuple[int, int]]
    """First character and the one behind the last of each case's text."""


def _arguments(text: str, start: int, end: int) -> list[_Argument]:
    """Return those of a message that are not in others; what is not well formed is none."""
    found: list[_Argument] = []
    at = start
    while match := _ARGUMENT.search(text, at, end):
        close = _closing(text, match.start(), end)
        if close is None:
            break
        cases: list[tuple[int, int]] = []
        place = match.end()
        while match[1] and (case := _CASE.match(text, place, close)):
            behind = _closing(text, case.end() - 1, close)
            if behind is None:
                break
            cases.append((case.end(), behind))
            place = behind + 1
        found.append(_Argument(match.start(), close + 1, match[1] in ("plural", "selectordinal"), cases))
        at = close + 1
    return found


def _closing(text: str, start: int, end: int) -> int | None:
    """Return where the brace is that closes the one at `start`."""
    depth = 0
    for match in _BRACE.finditer(text, start, end):
        if match["brace"]:
            depth += 1 if match["brace"] == "{" else -1
            if not depth:
                return match.start()
    return None
