"""Checks of translations without a reference.

They detect characters and capitals that the model does not know, unusual lengths, repetitions, other languages, copies,
and lost or invented parts. A warning is a line `kind: what was found`. Nothing is certain: a warning shows where a
person should look first. The off-target rate counts the translations of a test set in the wrong language.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from bitext.languages import short_code
from bitext.protected_spans import PlaceholderSyntax, lost_and_invented, with_patterns
from translucid.data.capitals import EDGE_SIGNS, is_title
from translucid.data.sentences import language_probabilities, split_sentences
from translucid.data.statistics import script
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

LOOP = re.compile(r"(?<!\S)(\S++(?: \S++){0,3})(?: \1){3}(?!\S)")
"""One to four words, four times in a row."""
_SENTENCE_END = re.compile(r"[.!?。！？।][\s\"'»”)]+\S|[。！？]\S")
"""A possible boundary between sentences."""
_STUTTER = re.compile(r"(\w)\1{5}")
"""A letter six times in a row."""
_RUN = 8
"""The maximum number of words in a repeated sequence."""
_APART = 4
"""The maximum distance, in words, between a word that is broken off and its repetition."""
_COMMON = 3
"""The minimum number of letters of a prefix that identifies a name; repeated words have more letters."""

SHORT, LONG = 0.34, 3.0
"""The ratios of target to source tokens below and above which a translation is too short or too long."""
FEWER = 0.75
"""The ratio below which a translation with fewer sentences is too short."""
FEW, SLACK = 8, 10
"""The number of source tokens from which a translation may be too short, and the tokens added to the limit `LONG`."""
SHOUTING = 1.5
"""The ratio of pieces of a text in capitals to those in lower case from which capitals are unknown to the model."""
UNSURE = -1.0
"""The mean log-probability of a token below which the languages of a translation are checked."""
MIN_LETTERS, MIN_PROBABILITY, MAX_EXPECTED = 15, 0.7, 0.05
"""For another language: the minimum number of letters, its minimum probability, the maximum of the expected one."""
MIN_COPIED, MIN_WORDS = 0.8, 4
"""For a copy: the minimum share of its different words that are in the source, and their minimum number."""


@dataclass(frozen=True)
class QualityChecks:
    """Checks the translations of one model; nothing is computed before it is needed."""

    tokenizer: Tokenizer
    """The model's tokenizer."""
    source_language: str | None
    """The code of the source language, if known."""
    target_language: str | None
    """The code of the target language, if known."""
    scripts: Callable[[], set[str | None]] | None = None
    """A function that returns the known scripts, if they have been computed already."""
    protected: tuple[str, ...] = ()
    """The patterns of a user for parts that a translation must keep."""

    @cached_property
    def _known_scripts(self) -> set[str | None]:
        return self.scripts() if self.scripts else known_scripts(self.tokenizer)

    def about(
        self, source: str, ids: Sequence[int], target: str, tokens: Sequence[int], log_probability: float
    ) -> list[str]:
        """Return the warnings of a translation.

        Args:
            source: a sentence, or another text that was translated as a whole.
            ids: its tokens without the end token.
            target: the translation.
            tokens: its tokens without the end token.
            log_probability: the log-probability of the translation, in nats.
        """
        # Tokens that name a language do not count.
        ids, tokens = ids[len(self.tokenizer.source_opening) :], tokens[len(self.tokenizer.target_opening) :]
        warnings = [*self._unknown(source, ids), *self._capitals(source, ids)]
        warnings += self._length(source, ids, target, tokens)
        if repeated := repetition_in(source, target):
            warnings.append(f"repeated: {repeated}")
        syntax = with_patterns(PlaceholderSyntax.message, self.protected)
        lost, invented = lost_and_invented(source, target, syntax)
        if lost:
            warnings.append(f"lost: {' '.join(lost)}")
        if invented:
            warnings.append(f"invented: {' '.join(invented)}")
        copied = self.source_language != self.target_language and _is_copy(source, target)
        if copied:
            warnings.append("copied: most words are those of the source")
        if copied or log_probability < UNSURE * (len(tokens) + 1):
            warnings += _wrong_language("the source", source, self.source_language)
            warnings += _wrong_language("the translation", target, self.target_language)
        return warnings

    def _unknown(self, source: str, ids: Sequence[int]) -> Iterator[str]:
        if SPECIAL.unknown in ids:
            # A letter that the model knows in the other case is a matter of capitals.
            capitals, lower_case, neither_case = [], [], []
            for character in dict.fromkeys(source):
                if character.isspace() or not self._is_unknown(character):
                    continue
                swapped = character.swapcase()
                if swapped == character or self._is_unknown(swapped):
                    neither_case.append(character)
                elif character.isupper():
                    capitals.append(character)
                elif character.islower():
                    lower_case.append(character)
            for name, letters in (("capitals", capitals), ("lower case", lower_case)):
                if letters:
                    yield f"{name}: the model has never seen {_shown(letters)}"
            if neither_case:
                yield f"unknown characters: {_shown(neither_case)}"
        if source.isascii() and "LATIN" in self._known_scripts:
            return
        scripts = set(map(script, filter(str.isalpha, source)))
        for name in sorted(filter(None, scripts - self._known_scripts)):
            yield f"unknown script: {name}"

    def _is_unknown(self, character: str) -> bool:
        return SPECIAL.unknown in self.tokenizer.encode_source([character])[0]

    def _capitals(self, source: str, ids: Sequence[int]) -> list[str]:
        """Return a warning if a text in capitals, or in Title Case, has many more pieces than in lower case."""
        if SPECIAL.unknown in ids or sum(map(str.isalpha, source)) < 4:
            return []
        lower, what = source.lower(), "in capitals"
        if not source.isupper():
            if not is_title(source):
                return []
            lower, what = source[:1] + source[1:].lower(), "that begin with capitals"
        pieces = len(self.tokenizer.encode_source([lower])[0]) - len(self.tokenizer.source_opening)
        if len(ids) < SHOUTING * pieces:
            return []
        return [f"capitals: the model has hardly seen words {what}; lower case may do better"]

    def _length(self, source: str, ids: Sequence[int], target: str, tokens: Sequence[int]) -> list[str]:
        if not target.strip():
            return ["too short: nothing came out"]
        if _SENTENCE_END.search(source):
            source_sentences = len(split_sentences(source, self.source_language))
            target_sentences = len(split_sentences(target, self.target_language))
            if target_sentences < source_sentences and len(tokens) < FEWER * len(ids):
                return [f"too short: {_count(target_sentences, 'sentence')} for {source_sentences}"]
        words = f"{_count(len(target.split()), 'word')} for {len(source.split())}"
        if len(ids) >= FEW and len(tokens) < SHORT * len(ids):
            return [f"too short: {words}"]
        if len(tokens) > LONG * len(ids) + SLACK:
            return [f"too long: {words}"]
        return []


