"""The probability of given translations of given sources, token by token, without keeping logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from translucid.data.batching import batches, padded
from translucid.data.text_pipeline import TextPipeline
from translucid.decoding.maps import forced_features
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel

BATCH_TOKENS = 4096
"""The number of tokens in a batch, padding included."""
ROWS = 1024
"""The number of target tokens whose logits are in memory at a time: 125 MiB with a vocabulary of 32,000."""


@dataclass(frozen=True)
class PairScore:
    """The probability of a target, given its source."""

    tokens: list[int]
    """Target ids, the end token last."""
    log_probabilities: list[float]
    """The log-probability of each token, given the source and the tokens before it, in nats."""

    @property
    def log_probability(self) -> float:
        """log p(target | source) in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def perplexity(self) -> float:
        """exp of the mean -log p of a token. Compare only models with the same tokenizer."""
        return perplexity(self.log_probability, len(self.tokens))


def perplexity(log_probability: float, tokens: int) -> float:
    """Return the perplexity per token, given the log-probability of all `tokens` together, in nats."""
    return math.exp(min(-log_probability / tokens, 700))  # exp(710) overflows


class ForcedTokens(NamedTuple):
    """The probabilities of the target tokens of a batch without padding, pair after pair."""

    log_probs: Tensor
    """[n] float64, on the CPU: not every device has it."""
    correct: int
    """The number of tokens that the model ranks first."""


def pair_scores(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = BATCH_TOKENS,
    on_batch: Callable[[int], None] | None = None,
    prefix_length: int = 0,
) -> list[PairScore]:
    """Return the probability of each pair's target, in order.

    Args:
        model: the model, in evaluation mode.
        pairs: ids of sources and targets, end tokens included.
        device: the device of the model.
        batch_tokens: the number of tokens in a batch, padding included; every batch has at least one pair.
        on_batch: called after each batch with its number of pairs.
        prefix_length: the number of tokens at the beginning of each target that the model does not choose, such as a
            language token; they are left out.
    """
    scores: dict[int, PairScore] = {}
    for batch, forced in forced_batches(model, pairs, device, batch_tokens, prefix_length):
        lengths = [len(pairs[i][1]) - prefix_length for i in batch]
        for i, log_probs in zip(batch, forced.log_probs.split(lengths), strict=True):
            scores[i] = PairScore(pairs[i][1][prefix_length:], log_probs.tolist())
        if on_batch:
            on_batch(len(batch))
    return [scores[i] for i in range(len(pairs))]


def score_pairs(
    model: SequenceModel,
    pipeline: TextPipeline,
    pairs: Sequence[tuple[str, str]],
    device: torch.device | str,
    on_done: Callable[[int], None] | None = None,
) -> Iterator[PairScore | str]:
    """Yield the probability of the target of each pair of texts, or the reason why there is none.

    There is none if the source is blank, or a text has more tokens than the model accepts. `pipeline`: the text
    pipeline of the model; other arguments are those of `pair_scores`.
    """
    encoded, problems, encodable = pipeline.pairs(pairs), [], []
    for (source, _), pair in zip(pairs, encoded, strict=True):
        problems.append(_problem(source, pair.longest, pipeline.longest))
        if not problems[-1]:
            encodable.append(pair.ids)
    if on_done and len(encodable) < len(encoded):
        on_done(len(encoded) - len(encodable))
    prefix_length = len(pipeline.tokenizer.target_opening)
    scores = iter(pair_scores(model, encodable, device, on_batch=on_done, prefix_length=prefix_length))
    for problem in problems:
        yield problem or next(scores)


def all_scored(scores: Iterable[PairScore | str]) -> list[PairScore]:
    """Return all scores.

    Raises:
        UserError: a pair has no score.
    """
    scored: list[PairScore] = []
    for number, score in enumerate(scores, 1):
        if isinstance(score, str):
            raise UserError(f"pair {number}: {score}", fix="Leave it out, or split it into sentences.")
        scored.append(score)
    return scored


def _problem(source: str, tokens: int, limit: int) -> str:
    """Return the reason why a pair has no score; "" if it has one."""
    if not source.strip():
        return "there is no source"
    return f"{tokens} tokens are more than the model takes ({limit})" if tokens > limit else ""


def forced_scores(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str,
    on_batch: Callable[[int], None] | None = None,
    prefix_length: int = 0,
) -> tuple[float, int, int]:
    """Return the sum of -log p over all target tokens, the number that the model ranks first, and the number of all.

    Arguments are those of `pair_scores`.
    """
    entropy, correct, tokens = 0.0, 0, 0
    for batch, forced in forced_batches(model, pairs, device, BATCH_TOKENS, prefix_length):
        entropy -= float(forced.log_probs.sum())
        correct += forced.correct
        tokens += len(forced.log_probs)
        if on_batch:
            on_batch(len(batch))
    return entropy, correct, tokens


@torch.inference_mode()
def forced_batches(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str,
    batch_tokens: int,
    prefix_length: int,
) -> Iterator[tuple[list[int], ForcedTokens]]:
    """Yield the numbers of the pairs of each batch, and the probabilities of their targets by forced decoding."""
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        real = target != model.pad
        real[:, :prefix_length] = False
        features, labels = forced_features(model, model.encode(source), target)[real], target[real]  # [n, D], [n]
        # Logits [n, V] would be the largest tensor by far: they are computed for some tokens at a time.
        log_probs, correct = [], 0
        for rows, row_labels in zip(features.split(ROWS), labels.split(ROWS), strict=True):
            logits = model.output(rows).float()
            log_probs.append(-F.cross_entropy(logits, row_labels, reduction="none").cpu().double())
            correct += int((logits.argmax(-1) == row_labels).sum())
        yield batch, ForcedTokens(torch.cat(log_probs), correct)


def paired_batches(
    pairs: Sequence[tuple[list[int], list[int]]], pad: int, device: torch.device | str, batch_tokens: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Yield pairs in batches of similar length: their numbers, source ids [B, S] and target ids [B, T]."""
    lengths = [max(len(source), len(target)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda i: (-lengths[i], -len(pairs[i][1])))
    for batch in batches(order, lengths, batch_tokens):
        sources, targets = zip(*[pairs[i] for i in batch], strict=True)
        yield batch, padded(sources, pad).to(device), padded(targets, pad).to(device)
