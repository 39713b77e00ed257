"""Whether a sentence is of a kind that the model knows: words that it has learned, a translation as likely as usual.

A model translates words that it has never seen into fluent nonsense. Two things tell: words of the source that the
training text does not have, and a log-probability far below that of the run's own validation translations. Both are
measured in standard deviations of the validation translations and added up. Where the words of the training text are
not known, as of an imported model, the pieces into which words are split stand for them.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from translucid.data.non_translatable import without_fixed
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.words import words_in

# The weights and limits were set on 3,000 pairs held out of Tatoeba's training text and on sentences of invented and
# foreign words. The figures of the validation and test pairs were in view when one of five weights was chosen, so they
# are a little too good; see docs/confidence.md.
SHARE = 3.0
"""What a sentence of nothing but unknown words counts, in words, besides their number."""
WORDS, LIMIT = 1.5, 10.5
"""Weight of unknown words beside the log-probability, and the sum from which on a sentence is warned of."""
PIECES_LIMIT = 7.0
"""The same with pieces for words, whose weight is 1."""
LEAST_DEVIATION = 0.25
"""Standard deviation that is taken at least: after very easy validation pairs every other sentence would stand out."""
MOST_WORDS = 2_000_000
"""Different words that are kept, at most."""
NAMED = 5
"""Unknown words that a warning names, at most."""


class Measured(NamedTuple):
    """What is measured of one sentence and its translation."""

    log_probability: float
    """Of a token of the translation in the mean, in nats."""
    pieces: float
    """Pieces of the source's words beyond one each."""
    unknown: float
    """Words that the training text does not have, and `SHARE` times their share of all."""
    new: list[str]
    """These words."""


class Spread(BaseModel):
    """Mean and standard deviation of a measure."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return that of values, at least one."""
        return cls(mean=fmean(values), deviation=pstdev(values))

    def above(self, value: float) -> float:
        """Return by how many standard deviations a value is above the mean."""
        return (value - self.mean) / max(self.deviation, LEAST_DEVIATION)


