"""Another model's vocabulary as ours: its rows in another order, its pieces in SentencePiece models with our ids.

Ours begins with padding, unknown, start and end. Others have these elsewhere, twice, or not at all; and what
SentencePiece cuts a text into they look up in a list of their own. Both is put right by writing the SentencePiece model
anew: the pieces in the order of our ids, what only the list has marked as unused, what only SentencePiece has as one
more row that is a copy of the unknown one. Then text becomes the same tokens as with the other model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLED

if TYPE_CHECKING:
    from torch import Tensor

NEVER = -100.0
"""The logit's bias of what the other model can't say: its probability is 0 in float32."""
LANGUAGE = re.compile(r">>(?P<marian>[^<>\s]+)<<|__(?P<m2m>[a-z]{2,4})__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})")
"""A piece that stands for a language."""
_MOST = 1 << 21
"""Rows of a vocabulary, at most."""


@dataclass
class Vocabulary:
    """Our ids of another model's vocabulary."""

    names: list[str]
    """How each of our ids is written."""
    rows: list[int | None]
    """The row of the other model that each of our ids has; none where it has no such thing."""
    said: list[bool]
    """Whether the other model can say it."""

    @classmethod
    def of(
        cls, ids: Mapping[str, int], size: int, *, pad: int | None, unknown: int, start: int | None, end: int
    ) -> Vocabulary:
        """Put a vocabulary in our order.

        Args:
            ids: the row of each piece.
            size: rows, of which some may be no piece's.
            pad: row of padding, if it has one.
            unknown: row of the unknown piece.
            start: row of what the decoder is fed first, if it has one; it may be that of `pad` or of `end`.
            end: row of the end token.

        Raises:
            UserError: rows are named that are not there.
        """
        special = {row for row in (pad, unknown, start, end) if row is not None}
        if not 4 <= size <= _MOST or not all(0 <= row < size for row in (*special, *ids.values())):
            raise UserError(f"the vocabulary does not fit embeddings of {size:,} rows", fix="Is the folder complete?")
        written = dict(zip(ids.values(), ids, strict=True))
        rest = [row for row in range(size) if row not in special]
        taken = {*SPELLED}
        names = [*SPELLED]
        for row in rest:
            name = written.get(row, "")
            if not name or name in taken:
                name = f"<row {row}>"
            taken.add(name)
            names.append(name)
        padding = None if start == pad else pad
        rows: list[int | None] = [padding, unknown, start, end, *rest]
        said = [padding is not None, True, start not in (None, end), True]
        return cls(names, rows, [*said, *(True for _ in rest)])

    def add_unknown(self, pieces: Iterable[str]) -> None:
        """Give pieces that only SentencePiece has a row: a copy of the unknown one."""
        for piece in pieces:
            self.names.append(piece)
            self.rows.append(self.rows[SPECIAL.unknown])
            self.said.append(False)

    def embeddings(self, matrix: Tensor) -> Tensor:
        """Return the rows of a matrix [V, D] in the order of our ids; nothing is a row of zeros."""
        import torch

        rows = torch.tensor([-1 if row is None else row for row in self.rows])
        return torch.where(rows[:, None] < 0, 0.0, matrix[rows.clamp(min=0)])

    def bias(self, vector: Tensor | None) -> Tensor:
        """Return the bias of our logits from that of the other model [V], if it has one."""
        import torch

        rows = torch.tensor([0 if row is None else row for row in self.rows])
        found = torch.zeros(len(rows)) if vector is None else vector[rows]
        return torch.where(torch.tensor(self.said), found, NEVER)


def languages_in(names: Iterable[str], *spellings: str) -> dict[str, str]:
    """Return the pieces that stand for languages by their codes; of some spellings of `LANGUAGE` only, if given."""
    found = ((name, LANGUAGE.fullmatch(name)) for name in names)
    told = ((name, match) for name, match in found if match and (not spellings or match.lastgroup in spellings))
    return {match[match.lastgroup or 0]: name for name, match in told}


def pieces_of(model: bytes, file: Path) -> Any:
    """Parse a SentencePiece model.

    Raises:
        UserError: it is none.
    """
    parsed = _empty()
    try:
        parsed.ParseFromString(model)
    except Exception as error:  # protobuf has several kinds of them
        raise UserError("is not a SentencePiece model, or is damaged", file=file) from error
    if not parsed.pieces:
        raise UserError("is a SentencePiece model without pieces", file=file)
    return parsed


def _empty() -> Any:
    return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()


def _as(parsed: Any, size: int) -> Any:
    """Return a SentencePiece model without pieces that does to texts what another one does."""
    made = _empty()
    made.normalizer_spec.CopyFrom(parsed.normalizer_spec)
    made.trainer_spec.CopyFrom(parsed.trainer_spec)
    if parsed.HasField("denormalizer_spec"):
        made.denormalizer_spec.CopyFrom(parsed.denormalizer_spec)
    made.trainer_spec.vocab_size = size
    return made


def only_here(parsed: Any, names: Sequence[str]) -> list[str]:
    """Return the pieces into which a SentencePiece model may cut a text, and that a vocabulary does not have."""
    kind = parsed.SentencePiece
    known = {*names}
    cuts = {kind.NORMAL, kind.USER_DEFINED, kind.BYTE}
    return list(dict.fromkeys(p.piece for p in parsed.pieces if p.type in cuts and p.piece not in known))


def rewritten(parsed: Any, names: Sequence[str], controls: Iterable[str]) -> bytes:
    """Return a SentencePiece model that cuts texts as another one does, with our ids.

    Args:
        parsed: the other one.
        names: how each of our ids is written, the four special ones first.
        controls: names that no text yields, such as those of languages.
    """
    kind = parsed.SentencePiece
    before = {p.piece: p for p in parsed.pieces if p.type not in (kind.CONTROL, kind.UNKNOWN)}
    lowest = min((p.score for p in parsed.pieces), default=0.0) - 10.0
    made = _as(parsed, len(names))
    spec = made.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = SPECIAL
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPELLED
    spec.unk_surface = "⁇"
    special, named = len(SPECIAL), {*controls}
    for place, name in enumerate(names):
        if place < special:
            made.pieces.add(piece=name, score=0.0, type=kind.UNKNOWN if place == SPECIAL.unknown else kind.CONTROL)
        elif name in before and name not in named:
            made.pieces.add(piece=name, score=before[name].score, type=before[name].type)
        elif name in named:
            made.pieces.add(piece=name, score=lowest, type=kind.CONTROL)
        else:  # a character unknown to SentencePiece is still looked up in the list
            made.pieces.add(piece=name, score=lowest, type=kind.NORMAL if len(name) == 1 else kind.UNUSED)
    written: bytes = made.SerializeToString()
    return written


def model_of(parsed: Any, names: Sequence[str]) -> bytes:
    """Return a SentencePiece model that cuts texts as ours does, with ids as others have them and no padding.

    Args:
        parsed: ours.
        names: its pieces in their order, after `<unk>`, `<s>` and `</s>`.
    """
    kind = parsed.SentencePiece
    before = {p.piece: p for p in parsed.pieces}
    made = _as(parsed, len(names))
    spec = made.trainer_spec
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = 0, 1, 2, -1
    for place, name in enumerate(names):
        if place <= spec.eos_id:
            made.pieces.add(piece=name, score=0.0, type=kind.CONTROL if place else kind.UNKNOWN)
        else:
            made.pieces.add(piece=name, score=before[name].score, type=before[name].type)
    written: bytes = made.SerializeToString()
    return written
