"""Grouping pieces into words, and merging what belongs to pieces into what belongs to words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from translucid.ground.special import SPELLED


@dataclass(frozen=True)
class WordMap:
    """Attention weights between words. The last word of each side is the end token."""

    source: list[str]
    target: list[str]
    weights: Tensor
    """[target words, source words]; each row sums to 1."""
    opening: int = 0
    """The number of leading source entries that are no words of the text, such as a language token."""

    @property
    def between_words(self) -> Tensor:
        """The weights [target words, source words] without the end tokens and the source's opening."""
        return self.weights[:-1, self.opening : -1]

    def __post_init__(self) -> None:
        """Check the shape.

        Raises:
            ValueError: the weights don't have a row for each target word and a column for each source word.
        """
        expected = (len(self.target), len(self.source))
        if tuple(self.weights.shape) != expected:
            raise ValueError(f"weights {tuple(self.weights.shape)} for {expected} target and source words")


def word_spans(pieces: Sequence[str], opening: int = 0) -> list[tuple[str, int, int]]:
    """Group SentencePiece pieces into words: (word, first piece, piece after the last).

    The end token and each of the first `opening` pieces, such as a language token, are words by themselves.

    >>> word_spans(["▁beb", "er", "▁agua", "</s>"])
    [('beber', 0, 2), ('agua', 2, 3), ('</s>', 3, 4)]
    """
    spans: list[tuple[str, int, int]] = []
    for i, piece in enumerate(pieces):
        text = piece.replace("▁", "")
        # SentencePiece may write the beginning of a word as a lone ▁ and a piece without one.
        opened = i > opening and spans[-1][0] == "" and piece != SPELLED.end
        begins = piece.startswith("▁")
        if piece == SPELLED.end or i <= opening or (begins and not opened):
            spans.append((text, i, i + 1))
        else:
            word, first, _ = spans[-1]
            spans[-1] = word + text, first, i + 1
    return spans


def span_words(spans: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the words of spans, without their positions."""
    return [word for word, _, _ in spans]


def span_ranges(spans: Iterable[tuple[str, int, int]]) -> list[tuple[int, int]]:
    """Return for each span its first piece and the piece after its last, without the word."""
    return [(first, after) for _, first, after in spans]


def sum_ranges(values: Tensor, ranges: Iterable[tuple[int, int]]) -> Tensor:
    """Sum values of pieces [.., pieces] over the pieces of each word [.., words]."""
    return torch.stack([values[..., first:after].sum(-1) for first, after in ranges], -1)


def kept_ids(ids: Sequence[int], ranges: Iterable[tuple[int, int]], keep: Iterable[bool]) -> list[int]:
    """Return the ids of the pieces of those words that are kept."""
    kept: list[int] = []
    for is_kept, (first, after) in zip(keep, ranges, strict=True):
        if is_kept:
            kept += ids[first:after]
    return kept


def split_at_spaces(words: Iterable[str]) -> list[str]:
    """Split words at white space, which a placeholder may contain.

    A word without a character, such as a lone `▁` at the end of a translation, is no word of the text.

    >>> split_at_spaces(["see", "{{ a", "{{ a b }}.", ""])
    ['see', '{{', 'a', '{{', 'a', 'b', '}}.']
    """
    parts: list[str] = []
    for word in words:
        parts += word.split()
    return parts


def word_map(
    source: Sequence[str], target: Sequence[str], weights: Tensor, opening: tuple[int, int] = (0, 0)
) -> WordMap:
    """Merge weights [T, S] between pieces: summed over a source word's pieces, averaged over a target word's.

    So each row still sums to 1. `opening` are the numbers of leading pieces, such as language tokens, in source and
    target, each of which is a word by itself.

    Raises:
        ValueError: the weights don't have a row for each target piece and a column for each source piece.
    """
    if tuple(weights.shape) != (len(target), len(source)):
        raise ValueError(f"weights {tuple(weights.shape)} for {len(target)} target and {len(source)} source pieces")
    columns, rows = word_spans(source, opening[0]), word_spans(target, opening[1])
    merged = sum_ranges(weights, span_ranges(columns))  # [T, source words]
    merged = torch.stack([merged[first:after].mean(0) for first, after in span_ranges(rows)])
    return WordMap(span_words(columns), span_words(rows), merged, opening[0])
