"""Candidate vocabularies: the pieces of the target text, and lexical shortlists learned from attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import cross_attention
from translucid.decoding.pair_scores import paired_batches
from translucid.decoding.shortlist import SEPARATORS, listed
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.models.protocol import SequenceModel

FAINT = 0.1
"""The least attention that links two pieces."""
TOGETHER = 512
"""The number of pairs between two progress reports."""
BATCH = 4096
"""The number of tokens in a batch, padding included."""
TEXTS = 20_000
"""The number of texts that are encoded at a time."""

Pieces = tuple[list[int], list[int]]
"""Source and target ids of a pair, both with the end token."""


class PieceLinks(NamedTuple):
    """The source and target pieces that attention has linked."""

    keys: NDArray[np.int64]
    """The key of each pair of linked pieces: the source id times the number of target pieces, plus the target id."""
    weights: NDArray[np.float64]
    """The attention of each pair, summed over the text."""
    frequency: NDArray[np.float64]
    """The frequency of each target piece."""

    def shortlist(self, tokenizer: Tokenizer, per_source: int, always: int, languages: Sequence[str] = ()) -> str:
        """Return a shortlist for CTranslate2: lines `source piece TAB target pieces`, the first for all sources.

        Args:
            tokenizer: the tokenizer of the ids.
            per_source: the number of target pieces that a source piece adds.
            always: the number of the most frequent target pieces, which are candidates for every source.
            languages: pieces that stand for a language, which are candidates for every source too.
        """
        entries = tokenizer.target_size
        source_pieces = tokenizer.source_pieces(range(tokenizer.source_size))
        target_pieces = tokenizer.target_pieces(range(entries))
        target_ids = {piece: number for number, piece in enumerate(target_pieces)}

        most_frequent = np.argsort(-self.frequency, kind="stable")[:always].tolist()
        for_all = list(dict.fromkeys([*map(target_ids.__getitem__, languages), *most_frequent]))
        # By source piece, and for each the strongest links first.
        order = np.lexsort((-self.weights, self.keys // entries))
        order = order[~np.isin(self.keys[order] % entries, np.array(for_all, np.int64))]
        by_source: dict[int, list[int]] = {}
        for key in self.keys[order].tolist():
            by_source.setdefault(key // entries, []).append(key % entries)
        lines = ["\t" + listed(for_all, target_pieces)]
        for source in range(len(SPECIAL), len(source_pieces)):
            piece = source_pieces[source]
            targets = by_source.get(source, [])[:per_source]
            identical = target_ids.get(piece)
            if identical is not None and identical not in targets:  # names and numbers are copied
                targets.append(identical)
            if targets and not SEPARATORS & set(piece):
                lines.append(f"{piece}\t{listed(targets, target_pieces)}")
        return "\n".join(lines) + "\n"


def seen_pieces(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    on_texts: Callable[[int], None] | None = None,
    languages: Sequence[str] = (),
) -> str:
    """Return a shortlist that is the same for all sources: the pieces of these target texts.

    A joint vocabulary has thousands of pieces that never occur in the target language. `languages` are pieces that
    stand for a language, which are always listed.
    """
    pieces = tokenizer.target_vocabulary
    always = frozenset(languages)
    seen = {i for i, piece in enumerate(pieces) if piece in always}
    for batch in batched(texts, TEXTS):
        seen.update(*tokenizer.encode_target(batch))
        if on_texts:
            on_texts(len(batch))
    return f"\t{listed(sorted(seen), pieces)}\n"


def learn_links(
    model: SequenceModel,
    pairs: Iterable[Pieces],
    device: torch.device,
    on_batch: Callable[[int], None] | None = None,
    *,
    guided: AlignmentOptions | None = None,
) -> PieceLinks:
    """Link the pieces of training pairs by the cross-attention of the model.

    `guided`: the reading of the head that guided alignment has taught; without it, layers and heads are averaged.
    """
    layer, head = (guided.layer, guided.head) if guided else (None, None)
    entries = model.output.out_features
    keys, weights = np.empty(0, np.int64), np.empty(0)
    frequency = np.zeros(entries)
    for batch in batched(pairs, TOGETHER):
        new_keys, new_weights = [keys], [weights]
        for _, source, target in paired_batches(batch, model.pad, device, BATCH):
            attention = cross_attention(model, source, target, layer, head)  # [B, T, S]
            linked = (attention >= FAINT) & (target != model.pad)[:, :, None]
            row, t, s = linked.nonzero(as_tuple=True)
            new_keys.append((source[row, s] * entries + target[row, t]).cpu().numpy())
            new_weights.append(attention[linked].cpu().numpy())
        for _, ids in batch:
            np.add.at(frequency, ids, 1)
        # Summed after each part, so that memory holds each linked pair once, not each of its occurrences.
        keys, inverse = np.unique(np.concatenate(new_keys), return_inverse=True)
        weights = np.bincount(inverse, np.concatenate(new_weights), len(keys)).astype(np.float64)
        if on_batch:
            on_batch(len(batch))
    return PieceLinks(keys, weights, frequency)
