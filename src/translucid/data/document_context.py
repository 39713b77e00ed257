"""The sentences before a sentence in its document, which the model reads first.

A `Source` has them as texts. Their ids are joined to those of the sentence by a reserved piece in place of their end
tokens (Tiedemann and Scherrer 2017, W17-4811):

    He came in ⟨separator⟩ She left ⟨separator⟩ They met again </s>

An input that is too long for the model is cut off at the front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from bitext.pair import Pair
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.data.tokenizing.tokenizer import Tokenizer

TextT = TypeVar("TextT")

MAX_SENTENCES = 16
"""The most sentences of context of any run."""


class Source(NamedTuple, Generic[TextT]):
    """A text, with or without tags, and the texts before it in its document."""

    text: TextT
    before: tuple[str, ...] = ()
    """The texts before it, which a model with document context reads first."""
    max_length: int | None = None
    """The largest number of characters of its translation; None for any number."""


def as_source(text: TextT | Source[TextT]) -> Source[TextT]:
    """Return a text, with or without tags, as a `Source`."""
    return text if isinstance(text, Source) else Source(text)


class ContextOptions(NamedTuple):
    """How sentences are joined to those before them."""

    max_sentences: int
    """The most sentences before a sentence."""
    separator: int
    """The source id that follows each of them."""
    max_tokens: int
    """The most tokens of a sentence with those before it, end token included."""

    @classmethod
    def of(cls, max_sentences: int, tokenizer: Tokenizer, max_tokens: int) -> ContextOptions | None:
        """Return the options of a run with `data.context` = `max_sentences`; None without context."""
        return cls(max_sentences, tokenizer.source_id(SEPARATOR), max_tokens) if max_sentences else None

    def context(self, before: Sequence[Sequence[int]], length: int) -> list[int]:
        """Return the ids that precede a sentence.

        Args:
            before: the ids of the sentences before it, without end tokens.
            length: the number of its tokens, end token included.
        """
        joined: list[int] = []
        for sentence in before[-self.max_sentences :]:
            joined += [*sentence, self.separator]
        return joined[max(len(joined) + length - self.max_tokens, 0) :]


def lines_before(lines: Sequence[str], limit: int, earlier: Sequence[str] = ()) -> list[list[str]]:
    """Return for each line up to `limit` lines before it in its document; a blank line begins another one.

    Args:
        lines: consecutive lines.
        limit: the most lines before a line.
        earlier: the lines before the first one.

    >>> lines_before(["a", "b", "", "c", "d"], 1)
    [[], ['a'], [], [], ['c']]
    """
    before: list[str] = []
    result = []
    for line in [*earlier, *lines]:
        if line.strip():
            result.append(before[-limit:])
            before.append(line)
        else:
            result.append([])
            before = []
    return result[len(earlier) :]


def document_sources(pairs: Sequence[Pair], options: ContextOptions | None) -> list[Source[str]]:
    """Return the source of each pair; with options of document context, with the sources before it in its document."""
    texts = [pair.source for pair in pairs]
    if options is None:
        return list(map(Source, texts))
    sources = []
    for i, count in enumerate(preceding(pair.document for pair in pairs)):
        sources.append(Source(texts[i], tuple(texts[i - min(count, options.max_sentences) : i])))
    return sources


def preceding(documents: Iterable[int | None]) -> list[int]:
    """Return for each of several sentences the number of those before it in the same document.

    >>> preceding([1, 1, 1, 2, None, None])
    [0, 1, 2, 0, 0, 0]
    """
    numbers = list(documents)
    counts = [0] * len(numbers)
    for i, (previous, document) in enumerate(pairwise(numbers), 1):
        if document is not None and document == previous:
            counts[i] = counts[i - 1] + 1
    return counts
