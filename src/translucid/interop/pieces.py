"""Convert another model's vocabulary: its rows in our order, its pieces in SentencePiece models with our ids.

Our vocabulary begins with padding, unknown, start and end token. Others have these elsewhere, twice, or not at all, and
look up SentencePiece's pieces in a separate list. Therefore the SentencePiece model is rewritten: with its pieces in
the order of our ids, pieces that only the list has marked as unused, and a row for each piece that only SentencePiece
has, a copy of the unknown one's. Then text becomes the same tokens as with the other model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor

from translucid.data.tokenizing.normalization import QUIET
from translucid.data.tokenizing.tokenizer import LARGEST
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.interop.imported import read_file

NEVER = -100.0
"""The bias of logits that the other model does not have: their probability is 0 in float32."""
LANGUAGE = re.compile(r">>(?P<marian>[^<>\s]+)<<|__(?P<m2m>[a-z]{2,4})__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})")
"""A piece that stands for a language."""
_BRACKETED = re.compile(r"<.+>")
_MAX_ROWS = 1 << 21
"""The largest number of rows of a vocabulary."""


@dataclass
class Vocabulary:
    """Our ids for another model's vocabulary."""

    names: list[str]
    """The piece of each of our ids."""
    rows: list[int | None]
    """The other model's row of each of our ids; None where it has none."""
    can_output: list[bool]
    """Whether the other model can output each of our ids."""

    @classmethod
    def of(
        cls,
        ids: Mapping[str, int],
        size: int,
        *,
        pad: int | None,
        unknown: int | None,
        start: int | None,
        end: int | None,
    ) -> Vocabulary:
        """Put a vocabulary into our order.

        Args:
            ids: the row of each piece.
            size: the number of rows, some of which may have no piece.
            pad: the row of padding, if there is one.
            unknown: the row of the unknown piece, if there is one.
            start: the row of the decoder's first input, if there is one; it may be that of `pad` or of `end`.
            end: the row of the end token; None in the vocabulary of sources without one.

        Raises:
            UserError: a row does not exist.
        """
        special = {row for row in (pad, unknown, start, end) if row is not None}
        if not 4 <= size <= _MAX_ROWS or not all(0 <= row < size for row in (*special, *ids.values())):
            raise UserError(f"the vocabulary does not fit embeddings of {size:,} rows", fix="Is the folder complete?")
        names_by_row = dict(zip(ids.values(), ids, strict=True))
        piece_rows = [row for row in range(size) if row not in special]
        used_names = {*SPELLINGS}
        names = [*SPELLINGS]
        for row in piece_rows:
            name = names_by_row.get(row, "")
            if not name or name in used_names:
                name = f"<row {row}>"
            used_names.add(name)
            names.append(name)
        padding = None if start == pad else pad
        rows: list[int | None] = [padding, unknown, start, end, *piece_rows]
        can_output = [padding is not None, unknown is not None, start not in (None, end), True]
        return cls(names, rows, can_output + [True] * len(piece_rows))

    def ids_by_row(self) -> dict[int, int]:
        """Return our id of each of the other model's rows."""
        ids: dict[int, int] = {}
        for number, row in enumerate(self.rows):
            if row is not None:
                ids.setdefault(row, number)
        return ids

    def add_unknown(self, pieces: Iterable[str]) -> None:
        """Add a row for each piece that only SentencePiece has: a copy of the unknown one's."""
        for piece in pieces:
            self.names.append(piece)
            self.rows.append(self.rows[SPECIAL.unknown])
            self.can_output.append(False)

    def embeddings(self, matrix: Tensor) -> Tensor:
        """Return the rows of a matrix [V, D] in the order of our ids; an id without a row gets zeros."""
        rows = torch.tensor(self._numbered_rows())
        return torch.where(rows[:, None] < 0, 0.0, matrix[rows])

    def bias(self, vector: Tensor | None) -> Tensor:
        """Return the bias of our logits from that of the other model [V], if it has one."""
        # An id without a row takes the last one, but is never output.
        rows = torch.tensor(self._numbered_rows())
        biases = torch.zeros(len(rows)) if vector is None else vector[rows]
        return torch.where(torch.tensor(self.can_output), biases, NEVER)

    def _numbered_rows(self) -> list[int]:
        """Return the row of each of our ids; -1 where there is none."""
        rows = []
        for row in self.rows:
            rows.append(-1 if row is None else row)
        return rows


