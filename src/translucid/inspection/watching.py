"""Watch a model write given targets for given sources, in batches (forced decoding)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from translucid.data.batching import batches, padded
from translucid.data.tokenizer import Tokenizer
from translucid.inspection.inspected import Inspected
from translucid.inspection.maps import forced_features, forced_pass
from translucid.models.protocol import Maps, SequenceModel

ROWS = 1024
"""Target tokens whose logits are held at a time; with a vocabulary of 32,000 they are 125 MiB."""


def watch(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    *,
    look: bool = True,
) -> list[Inspected]:
    """Return what is to be seen of each pair of source and target ids, end tokens included.

    Args:
        model: in evaluation mode.
        tokenizer: its own.
        pairs: ids of sources and targets.
        device: where the model is.
        batch_tokens: in a batch, padding included; at least one pair is in every batch.
        look: whether attention is wanted, besides log-probabilities.
    """
    found: dict[int, Inspected] = {}
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        maps, log_probs = forced_pass(model, source, target, look=look)
        for row, i in enumerate(batch):
            source_ids, target_ids = pairs[i]
            found[i] = Inspected(
                tokenizer.source_pieces(source_ids),
                tokenizer.target_pieces(target_ids),
                _cut({name: weights[row] for name, weights in maps.items()}, len(source_ids), len(target_ids)),
                log_probs[row, : len(target_ids)].tolist(),
            )
    return [found[i] for i in range(len(pairs))]


@torch.inference_mode()
def forced_scores(
    model: SequenceModel,
    pairs: Sequence[tuple[list[int], list[int]]],
    device: torch.device | str = "cpu",
    batch_tokens: int = 4096,
    on_batch: Callable[[int], None] | None = None,
) -> tuple[float, int, int]:
    """Let a model write given targets, and return how it found them.

    Args:
        model: in evaluation mode.
        pairs: ids of sources and targets, end tokens included.
        device: where the model is.
        batch_tokens: in a batch, padding included; at least one pair is in every batch.
        on_batch: called after each batch with its number of pairs.

    Returns:
        The sum of -log p over all target tokens, in nats; how many of them the model ranks first; their number.
    """
    entropy, correct, tokens = 0.0, 0, 0
    for batch, source, target in paired_batches(pairs, model.pad, device, batch_tokens):
        real = target != model.pad
        features, labels = forced_features(model, model.encode(source), target)[real], target[real]  # [n, D], [n]
        for rows, asked in zip(features.split(ROWS), labels.split(ROWS), strict=True):
            logits = model.output(rows).float()
            # In float64 on the CPU: not every device has it.
            entropy += float(F.cross_entropy(logits, asked, reduction="none").cpu().double().sum())
            correct += int((logits.argmax(-1) == asked).sum())
        tokens += len(labels)
        if on_batch:
            on_batch(len(batch))
    return entropy, correct, tokens


def pair_ids(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], end: int) -> list[tuple[list[int], list[int]]]:
    """Return source and target ids of pairs of texts, both with the end token."""
    sources = tokenizer.encode_source([source for source, _ in pairs])
    targets = tokenizer.encode_target([target for _, target in pairs])
    return [([*source, end], [*target, end]) for source, target in zip(sources, targets, strict=True)]


def paired_batches(
    pairs: Sequence[tuple[list[int], list[int]]], pad: int, device: torch.device | str, batch_tokens: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Give pairs in batches of like length: their numbers, source ids [B, S] and target ids [B, T]."""
    lengths = [max(len(source), len(target)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda i: -lengths[i])
    for batch in batches(order, lengths, batch_tokens):
        source, target = (padded([pairs[i][side] for i in batch], pad).to(device) for side in (0, 1))
        yield batch, source, target


def _cut(maps: Maps, source: int, target: int) -> Maps:
    """Leave out the padding of [H, T, S] maps."""

    def cut(name: str, weights: Tensor) -> Tensor:
        side, _, kind = name.split(".")
        rows = source if side == "encoder" else target
        columns = target if side == "decoder" and kind == "self" else source
        return weights[:, :rows, :columns].cpu()

    return {name: cut(name, weights) for name, weights in maps.items()}
