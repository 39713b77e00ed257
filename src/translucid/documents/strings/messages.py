"""Messages of programs: strings that may contain tags and the plurals and selections of ICU MessageFormat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from translucid.data.non_translatable import STYLE_OR_SCRIPT, is_non_translatable, kept_parts
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.markup.html_elements import VOID
from translucid.documents.spans import Part, Span, spanned
from translucid.documents.strings.codes import is_code
from translucid.documents.tagged_text import Side

DEEPEST = 20
"""The largest depth of nested plurals and selections."""
_TAG = re.compile(
    r"<(?P<kept>code|kbd|samp|var|pre|ph|bpt|ept|it)\b[^<>]*>[^<]*</(?P=kept)>"
    rf"|{STYLE_OR_SCRIPT}"
    r"|<!--[^<-]*+(?:(?:<(?!!--)|-(?!->))[^<-]*+)*-->"
    # Ruby's %<count>d is not a tag.
    r"|(?<!%)<(?P<close>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(?P<single>/?)>",
    re.DOTALL,
)
_ARGUMENT = re.compile(
    r"\{\s*[\w.-]+\s*,\s*(plural|select|selectordinal)\s*,"
    r"|(?<!\{)\{\s*[\w.-]+\s*,\s*"  # but not i18next's {{count, number}}
)
_CASE = re.compile(r"\s*(?:offset\s*:\s*\d+\s+)?[=\w-]+\s*\{")
QUOTED = re.compile(r"'(?:[{}]++|\{[^{}'\n]*+\}|\{\{[^{}'\n]*+\}\})'")
"""Quoted braces, which are text in ICU MessageFormat."""
_BRACE = re.compile(rf"(?P<quoted>{QUOTED.pattern})|<[A-Za-z/][^<>]*>|(?P<brace>[{{}}])")
_SIGN = re.compile(rf"(?P<quoted>{QUOTED.pattern})|#")
_WITH_KEY = re.compile(r"^(?:_(?=[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f])|([A-Z])_(?=[a-z]+$))")
"""A word with the marker of its access key, such as `_File` and `E_xit`."""
_BAR = re.compile(r"(?<=\s)\|(?=\s)")
"""A bar between the plural forms of a message, as in vue-i18n, or between the parts of a title."""


def is_language(text: str, key: str = "") -> bool:
    """Whether a string is a text for people, not an address, a path, an identifier, a colour or a date.

    >>> list(filter(is_language, ("Save", "user_name", "img/a.png", "#fff", "2024-01-31T10:00", "en-US")))
    ['Save']

    Args:
        text: the string.
        key: the key of the string in its file, if it has one.
    """
    text = text.strip()
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
) -> list[Span]:
    """Return the spans of a message: the message, and each case of its ICU plurals and selections.

    A plural or selection is a mark in the text around it. The parts between bars are spans of their own.

    Args:
        text: the message.
        syntax: the syntax of its placeholders.
        accelerators: whether `_` or `&` may mark the letter of an access key.
        doubled: whether apostrophes are written twice; by default, this is inferred from the message.
        decode: turns parts of the text into characters.
    """
    if _doubles(text, doubled):
        decode = partial(_undoubled, decode)
    to_span = partial(spanned, text, decode=decode, syntax=syntax)
    arguments = _arguments(text, 0, len(text))
    if accelerators and not arguments and (key := _accelerator(text)) is not None:
        marker = Part(key, key + 1, Side.alone)
        span = to_span([*tagged_parts(text, 0, key, False), marker, *tagged_parts(text, key + 1, len(text), False)])
        return [span] if span else []
    if accelerators and not is_language(text):
        return []
    if arguments or _TAG.search(text):
        return list(_spans(text, 0, len(text), to_span))
    spans: list[Span] = []
    for start, end in _between_bars(text, syntax):
        spans += _spans(text, start, end, to_span)
    return spans


def message_writer(text: str, *, doubled: bool | None = None) -> Callable[[str], str]:
    """Return a function that encodes words for a message, with apostrophes that ICU does not misread.

    Args:
        text: the message.
        doubled: whether apostrophes are written twice, as for `message_spans`.
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


def _between_bars(text: str, syntax: PlaceholderSyntax) -> Iterator[tuple[int, int]]:
    """Yield the ranges between bars with spaces around them, but not bars in placeholders such as `{{ x | upper }}`."""
    start = 0
    if " |" in text:
        placeholders = kept_parts(text, syntax)
        placeholder = next(placeholders, None)
        for bar in _BAR.finditer(text):
            while placeholder and placeholder[2] <= bar.start():
                placeholder = next(placeholders, None)
            if not placeholder or bar.start() < placeholder[1]:
                yield start, bar.start()
                start = bar.end()
    yield start, len(text)


def _spans(
    text: str,
    start: int,
    end: int,
    to_span: Callable[[Iterable[Part]], Span | None],
    depth: int = 0,
    in_plural: bool = False,
) -> Iterator[Span]:
    """Yield the spans of a part of the text; `in_plural`: whether `#` stands for a number."""
    parts: list[Part] = []
    position = start
    arguments = _arguments(text, start, end) if depth < DEEPEST else []
    for argument in arguments:
        parts += tagged_parts(text, position, argument.start, in_plural)
        parts.append(Part(argument.start, argument.end, Side.alone, word=True))
        position = argument.end
    parts += tagged_parts(text, position, end, in_plural)
    if span := to_span(parts):
        yield span
    for argument in arguments:
        for case_start, case_end in argument.cases:
            yield from _spans(text, case_start, case_end, to_span, depth + 1, argument.counts)


def tagged_parts(text: str, start: int, end: int, in_plural: bool = False) -> Iterator[Part]:
    """Yield words and tags; `in_plural`: whether `#` stands for a number."""
    position = start
    for match in _TAG.finditer(text, start, end):
        yield from _signs(text, position, match.start(), in_plural)
        position = match.end()
        name = match["name"] or ""
        is_element = name != "" and name.lower() not in VOID
        side = Side.alone
        if is_element and not match["single"]:
            side = Side.of_tag(closes=match["close"])
        yield Part(*match.span(), side, name, word=is_element or bool(match["kept"]))
    yield from _signs(text, position, end, in_plural)


def _signs(text: str, start: int, end: int, in_plural: bool) -> Iterator[Part]:
    """Yield words, quoted braces, and `#` signs that stand for a number."""
    position = start
    for match in _SIGN.finditer(text, start, end):
        if match["quoted"] or in_plural:
            yield Part(position, match.start())
            yield Part(*match.span(), Side.alone, word=True)
            position = match.end()
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


def _closing(text: str, start: int, end: int) -> int | None:
    """Return the offset of the brace that closes the one at `start`; None if there is none before `end`."""
    depth = 0
    for match in _BRACE.finditer(text, start, end):
        if match["brace"]:
            depth += 1 if match["brace"] == "{" else -1
            if depth == 0:
                return match.start()
    return None
