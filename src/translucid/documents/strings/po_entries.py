"""The entries of a .po file, with the places of what may change in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from translucid.documents.splicing import LINE_END, TextFile
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

OURS = "# translucid:"
"""How the comment begins that says what is known of a translation; the one before it is taken away."""
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
    """A string of an entry, over one line or more."""

    keyword: str
    """With its index, if it has one: `msgstr[1]`."""
    line: int
    """Where its line begins."""
    start: int
    """Of the first quote."""
    end: int
    """Behind the last quote."""
    text: str


@dataclass
class Entry:
    """A message, or the header, whose `source` is empty."""

    start: int
    """Of its first line, comments among them."""
    comments: list[tuple[int, int]] = field(default_factory=list)
    """Of each comment line, its end included."""
    values: dict[str, Value] = field(default_factory=dict)
    forms: dict[int, Value] = field(default_factory=dict)
    """What `msgstr` says, by form; 0 if there is but one."""
    flags: list[str] = field(default_factory=list)
    flag_line: tuple[int, int] | None = None
    notes: list[str] = field(default_factory=list)
    """What programmers say about it."""

    @property
    def source(self) -> str:
        """Its `msgid`."""
        return self.values["msgid"].text

    @property
    def plural(self) -> str | None:
        """Its `msgid_plural`."""
        found = self.values.get("msgid_plural")
        return found.text if found else None

    @property
    def note(self) -> str | None:
        """Its context and what programmers say about it."""
        context = self.values.get("msgctxt")
        return "; ".join(([context.text] if context else []) + self.notes) or None

    @property
    def fuzzy(self) -> bool:
        """Whether a person has to look at its translation."""
        return "fuzzy" in self.flags


def entries(name: str, file: TextFile) -> Iterator[Entry]:
    """Yield the entries of a file, obsolete ones left out.

    Args:
        name: of the file, for messages.
        file: of gettext.

    Raises:
        UserError: a line is none of gettext, or an entry is not complete.
    """
    text, at, entry = file.text, 0, None
    while at < len(text):
        between_steps()
        match = _LINE.match(text, at)
        end = match.end() if match else len(text)
        line = text[at:end].strip()
        begins = line.startswith(("#", "msgctxt")) or bool(re.match(r"msgid\b", line))
        if entry and entry.values and (not line or (begins and (entry.forms or line.startswith("#~")))):
            yield _complete(name, file, entry)
            entry = None
        if not line or line.startswith("#~"):
            entry = entry if entry and entry.values else None
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


def _comment(entry: Entry, line: str, start: int, end: int) -> None:
    entry.comments.append((start, end))
    if line.startswith("#,"):
        entry.flags += [flag.strip() for flag in line[2:].split(",") if flag.strip()]
        entry.flag_line = entry.flag_line or (start, end)
    elif line.startswith("#."):
        entry.notes.append(line[2:].strip())


def _value(name: str, file: TextFile, entry: Entry, at: int) -> int:
    """Read a string, and return where the line after it begins."""
    text = file.text
    keyword = _KEYWORD.match(text, at)
    if not keyword:
        raise UserError("is no line of a .po file", file=name, line=file.line(at))
    start, parts = keyword.end(), []
    part, end = _MORE.match(text, start), start
    while part:
        parts.append(part[1][1:-1])
        end = part.end(1)
        line = _LINE.match(text, part.end())
        at = line.end() if line else len(text)
        part = _MORE.match(text, at) if at < len(text) else None
    index = f"[{keyword[2]}]" if keyword[2] else ""
    value = Value(keyword[1] + index, keyword.start(), start, end, unescaped("".join(parts)))
    if keyword[1] == "msgstr":
        entry.forms[int(keyword[2] or 0)] = value
    else:
        entry.values[keyword[1]] = value
    return at


def _complete(name: str, file: TextFile, entry: Entry) -> Entry:
    if "msgid" not in entry.values or not entry.forms:
        first = min((value.line for value in (*entry.values.values(), *entry.forms.values())), default=entry.start)
        raise UserError("is an entry without msgid or msgstr", file=name, line=file.line(first))
    if entry.plural is None and set(entry.forms) != {0}:
        line = file.line(next(value.line for form, value in entry.forms.items() if form))
        raise UserError("has forms of a plural, but no msgid_plural", file=name, line=line, fix="Add it.")
    return entry


def unescaped(raw: str) -> str:
    r"""Return the characters of a string as it stands between quotes.

    >>> unescaped(r"a\tb\"c\"\x41")
    'a\tb"c"A'
    """

    def character(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1], 16) if match[1] else int(match[2], 8))
        return _NAMED.get(match[3], match[3])

    return _ESCAPE.sub(character, raw)
