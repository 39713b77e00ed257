"""Differences between the machine's text, a reviewer's corrections and the final text, by segment and in total.

A change is counted in edits of characters (Levenshtein distance) and of words. Its rate is the edits of words relative
to the words of the later text, as in HTER (Snover et al. 2006, section 4) without shifts. chrF takes the later text as
the reference of the earlier one.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from html import escape
from itertools import pairwise
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from bitext.words import words_in
from translucid.evaluation.metrics import sentence_chrf


@dataclass(frozen=True)
class Versions:
    """The texts of a segment."""

    number: int
    source: str
    texts: Sequence[str | None]
    """One for each version; None if the version lacks the segment."""
    comment: str = ""

    def change(self, step: int) -> Change | None:
        """Return the difference between the versions `step` and `step + 1`; None if one of them lacks the segment."""
        before, after = self.texts[step], self.texts[step + 1]
        if before is None or after is None:
            return None
        words, later_words = _words(before), _words(after)
        return Change(
            Levenshtein.distance(before, after),
            Levenshtein.distance(words, later_words),
            len(later_words),
            sentence_chrf([before], [after])[0],
        )


@dataclass(frozen=True)
class Change:
    """The difference between two texts of a segment."""

    characters: int
    """The edits of characters."""
    words: int
    """The edits of words."""
    length: int
    """The number of words of the later text."""
    chrf: float

    @property
    def rate(self) -> float:
        """The edits of words relative to the words of the later text."""
        return self.words / max(self.length, 1)


def _words(text: str) -> list[str]:
    return [word.text for word in words_in(text)]


@dataclass(frozen=True)
class Total:
    """The differences between two versions of a document."""

    before: str
    after: str
    """The names of the versions."""
    segments: int
    """The number of segments that both have."""
    changed: int
    characters: int
    words: int
    rate: float
    """The edits of words relative to all words of the later version."""
    chrf: float
    """The mean over the segments."""

    def __str__(self) -> str:
        share = self.changed / max(self.segments, 1)
        edits = f"edits: {self.words:,} of words ({self.rate:.1%}), {self.characters:,} of characters"
        counts = f"{self.changed:,} of {self.segments:,} segments changed ({share:.0%})"
        return f"{self.before} -> {self.after}: {counts}, {edits}, chrF {self.chrf:.1f}"


@dataclass(frozen=True)
class Differences:
    """The versions of a document, segment by segment."""

    names: Sequence[str]
    """The names of the versions, in order."""
    segments: Sequence[Versions]

    @cached_property
    def changes(self) -> list[list[Change | None]]:
        """The differences of each segment, from each version to the next one."""
        steps = range(len(self.names) - 1)
        return [list(map(segment.change, steps)) for segment in self.segments]

    def totals(self) -> list[Total]:
        """Return the differences from each version to the next one."""
        totals = []
        for step, (before, after) in enumerate(pairwise(self.names)):
            changes = [change for row in self.changes if (change := row[step])]
            words = sum(change.words for change in changes)
            length = sum(change.length for change in changes)
            totals.append(
                Total(
                    before,
                    after,
                    len(changes),
                    sum(change.characters > 0 for change in changes),
                    sum(change.characters for change in changes),
                    words,
                    words / max(length, 1),
                    fmean(change.chrf for change in changes) if changes else 100.0,
                )
            )
        return totals

    def tsv(self) -> str:
        """Return a table with a line for each segment."""
        columns = ["number", "source", *self.names]
        for before, after in pairwise(self.names):
            columns += [f"{before} -> {after}: {name}" for name in ("characters", "words", "rate", "chrF")]
        lines = [[*columns, "comment"]]
        for segment, changes in zip(self.segments, self.changes, strict=True):
            cells = [str(segment.number), segment.source, *(text or "" for text in segment.texts)]
            for change in changes:
                cells += _cells(change) if change else [""] * 4
            lines.append([*cells, segment.comment])
        table = io.StringIO()
        for line in lines:
            cells = [" ".join(cell.split()) for cell in line]
            print(*cells, sep="\t", file=table)
        return table.getvalue()

    def html(self, title: str) -> str:
        """Return a page that shows what was deleted and inserted."""
        parts = [_HEAD.format(title=escape(title))]
        parts += [f"<p>{escape(str(total))}</p>" for total in self.totals()]
        names = "".join(f"<th>{escape(name)}</th>" for name in self.names)
        edits = "".join(f"<th>words, {escape(after)}</th>" for after in self.names[1:])
        parts.append(f"<table><tr><th>no.</th><th>source</th>{names}{edits}<th>comment</th></tr>")
        for segment, changes in zip(self.segments, self.changes, strict=True):
            cells = [f"<td>{segment.number}</td><td>{escape(segment.source)}</td>"]
            before: str | None = None
            for text in segment.texts:
                if text is None:
                    cells.append("<td></td>")
                    continue
                cells.append(f"<td>{escape(text) if before is None else marked_changes(before, text)}</td>")
                before = text
            for change in changes:
                cells.append(f"<td>{change.words if change else ''}</td>")
            parts.append(f"<tr>{''.join(cells)}<td>{escape(segment.comment)}</td></tr>")
        return "\n".join([*parts, "</table>", ""])


def _cells(change: Change) -> list[str]:
    return [str(change.characters), str(change.words), f"{change.rate:.3f}", f"{change.chrf:.1f}"]


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1.5em }}
table {{ border-collapse: collapse }}
th, td {{ border: 1px solid #8888; padding: .3em .5em; text-align: start; vertical-align: top; white-space: pre-wrap }}
ins {{ background: #2a82; text-decoration: underline }}
del {{ background: #d332; text-decoration: line-through }}
</style>
<h1>{title}</h1>"""


def marked_changes(before: str, after: str) -> str:
    """Return a text as HTML, with the words that differ from those of an earlier text.

    >>> marked_changes("the red house", "the blue house")
    'the <del>red</del><ins>blue</ins> house'
    """
    old, new = _pieces(before), _pieces(after)
    parts = []
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed, added = escape("".join(old[first:last])), escape("".join(new[start:end]))
        if kind == "equal":
            parts.append(added)
            continue
        parts.append(f"<del>{removed}</del>" if removed else "")
        parts.append(f"<ins>{added}</ins>" if added else "")
    return "".join(parts)


def _pieces(text: str) -> list[str]:
    """Return the words of a text and what is between them."""
    pieces, position = list[str](), 0
    for word in words_in(text):
        pieces += [text[position : word.start], text[word.start : word.end]]
        position = word.end
    return [*filter(None, pieces), *filter(None, [text[position:]])]
