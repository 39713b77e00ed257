"""Extension of a vocabulary: reserved pieces, the tag of synthetic pairs, words of a new domain, another language.

The words are those that the vocabulary would cut into many pieces. A new word is matched wherever a word of a text
begins with it; the rest of that word is cut as before. All other pieces keep their ids.

A new language gets its language piece, its characters, and its subwords, which continue the byte-pair encoding of the
vocabulary (Sennrich et al. 2016, algorithm 1): the text of the language starts as the pieces into which the vocabulary
cuts it, and the most frequent pair of adjacent pieces becomes a new piece, again and again. A pair that occurs in text
of the other languages never does, so that such text is cut as before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import chain, islice, pairwise
from typing import Literal, NamedTuple, TypeAlias

import sentencepiece

from bitext.pair import Pair
from translucid.data.tokenizing.normalization import Characters, described, normalizer_of, normalizer_without
from translucid.data.tokenizing.pieces import SPACE, parsed, sanitized
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import FORMALITY, SPECIAL, TAG

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
            counts[model_index].update(_WORD.findall(processors[model_index].normalize(sanitized(text))))
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
    language pieces. Other control tokens, such as the tag of synthetic pairs, have none.

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
    proto = parsed(original)
    # A piece in the middle of a word has no space before it.
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = False
    old_processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    new_processor = sentencepiece.SentencePieceProcessor(model_proto=extended)
    parts = []
    for number in range(old_processor.get_piece_size(), new_processor.get_piece_size()):
        piece = new_processor.id_to_piece(number)
        if new_processor.is_control(number):
            is_language = piece not in (TAG, *FORMALITY.values())
            parts.append(old_processor.piece_to_id(language_pieces) if is_language else [])
            continue
        text = piece.replace(SPACE, " ")
        ids = old_processor.encode(text)
        if SPECIAL.unknown in ids:
            ids = old_processor.encode(_without_accents(text))
        parts.append([part for part in ids if part != SPECIAL.unknown])
    return parts


def _without_accents(text: str) -> str:
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
    types.update(dict.fromkeys(filter(types.__contains__, FORMALITY.values()), "CONTROL"))
    lowest = min(piece.score for piece in parsed(model).pieces)
    new_pieces = []
    for number, piece in enumerate(pieces, 1):
        new_pieces.append(NewPiece(piece, lowest - number, types[piece]))
    return appended(model, new_pieces)


def appended(model: bytes, pieces: Iterable[NewPiece]) -> bytes:
    """Return a SentencePiece model with more pieces after all others."""
    proto = parsed(model)
    for piece, score, kind in pieces:
        proto.pieces.add(piece=piece, score=score, type=getattr(proto.SentencePiece, kind))
    proto.trainer_spec.vocab_size = len(proto.pieces)
    content: bytes = proto.SerializeToString()
    return content


def with_normalizer(model: bytes, normalizer: sentencepiece.SentencePieceNormalizer) -> bytes:
    """Return a SentencePiece model with the rules of another normalization of characters."""
    proto, rules = parsed(model), parsed(normalizer.serialized_model_proto())
    proto.normalizer_spec.name = "user_defined"
    proto.normalizer_spec.precompiled_charsmap = rules.normalizer_spec.precompiled_charsmap
    content: bytes = proto.SerializeToString()
    return content


def is_bpe(model: bytes) -> bool:
    """Whether a SentencePiece model merges pairs instead of comparing probabilities."""
    spec = parsed(model).trainer_spec
    return bool(spec.model_type == spec.BPE)


MAX_LENGTH = 16
"""The most characters of a new piece, as in SentencePiece."""
GAIN = 1e-4
"""The log-probability by which a unigram model prefers a new piece to its two parts. It is so small that no other
segmentation changes."""
_BATCH_SIZE = 10_000
"""The number of texts that are cut at once."""


def with_language(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    other_texts: Iterable[str],
    count: int,
    language_pieces: Sequence[str],
    tell: Callable[[str], None] = lambda line: None,
) -> Tokenizer:
    """Return a joint tokenizer with the pieces of new languages, whose ids follow all others.

    Args:
        tokenizer: the tokenizer to extend.
        texts: text of the new languages, from which the pieces are learned.
        other_texts: text of the other languages, which is cut as before; it is read twice.
        count: the most new subwords. The characters that `tokenizer` lacks are added as well.
        language_pieces: the pieces that stand for the new languages; no text yields them.
        tell: called with a line on the characters that normalization changes.
    """
    texts = list(texts)
    (model,) = tokenizer.models
    model = _preserving(model, texts, other_texts, tell)
    model = appended(model, [NewPiece(piece, 0.0, "CONTROL") for piece in language_pieces])
    lowest = min(_scores(model).values())
    characters = []
    for number, character in enumerate(_missing_characters(model, texts), 1):
        characters.append(NewPiece(character, lowest - number, "NORMAL"))
    model = appended(model, characters)
    scores = _scores(model)
    # Pieces that a text of the other languages has next to each other are not merged, or its segmentation would change.
    forbidden: set[str] = set()
    for pieces in _segment(model, other_texts):
        forbidden.update(first + second for first, second in pairwise(pieces))
    merges = _Merges(_words(_segment(model, texts)), forbidden, scores.keys())
    lowest, subwords = min(scores.values()), []
    for number, (first, second) in enumerate(merges.learn(count), 1):
        # BPE merges the pair with the best score first, so new pairs come after all others. A unigram model compares
        # sums of scores.
        score = lowest - number if is_bpe(model) else scores[first] + scores[second] + GAIN
        scores[first + second] = score
        subwords.append(NewPiece(first + second, score, "NORMAL"))
    return Tokenizer(appended(model, subwords))


def _preserving(model: bytes, texts: Iterable[str], other_texts: Iterable[str], tell: Callable[[str], None]) -> bytes:
    """Return a SentencePiece model that leaves the spelling of new languages alone (`normalization.adaptive`).

    Characters that are also frequent in text of the other languages are changed as before, or that text would be cut
    differently.
    """
    characters, other_characters, normalizer = Characters(), Characters(), normalizer_of(model)
    for text in texts:
        characters.add(text)
    changed = characters.changed_by(normalizer)
    preserved = characters.preserved(changed)
    if preserved:
        for text in other_texts:
            other_characters.add(text)
        preserved = [character for character in preserved if character not in other_characters.frequent]
        kept = {character: changed.pop(character) for character in preserved}
    if changed:
        tell(f"normalization (of the vocabulary) changes characters of the new languages: {described(changed)}")
    if not preserved:
        return model
    tell(f"normalization (adaptive) leaves alone in the new languages: {described(kept)}")
    return with_normalizer(model, normalizer_without(preserved, normalizer))


def _scores(model: bytes) -> dict[str, float]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = list(range(processor.get_piece_size()))
    return dict(zip(processor.id_to_piece(ids), processor.get_score(ids), strict=True))


def _missing_characters(model: bytes, texts: Sequence[str]) -> list[str]:
    """Return the characters of texts that a vocabulary lacks, the most frequent ones first."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    counts = Counter[str]()
    for text in texts:
        counts.update(processor.normalize(sanitized(text)))
    missing = [character for character in counts if processor.piece_to_id(character) == SPECIAL.unknown]
    return sorted(missing, key=lambda character: (-counts[character], character))


