"""What every search is given: sentences that the model has read, limits, penalties and rules; and the one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.limits import length_penalty
from translucid.decoding.rows import Rows
from translucid.decoding.rules import Rule
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.kernels.transfer import upload
from translucid.models.protocol import Memory, SequenceModel, State


@dataclass(frozen=True)
class Problem:
    """B sentences to be put into other words."""

    model: SequenceModel
    memory: Memory
    """What the model has read."""
    limits: Tensor
    """[B] the most tokens that each output may have, end token not counted."""
    penalties: Tensor
    """[longest limit + 2] float32, by length (end token counted) what a log-probability is divided by."""
    rules: Sequence[Rule]
    """What may not be said."""
    candidates: Tensor | None = None
    """[B, V] boolean, the tokens that share the probability for each sentence; None for all."""

    def begin(self, each: int = 1) -> tuple[Rows, State]:
        """Return `each` empty rows for every sentence, and the model's state before their start tokens."""
        rows = Rows.begin(len(self.limits), each, self.model.bos, self.limits.device)
        state: State = self.model.start(self.memory)
        return rows, state if each == 1 else state.select(rows.sentence)

    def predict(self, rows: Rows, state: State) -> tuple[Tensor, State, Tensor]:
        """Feed the last token of each row and return what may come next.

        Args:
            rows: N hypotheses so far.
            state: the model's state before their last tokens.

        Returns:
            log-probabilities [N, V] in float32, the model's own (what is forbidden is -inf, the rest is not
            rescaled), the state that has seen the token, and whether the output is numbers, boolean []: who waits for
            a GPU next hands that to `refuse_unless`. A row at its limit, or one to which the rules leave nothing, has
            only the end token.

        Raises:
            UserError: the model's output is not a number.
            Cancelled: the search is not wanted any more.
        """
        between_steps()
        logits, state = self.model.step(rows.last, state)
        if self.candidates is not None:
            logits = logits.masked_fill(~self.candidates[rows.sentence], -torch.inf)
        log_probs = logits.float().log_softmax(-1)
        end = log_probs[:, self.model.eos].clone()
        for rule in self.rules:
            rule(rows.history, log_probs)
        best = log_probs.amax(-1)
        stop = (best == -torch.inf) | (self.limits[rows.sentence] <= rows.length)
        _leave_only_the_end(log_probs, stop, end, self.model.eos)
        finite = torch.where(stop, end, best).isfinite().all()  # one NaN among the logits makes a whole row NaN
        if finite.device.type == "cpu":
            self.refuse_unless(bool(finite))
        return log_probs, state, finite

    def refuse_unless(self, finite: bool) -> None:
        """Refuse a model whose output is not a number.

        Raises:
            UserError: it is not.
        """
        if not finite:
            raise UserError(
                "the model's predictions are not numbers (NaN or infinite)",
                fix="Its weights are damaged or its training has diverged; use an earlier checkpoint.",
            )

    def judged(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return hypotheses with the log-probabilities that the model gives them, by whatever they were searched."""
        penalties, judged = self.penalties.tolist(), []
        for hypothesis in found:
            total = sum(hypothesis.token_log_probabilities)
            penalty = penalties[len(hypothesis.token_log_probabilities)]
            judged.append(replace(hypothesis, log_probability=total, score=total / penalty))
        return judged


def _leave_only_the_end(log_probs: Tensor, stop: Tensor, end: Tensor, eos: int) -> None:
    """Write -inf over all tokens but the end of the rows where `stop` [N], in place; `end` [N] is the end's own."""
    if log_probs.device.type == "cpu":  # where few rows are touched faster than all
        (stopped,) = stop.nonzero(as_tuple=True)
        log_probs[stopped] = -torch.inf
        log_probs[stopped, eos] = end[stopped]
    else:
        log_probs.masked_fill_(stop[:, None], -torch.inf)
        log_probs[:, eos] = torch.where(stop, end, log_probs[:, eos])


def length_penalties(longest: int, alpha: float, device: torch.device) -> Tensor:
    """Return `length_penalty` of the lengths 0 .. longest, float32."""
    return upload(length_penalty(torch.arange(longest + 1, dtype=torch.float64), alpha).float(), device)
