"""The input of every search: encoded sentences, limits, penalties and rules; and the step that all searches share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.limits import length_penalty
from translucid.decoding.rows import Rows
from translucid.decoding.rules import Rule
from translucid.ground.errors import UserError
from translucid.kernels.transfer import upload
from translucid.models.protocol import Memory, SequenceModel, State


@dataclass(frozen=True)
class Problem:
    """B sentences for which outputs are searched."""

    model: SequenceModel
    memory: Memory
    """The encoded sentences."""
    limits: Tensor
    """[B] the maximum number of tokens of each output, without the end token."""
    penalties: Tensor
    """[longest limit + 2] float32, the length penalty by length, end token included."""
    rules: Sequence[Rule]
    """The rules that forbid tokens."""
    candidates: Tensor | None = None
    """[B, V] boolean, the tokens that share the probability for each sentence; None for all."""

    def begin(self, per_sentence: int = 1) -> tuple[Rows, State]:
        """Return `per_sentence` empty rows for every sentence, and the model's state before their start tokens."""
        rows = Rows.begin(len(self.limits), per_sentence, self.model.bos, self.limits.device)
        state: State = self.model.start(self.memory)
        return rows, state if per_sentence == 1 else state.select(rows.sentence)

    def predict(self, rows: Rows, state: State) -> tuple[Tensor, State, Tensor]:
        """Return the log-probabilities of the next token of each row.

        Args:
            rows: the N hypotheses so far.
            state: the model's state before their last tokens.

        Returns:
            The model's log-probabilities [N, V] in float32 (forbidden tokens have -inf, the rest is not rescaled); the
            state after the last tokens; and whether the output is finite, boolean [], which on a GPU the caller
            passes to `refuse_unless` at the next synchronisation. A row at its limit, or without any token that the
            rules allow, has only the end token.

        Raises:
            UserError: the model's log-probabilities are not finite.
            Cancelled: the search was cancelled.
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
        # One NaN among the logits makes the whole row NaN, so the best of each row shows it.
        finite = torch.where(stop, end, best).isfinite().all()
        if finite.device.type == "cpu":
            self.refuse_unless(bool(finite))
        return log_probs, state, finite

    def refuse_unless(self, finite: bool) -> None:
        """Reject a model whose log-probabilities are not finite.

        Raises:
            UserError: they are not.
        """
        if not finite:
            raise UserError(
                "the model's predictions are not numbers (NaN or infinite)",
                fix="Its weights are damaged or its training has diverged; use an earlier checkpoint.",
            )

    def rescored(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return hypotheses with the model's own log-probabilities, after a search that added up other values."""
        penalties, rescored = self.penalties.tolist(), []
        for hypothesis in hypotheses:
            total = sum(hypothesis.token_log_probabilities)
            penalty = penalties[len(hypothesis.token_log_probabilities)]
            rescored.append(replace(hypothesis, log_probability=total, score=total / penalty))
        return rescored


def _leave_only_the_end(log_probs: Tensor, stop: Tensor, end: Tensor, eos: int) -> None:
    """Set all log-probabilities but the end token's, `end` [N], to -inf in rows where `stop` [N], in place."""
    if log_probs.device.type == "cpu":  # changing a few rows is faster than masking all; a GPU would have to be awaited
        (stopped,) = stop.nonzero(as_tuple=True)
        log_probs[stopped] = -torch.inf
        log_probs[stopped, eos] = end[stopped]
    else:
        log_probs.masked_fill_(stop[:, None], -torch.inf)
        log_probs[:, eos] = torch.where(stop, end, log_probs[:, eos])


def length_penalties(longest: int, alpha: float, device: torch.device) -> Tensor:
    """Return `length_penalty` of the lengths 0 .. longest, float32."""
    return upload(length_penalty(torch.arange(longest + 1, dtype=torch.float64), alpha).float(), device)
