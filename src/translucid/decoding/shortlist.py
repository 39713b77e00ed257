"""Lexical shortlists: the target pieces that are candidates for a sentence, instead of the whole vocabulary.

A small model spends most of its time in the output layer, most of whose rows are of no use for a sentence (Jean et al.
2015, arXiv 1412.2007, section 3.3). This module needs no PyTorch; `RestrictedVocabulary` is the model.
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
        self.always = np.array(sorted({*SPECIAL, *always}), np.int64)
        self.by_source = {source: np.array(targets, np.int64) for source, targets in by_source.items()}

    def pieces(self, sentences: Iterable[list[int]]) -> NDArray[np.int64]:
        """Return the candidates [n] for source sentences, sorted; the special tokens are the first."""
        distinct = set().union(*sentences)
        targets = [self.by_source[source] for source in distinct if source in self.by_source]
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
        opening_ids = np.array(opening, np.int64)
        candidates = np.union1d(self.pieces(sentences), opening_ids)
        if not self.by_source:
            return candidates, None
        sentence_candidates = np.zeros((len(sentences), len(candidates)), np.bool_)
        sentence_candidates[:, np.searchsorted(candidates, opening_ids)] = True
        for row, sentence in zip(sentence_candidates, sentences, strict=True):
            row[np.searchsorted(candidates, self.pieces([sentence]))] = True
        return candidates, sentence_candidates


def shortlist_text(shortlist: Shortlist, tokenizer: Tokenizer) -> str:
    """Return a shortlist in CTranslate2's format, as `read_shortlist` reads it."""
    source_pieces = tokenizer.source_pieces(range(tokenizer.source_size))
    target_pieces = tokenizer.target_pieces(range(tokenizer.target_size))
    lines = ["\t" + listed(shortlist.always.tolist(), target_pieces)]
    for source, targets in shortlist.by_source.items():
        piece, names = source_pieces[source], listed(targets.tolist(), target_pieces)
        if names and not SEPARATORS & set(piece):
            lines.append(f"{piece}\t{names}")
    return "\n".join(lines) + "\n"


def read_shortlist(file: Path, tokenizer: Tokenizer) -> Shortlist:
    """Read a shortlist in CTranslate2's format: lines `source piece TAB target pieces`, no source piece for all.

    Raises:
        UserError: the file can't be read, or a line has another format.
    """
    if not file.exists():
        raise UserError("is not there", file=file, fix="Make it with translucid tune shortlists.")
    sources = {piece: i for i, piece in enumerate(tokenizer.source_pieces(range(tokenizer.source_size)))}
    targets = {piece: i for i, piece in enumerate(tokenizer.target_pieces(range(tokenizer.target_size)))}
    fix = "Delete tuned.json, or run translucid tune speed again."
    always: list[int] = []
    by_source: dict[int, list[int]] = {}
    for number, line in enumerate(read_lines(file), 1):
        source, tab, target_text = line.partition("\t")
        if not tab or "\t" in target_text:
            raise UserError("is not a piece, a tab and pieces", file=file, line=number, fix=fix)
        pieces = [piece for piece in target_text.split(" ") if piece]
        unknown = set(pieces) - targets.keys()
        if unknown:
            raise UserError(f"{min(unknown)!r} is no piece of the tokenizer", file=file, line=number, fix=fix)
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
