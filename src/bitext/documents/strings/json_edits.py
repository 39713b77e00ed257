"""Positions in JSON, and members that are added to its objects in the style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.splicing import Edit, TextFile

DEEPEST = 200
"""The largest depth of nested objects and lists."""
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


def skip_blank(text: str, offset: int) -> int:
    """Return the offset of the next character that is not white space."""
    match = _BLANK.match(text, offset)
    return match.end() if match else offset


def members(text: str, start: int) -> Iterator[Member]:
    """Yield the members of the object that begins at `start` in valid JSON.

    Raises:
        RecursionError: a member is nested too deep.
    """
    offset = skip_blank(text, start + 1)
    while text[offset] == '"':
        between_steps()
        key, end = scanstring(text, offset + 1, True)
        value = skip_blank(text, skip_blank(text, end) + 1)
        value_end = _end(text, value)
        yield Member(key, offset, value, value_end)
        offset = skip_blank(text, value_end)
        if text[offset] == ",":
            offset = skip_blank(text, offset + 1)


def _end(text: str, start: int) -> int:
    """Return the end of the value that begins at `start` in valid JSON."""
    if text[start] not in '"{[':
        match = _LITERAL.match(text, start)
        return match.end() if match else start
    depth, offset = 0, start
    while match := _SIGN.search(text, offset):
        offset = match.end()
        if match[0] == '"':
            offset = scanstring(text, offset, True)[1]
        else:
            depth += 1 if match[0] in "{[" else -1
            if depth > DEEPEST:
                raise RecursionError
        if depth == 0:
            break
    return offset


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
        first_key, colon = _FIRST_KEY.match(file.text), _COLON.search(file.text)
        indentation = first_key[2] if first_key and first_key[1] else None
        return cls(indentation, colon[1] if colon else ":", file.line_end)

    def written(self, value: Any, margin: str) -> str:
        """Return a value as JSON with sorted keys; `margin`: the white space at the beginning of its line."""
        separators = (",", self.colon)
        written = json.dumps(value, ensure_ascii=False, indent=self.indentation, separators=separators, sort_keys=True)
        return written.replace("\n", f"{self.line_end}{margin}")

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
        existing = list(members(text, start))
        if not existing:
            return Edit(start, end, self.written({key: value}, _indentation(text, start)))
        margin = _indentation(text, existing[0].key_start)
        space = "" if self.indentation is None else f"{self.line_end}{margin}"
        member_text = f"{json.dumps(key, ensure_ascii=False)}{self.colon}{self.written(value, margin)}"
        keys = [member.key for member in existing]
        if keys == sorted(keys):
            for member in existing:
                if member.key > key:
                    return Edit(member.key_start, member.key_start, f"{member_text},{space}")
        end_of_last = existing[-1].end
        return Edit(end_of_last, end_of_last, f",{space}{member_text}")


def _indentation(text: str, offset: int) -> str:
    """Return the white space at the beginning of the line of a character."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
