"""Positions in JSON, and members that are added to its objects in the style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from translucid.documents.splicing import Edit, TextFile

_BLANK = re.compile(r"[ \t\r\n]*")
_SIGN = re.compile(r'["{}\[\]]')
_LITERAL = re.compile(r"[^\s,\]}]+")
_FIRST_KEY = re.compile(r"\s*\{(\r?\n)?([ \t]*)\"")
_COLON = re.compile(r'"([ \t]*:[ \t]*)[{\["\w]')


class Member(NamedTuple):
    """A member of an object, and its offsets."""

    key: str
    key_start: int
    start: int
    """The start of the value."""
    end: int


def skip_blank(text: str, at: int) -> int:
    """Return the offset of the next character that is not white space."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def members(text: str, start: int) -> Iterator[Member]:
    """Yield the members of the object that begins at `start` in valid JSON."""
    at = skip_blank(text, start + 1)
    while text[at] == '"':
        key, end = scanstring(text, at + 1, True)
        value = skip_blank(text, skip_blank(text, end) + 1)
        value_end = _end(text, value)
        yield Member(key, at, value, value_end)
        at = skip_blank(text, value_end)
        if text[at] == ",":
            at = skip_blank(text, at + 1)


def _end(text: str, start: int) -> int:
    """Return the end of the value that begins at `start` in valid JSON."""
    if text[start] not in '"{[':
        match = _LITERAL.match(text, start)
        return match.end() if match else start
    depth, at = 0, start
    while match := _SIGN.search(text, at):
        at = match.end()
        if match[0] == '"':
            at = scanstring(text, at, True)[1]
        else:
            depth += 1 if match[0] in "{[" else -1
        if depth == 0:
            break
    return at


class JsonStyle(NamedTuple):
    """The white space of a file of JSON."""

    indentation: str | None
    """The indentation of the first level; None if everything is on one line."""
    colon: str
    """The colon between key and value, with the white space around it."""
    line_end: str

    @classmethod
    def of(cls, file: TextFile) -> JsonStyle:
        """Return the style of a file."""
        first, colon = _FIRST_KEY.match(file.text), _COLON.search(file.text)
        indentation = first[2] if first and first[1] else None
        return cls(indentation, colon[1] if colon else ":", file.line_end)

    def written(self, value: Any, before: str) -> str:
        """Return a value as JSON with sorted keys; `before`: the white space at the beginning of its line."""
        separators = (",", self.colon)
        written = json.dumps(value, ensure_ascii=False, indent=self.indentation, separators=separators, sort_keys=True)
        return written.replace("\n", f"{self.line_end}{before}")

    def replacement(self, text: str, member: Member, value: Any) -> Edit:
        """Return the edit that replaces the value of a member."""
        return Edit(member.start, member.end, self.written(value, _indentation(text, member.key_start)))

    def addition(self, text: str, start: int, end: int, key: str, value: Any) -> Edit:
        """Return the edit that adds a member to an object, in the order of its keys if they are sorted.

        Args:
            text: the file.
            start: the start of the object.
            end: its end.
            key: the new key, which the object lacks.
            value: the value.
        """
        present = list(members(text, start))
        if not present:
            return Edit(start, end, self.written({key: value}, _indentation(text, start)))
        before = _indentation(text, present[0].key_start)
        space = "" if self.indentation is None else f"{self.line_end}{before}"
        new = f"{json.dumps(key, ensure_ascii=False)}{self.colon}{self.written(value, before)}"
        keys = [member.key for member in present]
        if keys == sorted(keys):
            for member in present:
                if member.key > key:
                    return Edit(member.key_start, member.key_start, f"{new},{space}")
        last = present[-1].end
        return Edit(last, last, f",{space}{new}")


def _indentation(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of a character."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