def known_scripts(tokenizer: Tokenizer) -> set[str | None]:
    """Return the scripts of source pieces with two or more letters, and those of many single letters.

    If all pieces of the vocabulary are single characters, one letter of a script is enough.
    """
    single: dict[str | None, int] = {}
    scripts: set[str | None] = set()
    has_longer = False
    for piece in tokenizer.source_pieces(range(tokenizer.source_size)):
        letter_scripts = list(map(script, filter(str.isalpha, piece)))
        if len(letter_scripts) > 1:
            scripts.update(letter_scripts)
            has_longer = has_longer or not piece.startswith("<")  # special tokens are no words
        elif letter_scripts:
            (kind,) = letter_scripts
            single[kind] = single.get(kind, 0) + 1
    # Chinese, for example, has pieces of one character, but many of them.
    fewest = 100 if has_longer else 1
    return scripts | {kind for kind, count in single.items() if count >= fewest}


def repetition_in(source: str, target: str) -> str | None:
    """Return the repeated part of a translation, if the source does not repeat itself likewise."""
    words = target.split()
    if len(words) - len(set(words)) >= 3 and (repetition := LOOP.search(target)) and not LOOP.search(source):
        return repetition[0]
    if (repetition := _STUTTER.search(target)) and not _STUTTER.search(source):
        return repetition[0]
    return restarted(source, target)


