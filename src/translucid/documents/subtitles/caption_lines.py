"""A text split between captions, and the lines of a caption."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from translucid.documents.splicing import Edit
from translucid.documents.tagged_text import TaggedText

WIDEST = 42
"""Characters of a line."""
_GAP = re.compile(r" +|(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])(?=[\u3040-\u30ff\u3400-\u9fff])")
"""Where a text may be cut: between words, and between ideographs."""


def split(text: str, shares: Sequence[int]) -> list[str]:
    """Cut a text into as many parts as there are shares, each about as long as its share, and none empty if possible.

    A cut behind a punctuation mark is worth a few characters.

    >>> split("uno dos tres cuatro", [7, 11])
    ['uno dos', 'tres cuatro']
    """
    gaps = [match.span() for match in _GAP.finditer(text.strip())]
    text = text.strip()
    parts, at, used, whole = [], 0, 0, sum(shares) or 1
    for i, share in enumerate(shares[:-1]):
        used += share
        wanted = len(text) * used / whole
        left = len(shares) - i - 2
        open_ones = [gap for gap in gaps if gap[0] > at]
        open_ones = open_ones[: len(open_ones) - left] if len(open_ones) > left else open_ones
        if not open_ones:
            parts.append(text[at:])
            at = len(text)
            continue
        first, end = min(open_ones, key=lambda gap: abs(gap[0] - wanted) - 3 * (text[gap[0] - 1] in ",;:.!?…"))
        parts.append(text[at:first])
        at = end
    return [*parts, text[at:]]


def in_lines(marked: TaggedText, lines: int, end: str) -> TaggedText:
    """Return a text with line breaks: one line if the source has one and it fits, else two, or as many as the source.

    Args:
        marked: without line breaks.
        lines: of the source.
        end: of a line.
    """
    text = marked.text
    wanted = 1 if len(text) <= WIDEST and lines == 1 else max(2, lines)
    gaps = [match.span() for match in _GAP.finditer(text) if match.start()]
    starts = [first for first, _ in gaps]
    chosen: list[int] = []
    for i in range(1, wanted):
        place, least = len(text) * i / wanted, chosen[-1] + 1 if chosen else 0
        after = max(least, bisect_left(starts, place))
        near = [k for k in (after - 1, after) if least <= k < len(gaps)]
        if near:
            chosen.append(min(near, key=lambda k: abs(starts[k] - place)))
    return marked.spliced([Edit(*gaps[k], end) for k in chosen])
