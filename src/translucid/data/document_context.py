"""The sentences before a sentence in its document, which the model reads first.

They are joined to the source by a reserved piece in place of their end tokens (Tiedemann and Scherrer 2017, W17-4811):

    He came in ⟨separator⟩ She left ⟨separator⟩ They met again </s>

What is too long for the model is cut off at the front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from translucid.data.tokenizing.reserved import SEPARATOR
from translucid.data.tokenizing.tokenizer import Tokenizer


class ContextOptions(NamedTuple):
    """How sentences are joined to those before them."""

    most: int
    """The most sentences before a sentence."""
    separator: int
    """The source id that follows each of them."""
    longest: int
    """The most tokens of a sentence with those before it, end token included."""

    @classmethod
    def of(cls, most: int, tokenizer: Tokenizer, longest: int) -> ContextOptions | None:
        """Return the options of a run with `data.context` = `most`; None without context."""
        return cls(most, tokenizer.source_id(SEPARATOR), longest) if most else None

    def context(self, before: Sequence[Sequence[int]], length: int) -> list[int]:
        """Return the ids that precede a sentence.

        Args:
            before: the ids of the sentences before it, without end tokens.
            length: the number of its tokens, end token included.
        """
        joined: list[int] = []
        for sentence in before[-self.most :]:
            joined += [*sentence, self.separator]
        return joined[max(len(joined) + length - self.longest, 0) :]


def preceding(documents: Iterable[int | None]) -> list[int]:
    """Return for each of several sentences the number of those before it in the same document.

    >>> preceding([1, 1, 1, 2, None, None])
    [0, 1, 2, 0, 0, 0]
    """
    numbers = list(documents)
    counts = [0] * len(numbers)
    for i, (before, document) in enumerate(pairwise(numbers), 1):
        if document is not None and document == before:
            counts[i] = counts[i - 1] + 1
    return counts
