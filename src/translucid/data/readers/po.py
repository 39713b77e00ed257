"""Sentence pairs of .po files: the messages of a program and their translations (GNU gettext)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.lines import lines, one_space, tell_bad

LONGEST_ENTRY = 100_000
"""The most characters of an entry: polib's time grows with the square of the number of its lines."""
_FIX = "msgfmt -c says what is wrong with it."


def read_po(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, message, translation) of the entries that are translated and neither fuzzy nor obsolete.

    A message with a plural yields two pairs: the singular with the first form, the plural with the last form. In a
    language with a single form, the plural has it.

    Raises:
        UserError: the file is unreadable; or an entry is, and `on_bad` is None.
    """
    for first, entry in _entries(path, on_bad):
        for source, target in _pairs(path, first, entry, on_bad):
            if target.strip():
                yield first, one_space(source), one_space(target)


def _entries(path: Path, on_bad: OnBad) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each entry, and the number of the first line that is not a comment.

    An entry ends at a blank line, and where a comment or a message follows a translation.
    """
    first, entry, size, translated = 0, list[str](), 0, False
    unreadable = False  # a line of the entry can't be read, or the entry is too long
    for number, line in enumerate(lines(path, on_bad), 1):
        if line is None:
            unreadable = True
            continue
        text = line.strip()
        next_begins = text.startswith(("#", "msgctxt", "msgid")) and not text.startswith("msgid_plural")
        if not text or (translated and next_begins):
            if first and not unreadable:
                yield first, entry
            first, entry, size, translated, unreadable = 0, [], 0, False, False
        if not first and text and not text.startswith("#"):
            first = number
        size += len(text)
        if size > LONGEST_ENTRY and not unreadable:
            tell_bad(path, number, f"an entry of more than {LONGEST_ENTRY:,} characters", "Split it.", text, on_bad)
            unreadable = True
        translated = translated or text.startswith("msgstr")
        if text and not unreadable:
            entry.append(text)
    if first and not unreadable:
        yield first, entry


def _pairs(path: Path, first: int, entry_lines: list[str], on_bad: OnBad) -> Iterator[tuple[str, str]]:
    """Yield the message and the translation of an entry, twice if it has a plural."""
    import polib

    try:
        # polib never takes a text with a line feed for the name of a file.
        entries = list(polib.pofile("\n".join([*entry_lines, ""]), encoding="utf-8"))
    except (OSError, ValueError):
        text = next(line for line in entry_lines if not line.startswith("#"))
        tell_bad(path, first, "is no entry of a .po file", _FIX, text, on_bad)
        return
    for entry in entries:
        if not entry.msgid or entry.obsolete or "fuzzy" in entry.flags:
            continue
        forms = [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
        if len(forms) > 1:
            yield entry.msgid, forms[0]
            yield entry.msgid_plural, forms[-1]
        else:
            yield entry.msgid_plural or entry.msgid, forms[0]
