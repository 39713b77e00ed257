"""Detection of sentences that are unlike the training data, by their words and the log-probability of the translation.

A model translates words that it has never seen into fluent nonsense. Two signals reveal this: words of the source that
are not in the training text, and a log-probability far below that of the run's validation translations. Both are
measured in standard deviations of the validation translations and added up. If the words of the training text are not
known, as for an imported model, the number of pieces into which words are split replaces them.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import chain
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from bitext.protected_spans import without_fixed
from bitext.words import words_in
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer

# The weights and limits were set on 3,000 pairs held out of Tatoeba's training text and on sentences of invented and
# foreign words. The results on validation and test pairs were known when one of five weights was chosen, so that they
# are a little too good; see docs/confidence.md.
SHARE = 3.0
"""The weight, in words, of the share of unknown words, which is added to their number."""
WORDS, LIMIT = 1.5, 10.5
"""The weight of unknown words relative to the log-probability, and the sum above which there is a warning."""
PIECES_LIMIT = 7.0
"""The limit with pieces instead of words; their weight is 1."""
LEAST_DEVIATION = 0.25
"""The minimum standard deviation: after very easy validation pairs, every other sentence would stand out."""
MOST_WORDS = 2_000_000
"""The maximum number of different words that are kept."""
NAMED = 5
"""The maximum number of unknown words that a warning names."""


class SentenceMeasures(NamedTuple):
    """Measures of one sentence and its translation."""

    log_probability: float
    """The mean log-probability of the tokens of the translation, in nats."""
    pieces: float
    """The number of pieces of the source's words beyond one per word."""
    unknown: float
    """The number of words that are not in the training text, plus `SHARE` times their share of all words."""
    unknown_words: list[str]
    """The words that are not in the training text."""


