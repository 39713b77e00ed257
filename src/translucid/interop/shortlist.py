"""Learning a lexical shortlist: what a source piece may become is read off the attention over training pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.tokenizer import EOS, Tokenizer
from translucid.inspection.watching import watch
from translucid.models.protocol import SequenceModel

EACH = 40
"""Target pieces that a source piece brings in."""
ALWAYS = 200
"""Target pieces that are always in: the most frequent ones."""
FAINT = 0.1
"""Attention below this links no two pieces."""
TOGETHER = 512
"""Pairs looked at between two reports."""

Pieces = tuple[list[int], list[int]]
"""Source and target ids of a pair, both with the end token."""


def learn_shortlist(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Iterable[Pieces],
    device: torch.device,
    on_batch: Callable[[int], None] | None = None,
) -> str:
    """Return a shortlist in CTranslate2's format: lines `source piece TAB target pieces`, the first for all sources."""
    entries = tokenizer.target_size
    keys, weights = np.empty(0, np.int64), np.empty(0)
    frequency = np.zeros(entries)
    waiting = iter(pairs)
    while part := list(islice(waiting, TOGETHER)):
        new_keys, new_weights = [keys], [weights]
        for (source, target), seen in zip(part, watch(model, tokenizer, part, device), strict=True):
            attention = seen.cross().numpy()
            t, s = (attention >= FAINT).nonzero()
            new_keys.append(np.asarray(source)[s] * entries + np.asarray(target)[t])
            new_weights.append(attention[t, s])
            np.add.at(frequency, target, 1)
        keys, weights = _summed(np.concatenate(new_keys), np.concatenate(new_weights))
        if on_batch:
            on_batch(len(part))
    return _written(tokenizer, keys, weights, frequency)


def _summed(keys: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Add up the weights of equal keys."""
    different, where = np.unique(keys, return_inverse=True)
    return different, np.bincount(where, weights, len(different)).astype(np.float64)


def _written(
    tokenizer: Tokenizer, keys: NDArray[np.int64], weights: NDArray[np.float64], frequency: NDArray[np.float64]
) -> str:
    entries = tokenizer.target_size
    source_pieces = tokenizer.source_pieces(range(tokenizer.source_size))
    target_pieces = tokenizer.target_pieces(range(entries))
    numbers = {piece: i for i, piece in enumerate(target_pieces)}

    def names(targets: Sequence[int]) -> str:
        # Special pieces are none of these; a piece with white space in it would break the format.
        return " ".join(target_pieces[t] for t in targets if t > EOS and not any(map(str.isspace, target_pieces[t])))

    order = np.lexsort((-weights, keys // entries))
    by_source: dict[int, list[int]] = {}
    for key in keys[order].tolist():
        by_source.setdefault(key // entries, []).append(key % entries)
    lines = ["\t" + names(np.argsort(-frequency, kind="stable")[:ALWAYS].tolist())]
    for source in range(EOS + 1, len(source_pieces)):
        piece = source_pieces[source]
        found = by_source.get(source, [])[:EACH]
        if (same := numbers.get(piece)) is not None and same not in found:  # names and numbers are copied
            found.append(same)
        if found and not any(map(str.isspace, piece)):
            lines.append(f"{piece}\t{names(found)}")
    return "\n".join(lines) + "\n"
