"""Hard-wrapped text: paragraphs of several lines, separated by empty lines, and their translations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def paragraphs(lines: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the lines of each paragraph; an empty line is a paragraph by itself.

    >>> paragraphs(["I like soccer and", "tennis.", "", "You sing."])
    [[0, 1], [2], [3]]
    """
    line_groups: list[list[int]] = []
    for blank, group in groupby(range(len(lines)), lambda i: not lines[i].strip()):
        numbers = list(group)
        if blank:
            line_groups += [[i] for i in numbers]
        else:
            line_groups.append(numbers)
    return line_groups


def unwrapped(lines: Sequence[str]) -> str:
    """Return a paragraph as one line; a word that is hyphenated at the end of a line continues without a space."""
    text = ""
    for line in map(str.strip, lines):
        # A dash between spaces is no hyphen.
        hyphenated = len(text) > 1 and text[-1] == "-" and text[-2].isalpha() and line[:1].isalpha()
        text += line if hyphenated or not text else f" {line}"
    return text


def wrapped(text: str, paragraph: Sequence[str]) -> list[str]:
    """Divide a text into the lines of a paragraph, with the same proportions and indentation.

    >>> wrapped("Me gusta el fútbol y el tenis.", ["I like soccer and", "tennis."])
    ['Me gusta el fútbol y', 'el tenis.']
    """
    # In a language without spaces, any character may end a line.
    space = " " if " " in text else ""
    words = text.split(" ") if space else list(text)
    lengths = [len(line.strip()) for line in paragraph]
    lines: list[str] = []
    position, room, offset = 0, 0.0, 0
    for line, length in zip(paragraph, lengths, strict=True):
        room += len(text) * length / max(sum(lengths), 1)
        start = position
        # A word belongs to the line that contains its middle.
        while position < len(words) and (len(lines) == len(paragraph) - 1 or offset + len(words[position]) / 2 < room):
            offset += len(words[position]) + len(space)
            position += 1
        indent = line[: len(line) - len(line.lstrip())]
        lines.append((indent + space.join(words[start:position])).rstrip())
    return lines
