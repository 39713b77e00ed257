"""The messages of a program: strings with tags in them, and ICU's plurals and selections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from translucid.data.fixed import fixed_parts, stands_alone
from translucid.documents.html_elements import VOID
from translucid.documents.marked import Side
from translucid.documents.spans import Part, Span, spanned

LONGEST_CODE = 200
"""Characters of a name, an address or the like, at most."""
DEEPEST = 20
"""Plurals and selections that may stand in each other."""
_TAG = re.compile(
    r"<(?P<kept>code|kbd|samp|var|pre)\b[^<>]*>[^<]*</(?P=kept)>"
    r"|<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->"
    r"|<(?P<close>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(?P<single>/?)>",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:(plural|select|selectordinal)\s*,)?")
_CASE = re.compile(r"\s*(?:offset\s*:\s*\d+\s+)?[=\w-]+\s*\{")
_NUMBER = re.compile("#")
_CODE = re.compile(
    r"\#[0-9a-fA-F]{3,8}"  # colours
    r"|(?:rgb|hsl)a?\([^()]*\)"
    r"|(?:\.{0,2}/|~/|[A-Za-z]:\\)\S*|[\w.-]+(?:/[\w.-]+){2,}/?|[\w-]+/[\w-]+\.\w+|(?:application|text|image)/[\w.+-]+"
    r"|[a-z][a-z0-9]*[A-Z]\w*(?:\(\))?|[\w-]+(?:\.[\w-]+)+(?:\(\))?"  # camelCase, dotted names, files
    r"|\w*_\w+|--?[a-z][\w-]*|@[\w/-]+"  # names, switches
    r"|[a-z]{2,3}-[A-Z]{2}"  # languages
    r"|\{?[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4,12}){1,4}\}?"  # identifiers
    r"|v?\d[\w.:+-]*"  # versions, dates, sizes
)


def is_language(text: str) -> bool:
    """Whether a string is to be read by people; not an address, a path, a name in a program, a colour, a date.

    >>> [text for text in ("Save", "user_name", "img/a.png", "#fff", "2024-01-31T10:00", "en-US") if is_language(text)]
    ['Save']
    """
    text = text.strip()
    return not stands_alone(text) and bool(text) and (len(text) > LONGEST_CODE or not _CODE.fullmatch(text))


def message_spans(text: str, *, icu: bool = False, accelerators: bool = False) -> list[Span]:
    """Return what is to be translated in a message: all of it, or with ICU's syntax each case as well.

    A plural or a selection is a mark in what stands around it.

    Args:
        text: of the message.
        icu: it may have plurals and selections.
        accelerators: a `_` or `&` may stand before the letter of a key.
    """
    if accelerators and (key := _accelerator(text)) is not None:
        parts = [*_parts(text, 0, key, False), Part(key, key + 1, Side.alone), *_parts(text, key + 1, len(text), False)]
        found = spanned(text, parts)
        return [found] if found else []
    return list(_spans(text, 0, len(text), icu, 0))


def _accelerator(text: str) -> int | None:
    """Return where the only sign of an accelerator stands, at the beginning of a word or within a short label."""
    fixed = fixed_parts(text)
    for sign in "_&":
        at = text.find(sign)
        if text.count(sign) != 1 or not text[at + 1 : at + 2].isalnum() or any(sign in part for part in fixed):
            continue
        before = text[at - 1 : at] if at else ""
        label = len(text.split()) <= 4 and text[:1].isupper() and text[at + 1].islower()
        if not before or before.isspace() or before in "([" or (before.isalpha() and label):
            return at
    return None


def _spans(text: str, start: int, end: int, icu: bool, depth: int, number: bool = False) -> Iterator[Span]:
    parts: list[Part] = []
    at = start
    arguments = _arguments(text, start, end) if icu and depth < DEEPEST else []
    for argument in arguments:
        parts += _parts(text, at, argument.start, number)
        parts.append(Part(argument.start, argument.end, Side.alone, word=True))
        at = argument.end
    found = spanned(text, [*parts, *_parts(text, at, end, number)])
    if found:
        yield found
    for argument in arguments:
        for first, behind in argument.cases:
            yield from _spans(text, first, behind, icu, depth + 1, argument.counts)


def _parts(text: str, start: int, end: int, number: bool) -> Iterator[Part]:
    """Yield words and tags; `number`: the sign `#` stands for a number."""
    at = start
    for match in _TAG.finditer(text, start, end):
        yield from _numbered(text, at, match.start(), number)
        at = match.end()
        name = match["name"]
        if not name:
            yield Part(*match.span(), Side.alone, word=bool(match["kept"]))
        elif match["single"] or name.lower() in VOID:
            yield Part(*match.span(), Side.alone, word=match["single"] == "/" and name.lower() not in VOID)
        else:
            yield Part(*match.span(), Side.closes if match["close"] else Side.opens, name, word=True)
    yield from _numbered(text, at, end, number)


def _numbered(text: str, start: int, end: int, number: bool) -> Iterator[Part]:
    at = start
    for match in _NUMBER.finditer(text, start, end) if number else ():
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
    for match in re.compile(r"[{}]").finditer(text, start, end):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return None