def vocabulary_weights(
    source: Vocabulary, target: Vocabulary, matrices: Mapping[str, Tensor], bias: Tensor | None
) -> dict[str, Tensor]:
    """Return the matrices `source`, `target` and `output` [V, D] and a bias [V] by our names, in our order."""
    return {
        "source_embedding.tokens.weight": source.embeddings(matrices["source"]),
        "target_embedding.tokens.weight": target.embeddings(matrices["target"]),
        "output.weight": target.embeddings(matrices["output"]),
        "output.bias": target.bias(bias),
    }


def languages_in(names: Iterable[str], *spellings: str) -> dict[str, str]:
    """Return the pieces that stand for languages by their codes, in all spellings of `LANGUAGE` or in given ones."""
    languages = {}
    for name in names:
        match = LANGUAGE.fullmatch(name)
        if match and (not spellings or match.lastgroup in spellings):
            languages[match[match.lastgroup or 0]] = name
    return languages


def pieces_of(model: bytes, file: Path) -> Any:
    """Parse a SentencePiece model.

    Raises:
        UserError: the content is not a SentencePiece model.
    """
    parsed = _empty()
    try:
        parsed.ParseFromString(model)
    except Exception as error:  # protobuf raises several types, which differ by its implementation
        raise UserError("is not a SentencePiece model, or is damaged", file=file) from error
    if not parsed.pieces:
        raise UserError("is a SentencePiece model without pieces", file=file)
    return parsed


def read_sentencepiece(file: Path) -> Any:
    """Read and parse a SentencePiece model of a folder that may be untrusted; errors as for `pieces_of`."""
    return pieces_of(read_file(file, LARGEST), file)


def _empty() -> Any:
    return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()


def _without_pieces(parsed: Any, size: int) -> Any:
    """Return a SentencePiece model without pieces, with the normalization and the settings of another one."""
    model = _empty()
    model.normalizer_spec.CopyFrom(parsed.normalizer_spec)
    model.trainer_spec.CopyFrom(parsed.trainer_spec)
    if parsed.HasField("denormalizer_spec"):
        model.denormalizer_spec.CopyFrom(parsed.denormalizer_spec)
    model.trainer_spec.vocab_size = size
    return model


def missing_pieces(parsed: Any, names: Sequence[str]) -> list[str]:
    """Return the pieces of a SentencePiece model that texts may have and a vocabulary does not."""
    kind = parsed.SentencePiece
    known_names = {*names}
    kinds = {kind.NORMAL, kind.USER_DEFINED, kind.BYTE}
    return list(dict.fromkeys(p.piece for p in parsed.pieces if p.type in kinds and p.piece not in known_names))


def adapted_models(
    parsed: Sequence[Any], vocabularies: Sequence[Vocabulary], *spellings: str
) -> tuple[list[bytes], dict[str, str]]:
    """Return SentencePiece models with our ids, and the pieces of languages, in these spellings, by their codes.

    The pieces that only the SentencePiece models have are added to the vocabularies.
    """
    for model, vocabulary in zip(parsed, vocabularies, strict=True):
        vocabulary.add_unknown(missing_pieces(model, vocabulary.names))
    languages = languages_in(vocabularies[0].names, *spellings)
    models = []
    for model, vocabulary in zip(parsed, vocabularies, strict=True):
        models.append(rewritten(model, vocabulary.names, languages.values()))
    return models, languages


def has_only_characters(names: Iterable[str]) -> bool:
    """Whether all pieces are single characters, without those in angle brackets."""
    return all(len(name) == 1 for name in names if not _BRACKETED.fullmatch(name))


