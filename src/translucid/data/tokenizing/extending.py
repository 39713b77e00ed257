"""A vocabulary that gets more pieces: those for what is no word, and words of a new domain that it cuts into many.

Each such word is matched wherever it begins a word of a text, and what goes on behind it is cut as before. All other
pieces, and their ids, stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module

import sentencepiece

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.pieces import SPACE, as_read
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

FEWEST = 5
"""Times that a word comes, at least."""
PARTS = 3
"""Pieces that a word is cut into, at least."""
GOES_ON = 0.1
"""Share of the words that begin with a new piece and go on, at most: these would all be cut in another way."""
_WORD = re.compile(rf"{SPACE}[^\W\d_]+")


def extended(tokenizer: Tokenizer, pairs: Iterable[Pair], count: int, *, shared_ids: bool) -> Tokenizer:
    """Return a tokenizer with more pieces, whose ids come behind all others.

    Args:
        tokenizer: as it is.
        pairs: the text in which words are counted.
        count: of the words, at most; for each language if the tokenizer is not joint.
        shared_ids: whether a piece has the same id in both languages.
    """
    models = tokenizer.models
    processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in models]
    counted = [Counter[str]() for _ in models]
    for pair in pairs:
        for side, text in enumerate(pair[:2]):
            place = min(side, len(models) - 1)
            counted[place].update(_WORD.findall(processors[place].normalize(as_read(text))))
    words = [_chosen(*both, count) for both in zip(processors, counted, strict=True)]
    if shared_ids:
        every = list(dict.fromkeys(word for side in words for word in side))
        return Tokenizer(*(_with(model, every, side) for model, side in zip(models, words, strict=True)))
    return Tokenizer(*(_with(model, side, side) for model, side in zip(models, words, strict=True)))


def reserving(tokenizer: Tokenizer, pieces: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with pieces for what is no word, those that it lacks behind all others."""
    models = []
    for model in tokenizer.models:
        known = sentencepiece.SentencePieceProcessor(model_proto=model)
        lacking = [piece for piece in pieces if known.piece_to_id(piece) == SPECIAL.unknown]
        models.append(_with(model, lacking, lacking))
    return Tokenizer(*models)


def parts_of_new(before: Tokenizer, now: Tokenizer) -> tuple[list[list[int]], list[list[int]]]:
    """Return for each piece that an extended tokenizer has more, of the source and of the target, its ids before."""
    new_sources = now.source_pieces(range(before.source_size, now.source_size))
    new_targets = now.target_pieces(range(before.target_size, now.target_size))
    sources = before.encode_source([piece.replace(SPACE, " ") for piece in new_sources])
    targets = before.encode_target([piece.replace(SPACE, " ") for piece in new_targets])
    return sources, targets


def _chosen(processor: sentencepiece.SentencePieceProcessor, counted: Counter[str], count: int) -> list[str]:
    """Return the words that save most pieces."""
    often = sorted((word for word in counted if counted[word] >= FEWEST), key=lambda word: (-counted[word], word))
    cut = processor.encode([word.removeprefix(SPACE) for word in often])
    saved = {
        word: counted[word] * (len(ids) - 1)
        for word, ids in zip(often, cut, strict=True)
        if len(ids) >= PARTS and processor.unk_id() not in ids
    }
    going_on = Counter[str]()
    for word, times in counted.items():
        for end in range(2, len(word)):
            if (head := word[:end]) in saved:
                going_on[head] += times
    whole = [word for word in saved if going_on[word] <= GOES_ON * counted[word]]
    return sorted(whole, key=lambda word: (-saved[word], word))[:count]


def _with(model: bytes, pieces: Sequence[str], own: Sequence[str]) -> bytes:
    """Return a SentencePiece model with more pieces, of which only its own come out of texts."""
    made = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto()
    made.ParseFromString(model)
    kind, lowest = made.SentencePiece, min(piece.score for piece in made.pieces)
    ours = {*own}
    for i, piece in enumerate(pieces):
        made.pieces.add(piece=piece, score=lowest - 1 - i, type=kind.USER_DEFINED if piece in ours else kind.UNUSED)
    made.trainer_spec.vocab_size = len(made.pieces)
    written: bytes = made.SerializeToString()
    return written
