"""Sentence pairs of .po files: the messages of a program and their translations (GNU gettext)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.lines import lines, one_space, tell_bad
from translucid.data.readers.po_entries import Entry, entries


def read_po(path: Path, on_bad: OnBad) -> Iterator[tuple[int, str, str]]:
    """Yield (line, message, translation) of the entries that are translated and neither fuzzy nor obsolete.

    A message with a plural yields two pairs: the singular with the first form, the plural with the last form. In a
    language with a single form, the plural has it.

    Raises:
        UserError: the file is unreadable; or an entry is, and `on_bad` is None.
    """
    for entry in entries(lines(path, on_bad), partial(tell_bad, path, on_bad=on_bad)):
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