def listed_model(
    names: Sequence[str], rules: Iterable[tuple[str, str]], *, words: bool, controls: Collection[str] = ()
) -> bytes:
    """Return a SentencePiece model that looks up words, or characters, in a list; see `ListedPieces`.

    Args:
        names: the piece of each of our ids, the four special ones first; words begin with `▁`, which also is the space.
        rules: texts that are replaced before, each with its replacement.
        words: whether texts are cut at spaces, instead of into characters.
        controls: pieces that no text has, such as those of languages.
    """
    model = _empty()
    spec, normalizer = model.trainer_spec, model.normalizer_spec
    spec.model_type = spec.WORD if words else spec.CHAR
    normalizer.name = "user_defined"
    normalizer.add_dummy_prefix = normalizer.remove_extra_whitespaces = words
    if rules := [*rules]:
        sentencepiece.set_min_log_level(QUIET)
        compiled = sentencepiece.SentencePieceNormalizer(norm_map=rules).serialized_model_proto()
        parsed = _empty()
        parsed.ParseFromString(compiled)
        normalizer.precompiled_charsmap = parsed.normalizer_spec.precompiled_charsmap
    _add_special_pieces(model)
    for name in names[len(SPECIAL) :]:
        kind = model.SentencePiece.CONTROL if name in controls else model.SentencePiece.NORMAL
        model.pieces.add(piece=name, score=0.0, type=kind)
    spec.vocab_size = len(model.pieces)
    content: bytes = model.SerializeToString()
    return content


def _add_special_pieces(model: Any) -> None:
    """Add our special pieces to a SentencePiece model without pieces."""
    spec, kind = model.trainer_spec, model.SentencePiece
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = SPECIAL
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPELLINGS
    spec.unk_surface = "⁇"
    for name in SPELLINGS:
        model.pieces.add(piece=name, score=0.0, type=kind.UNKNOWN if name == SPELLINGS.unknown else kind.CONTROL)


def rewritten(parsed: Any, names: Sequence[str], controls: Iterable[str]) -> bytes:
    """Return a SentencePiece model that encodes texts as another one does, with our ids.

    Args:
        parsed: the other model.
        names: the piece of each of our ids, the four special ones first.
        controls: pieces that no text has, such as those of languages.
    """
    kind = parsed.SentencePiece
    pieces_by_name = {p.piece: p for p in parsed.pieces if p.type not in (kind.CONTROL, kind.UNKNOWN)}
    lowest = min(p.score for p in parsed.pieces) - 10.0  # any other piece is preferred to an added one
    model = _without_pieces(parsed, len(names))
    _add_special_pieces(model)
    control_names = {*controls}
    for name in names[len(SPECIAL) :]:
        if name in control_names:
            model.pieces.add(piece=name, score=lowest, type=kind.CONTROL)
        elif name in pieces_by_name:
            model.pieces.add(piece=name, score=pieces_by_name[name].score, type=pieces_by_name[name].type)
        else:  # a character that SentencePiece does not know is still looked up in the list
            model.pieces.add(piece=name, score=lowest, type=kind.NORMAL if len(name) == 1 else kind.UNUSED)
    return model.SerializeToString()


def model_of(parsed: Any, names: Sequence[str]) -> bytes:
    """Return a SentencePiece model that encodes texts as ours does, with the usual ids and without padding.

    Args:
        parsed: our model.
        names: the pieces in order, `<unk>`, `<s>` and `</s>` first.
    """
    kind = parsed.SentencePiece
    pieces_by_name = {p.piece: p for p in parsed.pieces}
    model = _without_pieces(parsed, len(names))
    spec = model.trainer_spec
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = 0, 1, 2, -1
    for piece_id, name in enumerate(names):
        if piece_id <= spec.eos_id:
            model.pieces.add(piece=name, score=0.0, type=kind.CONTROL if piece_id else kind.UNKNOWN)
        else:
            model.pieces.add(piece=name, score=pieces_by_name[name].score, type=pieces_by_name[name].type)
    return model.SerializeToString()
