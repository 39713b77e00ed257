"""Extension of a vocabulary: reserved pieces, the tag of synthetic pairs, and words of a new domain.

The words are those that the vocabulary would cut into many pieces. A new word is matched wherever a word of a text
begins with it; the rest of that word is cut as before. All other pieces keep their ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import sentencepiece

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.pieces import SPACE, as_read
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL, TAG

FEWEST = 5
"""The fewest occurrences of a new word."""
PARTS = 3
"""The fewest pieces that a new word is cut into."""
GOES_ON = 0.1
"""The largest ratio of longer words that begin with a new word to the word itself: all of them would be cut in another
way than before."""
_WORD = re.compile(rf"{SPACE}[^\W\d_]+")

Kind: TypeAlias = Literal["NORMAL", "CONTROL", "USER_DEFINED", "UNUSED"]
"""The type of a piece in SentencePiece's protocol buffer."""


class NewPiece(NamedTuple):
    """A piece that is added to a SentencePiece model."""

    text: str
    score: float
    kind: Kind


def extended(tokenizer: Tokenizer, pairs: Iterable[Pair], count: int, *, shared_ids: bool) -> Tokenizer:
    """Return a tokenizer with words as additional pieces, whose ids follow all others.

    Args:
        tokenizer: the tokenizer to extend.
        pairs: the text in which words are counted.
        count: the most new words; for each language if the tokenizer is not joint.
        shared_ids: whether a piece has the same id in both languages.
    """
    models = tokenizer.models
    processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in models]
    counts = [Counter[str]() for _ in models]
    for pair in pairs:
        for side, text in enumerate(pair):
            place = min(side, len(models) - 1)  # a joint tokenizer has one model for both sides
            counts[place].update(_WORD.findall(processors[place].normalize(as_read(text))))
    words = []
    for processor, counted in zip(processors, counts, strict=True):
        words.append(_chosen(processor, counted, count))
    every = list(dict.fromkeys(chain.from_iterable(words)))
    extended_models = []
    for model, of_side in zip(models, words, strict=True):
        extended_models.append(_with(model, every if shared_ids else of_side, of_side))
    return Tokenizer(*extended_models)


def reserving(tokenizer: Tokenizer, pieces: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with reserved pieces; those that it lacks get ids after all others."""
    models = []
    for model in tokenizer.models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        lacking = [piece for piece in pieces if processor.piece_to_id(piece) == SPECIAL.unknown]
        models.append(_with(model, lacking, lacking))
    return Tokenizer(*models)


def tagging(tokenizer: Tokenizer, *, shared_ids: bool) -> Tokenizer:
    """Return a tokenizer with the tag of synthetic pairs (`Tokenizer.tag`) after all other pieces of the source.

    Args:
        tokenizer: a tokenizer without the tag.
        shared_ids: whether a piece has the same id in both languages.
    """
    source, *target = tokenizer.models
    tag = [NewPiece(TAG, 0.0, "CONTROL")]
    if shared_ids:
        target = [appended(model, tag) for model in target]
    return Tokenizer(appended(source, tag), *target)


def parts_of_new(
    before: Tokenizer, now: Tokenizer, language_pieces: Iterable[str] = ()
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the former ids of each piece that an extended tokenizer has in addition, for source and target.

    They are the pieces into which the former tokenizer cuts the new piece. Where it lacks a character, they are those
    of the text without accents; if it lacks all characters, there are none. For a language, they are the former
    language pieces. The tag of synthetic pairs has none.

    Args:
        before: the former tokenizer.
        now: the extended tokenizer.
        language_pieces: the pieces of `before` that stand for languages.
    """
    parts = []
    for former, model in zip(before.models, now.models, strict=True):
        parts.append(_parts_of_new(former, model, list(language_pieces)))
    return parts[0], parts[-1]


def _parts_of_new(before: bytes, now: bytes, language_pieces: list[str]) -> list[list[int]]:
    """Return the ids in a SentencePiece model of the parts of each piece that another model has in addition."""
    proto = _parsed(before)
    # A piece in the middle of a word has no space before it.
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = False
    former = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    extended_processor = sentencepiece.SentencePieceProcessor(model_proto=now)
    parts = []
    for number in range(former.get_piece_size(), extended_processor.get_piece_size()):
        piece = extended_processor.id_to_piece(number)
        if extended_processor.is_control(number):
            parts.append([] if piece == TAG else former.piece_to_id(language_pieces))
            continue
        text = piece.replace(SPACE, " ")
        ids = former.encode(text)
        if SPECIAL.unknown in ids:
            ids = former.encode(_without_accents(text))
        parts.append([part for part in ids if part != SPECIAL.unknown])
    return parts


def _without_accents(text: str) -> str:
    """Return the letters of a text without their marks."""
    return "".join(
        character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character)
    )


def _chosen(processor: sentencepiece.SentencePieceProcessor, counted: Counter[str], count: int) -> list[str]:
    """Return the words that save the most pieces."""
    frequent = [word for word, times in counted.items() if times >= FEWEST]
    saved: dict[str, int] = {}
    encoded = processor.encode([word.removeprefix(SPACE) for word in frequent])
    for word, ids in zip(frequent, encoded, strict=True):
        if len(ids) >= PARTS and processor.unk_id() not in ids:
            saved[word] = counted[word] * (len(ids) - 1)
    longer = Counter[str]()  # how often longer words begin with each of these words
    for word, times in counted.items():
        for end in range(2, len(word)):
            if word[:end] in saved:
                longer[word[:end]] += times
    whole = [word for word in saved if longer[word] <= GOES_ON * counted[word]]
    return sorted(whole, key=lambda word: (-saved[word], word))[:count]


def _with(model: bytes, pieces: Sequence[str], used: Sequence[str]) -> bytes:
    """Return a SentencePiece model with more pieces; those that are not `used` never come out of a text."""
    # SentencePiece always matches a user-defined piece, and never an unused one, which only has an id.
    types: dict[str, Kind] = dict.fromkeys(pieces, "UNUSED")
    types.update(dict.fromkeys(used, "USER_DEFINED"))
    lowest = min(piece.score for piece in _parsed(model).pieces)
    new = []
    for number, piece in enumerate(pieces, 1):
        new.append(NewPiece(piece, lowest - number, types[piece]))
    return appended(model, new)


def appended(model: bytes, pieces: Iterable[NewPiece]) -> bytes:
    """Return a SentencePiece model with more pieces after all others."""
    proto = _parsed(model)
    for piece, score, kind in pieces:
        proto.pieces.add(piece=piece, score=score, type=getattr(proto.SentencePiece, kind))
    proto.trainer_spec.vocab_size = len(proto.pieces)
    content: bytes = proto.SerializeToString()
    return content


def is_bpe(model: bytes) -> bool:
    """Whether a SentencePiece model merges pairs instead of comparing probabilities."""
    spec = _parsed(model).trainer_spec
    return bool(spec.model_type == spec.BPE)


def _parsed(model: bytes) -> Any:
    """Return the protocol buffer of a SentencePiece model."""
    proto = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()
    proto.ParseFromString(model)
    return proto
