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

from bitext.pair import Pair
from translucid.data.tokenizing.pieces import SPACE, sanitised
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL, TAG

MIN_COUNT = 5
"""The fewest occurrences of a new word."""
MIN_PIECES = 3
"""The fewest pieces that a new word is cut into."""
MAX_CONTINUED = 0.1
"""The largest ratio of longer words that begin with a new word to the word itself: all of them would be cut differently
from before."""
_WORD = re.compile(rf"{SPACE}[^\W\d_]+")

Kind: TypeAlias = Literal["NORMAL", "CONTROL", "USER_DEFINED", "UNUSED"]
"""The type of a piece in SentencePiece's protocol buffer."""


class NewPiece(NamedTuple):
    """A piece that is added to a SentencePiece model."""

    text: str
    score: float
    kind: Kind


def with_words(tokenizer: Tokenizer, pairs: Iterable[Pair], count: int, *, shared_ids: bool) -> Tokenizer:
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
            model_index = min(side, len(models) - 1)  # a joint tokenizer has one model for both sides
            counts[model_index].update(_WORD.findall(processors[model_index].normalize(sanitised(text))))
    words = []
    for processor, word_counts in zip(processors, counts, strict=True):
        words.append(_best_words(processor, word_counts, count))
    all_words = list(dict.fromkeys(chain.from_iterable(words)))
    extended_models = []
    for model, side_words in zip(models, words, strict=True):
        extended_models.append(_with_pieces(model, all_words if shared_ids else side_words, side_words))
    return Tokenizer(*extended_models)


def with_reserved(tokenizer: Tokenizer, pieces: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with reserved pieces; those that it lacks get ids after all others."""
    models = []
    for model in tokenizer.models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        missing = [piece for piece in pieces if processor.piece_to_id(piece) == SPECIAL.unknown]
        models.append(_with_pieces(model, missing, missing))
    return Tokenizer(*models)


def with_tag(tokenizer: Tokenizer, *, shared_ids: bool) -> Tokenizer:
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
    original: Tokenizer, extended: Tokenizer, language_pieces: Iterable[str] = ()
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the original ids of each piece that an extended tokenizer has in addition, for source and target.

    They are the pieces into which the original tokenizer cuts the new piece. Where it lacks a character, they are those
    of the text without accents; if it lacks all characters, there are none. For a language, they are the original
    language pieces. The tag of synthetic pairs has none.

    Args:
        original: the tokenizer before it was extended.
        extended: the extended tokenizer.
        language_pieces: the pieces of `original` that stand for languages.
    """
    parts = []
    for old_model, new_model in zip(original.models, extended.models, strict=True):
        parts.append(_parts_of_new(old_model, new_model, list(language_pieces)))
    return parts[0], parts[-1]


def _parts_of_new(original: bytes, extended: bytes, language_pieces: list[str]) -> list[list[int]]:
    """Return the ids in a SentencePiece model of the parts of each piece that another model has in addition."""
    proto = _parsed(original)
    # A piece in the middle of a word has no space before it.
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = False
    old_processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    new_processor = sentencepiece.SentencePieceProcessor(model_proto=extended)
    parts = []
    for number in range(old_processor.get_piece_size(), new_processor.get_piece_size()):
        piece = new_processor.id_to_piece(number)
        if new_processor.is_control(number):
            parts.append([] if piece == TAG else old_processor.piece_to_id(language_pieces))
            continue
        text = piece.replace(SPACE, " ")
        ids = old_processor.encode(text)
        if SPECIAL.unknown in ids:
            ids = old_processor.encode(_without_accents(text))
        parts.append([part for part in ids if part != SPECIAL.unknown])
    return parts


def _without_accents(text: str) -> str:
    """Return the letters of a text without their marks."""
    return "".join(
        character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character)
    )


def _best_words(processor: sentencepiece.SentencePieceProcessor, word_counts: Counter[str], limit: int) -> list[str]:
    """Return the words that save the most pieces."""
    frequent = [word for word, occurrences in word_counts.items() if occurrences >= MIN_COUNT]
    saved: dict[str, int] = {}
    encoded = processor.encode([word.removeprefix(SPACE) for word in frequent])
    for word, ids in zip(frequent, encoded, strict=True):
        if len(ids) >= MIN_PIECES and processor.unk_id() not in ids:
            saved[word] = word_counts[word] * (len(ids) - 1)
    continued = Counter[str]()  # how often longer words begin with each of these words
    for word, occurrences in word_counts.items():
        for end in range(2, len(word)):
            if word[:end] in saved:
                continued[word[:end]] += occurrences
    words = [word for word in saved if continued[word] <= MAX_CONTINUED * word_counts[word]]
    return sorted(words, key=lambda word: (-saved[word], word))[:limit]


def _with_pieces(model: bytes, pieces: Sequence[str], matched: Sequence[str]) -> bytes:
    """Return a SentencePiece model with more pieces; only those in `matched` are matched in texts."""
    # SentencePiece always matches a user-defined piece, and never an unused one, which only has an id.
    types: dict[str, Kind] = dict.fromkeys(pieces, "UNUSED")
    types.update(dict.fromkeys(matched, "USER_DEFINED"))
    lowest = min(piece.score for piece in _parsed(model).pieces)
    new_pieces = []
    for number, piece in enumerate(pieces, 1):
        new_pieces.append(NewPiece(piece, lowest - number, types[piece]))
    return appended(model, new_pieces)


def appended(model: bytes, pieces: Iterable[NewPiece]) -> bytes:
    """Return a SentencePiece model with more pieces after all others."""
    proto = _parsed(model)
    for piece, score, kind in pieces:
        proto.pieces.add(piece=piece, score=score, type=getattr(proto.SentencePiece, kind))
    proto.trainer_spec.vocab_size = len(proto.pieces)
    content: bytes = proto.SerializeToString()
    return content


def with_normaliser(model: bytes, normaliser: sentencepiece.SentencePieceNormalizer) -> bytes:
    """Return a SentencePiece model with the rules of another normalisation of characters."""
    proto, rules = _parsed(model), _parsed(normaliser.serialized_model_proto())
    proto.normalizer_spec.name = "user_defined"
    proto.normalizer_spec.precompiled_charsmap = rules.normalizer_spec.precompiled_charsmap
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
