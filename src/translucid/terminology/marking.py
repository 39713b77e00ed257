"""Terms pointed out in the source, for models that have learned to apply them.

Behind a word stands the dictionary form of what it is to become, and the model writes the form that the sentence needs
(Dinu et al. 2019, arXiv 1906.01105, "append"; Bergmanis and Pinnis 2021, arXiv 2101.10035). Three pieces of the
vocabulary, which nothing else uses, say where the word begins, where its translation begins, and where that ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from translucid.data.tokenizing.reserved import TERM


class Marking(NamedTuple):
    """A part of a source, and what it is to become."""

    start: int
    """Of its first character."""
    end: int
    """Of the first character behind it."""
    target: str
    instead: str | None = None
    """What stands in its place, if it is something else."""


def marked(source: str, markings: Iterable[Marking]) -> str:
    """Return a source with terms pointed out; `markings` from left to right, none overlapping the one before.

    The pieces of all other words stay as they are: the first mark stands before the space before the word.
    """
    parts, at = [], 0
    for start, end, target, instead in markings:
        space = " " if source[:start].endswith(" ") and start > at else ""
        before = source[at : start - len(space)]
        parts += [before, TERM.source, space, instead or source[start:end], TERM.target, " ", target, TERM.end]
        at = end
    return "".join([*parts, source[at:]])
