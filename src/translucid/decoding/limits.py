"""Length limits, length normalisation, and loops.

No PyTorch here: CTranslate2's outputs are held to the same limits, and it does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from translucid.decoding.decoding_options import DecodingOptions

if TYPE_CHECKING:
    from torch import Tensor

Length = TypeVar("Length", float, "Tensor")

MOST_TOKENS = 1 << 20
"""Of all hypotheses of a sentence together, each of which has keys and values in memory: a beam of 1000 gets a limit of
1048 tokens, a beam of 5 one of 209,715."""
LONGEST_LOOP = 6
"""Tokens in the longest run that is looked for."""


def length_limit(source: int, options: DecodingOptions, longest: int | None) -> int:
    """Return the most tokens that an output may have, end token not counted.

    It depends on the sentence's own length `source`, end token not counted either, never on others in its batch.
    `longest` is the model's limit, if it has one, for the start token and the output together.
    """
    wanted = int(source * options.max_length_ratio) + options.max_length_extra
    there = MOST_TOKENS // (options.nbest if options.sample else options.beam)
    return min(wanted, there) if longest is None else min(wanted, there, longest - 1)


def length_penalty(length: Length, alpha: float) -> Length:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha of a length |Y|, or of several (Wu et al. 2016, arXiv 1609.08144, eq. 14).

    |Y| counts the end token. Log-probabilities are divided by it: alpha 0 changes nothing.
    """
    penalty: Length = ((5 + length) / 6) ** alpha
    return penalty


def find_loop(tokens: Sequence[int], times: int, word_starts: Sequence[bool]) -> Sequence[int] | None:
    """Return a run and its first token once more, where the rule `NoLoops` forbids that token; None if it never does.

    `times` in a row are allowed; `word_starts` [V] is True where a piece begins a word.
    """
    repeated = len(tokens) - len(set(tokens))
    for n in range(1, LONGEST_LOOP + 1):
        if repeated <= n * (times - 1):  # fewer than there are equal tokens in any such loop
            break
        equal = 0
        for i in range(n, len(tokens)):
            equal = equal + 1 if tokens[i] == tokens[i - n] else 0
            # The run has stood there once before the first equal token, and `times` times before the one too many.
            if equal > n * (times - 1) and any(word_starts[token] for token in tokens[i - n : i]):
                return tokens[i - n * times : i + 1]
    return None
