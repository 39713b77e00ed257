"""Grouping pieces into words, and merging the values of pieces into values of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import bidirectional

from bitext.words import linked_words
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.ground.errors import UserError, nearest
from translucid.ground.special import SPELLINGS

if TYPE_CHECKING:
    from torch import Tensor

BOUNDARY = "‖"
"""The symbol that is shown in place of the separator after a previous sentence."""
MARKS = ".,;:!?…»”\"')]"
"""Marks that may follow a word of the translation directly."""


_MARKUP = re.compile(r"</?s>|__?\w+__?")
"""Special tokens, whose letters say nothing about the text."""


@dataclass(frozen=True)
class WordMap:
    """Attention weights between words. The last word of each side is the end token."""

    source: list[str]
    target: list[str]
    weights: Tensor
    """[target words, source words]; each row sums to 1."""
    opening: int = 0
    """The number of leading source entries that are no words of the sentence: its context, and a language token."""
    context: int = 0
    """The number of leading source entries that belong to previous sentences; a `BOUNDARY` follows each sentence."""

    @property
    def between_words(self) -> Tensor:
        """The weights [target words, source words] without the end tokens, the context and the source's opening.

        It is for maps with all columns.
        """
        return self.weights[:-1, self.opening : -1]

    def columns(self, kept: Sequence[int]) -> WordMap:
        """Return the map with these columns only, in order; it has no end token and no opening."""
        context = len([column for column in kept if column < self.context])
        words = [self.source[column] for column in kept]
        return WordMap(words, self.target, self.weights[:, list(kept)], context, context)

    def __post_init__(self) -> None:
        """Check the shape.

        Raises:
            ValueError: the weights don't have a row for each target word and a column for each source word.
        """
        expected = (len(self.target), len(self.source))
        if tuple(self.weights.shape) != expected:
            raise ValueError(f"weights {tuple(self.weights.shape)} for {expected} target and source words")


def word_spans(pieces: Sequence[str], opening: int = 0, context: int = 0) -> list[tuple[str, int, int]]:
    """Group SentencePiece pieces into words: (word, first piece, piece after the last).

    The end token and each of the first `opening` pieces, such as a language token, are words by themselves.

    Args:
        pieces: the pieces.
        opening: the number of leading pieces of the sentence that are no part of its text.
        context: the number of pieces before the sentence: previous sentences, each with its separator.

    >>> word_spans(["▁beb", "er", "▁agua", "</s>"])
    [('beber', 0, 2), ('agua', 2, 3), ('</s>', 3, 4)]
    """
    if context:
        spans = _context_spans(pieces, opening, context)
        return spans + _moved(word_spans(pieces[context:], opening), context)
    spans = []
    for i, piece in enumerate(pieces):
        text = piece.replace("▁", "")
        # SentencePiece may write the beginning of a word as a lone ▁ and a piece without one.
        continues = i > opening and spans[-1][0] == "" and piece != SPELLINGS.end
        begins = piece.startswith("▁")
        if piece == SPELLINGS.end or i <= opening or (begins and not continues):
            spans.append((text, i, i + 1))
        else:
            word, start, _ = spans[-1]
            spans[-1] = word + text, start, i + 1
    return spans


def _context_spans(pieces: Sequence[str], opening: int, context: int) -> list[tuple[str, int, int]]:
    """Return the words of previous sentences, language tokens included, and a `BOUNDARY` after each sentence."""
    language = list(pieces[context : context + opening])
    spans: list[tuple[str, int, int]] = []
    start = 0
    while start < context:
        end = pieces.index(SEPARATOR, start)
        sentence = list(pieces[start:end])
        # The first sentence lacks its language token if it was cut off at the front.
        leading = opening if sentence[:opening] == language else 0
        spans += _moved(word_spans(sentence, leading), start)
        spans.append((BOUNDARY, end, end + 1))
        start = end + 1
    return spans


def _moved(spans: Iterable[tuple[str, int, int]], offset: int) -> list[tuple[str, int, int]]:
    """Return spans whose pieces are this many positions later."""
    return [(word, start + offset, end + offset) for word, start, end in spans]


def is_right_to_left(words: Iterable[str]) -> bool:
    """Return whether words are read from right to left: the first letter decides, as on our pages.

    >>> is_right_to_left(["__ar__", "«مرحبا»", "</s>"]), is_right_to_left(["Hola", "مرحبا"])
    (True, False)
    """
    for word in words:
        if not _MARKUP.fullmatch(word):
            for character in word:
                if (direction := bidirectional(character)) in ("L", "R", "AL"):
                    return direction != "L"
    return False


def word_position(words: Sequence[str], word: int | str) -> int:
    """Return the position of a word from 0: the first that is this text with or without marks after it, or a number.

    Raises:
        UserError: there is no such word.

    >>> word_position(["La", "casa."], "casa"), word_position(["La", "casa."], "0")
    (1, 0)
    """
    if isinstance(word, int) or word.isdecimal():
        if not 0 <= int(word) < len(words):
            raise UserError(f"there is no word {word}", fix=f"Choose one of 0 to {len(words) - 1}.")
        return int(word)
    for position, candidate in enumerate(words):
        if word in (candidate, candidate.rstrip(MARKS)):
            return position
    raise UserError(f"the translation lacks the word {word!r}", fix=nearest(word, words))


def content_pieces(pieces: Sequence[str], opening: int = 0, context: int = 0) -> list[bool]:
    """Return for each piece whether it belongs to the content: whether it has letters or digits, and is text.

    Start and end token, language tokens, separators and punctuation have no content, also punctuation that a word
    carries. A lone `▁` has that of the next piece, which it precedes.

    >>> content_pieces(["▁the", "▁", "beach", ".", "</s>"])
    [True, True, True, False, False]
    """
    special = {SPELLINGS.start, SPELLINGS.end, *pieces[context : context + opening]}
    has_content = [piece not in special and any(map(str.isalnum, piece)) for piece in pieces]
    for position in reversed(range(len(pieces) - 1)):
        if pieces[position] == "▁":
            has_content[position] = has_content[position + 1]
    return has_content


def with_context_marked(words: Sequence[str], context: int) -> list[str]:
    """Return words for display, the first `context` of them marked as words of previous sentences."""
    return [*(f"{word} (context)" for word in words[:context]), *words[context:]]


def span_words(spans: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the words of spans, without their positions."""
    return [word for word, _, _ in spans]