class Spread(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The mean and standard deviation of a measure."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(mean=fmean(values), deviation=pstdev(values))

    def above(self, value: float) -> float:
        """Return how many standard deviations a value is above the mean."""
        return (value - self.mean) / max(self.deviation, LEAST_DEVIATION)


class ValidationScores(BaseModel, frozen=True, extra="forbid"):
    """The measures of a run's validation sentences, and the words of its training text."""

    sentences: int
    """The number of measured sentences."""
    log_probability: Spread
    pieces: Spread
    unknown: Spread | None = None
    """None if the words of the training text are not known."""
    words: str = ""
    """The fingerprints of the words in base64, 4 bytes each, sorted."""

    @classmethod
    def of(cls, sentences: Sequence[SentenceMeasures], words: WordSet | None) -> ValidationScores:
        """Summarize the measures of at least one sentence; `words`: those of the training text, if known."""
        log_probabilities, pieces, unknown, _ = zip(*sentences, strict=True)
        spreads = {"log_probability": Spread.of(log_probabilities), "pieces": Spread.of(pieces)}
        if words is None:
            return cls(sentences=len(sentences), **spreads)
        return cls(sentences=len(sentences), **spreads, unknown=Spread.of(unknown), words=words.encoded())

    def training_words(self) -> WordSet | None:
        """Return the words of the training text, if they are known.

        Raises:
            ValueError: their fingerprints are damaged.
        """
        return WordSet.decoded(self.words) if self.unknown else None


class WordSet:
    """A set of words as fingerprints, small enough to be saved with a run; one in ten thousand other words matches."""

    def __init__(self, fingerprints: NDArray[np.uint32]) -> None:
        """`fingerprints`: sorted and unique."""
        self.fingerprints = fingerprints

    @classmethod
    def of(cls, texts: Iterable[str], base: WordSet | None = None) -> WordSet:
        """Return the first `MOST_WORDS` different words of texts, and those of another set."""
        words: set[str] = set()
        for text in texts:
            if len(words) < MOST_WORDS:
                words.update(map(_folded, _words(text)))
        numbers = np.fromiter(map(_fingerprint, words), np.uint32, len(words))
        if base is not None:
            numbers = np.concatenate([numbers, base.fingerprints])
        return cls(np.unique(numbers))

    def __contains__(self, word: str) -> bool:
        number = _folded_fingerprint(word)
        index = int(self.fingerprints.searchsorted(number))  # NumPy's function of this name takes three times as long
        return index < len(self.fingerprints) and self.fingerprints[index] == number

    def encoded(self) -> str:
        """Return the set as text."""
        # Little-endian on every machine, as runs are copied between them.
        return base64.b64encode(self.fingerprints.astype("<u4").tobytes()).decode()

    @classmethod
    def decoded(cls, text: str) -> WordSet:
        """Return the set from the text of `encoded`.

        Raises:
            ValueError: the text is damaged.
        """
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError("is not base64") from error
        return cls(np.unique(np.frombuffer(content, "<u4")))  # raises an error unless there are 4 bytes each


@dataclass(frozen=True)
class OutOfDomainCheck:
    """Warns of sentences that are unlike the training data."""

    tokenizer: Tokenizer
    scores: ValidationScores | None = None
    """The scores of the run; without them there is nothing to compare with."""
    shortlist_pieces: frozenset[int] | None = None
    """The source pieces of the shortlist, if the search is restricted to its target pieces."""

    @cached_property
    def words(self) -> WordSet | None:
        """The words of the training text, if they are known."""
        return self.scores.training_words() if self.scores else None

    def about(
        self,
        source: str,
        ids: Sequence[int],
        tokens: Sequence[int],
        log_probability: float,
        translated_words: Collection[str] = (),
    ) -> list[str]:
        """Return warnings of a sentence that is unlike the training data, and of words that the shortlist lacks.

        Args:
            source: a sentence, or another text that was translated as a whole.
            ids: its tokens without the end token.
            tokens: the tokens of its translation without the end token.
            log_probability: the log-probability of the translation, in nats.
            translated_words: casefolded words with a given translation, such as those of terms.
        """
        warnings = self._unlisted(source)
        if not self.scores or not any(map(str.isalpha, without_fixed(source))):
            return warnings
        mean, usual = _mean(self.tokenizer, tokens, log_probability), self.scores.log_probability
        # The improbability of the translation is measured in standard deviations; unknown words are added.
        improbability, unknown_words = -usual.above(mean), list[str]()
        if self.words and self.scores.unknown:
            unknown_words, unknown = _unknown(self.words, source, translated_words)
            is_unfamiliar = improbability + WORDS * self.scores.unknown.above(unknown) > LIMIT
        else:
            pieces = _further_pieces(self.tokenizer, ids)
            is_unfamiliar = improbability + self.scores.pieces.above(pieces) > PIECES_LIMIT
        if not is_unfamiliar:
            return warnings
        if unknown_words:
            warnings.append(f"unknown words: the training text does not have {_listing(unknown_words)}")
        else:
            figures = f"log-probability {mean:.1f} a token, {usual.mean:.1f} in validation"
            warnings.append(f"improbable: the model has hardly learned such sentences ({figures})")
        return warnings

    def _unlisted(self, source: str) -> list[str]:
        """Return a warning of words with a piece that the shortlist lacks."""
        if self.shortlist_pieces is None:
            return []
        words = list(dict.fromkeys(_words(source)))
        missing = []
        for word, ids in zip(words, self.tokenizer.encode_source(words), strict=True):
            pieces = chain.from_iterable(_word_pieces(self.tokenizer, ids))
            if not self.shortlist_pieces.issuperset(pieces):
                missing.append(word)
        return [f"shortlist: it has no translations of {_listing(missing)}"] if missing else []


def measure(
    tokenizer: Tokenizer,
    known_words: WordSet | None,
    source: str,
    ids: Sequence[int],
    tokens: Sequence[int],
    log_probability: float,
) -> SentenceMeasures:
    """Measure a sentence and its translation.

    Args:
        tokenizer: the model's tokenizer.
        known_words: the words of the training text, if they are known.
        source: the source, as in `OutOfDomainCheck.about`.
        ids: its tokens.
        tokens: the tokens of the translation.
        log_probability: the log-probability of the translation.
    """
    unknown_words, unknown = _unknown(known_words, source) if known_words else ([], 0.0)
    pieces = _further_pieces(tokenizer, ids)
    return SentenceMeasures(_mean(tokenizer, tokens, log_probability), pieces, unknown, unknown_words)


def _mean(tokenizer: Tokenizer, tokens: Sequence[int], log_probability: float) -> float:
    # With the end token, whose probability is part of the translation's.
    return log_probability / (len(tokens) - len(tokenizer.target_opening) + 1)


def _unknown(known_words: WordSet, source: str, translated_words: Collection[str] = ()) -> tuple[list[str], float]:
    """Return the words that are not in the training text, and the measure `SentenceMeasures.unknown`."""
    words = _words(source)
    if translated_words:
        words = [word for word in words if _folded(word) not in translated_words]
    unknown_words = [word for word in words if word not in known_words]
    return unknown_words, len(unknown_words) + SHARE * len(unknown_words) / max(len(words), 1)


def _further_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> int:
    by_word = _word_pieces(tokenizer, ids)
    return sum(map(len, by_word)) - len(by_word)


def _word_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """Return the ids of each word that has a letter, without punctuation that is a separate piece."""
    ids = ids[len(tokenizer.source_opening) :]
    words: list[list[int]] = []
    begins = True
    for number, piece in zip(ids, tokenizer.source_pieces(ids), strict=True):
        begins = begins or piece.startswith(SPACE)
        if not any(map(str.isalnum, piece)):
            continue
        if begins or not words:
            words.append([])
        words[-1].append(number)
        begins = False
    return [word for word in words if any(map(str.isalpha, "".join(tokenizer.source_pieces(word))))]


def _words(text: str) -> list[str]:
    """Return the words of a text that consist of letters, without placeholders, addresses and tags."""
    return [word.text for word in words_in(without_fixed(text)) if word.text.isalpha()]


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


@lru_cache(maxsize=1 << 13)  # a text repeats most of its words
def _folded_fingerprint(word: str) -> np.uint32:
    return np.uint32(_fingerprint(_folded(word)))


def _fingerprint(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def _listing(words: Sequence[str]) -> str:
    """Return the first words as a list for a message."""
    distinct = list(dict.fromkeys(words))
    listing = ", ".join(distinct[:NAMED])
    return f"{listing} …" if len(distinct) > NAMED else listing
