"""Fluent's .ftl: values and attributes of messages; the variants of selections are translated one by one.

Terms stay: most are names of products. No variants are added: a language with more plural forms uses the default one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from bitext.cancellation import between_steps
from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.spans import LineNumbers, Part, Span, Spans, TextFile, spanned
from bitext.documents.strings.messages import DIVIDER, divided, is_language, tagged_parts, wraps
from bitext.documents.tagged_text import Side
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.protected_spans import PlaceholderSyntax

DEEPEST = 50
"""The largest depth of nested placeables."""
_LINE_END = r"\r?\n"
_COMMENT = re.compile(rf"(?P<signs>#{{1,3}})(?: (?P<text>[^\n]*?))?(?:{_LINE_END}|\r?\Z)")
_BLANK = re.compile(rf"[ ]*(?:{_LINE_END}|\r?\Z)")
_ENTRY = re.compile(r"(?P<term>-?)(?P<name>[A-Za-z][\w-]*)[ ]*=[ ]*")
_NEXT_ENTRY = re.compile(r"\n(?=[A-Za-z#-])")
_ATTRIBUTE = re.compile(rf"(?:[ ]*{_LINE_END})+[ ]*\.(?P<name>[A-Za-z][\w-]*)[ ]*=[ ]*")
_TEXT = re.compile(r"[^{}\r\n]+|\r(?!\n)")
_CONTINUATION = re.compile(rf"(?:[ ]*{_LINE_END})+(?:[ ]+(?=[^ \[*.}}{{\r\n])|[ ]*(?=\{{))")
"""Line ends, and the indentation of the line that continues a pattern."""
_EXPRESSION = re.compile(r'(?:[^"{}>\n]|\n(?![A-Za-z#-])|"(?:[^"\\\r\n]|\\.)*"|(?<!-)>)*')
_VARIANT = re.compile(rf"(?:[ ]*{_LINE_END})+[ ]*\*?\[[ \r\n]*[\w.-]+[ \r\n]*\][ ]*")
_CLOSE = re.compile(r"[ \r\n]*\}")
_VARIABLE = re.compile(r"\{ *\$[A-Za-z][\w-]* *\}")
_BRACE = re.compile(rf"{_VARIABLE.pattern}|[{{}}]")
_FOLDED = re.compile(r"[\r\n]\s*")
_TRAILING = re.compile(r"(?<! ) +(?=\r?\n)")
_KEYS = re.compile(r".*(?:access|command)key", re.IGNORECASE)
"""The names of messages and attributes for keys of the keyboard."""
_FIXED = re.compile(r"key|style|class|id|src|href|data-.*", re.IGNORECASE)
"""The names of attributes that are not text."""


def read(name: str, content: bytes, languages: Languages) -> Fluent:
    """Parse a file of messages.

    Raises:
        UserError: the file has text, but no entry.
    """
    return Fluent(TextFile.of(name, content))


class _JunkError(Exception):
    """This is no entry. It has no message: counting the lines before each one would take quadratic time."""


class Fluent:
    """A file of messages."""

    def __init__(self, file: TextFile) -> None:
        """Add the segments of all messages.

        Raises:
            UserError: the file has no entry.
        """
        self.file, self.segments = file, SegmentList(file.name)
        self._spans = Spans(file.text)
        self._lines = LineNumbers(file.text)
        self._added: list[tuple[Span, Segment]] = []  # the segments of the current entry
        self._entries = 0
        self._junk: int | None = None  # the offset of the first line that is no entry
        text, offset = file.text, 0
        notes: list[str] = []
        while offset < len(text):
            between_steps()
            if comment := _COMMENT.match(text, offset):
                offset = comment.end()
                # Two or three signs begin a comment on all entries that follow.
                if comment["signs"] == "#":
                    notes.append((comment["text"] or "").strip())
            elif blank := _BLANK.match(text, offset):
                offset, notes = blank.end(), []
            else:
                offset, notes = self._entry_or_junk(offset, "\n".join(notes) or None), []
        if self._junk is not None and not self._entries:
            raise self._invalid(self._junk)

    def _entry_or_junk(self, offset: int, note: str | None) -> int:
        """Add the segments of an entry, and return its end.

        As in Fluent's own parsers, what is no entry is junk up to the next line that may begin one; it does not change.
        """
        count = len(self._added)
        try:
            end = self._entry(offset, note)
        except _JunkError:
            del self._added[count:]
            self._junk = offset if self._junk is None else self._junk
            following = _NEXT_ENTRY.search(self.file.text, offset)
            return following.end() if following else len(self.file.text)
        self._entries += 1
        for span, segment in self._added:
            number = self.segments.add(segment)
            before = span.start
            while before and self.file.text[before - 1] == " ":
                before -= 1
            begins_line = self.file.text[before - 1 : before] == "\n"
            self._spans.add(number, span, _written, partial(_written, at_line_start=True), begins_line=begins_line)
        self._added.clear()
        return end

    def _entry(self, offset: int, note: str | None) -> int:
        """Add the segments of an entry, and return its end."""
        entry = _ENTRY.match(self.file.text, offset)
        if not entry:
            raise _JunkError
        is_term, name = bool(entry["term"]), entry["name"]
        offset = self._value(entry.end(), name, note, add=not is_term and not _KEYS.fullmatch(name))
        while attribute := _ATTRIBUTE.match(self.file.text, offset):
            name = attribute["name"]
            is_text = not (is_term or _FIXED.fullmatch(name) or _KEYS.fullmatch(name))
            offset = self._value(attribute.end(), name, note, add=is_text)
        blank = _BLANK.match(self.file.text, offset)
        if not blank:
            raise _JunkError
        return blank.end()

    def _value(self, offset: int, name: str, note: str | None, *, add: bool) -> int:
        """Read a pattern, add its segments if `add`, and return its end."""
        spans: list[list[Part]] = []
        parts, end = self._pattern(offset, spans, 0)
        for span in [parts, *spans] if add else ():
            self._add(span, name, note)
        return end

    def _add(self, parts: list[Part], name: str, note: str | None) -> None:
        """Add the blocks of a pattern, or of that of a variant, as segments."""
        for block in divided(parts):
            span = spanned(self.file.text, block, syntax=PlaceholderSyntax.message)
            if span and is_language(span.marked.text, name):
                # The variants of a selection come after the text around it, so lines are not in order.
                self._added.append((span, Segment(span.marked, f"line {self._lines.at(span.start)}", note=note)))

    def _pattern(self, offset: int, variants: list[list[Part]], depth: int) -> tuple[list[Part], int]:
        """Return the parts of a pattern and its end; the parts of variants in it are added to `variants`."""
        text, parts = self.file.text, list[Part]()
        while offset < len(text):
            if words := _TEXT.match(text, offset):
                parts += tagged_parts(text, offset, words.end())
                offset = words.end()
            elif variable := _VARIABLE.match(text, offset):
                parts.append(Part(offset, variable.end()))
                offset = variable.end()
            elif text[offset] == "{":
                end = self._placeable(offset, variants, depth)
                parts.append(Part(offset, end, Side.alone, word=True))
                offset = end
            elif line := _CONTINUATION.match(text, offset):
                line_start = text.rfind("\n", 0, offset) + 1
                if wraps(text[line_start:offset], text, line):
                    parts.append(Part(offset, line.end(), Side.alone, spaces=True))
                else:
                    parts.append(Part(offset, line.end(), Side.alone, DIVIDER))
                offset = line.end()
            else:
                break
        return parts, offset

    def _placeable(self, offset: int, variants: list[list[Part]], depth: int) -> int:
        """Return the end of a placeable; the parts of variants in it are added to `variants`."""
        text = self.file.text
        if depth > DEEPEST:
            raise _JunkError
        expression = _EXPRESSION.match(text, offset + 1)
        assert expression  # The pattern also matches the empty string.
        end = expression.end()
        if text.startswith("{", end) and not expression[0].strip():
            end = self._placeable(end, variants, depth + 1)
        elif text.startswith(">", end):
            end += 1
            while variant := _VARIANT.match(text, end):
                # Added before its pattern is read, so that a variant comes before the variants in it.
                parts: list[Part] = []
                variants.append(parts)
                pattern, end = self._pattern(variant.end(), variants, depth + 1)
                parts += pattern
        close = _CLOSE.match(text, end)
        if not close:
            raise _JunkError
        return close.end()

    def _invalid(self, offset: int) -> UserError:
        what = "is not Fluent: here is no entry of the form key = text"
        return UserError(
            what, file=self.file.name, line=self.file.line(offset), fix="FreeMarker templates are not translated."
        )

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations."""
        edits = self._spans.edits(targets)
        # The model reads a space for a line end; this space is not written to the file.
        return self.file.spliced(edit._replace(new=_TRAILING.sub("", edit.new)) for edit in edits)


def _written(text: str, *, at_line_start: bool = False) -> str:
    r"""Return a text escaped for a pattern; `at_line_start`: whether it may begin a line.

    >>> _written("{ $n } {x}"), _written("[a]", at_line_start=True)
    ('{ $n } {"{"}x{"}"}', '{"["}a]')
    """
    *lines, last = _FOLDED.split(text)
    # `_FOLDED` does not match the blanks before a line end: on long runs of blanks, it would take quadratic time.
    text = _BRACE.sub(_escaped_brace, " ".join([*(line.rstrip(" \t") for line in lines), last]))
    if at_line_start and text.startswith(("[", "*", ".")):
        return f'{{"{text[0]}"}}{text[1:]}'
    return text


def _escaped_brace(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) > 1 else f'{{"{match[0]}"}}'
