"""The request of a search, its options, and what every engine derives from them: length limits, normalization, loops.

This module does not import PyTorch: CTranslate2, which needs none, has the same options and limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import Field, model_validator

from translucid.ground.option_group import OptionGroup

if TYPE_CHECKING:
    from torch import Tensor


CandidateVocabulary: TypeAlias = Literal[
    "all pieces", "target-language pieces", "seen pieces", "small shortlist", "large shortlist"
]
"""The candidates for the next target piece: all pieces; those of the training text; or those that the words of the
sentence may become, few or more."""


BY_WORDS: tuple[CandidateVocabulary, ...] = ("small shortlist", "large shortlist")
"""The candidate vocabularies that depend on the words of the sentence."""


class DecodingOptions(OptionGroup):
    """Options of greedy search (`beam` 1), beam search and sampling."""

    beam: int = Field(5, ge=1, le=1000)
    """K, the number of partial outputs kept at each step; 1 is greedy search. Sampling ignores it."""
    nbest: int = Field(1, ge=1, le=1000)
    """Return up to this many different outputs for each sentence, best first; at most `beam`, unless sampling."""
    length_penalty: float = Field(1.0, ge=0, le=5)
    """alpha of score = log p / ((5 + tokens) / 6)^alpha, end token counted; 0 favors short outputs, 1 the mean."""
    min_length: int = Field(1, ge=0, le=10_000)
    """The minimum number of tokens of an output, end token not counted; 1 means never empty."""
    max_length_ratio: float = Field(2.0, ge=0, le=1000)
    """An output has at most max_length_ratio * (source tokens) + max_length_extra tokens, end tokens not counted."""
    max_length_extra: int = Field(20, ge=1, le=10_000)
    """See max_length_ratio. All hypotheses of a sentence together have at most a million tokens."""
    no_repeat_ngram: int = Field(0, ge=0, le=100)
    """No run of this many tokens occurs twice in one output; 0 allows repetition."""
    max_loops: int = Field(4, ge=0, le=1000)
    """The same run of 1 to 6 tokens with a word's beginning occurs at most this often in a row; 0 is no limit."""
    sample: bool = False
    """Draw outputs at random from the model instead of searching for likely ones."""
    temperature: float = Field(1.0, gt=0, le=100)
    """Sampling: probabilities are raised to the power 1 / temperature; small values come close to greedy search."""
    top_k: int = Field(0, ge=0, le=1_000_000)
    """Sampling: draw from this many of the most probable tokens; 0 for all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sampling: draw from the fewest tokens whose probabilities sum to this (nucleus); 1 for all."""
    seed: int = Field(1, ge=0, lt=1 << 63)
    """Sampling: the same seed draws the same outputs."""

    @property
    def rows(self) -> int:
        """The number of hypotheses that the search of one sentence has at a time."""
        return self.nbest if self.sample else self.beam

    @model_validator(mode="after")
    def _options_agree(self) -> DecodingOptions:
        if self.nbest > self.beam and not self.sample:
            raise ValueError(
                f"nbest={self.nbest} asks for more outputs than beam={self.beam} can find: "
                f"set beam to {self.nbest} or more, or nbest to {self.beam} or less"
            )
        if self.max_loops == 1:
            raise ValueError("max_loops=1 would forbid every word already there: set 2 or more, or 0 for no limit")
        if not self.sample:
            for name in ("temperature", "top_k", "top_p"):
                value = getattr(self, name)
                if value != type(self).model_fields[name].default:
                    raise ValueError(f"{name}={value} changes nothing without sample=true: set sample=true as well")
        return self


class LengthLimit(NamedTuple):
    """The limit of the length of one output, in characters."""

    characters: int | None = None
    """The largest number of characters; None for any number."""
    cost: float = 0.0
    """The cost of each character, in nats."""


SentenceT = TypeVar("SentenceT")


@dataclass(frozen=True)
class SearchRequest(Generic[SentenceT]):
    """Sentences of any length whose outputs are searched: pieces of texts for the stages, ids for an engine."""

    sentences: Sequence[SentenceT]
    """As ids, each with the end token at its end; the end token alone gives the empty output."""
    options: DecodingOptions
    on_batch: Callable[[int], None] | None = None
    """Called now and then with the number of sentences that were finished since the last call."""
    numbers: Sequence[int] | None = None
    """The number of each sentence, on which sampling depends together with the seed; 0, 1, … by default."""
    limits: Sequence[LengthLimit] | None = None
    """The limit of the length of each output, which only the PyTorch engine keeps, with a beam search."""

    def report(self, count: int) -> None:
        """Report that this many more sentences are finished."""
        if self.on_batch and count:
            self.on_batch(count)


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
