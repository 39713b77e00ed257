"""Extension of a vocabulary: reserved pieces, and words of a new domain that would be cut into many pieces.

A new word is matched wherever a word of a text begins with it; the rest of that word is cut as before. All other pieces
keep their ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain

import sentencepiece

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.pieces import SPACE, as_read
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

FEWEST = 5
"""The fewest occurrences of a new word."""
PARTS = 3
"""The fewest pieces that a new word is cut into."""
GOES_ON = 0.1
"""The largest ratio of longer words that begin with a new word to the word itself: all of them would be cut in another
way than before."""
_WORD = re.compile(rf"{SPACE}[^\W\d_]+")


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


def parts_of_new(before: Tokenizer, now: Tokenizer) -> tuple[list[list[int]], list[list[int]]]:
    """Return the former ids of each piece that an extended tokenizer has in addition, for source and target."""
    new_sources = now.source_pieces(range(before.source_size, now.source_size))
    new_targets = now.target_pieces(range(before.target_size, now.target_size))
    sources = before.encode_source([piece.replace(SPACE, " ") for piece in new_sources])
    targets = before.encode_target([piece.replace(SPACE, " ") for piece in new_targets])
    return sources, targets


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
    proto = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()
    proto.ParseFromString(model)
    kind = proto.SentencePiece
    # SentencePiece always matches a user-defined piece, and never an unused one, which only has an id.
    types = dict.fromkeys(pieces, kind.UNUSED) | dict.fromkeys(used, kind.USER_DEFINED)
    lowest = min(piece.score for piece in proto.pieces)
    for number, piece in enumerate(pieces, 1):
        proto.pieces.add(piece=piece, score=lowest - number, type=types[piece])
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return proto.SerializeToString()
