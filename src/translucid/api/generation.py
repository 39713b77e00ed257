"""The continuations of a prompt, with the probability of each piece."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from translucid.decoding.hypothesis import Hypothesis, NBest, percent
from translucid.evaluation.language import TextScores

if TYPE_CHECKING:
    from translucid.api.generator import Generator


class Piece(NamedTuple):
    """A piece of a word, with its probability."""

    text: str
    """The piece in the vocabulary, `▁` for a space."""
    log_probability: float
    """The log-probability given all pieces before it, in nats."""


@dataclass(frozen=True)
class Continuation:
    """One continuation of a prompt."""

    text: str
    """The prompt and its continuation, in reading order."""
    written: list[Piece]
    """The pieces after the prompt, in the order in which the model wrote them; the end token last, if there is one."""
    ended: bool
    """Whether the text has an end token, and was not cut off at the limit."""
    hypothesis: Hypothesis = field(repr=False)
    """The prompt and its continuation, in the order in which the model reads."""

    @property
    def score(self) -> float:
        """The value that ranks continuations: the log-probability of the whole text after the length penalty."""
        return self.hypothesis.score

    @property
    def log_probability(self) -> float:
        """The log-probability of the continuation, given the prompt, in nats."""
        return sum(piece.log_probability for piece in self.written)


@dataclass(frozen=True)
class Generated(NBest):
    """The continuations of one prompt."""

    prompt: str
    nbest: list[Continuation]
    """The continuations, the best first, at least one."""
    _generator: Generator = field(repr=False, compare=False)
    backwards: bool = False
    """Whether the model writes from the end of a text to its beginning."""

    def considered(self, count: int) -> list[list[Piece]]:
        """Return the most probable pieces at each step of the best continuation, the most probable first."""
        best = self.nbest[0]
        prompt_length = len(best.hypothesis.tokens) - (len(best.written) - best.ended)
        return self._generator.considered(best.hypothesis.tokens, prompt_length, count)[: len(best.written)]

    def _repr_html_(self) -> str:
        """Show the best continuation in a notebook, with the probability of each piece as a tooltip."""
        best = self.nbest[0]
        continuation = []
        for piece in best.written[: len(best.written) - best.ended]:
            probability = percent(math.exp(piece.log_probability))
            continuation.append(f'<b title="{probability}">{escape(piece.text.replace("▁", " "))}</b>')
        parts = [escape(self.prompt), *continuation]
        if self.backwards:
            parts = [*continuation[::-1], " ", escape(self.prompt)]
        return f"<p>{''.join(parts)}</p>"


@dataclass(frozen=True)
class TextScore(TextScores):
    """The probability of a text under a language model."""

    text: str = ""
    pieces: list[Piece] = field(default_factory=list)
    """The pieces in the order in which the model reads, the end token last."""

    @property
    def log_probability(self) -> float:
        """The log-probability of the text, in nats."""
        return -self.nats
