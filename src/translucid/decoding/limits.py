"""Length limits, length normalisation, and loops.

This module does not import PyTorch: CTranslate2, which needs none, has the same limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from translucid.decoding.decoding_options import DecodingOptions

if TYPE_CHECKING:
    from torch import Tensor

Length = TypeVar("Length", float, "Tensor")

MOST_TOKENS = 1 << 20
"""The maximum number of tokens of all hypotheses of a sentence together, each of which has keys and values in memory:
with a beam of 1000, an output has at most 1048 tokens, with a beam of 5 at most 209,715."""
LONGEST_LOOP = 6
"""The number of tokens in the longest run that counts as a loop."""


def length_limit(source: int, options: DecodingOptions, max_length: int | None) -> int:
    """Return the maximum number of tokens of an output, without the end token.

    The limit depends on the sentence's own length `source`, without the end token, never on others in its batch.
    `max_length` is the model's limit, if it has one, for the start token and the output together.
    """
    requested = int(source * options.max_length_ratio) + options.max_length_extra
    limit = min(requested, MOST_TOKENS // options.rows)
    return limit if max_length is None else min(limit, max_length - 1)


def length_penalty(length: Length, alpha: float) -> Length:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha of a length |Y|, or of several (Wu et al. 2016, arXiv 1609.08144, eq. 14).

    |Y| counts the end token. Log-probabilities are divided by it: alpha 0 changes nothing.
    """
    penalty: Length = ((5 + length) / 6) ** alpha
    return penalty


def find_loop(tokens: Sequence[int], times: int, word_starts: Sequence[bool]) -> Sequence[int] | None:
    """Return the end of a loop with the token that the rule `NoLoops` forbids after it; None without a loop.

    A run may occur `times` times in a row; `word_starts` [V] is True where a piece begins a word.
    """
    repeated = len(tokens) - len(set(tokens))
    for n in range(1, LONGEST_LOOP + 1):
        if repeated <= n * (times - 1):  # fewer than there are equal tokens in any such loop
            break
        matches = 0
        for i in range(n, len(tokens)):
            matches = matches + 1 if tokens[i] == tokens[i - n] else 0
            # The run has stood there once before the first equal token, and `times` times before the one too many.
            if matches > n * (times - 1) and any(word_starts[token] for token in tokens[i - n : i]):
                return tokens[i - n * times : i + 1]
    return None


def has_repetition(tokens: Sequence[int], n: int) -> bool:
    """Whether a run of n tokens occurs twice."""
    ngrams = set(zip(*(tokens[start:] for start in range(n)), strict=False))
    return len(ngrams) < len(tokens) - n + 1