def span_ranges(spans: Iterable[tuple[str, int, int]]) -> list[tuple[int, int]]:
    """Return for each span its first piece and the piece after its last, without the word."""
    return [(start, end) for _, start, end in spans]


def sum_ranges(values: Tensor, ranges: Iterable[tuple[int, int]]) -> Tensor:
    """Sum values of pieces [.., pieces] over the pieces of each word [.., words]."""
    import torch  # imported here because commands without PyTorch group pieces into words too

    return torch.stack([values[..., start:end].sum(-1) for start, end in ranges], -1)


def kept_ids(ids: Sequence[int], ranges: Iterable[tuple[int, int]], keep: Iterable[bool]) -> list[int]:
    """Return the ids of the pieces of the words to keep."""
    result: list[int] = []
    for is_kept, (start, end) in zip(keep, ranges, strict=True):
        if is_kept:
            result += ids[start:end]
    return result


def ids_without(ids: Sequence[int], ranges: Iterable[tuple[int, int]], keep: Iterable[bool]) -> list[int]:
    """Return all ids but those of the pieces of words that are not kept; separators, for example, stay.

    >>> ids_without([7, 8, 9, 2], [(1, 2), (2, 3)], [False, True])
    [7, 9, 2]
    """
    dropped: set[int] = set()
    for is_kept, (start, end) in zip(keep, ranges, strict=True):
        if not is_kept:
            dropped.update(range(start, end))
    return [token for position, token in enumerate(ids) if position not in dropped]


def split_at_spaces(words: Iterable[str]) -> list[str]:
    """Split words at white space, which a placeholder may contain.

    A word without a character, such as a lone `▁` at the end of a translation, is no word of the text.

    >>> split_at_spaces(["see", "{{ a", "{{ a b }}.", ""])
    ['see', '{{', 'a', '{{', 'a', 'b', '}}.']
    """
    parts: list[str] = []
    for word in words:
        parts += linked_words(word)
    return parts


def word_map(
    source: Sequence[str],
    target: Sequence[str],
    weights: Tensor,
    opening: tuple[int, int] = (0, 0),
    context: tuple[int, int] = (0, 0),
) -> WordMap:
    """Merge weights [T, S] between pieces: summed over a source word's pieces, averaged over a target word's.

    So each row still sums to 1.

    Args:
        source: the pieces of the columns.
        target: the pieces of the rows.
        weights: the weights between pieces.
        opening: the numbers of leading pieces, such as language tokens, in source and target, each of which is a word
            by itself.
        context: the numbers of pieces of previous sentences before them.

    Raises:
        ValueError: the weights don't have a row for each target piece and a column for each source piece.
    """
    import torch

    if tuple(weights.shape) != (len(target), len(source)):
        raise ValueError(f"weights {tuple(weights.shape)} for {len(target)} target and {len(source)} source pieces")
    columns = word_spans(source, opening[0], context[0])
    rows = word_spans(target, opening[1], context[1])
    merged = sum_ranges(weights, span_ranges(columns))  # [T, source words]
    merged = torch.stack([merged[start:end].mean(0) for start, end in span_ranges(rows)])
    context_words = len([start for start, _ in span_ranges(columns) if start < context[0]])
    return WordMap(span_words(columns), span_words(rows), merged, context_words + opening[0], context_words)
