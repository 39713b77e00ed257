"""The entries of a .po file, with the positions of their strings, flags and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from translucid.documents.splicing import LINE_END, TextFile
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

OURS = "# translucid:"
"""The beginning of our comment on a translation, which replaces an earlier one."""
_LINE = re.compile(rf"[^\r\n]*(?:{LINE_END}|\Z)")
_STRING = r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"'
_END = r"[ \t]*(?:\r|$)"
_KEYWORD = re.compile(
    rf"[ \t]*(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{{1,3}})\])?[ \t]*(?={_STRING}{_END})", re.MULTILINE
)
_MORE = re.compile(rf"[ \t]*({_STRING}){_END}", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class Value:
    """A string of an entry, in one or more lines."""

    keyword: str
    """The keyword with its index, if it has one: `msgstr[1]`."""
    line: int
    """The offset of the beginning of the keyword's line."""
    start: int
    """The offset of the first quote."""
    end: int
    """The offset behind the last quote."""
    text: str


@dataclass
class Entry:
    """A message, or the header, whose `source` is empty."""

    start: int
    """The offset of the first line, which may be a comment."""
    comments: list[tuple[int, int]] = field(default_factory=list)
    """The start and end of each comment line, including its line end."""
    values: dict[str, Value] = field(default_factory=dict)
    """The strings by keyword, except the translations."""
    forms: dict[int, Value] = field(default_factory=dict)
    """The translations (`msgstr`) by plural form; form 0 without plurals."""
    flags: list[str] = field(default_factory=list)
    flag_line: tuple[int, int] | None = None
    notes: list[str] = field(default_factory=list)
    """The comments of programmers."""

    @property
    def source(self) -> str:
        """The `msgid`."""
        return self.values["msgid"].text

    @property
    def plural(self) -> str | None:
        """The `msgid_plural`, if the message has plural forms."""
        value = self.values.get("msgid_plural")
        return value.text if value else None

    @property
    def note(self) -> str | None:
        """The message context and the comments of programmers, if there are any."""
        notes = self.notes
        if context := self.values.get("msgctxt"):
            notes = [context.text, *notes]
        return "; ".join(notes) or None

    @property
    def fuzzy(self) -> bool:
        """Whether a person has to check the translation."""
        return "fuzzy" in self.flags


def entries(name: str, file: TextFile) -> Iterator[Entry]:
    """Yield the entries of a file, except obsolete ones.

    Args:
        name: the file name for messages.
        file: the file.

    Raises:
        UserError: a line has invalid syntax, or an entry is incomplete.
    """
    text, at, entry = file.text, 0, None
    while at < len(text):
        between_steps()
        end = _line_end(text, at)
        line = text[at:end].strip()
        # A new entry may follow without a blank line. `#~` begins an obsolete entry.
        begins = line.startswith(("#", "msgctxt")) or bool(re.match(r"msgid\b", line))
        if entry and entry.values and (not line or (begins and (entry.forms or line.startswith("#~")))):
            yield _complete(name, file, entry)
            entry = None
        if not line or line.startswith("#~"):
            # Comments with a blank line behind them belong to no entry.
            if entry and not entry.values:
                entry = None
            at = end
            continue
        entry = entry or Entry(at)
        if line.startswith("#"):
            _comment(entry, line, at, end)
            at = end
        else:
            at = _value(name, file, entry, at)
    if entry and entry.values:
        yield _complete(name, file, entry)


def _line_end(text: str, at: int) -> int:
    """Return the beginning of the next line, or the end of the file."""
    line = _LINE.match(text, at)
    return line.end() if line else len(text)


def _comment(entry: Entry, line: str, start: int, end: int) -> None:
    entry.comments.append((start, end))
    if line.startswith("#,"):
        entry.flags += filter(None, map(str.strip, line[2:].split(",")))
        entry.flag_line = entry.flag_line or (start, end)
    elif line.startswith("#."):
        entry.notes.append(line[2:].strip())


def _value(name: str, file: TextFile, entry: Entry, at: int) -> int:
    """Read a string, and return the offset of the line behind it."""
    text = file.text
    keyword = _KEYWORD.match(text, at)
    if not keyword:
        raise UserError("is not a line of a .po file", file=name, line=file.line(at))
    start, parts = keyword.end(), []
    part, end = _MORE.match(text, start), start
    while part:
        parts.append(part[1][1:-1])
        end = part.end(1)
        at = _line_end(text, part.end())
        part = _MORE.match(text, at)
    label = keyword[1]
    if keyword[2]:
        label += f"[{keyword[2]}]"
    value = Value(label, keyword.start(), start, end, unescaped("".join(parts)))
    if keyword[1] == "msgstr":
        entry.forms[int(keyword[2] or 0)] = value
    else:
        entry.values[keyword[1]] = value
    return at


def _complete(name: str, file: TextFile, entry: Entry) -> Entry:
    if "msgid" not in entry.values or not entry.forms:
        values = (*entry.values.values(), *entry.forms.values())
        first = min((value.line for value in values), default=entry.start)
        raise UserError("is an entry without msgid or msgstr", file=name, line=file.line(first))
    if entry.plural is None and set(entry.forms) != {0}:
        plural_form = next(filter(None, entry.forms))
        line = file.line(entry.forms[plural_form].line)
        raise UserError("has forms of a plural, but no msgid_plural", file=name, line=line, fix="Add it.")
    return entry


def unescaped(raw: str) -> str:
    r"""Return the characters of the content of a quoted string.

    >>> unescaped(r"a\tb\"c\"\x41")
    'a\tb"c"A'
    """

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2]:
            return chr(int(match[2], 8))
        return _NAMED.get(match[3], match[3])

    return _ESCAPE.sub(character, raw)
