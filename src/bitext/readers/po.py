"""The entries of .po files (GNU gettext), parsed line by line, and the sentence pairs in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from bitext.readers.lines import OnBad, lines, one_space, report_bad_line

LONGEST_ENTRY = 1_000_000
"""The most characters of an entry, comments included: a damaged file must not fill the memory."""
_BEGINNING = re.compile(r"#|msgctxt|msgid\b")
"""The beginning of a line that starts a new entry if the last one has a translation, also without a blank line."""
_LINE = re.compile(
    r"[ \t]*(?:(?P<keyword>msgctxt|msgid_plural|msgid|msgstr)(?:\[(?P<form>\d{1,3})\])?[ \t]*)?"
    r'"(?P<raw>[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*)"[ \t]*[\r\n]*\Z'
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))")
NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
"""The characters by the letters of their escapes, as in C."""


Report: TypeAlias = Callable[[int, str, str, str], None]
"""A function that is called with the line number, the problem, its solution and the text of an invalid line."""


@dataclass
class Value:
    """A string of an entry, in one or more lines."""

    keyword: str
    """The keyword with its index, if it has one: `msgstr[1]`."""
    number: int
    """The number of the keyword's line, counted from 1."""
    line: int
    """The offset of the beginning of the keyword's line."""
    start: int
    """The offset of the first quote."""
    end: int
    """The offset after the last quote."""
    raw: list[str]
    """The contents of the quotes, one for each line."""

    @cached_property
    def text(self) -> str:
        """The characters of the string."""
        return unescaped("".join(self.raw))


@dataclass
class Entry:
    """A message, or the header, whose `source` is empty."""

    start: int
    """The offset of the first line, which may be a comment."""
    report: Report
    number: int = 0
    """The number of the first line that is not a comment."""
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
    size: int = 0
    has_msgstr: bool = False
    """Whether a line begins with `msgstr`, even if it is invalid."""
    is_bad: bool = False
    """Whether a line is invalid; the others are then not read."""
    last: Value | None = None
    """The string that the next line may continue."""

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

    def ends_before(self, text: str) -> bool:
        """Whether the entry ends before a line, given without white space at its ends."""
        if not text or text.startswith("#~"):
            return True
        return self.has_msgstr and _BEGINNING.match(text) is not None

    def add(self, number: int, offset: int, line: str, text: str) -> None:
        """Add a line with its number and offset; `text` is the line without white space at its ends."""
        is_comment = text.startswith("#")
        if not is_comment:
            self.number = self.number or number
            self.has_msgstr = self.has_msgstr or text.startswith("msgstr")
        self.size += len(line)
        if self.is_bad:
            return
        if self.size > LONGEST_ENTRY:
            what = f"is in an entry of more than {LONGEST_ENTRY:,} characters"
            self._refuse(number, what, text, "Split it.")
        elif is_comment:
            self._add_comment(text, offset, offset + len(line))
        else:
            self._add_string(number, offset, line)

    def _add_comment(self, text: str, start: int, end: int) -> None:
        self.last = None
        self.comments.append((start, end))
        if text.startswith("#,"):
            self.flags += filter(None, map(str.strip, text[2:].split(",")))
            self.flag_line = self.flag_line or (start, end)
        elif text.startswith("#."):
            self.notes.append(text[2:].strip())

    def _add_string(self, number: int, offset: int, line: str) -> None:
        match = _LINE.match(line)
        if match is None or not (match["keyword"] or self.last):
            self._refuse(number, "is not a line of a .po file", line)
            return
        start, end = offset + match.start("raw") - 1, offset + match.end("raw") + 1
        keyword = match["keyword"]
        if not keyword:
            assert self.last
            self.last.raw.append(match["raw"])
            self.last.end = end
            return
        label = f"{keyword}[{match['form']}]" if match["form"] else keyword
        self.last = value = Value(label, number, offset, start, end, [match["raw"]])
        form = int(match["form"] or 0)
        if keyword in self.values or (keyword == "msgstr" and form in self.forms):
            self._refuse(number, f"is a second {label} of an entry", line)
        elif keyword == "msgstr":
            self.forms[form] = value
        else:
            self.values[keyword] = value

    def _refuse(self, number: int, what: str, text: str, fix: str = "msgfmt -c says what is wrong with it.") -> None:
        self.is_bad = True
        self.report(number, what, fix, text)

    def is_complete(self) -> bool:
        """Whether the entry, whose lines have all been added, is valid and not only a comment."""
        strings = [*self.values.values(), *self.forms.values()]
        if self.is_bad or not strings:
            return False
        first_string = min(strings, key=lambda value: value.line)
        if "msgid" not in self.values or not self.forms:
            self._refuse(first_string.number, "is an entry without msgid or msgstr", first_string.raw[0])
        elif self.plural is None and set(self.forms) != {0}:
            form = self.forms[next(filter(None, self.forms))]
            self._refuse(form.number, "has forms of a plural, but no msgid_plural", form.raw[0], "Add it.")
        return not self.is_bad


def entries(file_lines: Iterable[str | None], report: Report) -> Iterator[Entry]:
    """Yield the valid entries of a file, except obsolete ones.

    Args:
        file_lines: the lines, with their line ends if the offsets are to be those of the text. An entry with a line
            that could not be read, which is None, is left out.
        report: called with the first invalid line of each entry that is left out for it.
    """
    entry: Entry | None = None
    offset = 0
    for number, line in enumerate(file_lines, 1):
        if line is None:
            entry = entry or Entry(offset, report)
            entry.is_bad = True
            continue
        text = line.strip()
        if entry and entry.ends_before(text):
            if entry.is_complete():
                yield entry
            entry = None
        # `#~` begins a line of an obsolete entry.
        if text and not text.startswith("#~"):
            entry = entry or Entry(offset, report)
            entry.add(number, offset, line, text)
        offset += len(line)
    if entry and entry.is_complete():
        yield entry


def read_po(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, message, translation) of the entries that are translated and neither fuzzy nor obsolete.

    A message with a plural yields two pairs: the singular with the first form, the plural with the last form. In a
    language with a single form, the plural has it.

    Raises:
        UserError: the file is unreadable; or an entry is, and `on_bad` is None.
    """
    for entry in entries(lines(path, on_bad), partial(report_bad_line, path, on_bad=on_bad)):
        if entry.source and not entry.fuzzy:
            for source, target in _pairs(entry):
                if target.strip():
                    yield entry.number, one_space(source), one_space(target)


def _pairs(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the message and the translation of an entry, twice if it has a plural."""
    forms = [value.text for _, value in sorted(entry.forms.items())]
    if entry.plural and len(forms) > 1:
        yield entry.source, forms[0]
        yield entry.plural, forms[-1]
    else:
        yield entry.plural or entry.source, forms[0]


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
        return NAMED.get(match[3], match[3])

    return _ESCAPE.sub(character, raw)
