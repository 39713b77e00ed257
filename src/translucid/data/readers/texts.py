"""Texts streamed from files of plain lines, .jsonl or .tsv, compressed or not, with labels if there are any."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from bitext.pair import Pair
from bitext.readers.file_kinds import refuse_as_texts
from bitext.readers.lines import OnBad, kind_of, numbered_lines, one_line, report_bad_line
from translucid.data.filtering import Skipped


def read_texts(*files: str | Path, on_bad: OnBad = None) -> Iterator[Pair]:
    """Yield the texts of files, including blank ones, each with its label, or with "" if it has none.

    A line of plain text is a text, a line of a .tsv file is text TAB label, a line of a .jsonl file is
    {"text": .., "label": ..}. `-` is standard input; if its first line has a tab or is an object, it is .tsv or .jsonl.

    Raises:
        UserError: a file is missing, empty, unreadable or of an unsupported kind, or a line is not UTF-8 or not a text.
    """
    for file in map(Path, files):
        kind = kind_of(file)
        if kind == ".jsonl":
            yield from _jsonl(file, on_bad)
            continue
        if kind != ".tsv":
            refuse_as_texts(str(file))
        for _, line in numbered_lines(file, on_bad):
            text, label = line, ""
            if kind == ".tsv" and "\t" in line:
                text, label = line.split("\t", 2)[:2]
            yield Pair(text, label)


def keep_texts(texts: Iterable[Pair], skipped: Skipped) -> Iterator[Pair]:
    """Yield the texts that are not blank; count those and the others in `skipped`."""
    for text in texts:
        if text.source.strip():
            skipped.kept += 1
            yield text
        else:
            skipped.reasons["empty"] += 1


def _jsonl(file: Path, on_bad: OnBad) -> Iterator[Pair]:
    fix = 'Each line is {"text": "..."}, or with a label {"text": "...", "label": "..."}.'
    for number, line in numbered_lines(file, on_bad):
        try:
            record = json.loads(line)
            text, label = record["text"], record.get("label", "")
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError too
            report_bad_line(file, number, "not JSON", fix, line, on_bad)
        except (KeyError, TypeError, AttributeError):
            report_bad_line(file, number, "has no text", fix, line, on_bad)
        else:
            if isinstance(text, str) and isinstance(label, str | int):
                yield Pair(one_line(text), one_line(str(label)))
            else:
                report_bad_line(
                    file, number, "text must be a string, and label a string or a whole number", fix, line, on_bad
                )
