"""The distribution of a text over captions, and over the lines of a caption."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from translucid.documents.splicing import Edit
from translucid.documents.tagged_text import TaggedText

WIDEST = 42
"""The largest number of characters of a line."""
_GAP = re.compile(r" +|(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])(?=[\u3040-\u30ff\u3400-\u9fff])")
"""A place where a text may be split: between words, and between ideographs."""


def split(text: str, shares: Sequence[int]) -> list[str]:
    """Split a text into one part for each share, about as long as the share, and none empty if possible.

    >>> split("uno dos tres cuatro", [7, 11])
    ['uno dos', 'tres cuatro']
    """
    text = text.strip()
    gaps = list(map(re.Match.span, _GAP.finditer(text)))
    parts, at, used, whole = [], 0, 0, sum(shares) or 1
    for i, share in enumerate(shares[:-1]):
        used += share
        wanted = len(text) * used / whole
        gaps = [gap for gap in gaps if gap[0] > at]
        # Each later part needs a gap too, if there are enough.
        usable, later = gaps, len(shares) - i - 2
        if len(gaps) > later:
            usable = gaps[: len(gaps) - later]
        if not usable:
            parts.append(text[at:])
            at = len(text)
            continue
        # A gap behind punctuation may be three characters further away.
        start, end = min(usable, key=lambda gap: abs(gap[0] - wanted) - 3 * (text[gap[0] - 1] in ",;:.!?…"))
        parts.append(text[at:start])
        at = end
    return [*parts, text[at:]]


def in_lines(marked: TaggedText, lines: int, end: str) -> TaggedText:
    """Return a text with line breaks: one line if the source has one and it fits, else two, or as many as the source.

    Args:
        marked: the text without line breaks.
        lines: the number of lines of the source.
        end: the line end.
    """
    text = marked.text
    if len(text) <= WIDEST and lines == 1:
        return marked
    wanted = max(2, lines)
    gaps = [match.span() for match in _GAP.finditer(text) if match.start()]
    starts = [start for start, _ in gaps]
    breaks: list[Edit] = []
    least = 0  # the first gap that is not used yet
    for i in range(1, wanted):
        place = len(text) * i / wanted
        nearest = max(least, bisect_left(starts, place))
        if nearest > least and (nearest == len(gaps) or place - starts[nearest - 1] <= starts[nearest] - place):
            nearest -= 1
        if nearest < len(gaps):
            breaks.append(Edit(*gaps[nearest], end))
            least = nearest + 1
    return marked.spliced(breaks)
