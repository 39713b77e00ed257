"""Sentence pairs of .po files: messages of a program and their translations (GNU gettext)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.lines import lines, one_space, tell_bad

LONGEST_ENTRY = 100_000
"""Characters of an entry, at most: polib takes time that grows with the square of the lines of one."""
_FIX = "msgfmt -c says what is wrong with it."


def read_po(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, message, translation) of what is translated: fuzzy and obsolete entries are not.

    Of a plural, the singular has the first of the forms, the plural the last; where there is one form alone, it is
    that of the plural.

    Raises:
        UserError: the file is unreadable, or an entry can't be read and nobody is told of it.
    """
    for first, entry in _entries(path, on_bad):
        for source, target in _pairs(path, first, entry, on_bad):
            if target.strip():
                yield first, one_space(source), one_space(target)


def _entries(path: Path, on_bad: OnBad) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each entry, and the number of the first one that is no comment.

    An entry ends at a blank line, and where a comment or a message follows a translation.
    """
    first, entry, size, translated = 0, list[str](), 0, False
    spoiled = False  # a line of it can't be read
    for number, line in enumerate(lines(path, on_bad), 1):
        text = "" if line is None else line.strip()
        next_begins = text.startswith(("#", "msgctxt", "msgid")) and not text.startswith("msgid_plural")
        if line is not None and (not text or (translated and next_begins)):
            if first and not spoiled:
                yield first, entry
            first, entry, size, translated, spoiled = 0, [], 0, False, False
        if not first and text and not text.startswith("#"):
            first = number
        size += len(text)
        if size > LONGEST_ENTRY and not spoiled:
            tell_bad(path, number, f"an entry of more than {LONGEST_ENTRY:,} characters", "Split it.", text, on_bad)
        spoiled = spoiled or line is None or size > LONGEST_ENTRY
        translated = translated or text.startswith("msgstr")
        if text and not spoiled:
            entry.append(text)
    if first and not spoiled:
        yield first, entry


def _pairs(path: Path, first: int, lines_of_it: list[str], on_bad: OnBad) -> Iterator[tuple[str, str]]:
    import polib

    try:
        # A text with a line feed is never taken for the name of a file.
        entries = list(polib.pofile("\n".join([*lines_of_it, ""]), encoding="utf-8"))
    except (OSError, ValueError):
        what = next(line for line in lines_of_it if not line.startswith("#"))
        tell_bad(path, first, "is no entry of a .po file", _FIX, what, on_bad)
        return
    for entry in entries:
        if not entry.msgid or entry.obsolete or "fuzzy" in entry.flags:
            continue
        forms = [entry.msgstr_plural[number] for number in sorted(entry.msgstr_plural)] or [entry.msgstr]
        if len(forms) > 1:
            yield entry.msgid, forms[0]
            yield entry.msgid_plural, forms[-1]
        else:
            yield entry.msgid_plural or entry.msgid, forms[0]
