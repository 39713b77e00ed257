"""Self-critical training: a captioner learns from captions of its own, by what they are worth (Rennie et al. 2017).

Cross-entropy asks for the next word of a person's caption, given the words before; what counts in the end is the whole
caption that the model writes by itself. So it draws K captions c_k of an image (arXiv 1612.00563, equations 4 to 7),
each is given a reward r, and those become likelier that are better than the others of the same image, whose mean is the
baseline (Luo 2020, arXiv 2003.09971, equation 4):

    L = - 1/K · Σ_k (r(c_k) - b_k) · log p(c_k),    b_k = 1/(K - 1) · Σ_{j ≠ k} r(c_j)

Its gradient is on average that of -E[r(c)], the reward that a drawn caption may expect: b_k does not depend on c_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.data.batching import Batch
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.sampling import draw_tokens
from translucid.kernels.transfer import upload
from translucid.models.protocol import Memory, SequenceModel
from translucid.training.objective import Loss

SAMPLES = 5
"""K, captions drawn of each image."""
LONGER = 2
"""How many times as long as the longest reference of its batch a drawn caption may get, in tokens."""

Ids: TypeAlias = Sequence[int]
"""A caption; one that has not been cut off ends in the end token."""
Reward: TypeAlias = Callable[[Sequence[Ids], Sequence[Ids]], Sequence[float]]
"""reward(captions, references of the same image) -> of each caption what it is worth."""


class SelfCritical:
    """The loss above, of the same shape as `batch_loss`; dropout and what is taught beyond words rest meanwhile."""

    def __init__(self, model: SequenceModel, reward: Reward, samples: int = SAMPLES) -> None:
        """`samples`: K, 2 or more."""
        self.model, self.reward, self.samples = model, reward, samples

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch of images with all their captions; there is no right token to smooth."""
        model = self.model
        training = model.training
        model.eval()  # what is drawn and what is learned have the same p
        memory = model.encode(batch.source)
        labels = draw(model, memory, self.samples, LONGER * batch.labels.size(1))
        targets_in = torch.cat([torch.full_like(labels[:, :1], model.bos), labels[:, :-1]], 1)
        features = model.features(memory, targets_in)
        model.train(training)
        places = labels.flatten().ne(model.pad).nonzero().squeeze(1)
        said = labels.flatten()[places]
        logits = allowed(model, model.output(features.flatten(0, 1).index_select(0, places)))
        log_p = logits.log_softmax(-1).gather(1, said[:, None])[:, 0]
        rewards = self.rewards(labels, batch.labels)
        each = upload(advantages(rewards).to(log_p.dtype), log_p.device).flatten()[places // labels.size(1)]
        loss = -(each * log_p).sum() / self.samples
        correct = (logits.argmax(-1) == said).sum()
        return Loss(loss, -log_p.sum().detach(), correct, len(said), rewards.sum().item(), rewards.numel())

    def rewards(self, drawn: Tensor, references: Tensor) -> Tensor:
        """Return [B, K] for captions [K B, T] and references [k B, T']."""
        ours = _captions(drawn, self.samples, self.model.pad)
        theirs = _captions(references, len(references) // len(ours), self.model.pad)
        return torch.tensor([self.reward(*both) for both in zip(ours, theirs, strict=True)])


def advantages(rewards: Tensor) -> Tensor:
    """Return r_k - b_k for rewards [B, K], how much better each is than the mean of the others; their sum is 0."""
    return (rewards - rewards.mean(1, keepdim=True)) * (rewards.size(1) / (rewards.size(1) - 1))


@torch.no_grad()
def draw(model: SequenceModel, memory: Memory, each: int, longest: int) -> Tensor:
    """Draw `each` captions of every image as the model would write them at temperature 1.

    Returns:
        ids [each B, T], those of an image one after the other, right-padded, the end token included; one that has not
        ended after `longest` tokens is cut off.
    """
    row = torch.arange(each * len(memory.states), device=memory.states.device)
    state = model.start(memory).select(row // each)
    drawn = torch.full((len(row), longest), model.pad, device=row.device)
    last, plainly = torch.full_like(row, model.bos), DecodingOptions()
    for step in range(longest):
        logits, state = model.step(last, state)
        last = draw_tokens(allowed(model, logits), torch.rand(len(row), device=row.device), plainly)
        drawn[row, step] = last
        going_on = (last != model.eos).nonzero()[:, 0]
        if not len(going_on):
            return drawn[:, : step + 1]
        if len(going_on) < len(row):
            row, last, state = row[going_on], last[going_on], state.select(going_on)
    return drawn


def allowed(model: SequenceModel, logits: Tensor) -> Tensor:
    """Return logits [N, V] in float32, -inf for the tokens that no search may say either."""
    special = model.special
    never = torch.tensor([special.pad, special.start, special.unknown])
    return logits.float().index_fill(-1, upload(never, logits.device), -torch.inf)


def _captions(ids: Tensor, each: int, pad: int) -> list[list[list[int]]]:
    """Return of each image its captions [each B, T] without padding; one that is all padding is none."""
    rows = [[i for i in row if i != pad] for row in ids.tolist()]
    return [[row for row in rows[i : i + each] if row] for i in range(0, len(rows), each)]
