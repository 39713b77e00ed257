"""Sessions of live translation that share what the model has proposed, for measuring many policies on many sentences.

A proposal depends on the source heard and on the target written. Policies at several lags often write the same target,
only later, so most proposals were made before. Greedy search gives the same pieces whether a beginning was forced or
chosen, so a longer hypothesis also has the proposals after its beginnings. Each source is encoded once, and steps of
several sentences are computed together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from translucid.ground.joint_steps import Running, Step, compute_steps
from translucid.ground.special import SPECIAL
from translucid.live import session as live_session
from translucid.live.continuation import Continuation, Continuations, ProposedPiece

Result = TypeVar("Result")


@dataclass
class Hypothesis:
    """Pieces that the model proposes after a written target, which are computed when they are needed."""

    continuation: Continuation
    pieces: list[ProposedPiece] = field(default_factory=list)

    @property
    def written(self) -> Sequence[int]:
        """The target that was written."""
        return self.continuation.written

    def follows(self, written: Sequence[int]) -> bool:
        """Return whether `written` is what this target, continued as far as it has been, begins with."""
        tokens = [*self.written, *(piece.token for piece in self.pieces)]
        return len(self.written) <= len(written) <= len(tokens) and tokens[: len(written)] == list(written)

    async def piece(self, number: int) -> ProposedPiece | None:
        """Return the piece at a position of the target; None after its end."""
        index = number - len(self.written)
        while len(self.pieces) <= index:
            if self.pieces and self.pieces[-1].token == SPECIAL.end:
                return None
            self.pieces.append(await self.continuation.next())
        return self.pieces[index]


class Pieces:
    """The pieces of hypotheses that follow a written target, in place of a `Continuation`."""

    def __init__(self, shared: SharedContinuations, source: Sequence[int], written: Sequence[int]) -> None:
        self.shared, self.source, self.written = shared, source, written
        self.target = list(written)
        self._hypothesis: Hypothesis | None = None
        self._returned = len(written)

    async def next(self) -> ProposedPiece:
        """Return the next piece."""
        await self._find()
        assert self._hypothesis
        piece = await self._hypothesis.piece(self._returned)
        assert piece
        if self._returned == len(self.target):
            self.target.append(piece.token)
        self._returned += 1
        return piece

    async def finish(self) -> None:
        """Compute all pieces."""
        await self._find()
        assert self._hypothesis
        while piece := await self._hypothesis.piece(len(self.target)):
            self.target.append(piece.token)

    async def _find(self) -> None:
        """Find a hypothesis that the written target begins, or begin one."""
        if self._hypothesis is None:
            self._hypothesis = await self.shared.hypothesis(self.source, self.written)


@dataclass(frozen=True)
class SharedContinuations(Continuations):
    """Continuations of one sentence by greedy search that are computed once, also with those of other sentences."""

    known: dict[tuple[int, ...], list[Hypothesis]] = field(default_factory=lambda: defaultdict(list), compare=False)

    def after(self, source: Sequence[int], written: Sequence[int], draft: Sequence[int] = ()) -> Pieces:  # type: ignore[override]
        """Return the pieces that the model proposes; see `Continuations.after`. Drafts save nothing here."""
        return Pieces(self, source, list(written))

    async def hypothesis(self, source: Sequence[int], written: Sequence[int]) -> Hypothesis:
        """Return a hypothesis that a written target begins, with a word after it."""
        hypotheses = self.known[tuple(source)]
        for hypothesis in hypotheses:
            if hypothesis.follows(written) and await self._begins_word(hypothesis, written):
                return hypothesis
        continuation = super().after(source, written)
        if hypotheses:
            continuation.memory = hypotheses[0].continuation.memory
        hypotheses.append(Hypothesis(continuation))
        return hypotheses[-1]

    async def _begins_word(self, hypothesis: Hypothesis, written: Sequence[int]) -> bool:
        """Return whether the next piece may follow a written word: others are not proposed then."""
        if len(written) == len(hypothesis.written):
            return True
        piece = await hypothesis.piece(len(written))
        return piece is not None and piece.token not in self._continuing

    @cached_property
    def _continuing(self) -> set[int]:
        return set(self.vocabulary.continuing.tolist())


@contextmanager
def share_continuations() -> Iterator[None]:
    """Let all sessions of one translator that begin within the block share their proposals, one after another."""
    made: list[SharedContinuations] = []
    original = live_session.continuations

    def shared(translator, options):  # type: ignore[no-untyped-def]
        if not made:
            plain = original(translator, options)
            made.append(SharedContinuations(**{part.name: getattr(plain, part.name) for part in fields(plain)}))
        return made[0]

    live_session.continuations = shared
    try:
        yield
    finally:
        live_session.continuations = original


def run_together(coroutines: Sequence[Coroutine[Step, None, Result]]) -> list[Result]:
    """Run coroutines to their ends, and compute their steps together; return their results."""
    running = [Running[Any](coroutine) for coroutine in coroutines]
    for each in running:
        each.go_on()
    while waiting := [each for each in running if each.step]:
        compute_steps(waiting)
    return [each.future.result() for each in running]