def restarted(source: str, target: str) -> str | None:
    """Return the part that a translation begins again after it has broken off: `Acme C gusta Acme Cloud`.

    This is a sequence of two or more words twice in a row, a word that occurs twice, followed by words with the same
    beginning, or a prefix of a name beside the name. If a word occurs twice in the source, only the last case counts.
    """
    source_words = list(map(_bare, source.split()))
    words = [word.strip(EDGE_SIGNS) for word in target.split()]
    longer_words = [word for word in source_words if len(word) > 1]
    if len(set(longer_words)) == len(longer_words):
        plain = [word.casefold() for word in words]
        counts = Counter(plain)
        repeated = [i for i, word in enumerate(plain) if counts[word] > 1]
        for i, size in product(repeated, range(2, _RUN + 1)):
            if plain[i : i + size] == plain[i + size : i + 2 * size]:
                return " ".join(words[i : i + 2 * size])
        for i in repeated:
            for j in range(i + 2, min(i + _APART + 1, len(words) - 1)):
                if len(words[i]) > _COMMON and words[i] == words[j] and _alike(words[i + 1], words[j + 1]):
                    return " ".join(words[i : j + 2])
    names = {word for word in words if len(word) > _COMMON and word[:1].isupper() and word.casefold() in source_words}
    for word in words:
        # Few words begin a name, so that is asked first.
        if any(_broken(word, name) for name in names) and len(word) >= _COMMON and word.casefold() not in source_words:
            return word
    return None


def _alike(word: str, other: str) -> bool:
    """Return whether two different words begin with the same two letters; a single letter is enough in short words."""
    if word == other or not word or not other:
        return False
    shorter = min(len(word), len(other), 2)
    return word[:shorter] == other[:shorter]


def _broken(word: str, name: str) -> bool:
    """Return whether a word is a proper prefix of another."""
    return word != name and bool(word) and name.startswith(word)


def _is_copy(source: str, target: str) -> bool:
    """Return whether most words of a translation are in the source."""
    target_words = {word for word in map(_bare, target.split()) if len(word) > 1}
    if len(target_words) < MIN_WORDS:
        return False
    return len(target_words & set(map(_bare, source.split()))) >= MIN_COPIED * len(target_words)


def _bare(word: str) -> str:
    return word.strip(string.punctuation).casefold()


def _wrong_language(subject: str, text: str, expected: str | None) -> list[str]:
    """Return a warning if the language of a text is clearly not the expected one."""
    if not expected or sum(map(str.isalpha, text)) < MIN_LETTERS:
        return []
    # The beginning is enough to detect a language.
    probabilities = language_probabilities(text[:500])
    expected_code = short_code(expected)
    best, probability = max(probabilities.items(), key=lambda item: item[1])
    if expected_code not in probabilities or probability < MIN_PROBABILITY:
        return []
    if probabilities[expected_code] > MAX_EXPECTED:
        return []
    return [f"wrong language: {subject} looks like {best}, not {expected_code}"]


def _count(number: int, noun: str) -> str:
    plural = "" if number == 1 else "s"
    return f"{number} {noun}{plural}"


def _shown(characters: Sequence[str]) -> str:
    listing = " ".join(characters[:10])
    return f"{listing} …" if len(characters) > 10 else listing


LONGEST = 2000
"""The number of leading characters of a text by which its language is identified."""


def identified(text: str, languages: Collection[str]) -> str | None:
    """Return the most probable of some languages; None for a text without letters.

    Args:
        text: the text.
        languages: codes without scripts and regions. The choice is among these, because identification among all
            languages takes many short sentences for a language that the model does not write.
    """
    if not any(map(str.isalpha, text)):
        return None
    probabilities = language_probabilities(text[:LONGEST])
    return max(sorted(languages), key=lambda code: probabilities.get(code, 0.0))


def off_target_rate(texts: Iterable[str], target: str, languages: Iterable[str]) -> float | None:
    """Return the share of texts that are in another language of a model than the target language.

    Texts without letters do not count. Languages that differ only in their script or region count as one.

    Args:
        texts: translations, or references.
        target: the code of the target language.
        languages: the codes of all languages of the model.

    Returns:
        The rate from 0 to 1; None if the target language can't be identified, or no text has letters.
    """
    target_code, identifiable = short_code(target), language_probabilities("a")
    candidates = {code for code in map(short_code, languages) if code in identifiable} | {target_code}
    if target_code not in identifiable:
        return None
    codes = [identified(text, candidates) for text in texts]
    identified_codes = [code for code in codes if code]
    if not identified_codes:
        return None
    return sum(code != target_code for code in identified_codes) / len(identified_codes)
