"""Terms pointed out in the source, for models that have learned to apply them.

Behind a word stands the dictionary form of what it is to become, and the model writes the form that the sentence needs
(Dinu et al. 2019, arXiv 1906.01105, "append"; Bergmanis and Pinnis 2021, arXiv 2101.10035). Three pieces of the
vocabulary, which nothing else uses, say where the word begins, where its translation begins, and where that ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from translucid.data.tokenizing.reserved import TERM
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import TermList, terms_in


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


@dataclass(frozen=True)
class TermAnnotation:
    """The step of the text pipeline that points terms out."""

    terms: TermList
    tokenizer: Tokenizer

    def apply(self, text: str, shown: str) -> str:
        """Return what is shown with the terms of the text pointed out, if the vocabulary has their translations."""
        matches = terms_in(self.terms, text)
        if not matches or shown != text:
            return shown
        pointed_out = marked(text, [Marking(match.start, match.end, match.targets[0]) for match in matches])
        (ids,) = self.tokenizer.encode_source([pointed_out])
        return shown if SPECIAL.unknown in ids else pointed_out
