"""Running text from files, streamed, with labels if it has any: plain lines, .jsonl or .tsv, gz or not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from translucid.data.filtering import Skipped
from translucid.data.readers.bad_lines import OnBad
from translucid.data.readers.corpus import Pair
from translucid.data.readers.file_kinds import refuse_as_texts
from translucid.data.readers.lines import kind_of, lines, one_line, tell_bad


def read_texts(*files: str | Path, on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the texts of files, one after the other, each with its label, "" if it has none; blank ones too.

    A line is a text; of a .tsv it is text TAB label, of a .jsonl {"text": .., "label": ..}. `-` is standard input,
    which is the one or the other by its first line: with a tab, or an object.

    Raises:
        UserError: a file is missing, empty, unreadable or a document with a structure of its own, or a line is not
            UTF-8 or no text.
    """
    for file in map(Path, files):
        kind = kind_of(file).lower()
        if kind == ".jsonl":
            yield from _jsonl(file, on_bad)
        elif kind == ".tsv":
            yield from (
                Pair(*line.split("\t", 2)[:2]) if "\t" in line else Pair(line, "") for line in _good(file, on_bad)
            )
        else:
            refuse_as_texts(str(file))
            yield from (Pair(line, "") for line in _good(file, on_bad))


def keep_texts(texts: Iterable[Pair], skipped: Skipped) -> Iterator[Pair]:
    """Yield the texts that are not blank, and count both kinds in `skipped`."""
    for text in texts:
        if text.source.strip():
            skipped.kept += 1
            yield text
        else:
            skipped.reasons["empty"] += 1


def _good(file: Path, on_bad: OnBad) -> Iterator[str]:
    return (line for line in lines(file, on_bad) if line is not None)


def _jsonl(file: Path, on_bad: OnBad) -> Iterator[Pair]:
    fix = 'Each line is {"text": "..."}, or with a label {"text": "...", "label": "..."}.'
    for number, line in enumerate(lines(file, on_bad), 1):
        if line is None:
            continue
        try:
            record = json.loads(line)
            text, label = record["text"], record.get("label", "")
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError too
            tell_bad(file, number, "not JSON", fix, line, on_bad)
        except (KeyError, TypeError, AttributeError):
            tell_bad(file, number, "has no text", fix, line, on_bad)
        else:
            if isinstance(text, str) and isinstance(label, str | int):
                yield Pair(one_line(text), one_line(str(label)))
            else:
                tell_bad(file, number, "text must be a string, and label a string or a whole number", fix, line, on_bad)
