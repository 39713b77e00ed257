"""How long an output may get, and what its length is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from translucid.decoding.decoding_options import DecodingOptions

if TYPE_CHECKING:
    from torch import Tensor

Length = TypeVar("Length", float, "Tensor")

MOST_TOKENS = 1 << 20
"""Of all hypotheses of a sentence together, each of which has keys and values in memory: a beam of 1000 gets a limit of
1048 tokens, a beam of 5 one of 209,715."""


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
