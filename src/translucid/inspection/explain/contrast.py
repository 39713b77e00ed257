"""Contrastive explanations: why a model predicts word a and not word b (Yin and Neubig 2022, arXiv 2202.10419).

Both words follow the same target prefix. Their log-odds, log p(a) - log p(b), take the place of the log-probability of
a word: erasure is how much they fall when a part of the source is left out (section 3), and gradients are integrated
gradients of them. What both words depend on cancels out, and what decides between them remains. The probability of a
word of several pieces is the product over its pieces.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.explain.case import Explained, ForcedCase, InterpolationPath


class Contrast(Explained):
    """The log-odds of two words, or of two labels, as a case that the methods explain like a log-probability."""

    def __init__(self, case: Explained, other: Explained, word: int = 0) -> None:
        """Take the difference of two cases with the same source and one target word each.

        Args:
            case: the case of the word that the target has.
            other: the case of the other word.
            word: the position of the word in the target, from 0.
        """
        self.case, self.other, self.word = case, other, word
        self.source_words, self.context = case.source_words, case.context
        self.target_words, self.target_spans = case.target_words, case.target_spans

    @property
    def label(self) -> str:
        """The contrast in words."""
        return f"{self.target_words[0]} instead of {self.other.target_words[0]}"

    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-odds [n, 1] when only some parts [n, parts] are left, in nats."""
        return self.case.log_probs(keep) - self.other.log_probs(keep)

    def probabilities(self, keep: Tensor) -> Tensor:
        """Return the probability of the word among the two, p(a) / (p(a) + p(b)) [n, 1]."""
        return self.log_probs(keep).sigmoid()

    def interpolation_path(self) -> InterpolationPath:
        """Return the path of the source, which both cases share."""
        return self.case.interpolation_path()

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-odds [n] for embedded sources; `start` and `end` are the span of the target's word."""
        log_probs = self.case.embedded_log_probs(embedded, start, end)
        return log_probs - self.other.embedded_log_probs(embedded, *self.other.target_spans[0])

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum values of source positions over each part."""
        return self.case.by_part(shares)

    def attention(self) -> Tensor:
        """Refuse: what the model attends to before it chooses between two words is the same for both.

        Raises:
            UserError: always.
        """
        raise UserError(
            "attention can't tell two words apart that follow the same words", fix='Use `method="erasure"`.'
        )

    @cached_property
    def log_odds(self) -> float:
        """The log-odds for the whole source, in nats."""
        return self.log_probs(torch.ones(1, len(self.source_words), dtype=torch.bool)).item()

    def to_json(self) -> dict[str, Any]:
        """Return plain values: the position of the word, the other word, the log-odds."""
        return {"word": self.word, "instead_of": self.other.target_words[0], "log_odds": round(self.log_odds, 4)}


def contrast(case: ForcedCase, instead_of: str, word: int | None = None) -> Contrast:
    """Contrast a word of a translation with another word after the same words.

    Args:
        case: the case of the whole target.
        instead_of: the other word.
        word: the position of the target's word, from 0; by default, where the log-odds of the other word are highest.

    Raises:
        UserError: there is no word at that position, it is the other word itself, or the model can't write that.
    """
    opening = len(case.tokenizer.target_opening)
    ids = case.tokenizer.encode_target([instead_of])[0][opening:]
    if not ids:
        raise UserError("there is no word to contrast with", fix="Name another word that the model could write.")
    if SPECIAL.unknown in ids:
        raise UserError(f"the model does not know all characters of {instead_of!r}", fix="Choose another word.")
    count = len(case.target_words)
    if word is not None and not 0 <= word < count:
        raise UserError(f"there is no word {word}", fix=f"Choose one of 0 to {count - 1}.")
    candidates = []
    for position in range(count) if word is None else [word]:
        if not _is_word(case, position, instead_of, ids):
            candidates.append(_contrast_at(case, position, instead_of, ids))
    if not candidates:
        raise UserError(f"{instead_of!r} is the word itself", fix="Choose another word to contrast it with.")
    return min(candidates, key=lambda candidate: candidate.log_odds)


def _is_word(case: ForcedCase, position: int, text: str, ids: list[int]) -> bool:
    """Return whether the target has this text or these ids at a word position."""
    start, end = case.target_spans[position]
    return case.target_words[position] == text or case.target_ids[start:end] == ids


def _contrast_at(case: ForcedCase, position: int, instead_of: str, ids: list[int]) -> Contrast:
    start, end = case.target_spans[position]
    prefix, word_ids = case.target_ids[:start], case.target_ids[start:end]
    max_length = case.model.max_length
    if max_length and len(prefix) + len(ids) > max_length:
        raise UserError(
            f"{instead_of[:30]!r} is too long: the model takes {max_length} pieces", fix="Choose another word."
        )
    word = case.with_last_word(prefix, case.target_words[position], word_ids)
    return Contrast(word, case.with_last_word(prefix, instead_of, ids), position)
