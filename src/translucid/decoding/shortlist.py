"""A lexical shortlist: the target pieces that a search considers for a sentence, instead of the whole vocabulary.

Most of a small model's time goes into the output layer, and most of its rows are of no use to a sentence (Jean et al.
2015, arXiv 1412.2007, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from translucid.data.readers.corpus import read_lines
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.models.protocol import Maps, Memory, SequenceModel, StateT


class Shortlist:
    """Which target pieces each source piece may become."""

    def __init__(self, always: Iterable[int], by_source: dict[int, list[int]]) -> None:
        """`always`: target ids that are in for every source; `by_source`: those that a source id brings in."""
        self.always = np.array(sorted({*SPECIAL, *always}))
        self.by_source = {source: np.array(targets) for source, targets in by_source.items()}

    def pieces(self, sentences: Iterable[list[int]]) -> NDArray[np.int64]:
        """Return the target ids [n] for source sentences, sorted; the special ones are the first."""
        different = set().union(*sentences)
        found = [self.by_source[source] for source in different if source in self.by_source]
        return np.unique(np.concatenate([self.always, *found]))

    def of_batch(
        self, sentences: Sequence[list[int]], opening: Sequence[int] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Return the pieces [n] of all sentences, and which of them each may become [B, n]; None if all the same.

        What is left of a batch beyond a sentence's own pieces has no probability for it. Else a translation would
        depend on the sentences that it is translated together with.

        Args:
            sentences: source ids of each.
            opening: target ids that every output begins with.
        """
        first = np.array(opening, np.int64)
        listed = np.union1d(self.pieces(sentences), first)
        if not self.by_source:
            return listed, None
        each = np.zeros((len(sentences), len(listed)), np.bool_)
        each[:, np.searchsorted(listed, first)] = True
        for row, sentence in zip(each, sentences, strict=True):
            row[np.searchsorted(listed, self.pieces([sentence]))] = True
        return listed, each


def read_shortlist(file: Path, tokenizer: Tokenizer) -> Shortlist:
    """Read a shortlist in CTranslate2's format: lines `source piece TAB target pieces`, no source piece for all.

    Raises:
        UserError: it can't be read, or a line is something else.
    """
    if not file.exists():
        raise UserError("is not there", file=file, fix="Make it with translucid tune.")
    sources = {piece: i for i, piece in enumerate(tokenizer.source_pieces(range(tokenizer.source_size)))}
    targets = {piece: i for i, piece in enumerate(tokenizer.target_pieces(range(tokenizer.target_size)))}
    fix = "Delete tuned.json, or run translucid tune again."
    always: list[int] = []
    by_source: dict[int, list[int]] = {}
    for number, line in enumerate(read_lines(file), 1):
        source, tab, rest = line.partition("\t")
        if not tab or "\t" in rest:
            raise UserError("is not a piece, a tab and pieces", file=file, line=number, fix=fix)
        pieces = [piece for piece in rest.split(" ") if piece]
        if strange := set(pieces) - targets.keys():
            raise UserError(f"{min(strange)!r} is no piece of the tokenizer", file=file, line=number, fix=fix)
        ids = [targets[piece] for piece in pieces]
        if not source:
            always += ids
        elif source in sources:
            by_source[sources[source]] = ids
    return Shortlist(always, by_source)


class Narrowed(SequenceModel[StateT]):
    """A model that says only some pieces. Its target ids are their places among them."""

    def __init__(self, model: SequenceModel[StateT], pieces: Tensor) -> None:
        """`pieces`: [n] target ids, sorted, the special ones first. The weights are the model's."""
        super().__init__(model.special)
        self.model, self.pieces, self.max_length = model, pieces, model.max_length
        self.source_embedding = model.source_embedding
        self.output = nn.utils.skip_init(type(model.output), model.output.in_features, len(pieces))
        self.output.weight, self.output.bias = (
            nn.Parameter(whole[pieces], requires_grad=False) for whole in (model.output.weight, model.output.bias)
        )
        self.train(model.training)

    def source_mask(self, source: Tensor) -> Tensor:
        """See `SequenceModel`."""
        return self.model.source_mask(source)

    def encode(self, source: Tensor, maps: Maps | None = None, lengths: Sequence[int] = ()) -> Memory:
        """See `SequenceModel`."""
        return self.model.encode(source, maps, lengths)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """See `SequenceModel`."""
        return self.model.read(embedded, mask, maps)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """See `SequenceModel`."""
        return self.model.features(memory, self.pieces[targets_in], maps)

    def start(self, memory: Memory) -> StateT:
        """See `SequenceModel`."""
        return self.model.start(memory)

    def advance(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """See `SequenceModel`."""
        return self.model.advance(self.pieces[tokens], state)
