"""Pieces of words as SentencePiece writes them, and reserved pieces, such as placeholders and marks of terms.

`DataOptions.reserved` says which reserved pieces a run needs. A vocabulary is learned with them (`Tokenizer.learn`), or
they are added after its other pieces (`extending.with_reserved`). Each is a piece by itself wherever it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import sentencepiece

from bitext.protected_spans import PLACEHOLDERS
from translucid.ground.special import SPECIAL


class TermMarks(NamedTuple):
    """Private-use characters that mark terms and their translations in a source (`terminology/marking.py`)."""

    source: str
    """The mark before the term."""
    target: str
    """The mark between the term and its translation."""
    end: str
    """The mark after the translation."""


TERM = TermMarks("\ue0f0", "\ue0f1", "\ue0f2")

MATCH = "\ue0f3"
"""The private-use character between a source and the translation of a near match (`memory/augmenting.py`)."""

SEPARATOR = "\ue0f4"
"""The private-use character after each sentence that precedes the one to translate (`data/document_context.py`)."""

RESERVED_PIECES = frozenset((*PLACEHOLDERS, *TERM, MATCH, SEPARATOR))
"""All reserved pieces."""


SPACE = "▁"
"""SentencePiece's sign for a space: a piece that begins with it begins a word."""
MAX_OPENING = 4
"""The most tokens before a text, such as the start token, language tokens and that of a formality."""


class ListedPieces(sentencepiece.SentencePieceProcessor):
    """A vocabulary that is a list of words, or of single characters, which are looked up.

    SentencePiece reads neighboring words that the list lacks as one unknown piece; here, each is one.
    """

    def __init__(self, model: bytes, reserved: Sequence[str]) -> None:
        """Wrap a serialized SentencePiece model of words or characters; `reserved`: pieces that stay whole."""
        super().__init__(model_proto=model)
        self.reads_words: bool = self.normalize("a").startswith(SPACE)
        self._reserved = re.compile(f"({'|'.join(map(re.escape, reserved))})" if reserved else "(?!)")

    @classmethod
    def of(cls, model: bytes) -> ListedPieces | None:
        """Return the pieces of a serialized SentencePiece model if its kind is a list, and otherwise None."""
        proto = parsed(model)
        if proto.trainer_spec.model_type not in (proto.trainer_spec.WORD, proto.trainer_spec.CHAR):
            return None
        return cls(model, [piece.piece for piece in proto.pieces if piece.type == proto.SentencePiece.USER_DEFINED])

    def encode(self, texts: Any, out_type: type = int, num_threads: int = -1) -> Any:  # type: ignore[override]
        """Return the ids of a text or of each of several, or the pieces with `out_type=str`."""
        if not isinstance(texts, str):
            return [self.encode(text, out_type) for text in texts]
        pieces = self._cut(self.normalize(texts))
        return pieces if out_type is str else self.piece_to_id(pieces)

    def _cut(self, text: str) -> list[str]:
        """Cut a normalized text."""
        pieces: list[str] = []
        for position, part in enumerate(self._reserved.split(text)):
            if position % 2:
                pieces.append(part)
            elif self.reads_words:
                pieces += [SPACE + word for word in part.split(SPACE) if word]
            else:
                pieces += part
        return pieces


def parsed(model: bytes) -> Any:
    """Return the protocol buffer of a SentencePiece model."""
    proto = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()
    proto.ParseFromString(model)
    return proto


def sanitized(text: str) -> str:
    """Return text that SentencePiece accepts: without its sign for a space and without lone surrogates.

    A JSON file may contain lone surrogates.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace(SPACE, "_")


def without_space(piece: str) -> str:
    """Return a piece without the sign for a space; the sign, if it has nothing else."""
    return piece.replace(SPACE, "") or SPACE


def named_pieces(
    processor: sentencepiece.SentencePieceProcessor, ids: Sequence[int], text: str | None = None
) -> list[str]:
    """Return pieces as they are written in the vocabulary; the arguments are those of `Tokenizer.source_pieces`."""
    numbers = [int(i) for i in ids]
    pieces = [processor.id_to_piece(i) for i in numbers]
    if text is None or SPECIAL.unknown not in numbers:
        return pieces
    sanitized_text = sanitized(text)
    encoded, surface_pieces = processor.encode(sanitized_text), processor.encode(sanitized_text, out_type=str)
    for start in range(MAX_OPENING + 1):
        # There are fewer ids if the text was cut off; the last one may then be the end token.
        text_ids = numbers[start : start + len(encoded)]
        if text_ids and text_ids[:-1] == encoded[: len(text_ids) - 1]:
            for position, (number, piece) in enumerate(zip(text_ids, surface_pieces, strict=False), start):
                if number == SPECIAL.unknown:
                    pieces[position] = piece
            break
    return pieces
