"""What comes of a prompt: texts that go on from it, and how likely the model found each piece."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple, Protocol

from translucid.decoding.hypothesis import Hypothesis, percent
from translucid.decoding.nbest import NBest
from translucid.evaluation.language import TextScores


class Piece(NamedTuple):
    """A piece of a word, and how likely it was."""

    text: str
    """As it stands in the vocabulary, `▁` for a space."""
    log_probability: float
    """Given all before it, in nats."""


@dataclass(frozen=True)
class Continuation:
    """One text that goes on from a prompt."""

    text: str
    """The prompt and what was written, in reading order."""
    written: list[Piece]
    """What the model wrote after the prompt, in the order in which it did; the end token last, if it came to that."""
    ended: bool
    """Whether it came to an end by itself, not at the limit."""
    hypothesis: Hypothesis = field(repr=False)
    """Of the prompt and what was written, in the order in which the model reads."""

    @property
    def score(self) -> float:
        """What several are ranked by: the log-probability of it all after the length penalty."""
        return self.hypothesis.score

    @property
    def log_probability(self) -> float:
        """Of what was written, given the prompt, in nats."""
        return sum(piece.log_probability for piece in self.written)


class Considers(Protocol):
    """What a result asks when somebody wants to know more about it: the `Generator`."""

    def considered(self, tokens: Sequence[int], first: int, count: int) -> list[list[Piece]]:
        """Return the likeliest pieces at each of the tokens from number `first` on."""


@dataclass(frozen=True)
class Generated(NBest):
    """What came of one prompt."""

    prompt: str
    nbest: list[Continuation]
    """The best continuations of those that were asked for, best first, at least one."""
    _generator: Considers = field(repr=False, compare=False)
    backwards: bool = False
    """Whether it was written from its end to its beginning."""

    def considered(self, count: int) -> list[list[Piece]]:
        """Return the likeliest pieces at each step of the best continuation, likeliest first."""
        best = self.nbest[0]
        first = len(best.hypothesis.tokens) - (len(best.written) - best.ended)
        return self._generator.considered(best.hypothesis.tokens, first, count)[: len(best.written)]

    def _repr_html_(self) -> str:
        """Show itself in a notebook: each piece is told of, with its probability, when pointed at."""
        best = self.nbest[0]
        pieces = best.written[: len(best.written) - best.ended]
        shown = [
            f'<b title="{percent(math.exp(piece.log_probability))}">{escape(piece.text.replace("▁", " "))}</b>'
            for piece in pieces
        ]
        parts = [*shown[::-1], " ", escape(self.prompt)] if self.backwards else [escape(self.prompt), *shown]
        return f"<p>{''.join(parts)}</p>"


@dataclass(frozen=True)
class TextScore(TextScores):
    """How a language model finds a text."""

    text: str = ""
    pieces: list[Piece] = field(default_factory=list)
    """In the order in which the model reads, the end token last."""

    @property
    def log_probability(self) -> float:
        """In nats."""
        return -self.nats
