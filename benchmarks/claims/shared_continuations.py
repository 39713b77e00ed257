"""Sessions of live translation that share what the model has proposed, for measuring many policies on one sentence.

A proposal depends on the source heard and on the target written. Policies at several lags often write the same target,
only later, so most proposals were made before. Greedy search gives the same pieces whether a beginning was forced or
chosen, so a longer hypothesis also has the proposals after its beginnings. Each source is encoded once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from torch import Tensor

from translucid.ground.joint_steps import run
from translucid.ground.special import SPECIAL
from translucid.live import session as live_session
from translucid.live.continuation import Continuation, Continuations, Piece
from translucid.models.protocol import Memory, SequenceModel


class EncodingOnce:
    """A model that encodes each source once."""

    def __init__(self, model: SequenceModel) -> None:
        self._model = model
        self._memories: dict[tuple[int, ...], Memory] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode(self, source: Tensor, *, lengths: Sequence[int] = ()) -> Memory:
        """Return the memory of one source [1, S]."""
        (ids,) = map(tuple, source.tolist())
        if ids not in self._memories:
            self._memories[ids] = self._model.encode(source, lengths=lengths)
        return self._memories[ids]


class Pieces:
    """Pieces of a hypothesis, in place of a `Continuation`."""

    def __init__(self, pieces: Iterator[Piece], written: Sequence[int]) -> None:
        self.pieces, self.target = pieces, list(written)
        self.known: deque[Piece] = deque()

    async def next(self) -> Piece:
        """Return the next piece."""
        if not self.known:
            self._add(next(self.pieces))
        return self.known.popleft()

    async def finish(self) -> None:
        """Compute all pieces."""
        for piece in self.pieces:
            self._add(piece)

    def _add(self, piece: Piece) -> None:
        self.known.append(piece)
        self.target.append(piece.token)


def pieces_of(continuation: Continuation) -> Iterator[Piece]:
    """Yield the pieces of a continuation."""
    while True:
        piece = run(continuation.next())
        yield piece
        if piece.token == SPECIAL.end:
            return


@dataclass
class Hypothesis:
    """Pieces that the model proposes after a written target, which are computed when they are needed."""

    written: list[int]
    pieces: list[Piece]
    rest: Iterator[Piece]

    def follows(self, written: Sequence[int]) -> bool:
        """Return whether `written` is what this target, continued as far as it has been, begins with."""
        tokens = [*self.written, *(piece.token for piece in self.pieces)]
        return len(self.written) <= len(written) <= len(tokens) and tokens[: len(written)] == list(written)

    def after(self, count: int) -> Iterator[Piece]:
        """Yield the pieces after the first `count` of the target."""
        index = count - len(self.written)
        while True:
            if index == len(self.pieces):
                piece = next(self.rest, None)
                if piece is None:
                    return
                self.pieces.append(piece)
            yield self.pieces[index]
            index += 1


@dataclass(frozen=True)
class SharedContinuations(Continuations):
    """Continuations of one model by greedy search that are computed once."""

    known: dict[tuple[int, ...], list[Hypothesis]] = field(default_factory=lambda: defaultdict(list))

    def after(self, source: Sequence[int], written: Sequence[int], draft: Sequence[int] = ()) -> Pieces:  # type: ignore[override]
        """Return the pieces that the model proposes; see `Continuations.after`."""
        hypotheses = self.known[tuple(source)]
        for hypothesis in hypotheses:
            if hypothesis.follows(written) and self._begins_word(hypothesis, written):
                return Pieces(hypothesis.after(len(written)), written)
        hypothesis = Hypothesis(list(written), [], pieces_of(super().after(source, written, draft)))
        hypotheses.append(hypothesis)
        return Pieces(hypothesis.after(len(written)), written)

    def _begins_word(self, hypothesis: Hypothesis, written: Sequence[int]) -> bool:
        """Return whether the next piece may follow a written word: others are not proposed then."""
        if len(written) == len(hypothesis.written):
            return True
        token = next(hypothesis.after(len(written)), None)
        return token is not None and token.token not in self._continuing

    @cached_property
    def _continuing(self) -> set[int]:
        return set(self.vocabulary.continuing.tolist())


@contextmanager
def share_continuations() -> Iterator[None]:
    """Let all sessions of one translator that begin within the block share their proposals."""
    made: list[SharedContinuations] = []
    original = live_session.continuations

    def shared(translator, options):  # type: ignore[no-untyped-def]
        if not made:
            plain = original(translator, options)
            engine = copy(plain.engine)
            engine.model = EncodingOnce(engine.model)
            values = {part.name: getattr(plain, part.name) for part in fields(plain)}
            made.append(SharedContinuations(**{**values, "engine": engine}))
        return made[0]

    live_session.continuations = shared
    try:
        yield
    finally:
        live_session.continuations = original
