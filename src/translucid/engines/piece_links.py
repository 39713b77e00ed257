"""What to search among: the pieces that the target text has, or lexical shortlists, learned from attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import cross_attention
from translucid.decoding.pair_scores import paired_batches
from translucid.ground.special import SPECIAL
from translucid.models.protocol import SequenceModel

FAINT = 0.1
"""Attention below this links no two pieces."""
TOGETHER = 512
"""Pairs looked at between two reports."""
BATCH = 4096
"""Tokens looked at at once, padding included."""
TEXTS = 20_000
"""Texts encoded at a time."""
_SEPARATORS = frozenset(" \t\r\n")

Pieces = tuple[list[int], list[int]]
"""Source and target ids of a pair, both with the end token."""


class PieceLinks(NamedTuple):
    """Which source and target pieces attention has linked."""

    keys: NDArray[np.int64]
    """Of each pair of pieces that was linked: the source id times the number of target pieces, plus the target id."""
    weights: NDArray[np.float64]
    """The attention of each of them, summed."""
    frequency: NDArray[np.float64]
    """Of each target piece."""

    def shortlist(self, tokenizer: Tokenizer, each: int, always: int, languages: Sequence[str] = ()) -> str:
        """Return it in CTranslate2's format: lines `source piece TAB target pieces`, the first for all sources.

        Args:
            tokenizer: that of the ids.
            each: target pieces that a source piece brings in.
            always: target pieces that are in for all, the most frequent ones.
            languages: pieces that stand for a language, which are in for all too.
        """
        entries = tokenizer.target_size
        source_pieces = tokenizer.source_pieces(range(tokenizer.source_size))
        target_pieces = tokenizer.target_pieces(range(entries))
        numbers = {piece: i for i, piece in enumerate(target_pieces)}

        frequent = np.argsort(-self.frequency, kind="stable")[:always]
        frequent = np.array([*dict.fromkeys([*(numbers[name] for name in languages), *frequent.tolist()])], np.int64)
        order = np.lexsort((-self.weights, self.keys // entries))
        order = order[~np.isin(self.keys[order] % entries, frequent)]
        by_source: dict[int, list[int]] = {}
        for key in self.keys[order].tolist():
            by_source.setdefault(key // entries, []).append(key % entries)
        lines = ["\t" + _listed(frequent.tolist(), target_pieces)]
        for source in range(len(SPECIAL), len(source_pieces)):
            piece = source_pieces[source]
            found = by_source.get(source, [])[:each]
            if (same := numbers.get(piece)) is not None and same not in found:  # names and numbers are copied
                found.append(same)
            if found and not _SEPARATORS & set(piece):
                lines.append(f"{piece}\t{_listed(found, target_pieces)}")
        return "\n".join(lines) + "\n"


def seen_pieces(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    on_texts: Callable[[int], None] | None = None,
    languages: Sequence[str] = (),
) -> str:
    """Return a shortlist that is the same for all sources: the pieces that these target texts consist of.

    One vocabulary for both languages has thousands that the target language never has. `languages` are pieces that
    stand for one, which are always in.
    """
    pieces = tokenizer.target_vocabulary
    seen = {i for i, piece in enumerate(pieces) if piece in {*languages}}
    waiting = iter(texts)
    while part := list(islice(waiting, TEXTS)):
        seen.update(*tokenizer.encode_target(part))
        if on_texts:
            on_texts(len(part))
    return f"\t{_listed(sorted(seen), pieces)}\n"


def learn_links(
    model: SequenceModel,
    pairs: Iterable[Pieces],
    device: torch.device,
    on_batch: Callable[[int], None] | None = None,
) -> PieceLinks:
    """Link the pieces of training pairs by the model's cross-attention, averaged over layers and heads."""
    entries = model.output.out_features
    keys, weights = np.empty(0, np.int64), np.empty(0)
    frequency = np.zeros(entries)
    waiting = iter(pairs)
    while part := list(islice(waiting, TOGETHER)):
        new_keys, new_weights = [keys], [weights]
        for _, source, target in paired_batches(part, model.pad, device, BATCH):
            attention = cross_attention(model, source, target)
            linked = (attention >= FAINT) & (target != model.pad)[:, :, None]
            row, t, s = linked.nonzero(as_tuple=True)
            new_keys.append((source[row, s] * entries + target[row, t]).cpu().numpy())
            new_weights.append(attention[linked].cpu().numpy())
        for _, ids in part:
            np.add.at(frequency, ids, 1)
        keys, weights = _summed(np.concatenate(new_keys), np.concatenate(new_weights))
        if on_batch:
            on_batch(len(part))
    return PieceLinks(keys, weights, frequency)


def _listed(targets: Sequence[int], pieces: Sequence[str]) -> str:
    """Name target ids, without the special ones; a piece that would break the format is left out."""
    return " ".join(pieces[t] for t in targets if t >= len(SPECIAL) and not _SEPARATORS & set(pieces[t]))


def _summed(keys: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Add up the weights of equal keys."""
    different, where = np.unique(keys, return_inverse=True)
    return different, np.bincount(where, weights, len(different)).astype(np.float64)
