"""When to write: the policies of simultaneous translation, each as in its paper.

At each new source word, a model proposes the next target pieces one after another. A policy says of each whether it is
written; the first piece that is not ends the decision. Positions are pieces, counted from 0; the end token of the
source is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from translucid.ground.errors import UserError
from translucid.live.kinds import PolicyName

Floats: TypeAlias = NDArray[np.float32]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
Reads: TypeAlias = Literal["pieces", "hypotheses", "nothing"]
Evidence: TypeAlias = Mapping[str, float | int]
"""Numbers that decide, by name."""


class Proposal(NamedTuple):
    """A target piece that the model proposes after those that are written, and what it looks at."""

    row: Floats
    """[S] its attention over the source pieces heard so far; empty without attention."""
    words: Sequence[int]
    """[S] the source word of each piece, from 0, in ascending order."""
    heard: int
    """The number of source words heard."""
    word: int
    """The number of the target word that the piece belongs to, from 0."""
    hypothesis: Sequence[int] = ()
    """The target ids from the first one to the piece."""
    earlier: Sequence[Sequence[int]] = ()
    """The target ids of the hypotheses for the prefixes before this one, the latest last."""

    def frontier(self, lag: int) -> int:
        """Return the first source piece of the last `lag` words."""
        return int(np.searchsorted(self.words, self.heard - lag))


class Policy(Protocol):
    """Decides whether a proposed piece is written."""

    reads: ClassVar[Reads]
    """What the model proposes before the sentence ends: single pieces, whole hypotheses, or nothing."""

    @property
    def lag(self) -> int:
        """The lag in source words."""

    def writes(self, proposal: Proposal) -> bool:
        """Return whether the piece is written now."""

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return the numbers that decide, by name."""


@dataclass(frozen=True)
class AlignAtt:
    """Wait if the piece looks most at the last words heard (Papi et al. 2023, arXiv 2305.11408, section 3).

    With a_i = argmax_j attention_ij, stop before the first piece i with a_i >= |x| - f, where f is the number of pieces
    of the last `lag` words.
    """

    lag: int
    reads: ClassVar[Reads] = "pieces"

    def writes(self, proposal: Proposal) -> bool:
        """Return whether a_i < |x| - f."""
        return proposal.row.size > 0 and int(proposal.row.argmax()) < proposal.frontier(self.lag)

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return a_i and |x| - f."""
        argmax = int(proposal.row.argmax()) if proposal.row.size else -1
        return {"argmax": argmax, "frontier": proposal.frontier(self.lag)}


@dataclass(frozen=True)
class EDAtt:
    """Wait if the piece looks much at the last words heard (Papi et al. 2022, arXiv 2212.07850, section 3).

    Stop before the first piece whose attention on the lambda pieces of the last `lag` words sums to `alpha` or more.
    """

    lag: int
    alpha: float
    reads: ClassVar[Reads] = "pieces"

    def mass(self, proposal: Proposal) -> float:
        """Return the attention on the last lambda pieces."""
        return float(proposal.row[proposal.frontier(self.lag) :].sum())

    def writes(self, proposal: Proposal) -> bool:
        """Return whether the attention on the last pieces is below alpha."""
        return proposal.row.size > 0 and self.mass(proposal) < self.alpha

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return the attention on the last pieces, the first of them, and alpha."""
        return {"mass": self.mass(proposal), "frontier": proposal.frontier(self.lag), "alpha": self.alpha}


@dataclass(frozen=True)
class WaitK:
    """Read k = `lag` words, then write one for each that is read (Ma et al. 2019, arXiv 1810.08398, equation 3).

    Target word t is written after g(t) = min(k + t - 1, |x|) source words.
    """

    lag: int
    reads: ClassVar[Reads] = "pieces"

    def writes(self, proposal: Proposal) -> bool:
        """Return whether g(t) words have been heard; t counts from 1."""
        return proposal.heard >= self.lag + proposal.word

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return the number of source words that the target word needs."""
        return {"needs": self.lag + proposal.word}


@dataclass(frozen=True)
class LocalAgreement:
    """Write what the hypotheses of `lag` + 1 successive prefixes have in common (Liu et al. 2020, arXiv 2005.11185).

    With a lag of 1, these are the last two prefixes (section 3.2: local agreement).
    """

    lag: int
    reads: ClassVar[Reads] = "hypotheses"

    def writes(self, proposal: Proposal) -> bool:
        """Return whether all these hypotheses begin with the same pieces up to this one."""
        return self._agreeing(proposal) == self.lag

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return the number of earlier hypotheses that begin with the same pieces, and of those that must."""
        return {"agreeing": self._agreeing(proposal), "needs": self.lag}

    def _agreeing(self, proposal: Proposal) -> int:
        count, latest = len(proposal.hypothesis), proposal.earlier[len(proposal.earlier) - self.lag :]
        return sum(list(earlier[:count]) == list(proposal.hypothesis) for earlier in latest)


@dataclass(frozen=True)
class WholeSentence:
    """Write nothing before the sentence ends."""

    lag: int = 0
    reads: ClassVar[Reads] = "nothing"

    def writes(self, proposal: Proposal) -> bool:
        """Return False."""
        return False

    def evidence(self, proposal: Proposal) -> Evidence:
        """Return nothing: only the end of the sentence decides."""
        return {}


def policy_of(name: PolicyName, lag: int, alpha: float) -> Policy:
    """Return a policy; `alpha` is for EDAtt.

    Raises:
        UserError: there is no such policy.
    """
    match name:
        case "alignatt":
            return AlignAtt(lag)
        case "edatt":
            return EDAtt(lag, alpha)
        case "wait-k":
            return WaitK(lag)
        case "agreement":
            return LocalAgreement(lag)
        case "whole":
            return WholeSentence(lag)
    raise UserError(f"there is no policy {name!r}", fix=f"Choose one of {', '.join(POLICIES)}.")
