"""How likely a model finds given translations of given sources, token by token, without keeping logits."""

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

ROWS = 1024
"""Target tokens whose logits are held at a time; with a vocabulary of 32,000 they are 125 MiB."""


@dataclass(frozen=True)
class PairScore:
    """How likely a model finds a target, given its source. The end token is the last of its tokens."""

    tokens: list[int]
    """Target ids."""
    log_probabilities: list[float]
    """Of each token, given the source and the tokens before it, in nats."""

    @property
    def log_probability(self) -> float:
        """log p(target | source) in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def perplexity(self) -> float:
        """exp of the mean -log p of a token. Only models with one tokenizer compare."""
        return perplexity(self.log_probability, len(self.tokens))


def perplexity(log_probability: float, tokens: int) -> float:
    """Return the perplexity per token of so many tokens with a log-probability together, in nats."""
    return math.exp(min(-log_probability / tokens, 700))


class ForcedTokens(NamedTuple):
    """What a model makes of the real target tokens of a batch, pair after pair."""

    log_probs: Tensor
    """[n] float64, on the CPU: not every device has it."""
    correct: int
    """How many of them the model ranks first."""


def pair_scores(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    on_batch: Callable[[int], None] | None = None,
    told: int = 0,
) -> list[PairScore]:
    """Return how likely a model finds each pair's target, in the order given.

    Args:
        model: in evaluation mode.
        pairs: ids of sources and targets, end tokens included.
        device: where the model is.
        batch_tokens: in a batch, padding included; at least one pair is in every batch.
        on_batch: called after each batch with its number of pairs.
        told: the first so many tokens of each target are no choice of the model's, such as its language, and left out.
    """
    found: dict[int, PairScore] = {}
    for batch, forced in forced_batches(model, pairs, device, batch_tokens, told):
        lengths = [len(pairs[i][1]) - told for i in batch]
        for i, log_probs in zip(batch, forced.log_probs.split(lengths), strict=True):
            found[i] = PairScore(pairs[i][1][told:], log_probs.tolist())
        if on_batch:
            on_batch(len(batch))
    return [found[i] for i in range(len(pairs))]


def score_pairs(
    model: SequenceModel,
    pipeline: TextPipeline,
    pairs: Sequence[tuple[str, str]],
    device: torch.device | str,
    on_done: Callable[[int], None] | None = None,
) -> Iterator[PairScore | str]:
    """Yield how likely a model finds each target of pairs of texts, or why that can't be said.

    It can't of a blank source, nor of a text of more tokens than the model takes. `pipeline`: the model's; other
    arguments are those of `pair_scores`.
    """
    encoded, longest = pipeline.pairs(pairs), pipeline.longest
    problems = [_problem(source, one.longest, longest) for (source, _), one in zip(pairs, encoded, strict=True)]
    kept = [one.ids for one, problem in zip(encoded, problems, strict=True) if not problem]
    if on_done and len(kept) < len(encoded):
        on_done(len(encoded) - len(kept))
    told = len(pipeline.tokenizer.target_opening)
    scores = iter(pair_scores(model, kept, device, on_batch=on_done, told=told))
    for problem in problems:
        yield problem or next(scores)


def all_scored(scores: Iterable[PairScore | str]) -> list[PairScore]:
    """Return scores of which none is missing.

    Raises:
        UserError: one is.
    """
    found: list[PairScore] = []
    for number, score in enumerate(scores, 1):
        if isinstance(score, str):
            raise UserError(f"pair {number}: {score}", fix="Leave it out, or split it into sentences.")
        found.append(score)
    return found


def _problem(source: str, tokens: int, longest: int) -> str:
    if not source.strip():
        return "there is no source"
    return f"{tokens} tokens are more than the model takes ({longest})" if tokens > longest else ""


def forced_scores(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    on_batch: Callable[[int], None] | None = None,
    told: int = 0,
) -> tuple[float, int, int]:
    """Return the sum of -log p over all target tokens, how many of them the model ranks first, and their number.

    Arguments are those of `pair_scores`.
    """
    entropy, correct, tokens = 0.0, 0, 0
    for batch, forced in forced_batches(model, pairs, device, batch_tokens, told):
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
    told: int,
) -> Iterator[tuple[list[int], ForcedTokens]]:
    """Let a model write given targets; yield the numbers of the pairs of each batch and what it makes of them."""
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        real = target != model.pad
        real[:, :told] = False
        features, labels = forced_features(model, model.encode(source), target)[real], target[real]  # [n, D], [n]
        log_probs, correct = [], 0
        for rows, asked in zip(features.split(ROWS), labels.split(ROWS), strict=True):
            logits = model.output(rows).float()
            log_probs.append(-F.cross_entropy(logits, asked, reduction="none").cpu().double())
            correct += int((logits.argmax(-1) == asked).sum())
        yield batch, ForcedTokens(torch.cat(log_probs), correct)


def paired_batches(
    pairs: Sequence[tuple[list[int], list[int]]], pad: int, device: torch.device | str, batch_tokens: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Give pairs in batches of like length: their numbers, source ids [B, S] and target ids [B, T]."""
    lengths = [max(len(source), len(target)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda i: (-lengths[i], -len(pairs[i][1])))
    for batch in batches(order, lengths, batch_tokens):
        source, target = (padded([pairs[i][side] for i in batch], pad).to(device) for side in (0, 1))
        yield batch, source, target
