"""Lexical shortlists: the target pieces that are candidates for a sentence, instead of the whole vocabulary.

A small model spends most of its time in the output layer, most of whose rows are of no use for a sentence (Jean et al.
2015, arXiv 1412.2007, section 3.3). This module needs no PyTorch; `narrowed` has the model with fewer outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from translucid.data.readers.corpus import read_lines
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

SEPARATORS = frozenset(" \t\r\n")
"""White space in the format of a shortlist."""


class Shortlist:
    """The target pieces that may translate each source piece."""

    def __init__(self, always: Iterable[int], by_source: dict[int, list[int]]) -> None:
        """Take the target ids that are `always` candidates, and those that each source id adds."""
        self.always = np.array(sorted({*SPECIAL, *always}))
        self.by_source = {source: np.array(targets) for source, targets in by_source.items()}

    def pieces(self, sentences: Iterable[list[int]]) -> NDArray[np.int64]:
        """Return the candidates [n] for source sentences, sorted; the special tokens are the first."""
        different = set().union(*sentences)
        targets = [self.by_source[source] for source in different if source in self.by_source]
        return np.unique(np.concatenate([self.always, *targets]))

    def of_batch(
        self, sentences: Sequence[list[int]], opening: Sequence[int] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Return the candidates [n] of all sentences, and those of each [B, n]; None if all have the same.

        The candidates of other sentences in the batch have no probability for a sentence. Otherwise its translation
        would depend on them.

        Args:
            sentences: the source ids of each sentence.
            opening: target ids that every output begins with.
        """
        first = np.array(opening, np.int64)
        listed = np.union1d(self.pieces(sentences), first)
        if not self.by_source:
            return listed, None
        of_sentences = np.zeros((len(sentences), len(listed)), np.bool_)
        of_sentences[:, np.searchsorted(listed, first)] = True
        for row, sentence in zip(of_sentences, sentences, strict=True):
            row[np.searchsorted(listed, self.pieces([sentence]))] = True
        return listed, of_sentences


def read_shortlist(file: Path, tokenizer: Tokenizer) -> Shortlist:
    """Read a shortlist in CTranslate2's format: lines `source piece TAB target pieces`, no source piece for all.

    Raises:
        UserError: the file can't be read, or a line has another format.
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
        strange = set(pieces) - targets.keys()
        if strange:
            raise UserError(f"{min(strange)!r} is no piece of the tokenizer", file=file, line=number, fix=fix)
        ids = [targets[piece] for piece in pieces]
        if not source:
            always += ids
        elif source in sources:
            by_source[sources[source]] = ids
    return Shortlist(always, by_source)


def listed(targets: Sequence[int], pieces: Sequence[str]) -> str:
    """Join the pieces of target ids, without special ones and those whose white space would break the format."""
    names = []
    for target in targets:
        if target >= len(SPECIAL) and not SEPARATORS & set(pieces[target]):
            names.append(pieces[target])
    return " ".join(names)