class ValidationScores(BaseModel):
    """What a run's own validation sentences measure, and the words of its training text."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    sentences: int
    """That were measured."""
    log_probability: Spread
    pieces: Spread
    unknown: Spread | None = None
    """None if the words of the training text are not known."""
    words: str = ""
    """Their fingerprints in base64, 4 bytes each, sorted."""

    @classmethod
    def of(cls, sentences: Sequence[Measured], words: WordSet | None) -> ValidationScores:
        """Sum up measures of sentences, at least one; `words`: of the training text, if known."""
        return cls(
            sentences=len(sentences),
            log_probability=Spread.of([one.log_probability for one in sentences]),
            pieces=Spread.of([one.pieces for one in sentences]),
            unknown=Spread.of([one.unknown for one in sentences]) if words else None,
            words=words.encoded() if words else "",
        )

    def known(self) -> WordSet | None:
        """Return the words of the training text, if they are known.

        Raises:
            ValueError: they are damaged.
        """
        return WordSet.decoded(self.words) if self.unknown else None


class WordSet:
    """Words, as fingerprints: small enough to be kept with a run. One of ten thousand others is taken for a member."""

    def __init__(self, fingerprints: NDArray[np.uint32]) -> None:
        """`fingerprints`: sorted, each once."""
        self.fingerprints = fingerprints

    @classmethod
    def of(cls, texts: Iterable[str], base: WordSet | None = None) -> WordSet:
        """Return the words of texts, and those of another set; the first `MOST_WORDS` different ones."""
        found: set[str] = set()
        for text in texts:
            if len(found) < MOST_WORDS:
                found.update(map(_folded, _words(text)))
        numbers = np.fromiter(map(_fingerprint, found), np.uint32, len(found))
        return cls(np.unique(numbers if base is None else np.concatenate([numbers, base.fingerprints])))

    def __contains__(self, word: str) -> bool:
        number = np.uint32(_fingerprint(_folded(word)))
        place = int(np.searchsorted(self.fingerprints, number))
        return place < len(self.fingerprints) and self.fingerprints[place] == number

    def encoded(self) -> str:
        """Return the set as text."""
        return base64.b64encode(self.fingerprints.astype("<u4").tobytes()).decode()

    @classmethod
    def decoded(cls, text: str) -> WordSet:
        """Return the set of a text that `encoded` gave.

        Raises:
            ValueError: it is damaged.
        """
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError("is not base64") from error
        return cls(np.unique(np.frombuffer(content, "<u4")))  # which refuses what is no multiple of 4 bytes


@dataclass(frozen=True)
class Familiarity:
    """Tells of sentences whether the model knows their kind."""

    tokenizer: Tokenizer
    scores: ValidationScores | None = None
    """Of the run; without them there is nothing to compare with."""
    listed: frozenset[int] | None = None
    """The source pieces that the shortlist has, if only its target pieces are considered."""

    @cached_property
    def words(self) -> WordSet | None:
        """Those of the training text, if they are known."""
        return self.scores.known() if self.scores else None

    def about(
        self,
        source: str,
        ids: Sequence[int],
        tokens: Sequence[int],
        log_probability: float,
        known: Collection[str] = (),
    ) -> list[str]:
        """Return a warning if a sentence is of a kind that the model does not know, and of words that no shortlist has.

        Args:
            source: what was translated in one go.
            ids: its tokens, the end token not among them.
            tokens: those of its translation likewise.
            log_probability: of the translation, in nats.
            known: words, casefolded, whose translation is given, such as those of terms.
        """
        warnings = self._unlisted(source)
        if not self.scores or not any(map(str.isalpha, without_fixed(source))):
            return warnings
        found = measured(self.tokenizer, self.words, source, ids, tokens, log_probability, known)
        unlikely = -self.scores.log_probability.above(found.log_probability)
        if self.words and self.scores.unknown:
            strange = unlikely + WORDS * self.scores.unknown.above(found.unknown) > LIMIT
        else:
            strange = unlikely + self.scores.pieces.above(found.pieces) > PIECES_LIMIT
        if not strange:
            return warnings
        if found.new:
            warnings.append(f"unknown words: the training text does not have {_listing(found.new)}")
        else:
            usual = self.scores.log_probability.mean
            figures = f"log-probability {found.log_probability:.1f} a token, {usual:.1f} in validation"
            warnings.append(f"improbable: the model has hardly learned such sentences ({figures})")
        return warnings

    def _unlisted(self, source: str) -> list[str]:
        """Say which words have a piece that the shortlist does not have."""
        if self.listed is None:
            return []
        words = [*dict.fromkeys(_words(source))]
        pieces = (_word_pieces(self.tokenizer, ids) for ids in self.tokenizer.encode_source(words))
        lacking = [
            word
            for word, ids in zip(words, pieces, strict=True)
            if not self.listed.issuperset(chain.from_iterable(ids))
        ]
        return [f"shortlist: it has no translations of {_listing(lacking)}"] if lacking else []


def measured(
    tokenizer: Tokenizer,
    known: WordSet | None,
    source: str,
    ids: Sequence[int],
    tokens: Sequence[int],
    log_probability: float,
    given: Collection[str] = (),
) -> Measured:
    """Measure a sentence and its translation.

    Args:
        tokenizer: the model's.
        known: words of the training text, if they are known.
        source: see `Familiarity.about`, as for the others.
        ids: of the source.
        tokens: of the translation.
        log_probability: of the translation.
        given: words whose translation is given.
    """
    words = [word for word in _words(source) if _folded(word) not in given]
    new = [word for word in words if word not in known] if known else []
    unknown = len(new) + SHARE * len(new) / max(len(words), 1)
    count = len(tokens) - len(tokenizer.target_opening) + 1
    pieces = sum(len(word) - 1 for word in _word_pieces(tokenizer, ids))
    return Measured(log_probability / count, pieces, unknown, new)


def _word_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """Return the ids of each word that has a letter, without punctuation that is a piece of its own."""
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
    """Return the words of a text that are nothing but letters, without placeholders, addresses and tags."""
    return [word.text for word in words_in(without_fixed(text)) if word.text.isalpha()]


def _folded(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def _fingerprint(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def _listing(words: Sequence[str]) -> str:
    """Name the first of some words."""
    different = [*dict.fromkeys(words)]
    return ", ".join(different[:NAMED]) + (" …" if len(different) > NAMED else "")
