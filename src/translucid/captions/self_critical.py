"""Self-critical training: a captioner learns from the rewards of captions that it samples (Rennie et al. 2017).

Cross-entropy trains the next word of a person's caption, given the words before it. The evaluation is about the whole
caption that the model generates. So the model samples K captions c_k of an image (arXiv 1612.00563, equations 4 to 7).
Each gets a reward r, and training increases the probability of those that are better than the others of the same image,
whose mean reward is the baseline (Luo 2020, arXiv 2003.09971, equation 4):

    L = - 1/K · Σ_k (r(c_k) - b_k) · log p(c_k),    b_k = 1/(K - 1) · Σ_{j ≠ k} r(c_j)

The expectation of its gradient is the gradient of -E[r(c)], because b_k does not depend on c_k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

import torch
from torch import Tensor

from translucid.captions.caption_scores import LONGEST, Cider, grams, papers_tokens
from translucid.data.batching import Batch
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.sampling import draw_tokens
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.kernels.upload import upload
from translucid.models.protocol import Memory, SequenceModel
from translucid.runs.configuration import Configuration
from translucid.training.extras.training_step import TrainingStep
from translucid.training.objective import Loss, LossFunction
from translucid.training.schedule import self_critical
from translucid.training.weights import Weights

SAMPLES = 5
"""K, the number of captions sampled for each image."""
MAX_LENGTH_RATIO = 2
"""The maximum length of a sampled caption, relative to the longest reference in its batch, in tokens."""

Ids: TypeAlias = Sequence[int]
"""A caption; it ends in the end token unless it is truncated."""
Reward: TypeAlias = Callable[[Sequence[Ids], Sequence[Ids]], Sequence[float]]
"""A function from captions of an image and the references of the image to the reward of each caption."""


class SelfCritical:
    """The loss above, with the interface of `batch_loss`, without dropout and auxiliary losses."""

    def __init__(self, model: SequenceModel, reward: Reward, samples: int = SAMPLES) -> None:
        """Train a model with a reward; `samples` is K, 2 or more."""
        self.model, self.reward, self.samples = model, reward, samples

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch of images with all their captions; no label smoothing applies to samples."""
        model = self.model
        training = model.training
        model.eval()  # without dropout, so that the gradient is that of the distribution that was sampled from
        memory = model.encode(batch.source)
        samples = draw(model, memory, self.samples, MAX_LENGTH_RATIO * batch.labels.size(1))
        rewards = self.rewards(samples, batch.labels)
        indices = samples.flatten().ne(model.pad).nonzero().squeeze(1)
        device = memory.states.device
        labels, indices = upload(samples, device), upload(indices, device)
        targets_in = torch.cat([torch.full_like(labels[:, :1], model.bos), labels[:, :-1]], 1)
        features = model.features(memory, targets_in)
        model.train(training)
        tokens = labels.flatten()[indices]  # [n], without padding
        logits = allowed(model, model.output(features.flatten(0, 1).index_select(0, indices)))
        log_p = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        caption_advantages = upload(advantages(rewards).to(log_p.dtype), device).flatten()  # [K B]
        token_advantages = caption_advantages[indices // labels.size(1)]  # [n]
        loss = -(token_advantages * log_p).sum() / self.samples
        correct = (logits.argmax(-1) == tokens).sum()
        return Loss(loss, -log_p.sum().detach(), correct, len(tokens), rewards.sum().item(), rewards.numel())

    def rewards(self, samples: Tensor, references: Tensor) -> Tensor:
        """Return the rewards [B, K] for captions [K B, T] and references [k B, T']."""
        captions = _captions(samples, self.samples, self.model.pad)
        references_of_images = _captions(references, len(references) // len(captions), self.model.pad)
        return torch.tensor(list(map(self.reward, captions, references_of_images)))


class SelfCriticalStep(TrainingStep):
    """Replaces the loss in the last part of a training, `training.self_critical`."""

    cross_entropy: LossFunction
    critical: LossFunction
    is_critical = False

    def __init__(self, configuration: Configuration, reward: Reward) -> None:
        super().__init__(configuration)
        self.reward = reward

    def begin(self, weights: Weights) -> None:
        """Add the second loss."""
        assert isinstance(weights.model, SequenceModel)
        self.cross_entropy, self.critical = weights.loss, SelfCritical(weights.model, self.reward)
        weights.loss = self._loss

    def begin_update(self, done: float) -> None:
        """Choose the loss."""
        self.is_critical = self_critical(self.options, done)

    def _loss(self, batch: Batch, smoothing: float) -> Loss:
        if self.is_critical:
            return self.critical(batch, smoothing)
        return self.cross_entropy(batch, smoothing)


def advantages(rewards: Tensor) -> Tensor:
    """Return r_k - b_k for rewards [B, K], the difference to the mean of the others; the sum over k is 0."""
    # With the mean m of all K rewards, r_k - b_k = (r_k - m) * K / (K - 1).
    return (rewards - rewards.mean(1, keepdim=True)) * (rewards.size(1) / (rewards.size(1) - 1))


@torch.no_grad()
def draw(model: SequenceModel, memory: Memory, per_image: int, max_length: int) -> Tensor:
    """Sample `per_image` captions of every image at temperature 1.

    A GPU is waited for once a token, to learn which captions have ended.

    Returns:
        Ids [per_image B, T] on the CPU, those of an image in consecutive rows, right-padded, end tokens included. A
        caption without an end after `max_length` tokens is truncated.
    """
    device = memory.states.device
    row = torch.arange(per_image * len(memory.states))
    state = model.start(memory).select(upload(row // per_image, device))
    samples = torch.full((len(row), max_length), model.pad)
    last_tokens, options = torch.full((len(row),), model.bos, device=device), DecodingOptions()
    for step in range(max_length):
        logits, state = model.step(last_tokens, state)
        last_tokens = draw_tokens(allowed(model, logits), torch.rand(len(row), device=device), options)
        tokens = last_tokens.cpu()
        samples[row, step] = tokens
        unfinished = tokens.ne(model.eos).nonzero().squeeze(1)
        if not len(unfinished):
            return samples[:, : step + 1]
        if len(unfinished) < len(row):  # drop finished captions, and remember the rows of the others
            row = row[unfinished]
            indices = upload(unfinished, device)
            last_tokens, state = last_tokens[indices], state.select(indices)
    return samples


def allowed(model: SequenceModel, logits: Tensor) -> Tensor:
    """Return logits [N, V] in float32, with -inf for the tokens that no search generates."""
    special = model.special
    excluded = torch.tensor([special.pad, special.start, special.unknown])
    return logits.float().index_fill(-1, upload(excluded, logits.device), -torch.inf)


def _captions(ids: Tensor, per_image: int, pad: int) -> list[list[list[int]]]:
    """Return the captions of each image, given ids [per_image B, T], without padding and without empty captions."""
    images = []
    for rows in ids.unflatten(0, (-1, per_image)).tolist():
        captions = []
        for row in rows:
            if caption := [token for token in row if token != pad]:
                captions.append(caption)
        images.append(captions)
    return images


PRECISION = 2.0
"""The weight of the n-gram precision."""


class CaptionReward:
    """r(c) = CIDEr-D(c) + w · precision(c), from 0 to 10 + w, over the words of the evaluation and the end token.

    The reward compares words, as the evaluation does, rather than tokens. Without the end token, a caption that stops
    after `in front of a` would lose nothing. CIDEr-D rewards rare words, and those that a model has learned for its
    training images are often wrong for other images. The precision rewards correct words.
    """

    def __init__(
        self, tokenizer: Tokenizer, references: Iterable[Sequence[Ids]], *, precision: float = PRECISION
    ) -> None:
        """Count the document frequencies of n-grams in the training captions.

        Args:
            tokenizer: the tokenizer of the captions.
            references: the captions of each training image.
            precision: w.
        """
        self.tokenizer, self.precision = tokenizer, precision
        self.cider = Cider(map(self.words_of_all, references))

    def __call__(self, captions: Sequence[Ids], references: Sequence[Ids]) -> list[float]:
        """Return the reward of each caption of an image, given the references of the image."""
        caption_words, reference_words = self.words_of_all(captions), self.words_of_all(references)
        scores = zip(
            self.cider(caption_words, reference_words), precisions(caption_words, reference_words), strict=True
        )
        return [cider + self.precision * precision for cider, precision in scores]

    def words_of_all(self, captions: Sequence[Ids]) -> list[list[str]]:
        """Return the words of each caption."""
        return list(map(self.words, captions))

    def words(self, ids: Ids) -> list[str]:
        """Return the words of a caption, and the end token if the caption has one."""
        words = papers_tokens(self.tokenizer.decode(ids))
        if ids and ids[-1] == SPECIAL.end:
            words.append(SPELLINGS.end)
        return words


def precisions(captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
    """Return BP · (p_1 + p_2 + p_3 + p_4) / 4, from 0 to 1, for each caption of an image.

    p_n is the clipped n-gram precision and BP the brevity penalty of BLEU (Papineni et al. 2002). BLEU takes the
    geometric mean of p_n, which is 0 for most single captions, because their p_4 is.
    """
    # The union of counters takes the maximum count of each n-gram in any reference: the limit of clipping.
    limits = reduce(or_, map(grams, references))
    lengths = list(map(len, references))

    def precision(words: Sequence[str]) -> float:
        matches = [0] * LONGEST
        for gram, count in (grams(words) & limits).items():
            matches[len(gram) - 1] += count
        # A caption has len(words) - n + 1 n-grams.
        shares = (hits / max(len(words) - n + 1, 1) for n, hits in enumerate(matches, 1))
        reference_length = min(lengths, key=lambda length: (abs(length - len(words)), length))
        return min(1.0, math.exp(1 - reference_length / max(len(words), 1))) * sum(shares) / LONGEST

    return list(map(precision, captions))
