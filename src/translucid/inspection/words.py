"""From pieces of words to words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from translucid.ground.special import SPELLED


@dataclass(frozen=True)
class WordMap:
    """Where the model looked, word by word. The last word of each side is the end token."""

    source: list[str]
    target: list[str]
    weights: Tensor
    """[target words, source words]; each row sums to 1."""
    opening: int = 0
    """So many of the first of the source are no words of it, but say, for example, its language."""

    @property
    def between_words(self) -> Tensor:
        """The weights [target words, source words] without the end tokens and what stands before the source."""
        return self.weights[:-1, self.opening : -1]

    def __post_init__(self) -> None:
        """Check that the sides fit.

        Raises:
            ValueError: they don't.
        """
        expected = (len(self.target), len(self.source))
        if tuple(self.weights.shape) != expected:
            raise ValueError(f"weights {tuple(self.weights.shape)} for {expected} target and source words")


def word_spans(pieces: Sequence[str], opening: int = 0) -> list[tuple[str, int, int]]:
    """Group SentencePiece pieces into words: (word, first piece, piece after the last); the end token by itself.

    So are the first `opening` pieces, such as that of a language.

    >>> word_spans(["▁beb", "er", "▁agua", "</s>"])
    [('beber', 0, 2), ('agua', 2, 3), ('</s>', 3, 4)]
    """
    spans: list[tuple[str, int, int]] = []
    for i, piece in enumerate(pieces):
        text = piece.replace("▁", "")
        # A lone ▁ may be followed by a piece without one: together they begin the word.
        opened = i > opening and spans[-1][0] == "" and piece != SPELLED.end
        begins = piece.startswith("▁")
        if piece == SPELLED.end or i <= opening or (begins and not opened):
            spans.append((text, i, i + 1))
        else:
            word, first, _ = spans[-1]
            spans[-1] = word + text, first, i + 1
    return spans


def parted(words: Iterable[str]) -> list[str]:
    """Return words, those that have white space in parts.

    >>> parted(["see", "{{ a", "{{ a b }}."])
    ['see', '{{', 'a', '{{', 'a', 'b', '}}.']
    """
    return [part for word in words for part in word.split() or [word]]


def word_map(
    source: Sequence[str], target: Sequence[str], weights: Tensor, opening: tuple[int, int] = (0, 0)
) -> WordMap:
    """Merge weights [T, S] between pieces: summed over a source word's pieces, averaged over a target word's.

    `opening`: so many of the first pieces of the source and of the target each stand by themselves.

    Raises:
        ValueError: the weights are not those of these pieces.
    """
    if tuple(weights.shape) != (len(target), len(source)):
        raise ValueError(f"weights {tuple(weights.shape)} for {len(target)} target and {len(source)} source pieces")
    columns, rows = word_spans(source, opening[0]), word_spans(target, opening[1])
    merged = torch.stack([weights[:, first:after].sum(1) for _, first, after in columns], dim=1)
    merged = torch.stack([merged[first:after].mean(0) for _, first, after in rows])
    return WordMap([word for word, _, _ in columns], [word for word, _, _ in rows], merged, opening[0])
