"""Pieces of a language that a vocabulary was not learned with: its language piece, its characters, and its subwords.

The subwords continue the byte-pair encoding of the vocabulary (Sennrich et al. 2016, algorithm 1): the text of the
language starts as the pieces into which the vocabulary cuts it, and the most frequent pair of adjacent pieces becomes a
new piece, again and again. A pair that occurs in text of the other languages never does, so that such text is cut as
before.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import islice, pairwise

import sentencepiece

from translucid.data.tokenizing.extending import FEWEST, NewPiece, appended, is_bpe
from translucid.data.tokenizing.pieces import SPACE, as_read
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

LONGEST = 16
"""The most characters of a new piece, as in SentencePiece."""
GAIN = 1e-4
"""The log-probability by which a unigram model prefers a new piece to its two parts. It is so small that no other
segmentation changes."""
_AT_ONCE = 10_000
"""The number of texts that are cut at once."""


def with_language(
    tokenizer: Tokenizer, texts: Iterable[str], others: Iterable[str], count: int, language_pieces: Sequence[str]
) -> Tokenizer:
    """Return a joint tokenizer with the pieces of new languages, whose ids follow all others.

    Args:
        tokenizer: the tokenizer to extend.
        texts: text of the new languages, from which the pieces are learned.
        others: text of the other languages, which is cut as before.
        count: the most new subwords. The characters that `tokenizer` lacks are added besides.
        language_pieces: the pieces that stand for the new languages; no text yields them.
    """
    texts = list(texts)
    (model,) = tokenizer.models
    model = appended(model, [NewPiece(piece, 0.0, "CONTROL") for piece in language_pieces])
    lowest = min(_scores(model).values())
    characters = []
    for number, character in enumerate(_lacking(model, texts), 1):
        characters.append(NewPiece(character, lowest - number, "NORMAL"))
    model = appended(model, characters)
    scores = _scores(model)
    taken = {first + second for pieces in _cut(model, others) for first, second in pairwise(pieces)}
    merges = _Merges(_words(_cut(model, texts)), taken, scores.keys())
    lowest, subwords = min(scores.values()), []
    for number, (first, second) in enumerate(merges.learn(count), 1):
        # BPE merges the pair with the best score first, so new pairs come after all others. A unigram model compares
        # sums of scores.
        score = lowest - number if is_bpe(model) else scores[first] + scores[second] + GAIN
        scores[first + second] = score
        subwords.append(NewPiece(first + second, score, "NORMAL"))
    return Tokenizer(appended(model, subwords))


def _scores(model: bytes) -> dict[str, float]:
    """Return the score of each piece."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    every = list(range(processor.get_piece_size()))
    return dict(zip(processor.id_to_piece(every), processor.get_score(every), strict=True))


def _lacking(model: bytes, texts: Sequence[str]) -> list[str]:
    """Return the characters of texts that a vocabulary lacks, the most frequent ones first."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    counts = Counter[str]()
    for text in texts:
        counts.update(processor.normalize(as_read(text)))
    lacking = [character for character in counts if processor.piece_to_id(character) == SPECIAL.unknown]
    return sorted(lacking, key=lambda character: (-counts[character], character))


def _cut(model: bytes, texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the pieces of each text."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    remaining = map(as_read, texts)
    while some := list(islice(remaining, _AT_ONCE)):
        yield from processor.encode(some, out_type=str)


@lru_cache(100_000)
def _is_letters(text: str) -> bool:
    """Whether a text is letters, with marks such as the vowel signs of Devanagari."""
    return bool(text) and all(unicodedata.category(character)[0] in "LM" for character in text)


def _may_join(first: str, second: str) -> bool:
    """Whether two adjacent pieces may become one: parts of one word."""
    if len(first) + len(second) > LONGEST or not _is_letters(second):
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
    """Byte-pair encoding of words that are cut into pieces already."""

    def __init__(self, words: Counter[tuple[str, ...]], taken: Set[str], known: Set[str]) -> None:
        """Count the pairs of adjacent pieces.

        Args:
            words: the words with their numbers of occurrences.
            taken: pieces that no pair may make.
            known: pieces that are no news.
        """
        self.taken, self.known = taken, set(known)
        self.words = [list(word) for word in words]
        self.occurrences = list(words.values())
        self.counts = Counter[str]()
        """How often each pair occurs, by the piece that it makes."""
        self.places: dict[str, set[int]] = {}
        """The numbers of the words that a pair may be in."""
        for number in range(len(self.words)):
            self._count(number, 1)
        self._queue = [(-count, piece) for piece, count in self.counts.items()]
        heapify(self._queue)

    def learn(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield up to `count` merged pairs, the most frequent first."""
        learned = 0
        while learned < count and self._queue:
            times, piece = heappop(self._queue)
            # An entry is outdated if its pair has become rarer or more frequent; `_merge` has queued the new count.
            if -times != self.counts[piece] or -times < FEWEST:
                continue
            parts = self._merge(piece)
            # Parts of a known piece may become neighbours only now.
            if piece not in self.known:
                self.known.add(piece)
                learned += 1
                yield parts

    def _count(self, number: int, sign: int) -> set[str]:
        """Add the pairs of a word to the counts, or subtract them; return the pieces that they make."""
        made = set()
        for first, second in pairwise(self.words[number]):
            piece = first + second
            if piece not in self.taken and _may_join(first, second):
                self.counts[piece] += sign * self.occurrences[number]
                self.places.setdefault(piece, set()).add(number)
                made.add(piece)
        return made

    def _merge(self, piece: str) -> tuple[str, str]:
        """Merge all pairs that make a piece; return the first of them."""
        changed, parts = set(), None
        for number in sorted(self.places.pop(piece)):
            changed |= self._count(number, -1)
            merged: list[str] = []
            for part in self.words[number]:
                if merged and merged[-1] + part == piece and _may_join(merged[-1], part):
                    parts = parts or (merged[-1], part)
                    merged[-1] = piece
                else:
                    merged.append(part)
            self.words[number] = merged
            changed |= self._count(number, 1)
        for other in changed - {piece}:
            heappush(self._queue, (-self.counts[other], other))
        del self.counts[piece]
        assert parts
        return parts