def _segment(model: bytes, texts: Iterable[str]) -> Iterator[list[str]]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    remaining = map(sanitized, texts)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield from processor.encode(batch, out_type=str)


@lru_cache(100_000)
def _is_letters(text: str) -> bool:
    """Whether a text is letters, with marks such as the vowel signs of Devanagari."""
    return bool(text) and all(unicodedata.category(character)[0] in "LM" for character in text)


def _may_join(first: str, second: str) -> bool:
    """Whether two adjacent pieces may become one: parts of one word."""
    if len(first) + len(second) > MAX_LENGTH or not _is_letters(second):
        return False
    return first == SPACE or _is_letters(first.removeprefix(SPACE))


def _words(texts: Iterable[Sequence[str]]) -> Counter[tuple[str, ...]]:
    """Return how often each word of several pieces occurs."""
    counts = Counter[tuple[str, ...]]()
    for pieces in texts:
        word: list[str] = []
        for piece in pieces:
            if word and not _may_join(word[-1], piece):
                counts[tuple(word)] += 1
                word = []
            word.append(piece)
        counts[tuple(word)] += 1
    return Counter({word: count for word, count in counts.items() if len(word) > 1})


class _Merges:
    """Byte-pair encoding of words that are already cut into pieces."""

    def __init__(self, words: Counter[tuple[str, ...]], forbidden: Set[str], vocabulary: Set[str]) -> None:
        """Count the pairs of adjacent pieces.

        Args:
            words: the words with their numbers of occurrences.
            forbidden: pieces that no merge may produce.
            vocabulary: the pieces that exist already.
        """
        self.forbidden, self.vocabulary = forbidden, set(vocabulary)
        self.words = [list(word) for word in words]
        self.occurrences = list(words.values())
        self.counts = Counter[str]()
        """How often each pair occurs, by the merged piece."""
        self.word_numbers: dict[str, set[int]] = {}
        """The numbers of the words that may contain a pair, by the merged piece."""
        for number in range(len(self.words)):
            self._count(number, 1)
        self._queue = [(-count, piece) for piece, count in self.counts.items()]
        heapify(self._queue)

    def learn(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield up to `count` merged pairs, the most frequent first."""
        learned = 0
        while learned < count and self._queue:
            negative_count, piece = heappop(self._queue)
            # An entry is outdated if its pair has become rarer or more frequent; `_merge` has queued the new count.
            if -negative_count != self.counts[piece] or -negative_count < MIN_COUNT:
                continue
            pair = self._merge(piece)
            # The parts of an existing piece may have become neighbors only now.
            if piece not in self.vocabulary:
                self.vocabulary.add(piece)
                learned += 1
                yield pair

    def _count(self, number: int, sign: int) -> set[str]:
        """Add the pairs of a word to the counts, or subtract them; return the merged pieces."""
        pieces = set()
        for first, second in pairwise(self.words[number]):
            piece = first + second
            if piece not in self.forbidden and _may_join(first, second):
                self.counts[piece] += sign * self.occurrences[number]
                self.word_numbers.setdefault(piece, set()).add(number)
                pieces.add(piece)
        return pieces

    def _merge(self, piece: str) -> tuple[str, str]:
        """Merge all pairs that produce a piece; return the first of them."""
        changed, pair = set(), None
        for number in sorted(self.word_numbers.pop(piece)):
            changed |= self._count(number, -1)
            merged: list[str] = []
            for part in self.words[number]:
                if merged and merged[-1] + part == piece and _may_join(merged[-1], part):
                    pair = pair or (merged[-1], part)
                    merged[-1] = piece
                else:
                    merged.append(part)
            self.words[number] = merged
            changed |= self._count(number, 1)
        for affected in changed - {piece}:
            heappush(self._queue, (-self.counts[affected], affected))
        del self.counts[piece]
        assert pair
        return pair
