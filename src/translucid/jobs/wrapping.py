"""Hard-wrapped text: a paragraph runs over several lines and ends at an empty one; its translation does likewise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def paragraphs(lines: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the lines of each paragraph; an empty line is one by itself.

    >>> paragraphs(["I like soccer and", "tennis.", "", "You sing."])
    [[0, 1], [2], [3]]
    """
    found: list[list[int]] = []
    for blank, group in groupby(range(len(lines)), lambda i: not lines[i].strip()):
        numbers = list(group)
        found += [[i] for i in numbers] if blank else [numbers]
    return found


def unwrapped(lines: Sequence[str]) -> str:
    """Return a paragraph as one line; a word that a hyphen breaks at the end of a line goes on without a space."""
    text = ""
    for line in map(str.strip, lines):
        broken = len(text) > 1 and text[-1] == "-" and text[-2].isalpha() and line[:1].isalpha()
        text += line if broken or not text else f" {line}"
    return text


def wrapped(text: str, like: Sequence[str]) -> list[str]:
    """Spread a text over as many lines as a paragraph has, each as full and as far indented as its own.

    >>> wrapped("Me gusta el fútbol y el tenis.", ["I like soccer and", "tennis."])
    ['Me gusta el fútbol y', 'el tenis.']
    """
    space = " " if " " in text else ""  # of a language without spaces any character may end a line
    words = text.split(" ") if space else list(text)
    lengths = [len(line.strip()) for line in like]
    lines: list[str] = []
    at, room, written = 0, 0.0, 0
    for line, length in zip(like, lengths, strict=True):
        room += len(text) * length / max(sum(lengths), 1)
        first = at
        # A word belongs to the line in which its middle stands.
        while at < len(words) and (len(lines) == len(like) - 1 or written + len(words[at]) / 2 < room):
            written += len(words[at]) + len(space)
            at += 1
        indent = line[: len(line) - len(line.lstrip())]
        lines.append((indent + space.join(words[first:at])).rstrip())
    return lines
