"""What looks wrong in a translation, told without a reference.

That is: characters and capitals that the model does not know, lengths that do not fit, repetitions, other languages,
copies, and what is lost or invented. A doubt is a line `kind: what was seen`. Nothing is certain: a doubt says where a
person should look first.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

from translucid.data.languages import short_code
from translucid.data.non_translatable import lost_and_invented
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.data.sentences import language_probabilities, split_sentences
from translucid.data.statistics import script
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

LOOP = re.compile(r"(?<!\S)(\S++(?: \S++){0,3})(?: \1){3}(?!\S)")
"""One to four words, four times in a row."""
_SENTENCE_END = re.compile(r"[.!?。！？।][\s\"'»”)]+\S|[。！？]\S")
"""Where one sentence may end and another begin."""
_AROUND = string.punctuation + "¿¡«»“”„…"
_STUTTER = re.compile(r"(\w)\1{5}")
"""A letter six times in a row."""
_RUN = 8
"""Words of a run that is looked for twice in a row, at most."""
_APART = 4
"""Words from one that is broken off to where it begins anew, at most."""
_COMMON = 3
"""Letters of the beginning of a name that tells which name it is; words that come twice have more of them."""

SHORT, LONG = 0.34, 3.0
"""Tokens of a translation for each one of its source, below and above which it is too short or too long."""
FEWER = 0.75
"""The same for a translation of fewer sentences."""
FEW, SLACK = 8, 10
"""Source tokens from which on an output may be too short, and tokens that it may always have more than `LONG`."""
SHOUTING = 1.5
"""Pieces of a text in capitals for each piece of the same in lower case, from which on the model has not seen such."""
UNSURE = -1.0
"""Log-probability of a token in the mean, below which the languages of a translation are looked at."""
LETTERS, SURE, HARDLY = 15, 0.7, 0.05
"""A text has another language if it has so many letters, so much probability for that, and so little for its own."""
ALIKE, WORDS = 0.8, 4
"""A copy has this share of its different words in the source, and at least so many of them."""


class QualityChecks:
    """Looks at translations by one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        source_language: str | None,
        target_language: str | None,
        scripts: Callable[[], set[str | None]] | None = None,
    ) -> None:
        """Prepare the checks; nothing is computed before it is needed.

        Args:
            tokenizer: the model's.
            source_language: its code, if known.
            target_language: likewise.
            scripts: returns `known_scripts`, for who has computed them already.
        """
        self.tokenizer = tokenizer
        self.source_language, self.target_language = source_language, target_language
        self._scripts = scripts or cache(lambda: known_scripts(tokenizer))

    def about(
        self, source: str, ids: Sequence[int], target: str, tokens: Sequence[int], log_probability: float
    ) -> list[str]:
        """Return what looks wrong, in a line each.

        Args:
            source: what was translated in one go, usually a sentence.
            ids: its tokens, the end token not among them; what stands for a language is not counted.
            target: what came out.
            tokens: its tokens likewise.
            log_probability: of the output, in nats.
        """
        ids, tokens = ids[len(self.tokenizer.source_opening) :], tokens[len(self.tokenizer.target_opening) :]
        doubts = [*self._unknown(source, ids), *self._capitals(source, ids)]
        doubts += self._length(source, ids, target, tokens)
        if repeated := _repeated(source, target):
            doubts.append(f"repeated: {repeated}")
        lost, invented = lost_and_invented(source, target, PlaceholderSyntax.message)
        doubts += [f"lost: {' '.join(lost)}"] * bool(lost) + [f"invented: {' '.join(invented)}"] * bool(invented)
        copied = self.source_language != self.target_language and _is_copy(source, target)
        if copied:
            doubts.append("copied: most words are those of the source")
        if copied or log_probability < UNSURE * (len(tokens) + 1):
            doubts += _wrong_language("the source", source, self.source_language)
            doubts += _wrong_language("the translation", target, self.target_language)
        return doubts

    def _unknown(self, source: str, ids: Sequence[int]) -> list[str]:
        doubts = []
        if SPECIAL.unknown in ids:
            unknown = [c for c in dict.fromkeys(source) if not c.isspace() and self._is_unknown(c)]
            cases = {c for c in unknown if c.swapcase() != c and not self._is_unknown(c.swapcase())}
            for name, found in (("capitals", str.isupper), ("lower case", str.islower)):
                if letters := [c for c in unknown if c in cases and found(c)]:
                    doubts.append(f"{name}: the model has never seen {_shown(letters)}")
            if others := [c for c in unknown if c not in cases]:
                doubts.append(f"unknown characters: {_shown(others)}")
        if source.isascii() and "LATIN" in self._scripts():
            return doubts
        scripts = set(map(script, filter(str.isalpha, source)))
        return doubts + [f"unknown script: {name}" for name in sorted(filter(None, scripts - self._scripts()))]

    def _is_unknown(self, character: str) -> bool:
        return SPECIAL.unknown in self.tokenizer.encode_source([character])[0]

    def _capitals(self, source: str, ids: Sequence[int]) -> list[str]:
        """Say if a text in capitals takes many more pieces than in lower case, where it has the same letters."""
        if SPECIAL.unknown in ids or not source.isupper() or sum(map(str.isalpha, source)) < 4:
            return []
        lower = len(self.tokenizer.encode_source([source.lower()])[0]) - len(self.tokenizer.source_opening)
        if len(ids) < SHOUTING * lower:
            return []
        return ["capitals: the model has hardly seen words in capitals; lower case may do better"]

    def _length(self, source: str, ids: Sequence[int], target: str, tokens: Sequence[int]) -> list[str]:
        if not target.strip():
            return ["too short: nothing came out"]
        if _SENTENCE_END.search(source):
            before = len(split_sentences(source, self.source_language))
            after = len(split_sentences(target, self.target_language))
            if after < before and len(tokens) < FEWER * len(ids):
                return [f"too short: {_count(after, 'sentence')} for {before}"]
        words = f"{_count(len(target.split()), 'word')} for {len(source.split())}"
        if len(ids) >= FEW and len(tokens) < SHORT * len(ids):
            return [f"too short: {words}"]
        return [f"too long: {words}"] if len(tokens) > LONG * len(ids) + SLACK else []


def known_scripts(tokenizer: Tokenizer) -> set[str | None]:
    """Return the scripts that source pieces of two letters or more are of, and those of many letters."""
    single: dict[str | None, int] = {}
    known: set[str | None] = set()
    for piece in tokenizer.source_pieces(range(tokenizer.source_size)):
        scripts = [script(c) for c in piece if c.isalpha()]
        if len(scripts) > 1:
            known.update(scripts)
        elif scripts:
            (kind,) = scripts
            single[kind] = single.get(kind, 0) + 1
    return known | {kind for kind, count in single.items() if count >= 100}


def _repeated(source: str, target: str) -> str | None:
    """Return what is said time and again, if the source does not repeat itself likewise."""
    words = target.split()
    if len(words) - len(set(words)) >= 3 and (found := LOOP.search(target)) and not LOOP.search(source):
        return found[0]
    if (found := _STUTTER.search(target)) and not _STUTTER.search(source):
        return found[0]
    return restarted(source, target)


def restarted(source: str, target: str) -> str | None:
    """Return what a translation says twice, as a model does that has broken off: `Acme C gusta Acme Cloud`.

    That is two words or more twice in a row; a word that comes twice, followed by words that begin alike; and the
    beginning of a name beside the name. Where the source has a word twice, only the last counts.
    """
    theirs = [_bare(word) for word in source.split()]
    words = [word.strip(_AROUND) for word in target.split()]
    long = [word for word in theirs if len(word) > 1]
    if len(set(long)) == len(long):
        plain = [word.casefold() for word in words]
        for i, size in product(range(len(words) - 3), range(2, _RUN + 1)):
            if plain[i : i + size] == plain[i + size : i + 2 * size]:
                return " ".join(words[i : i + 2 * size])
        for i in range(len(words) - 2):
            for j in range(i + 2, min(i + _APART + 1, len(words) - 1)):
                if len(words[i]) > _COMMON and words[i] == words[j] and _alike(words[i + 1], words[j + 1]):
                    return " ".join(words[i : j + 2])
    names = {word for word in words if len(word) > _COMMON and word[:1].isupper() and word.casefold() in theirs}
    for word in words:
        if len(word) >= _COMMON and word.casefold() not in theirs and any(_broken(word, name) for name in names):
            return word
    return None


def _alike(word: str, other: str) -> bool:
    """Whether two words are different, and begin with the same two letters, or with the only one of either."""
    if word == other or not word or not other:
        return False
    shorter = min(len(word), len(other), 2)
    return word[:shorter] == other[:shorter]


def _broken(word: str, whole: str) -> bool:
    """Whether a word is a beginning of another one, and not all of it."""
    return word != whole and bool(word) and whole.startswith(word)


def _is_copy(source: str, target: str) -> bool:
    """Whether most words of a translation stand in the source."""
    theirs = {word for word in map(_bare, target.split()) if len(word) > 1}
    if len(theirs) < WORDS:
        return False
    return len(theirs & set(map(_bare, source.split()))) >= ALIKE * len(theirs)


def _bare(word: str) -> str:
    return word.strip(string.punctuation).casefold()


def _wrong_language(what: str, text: str, expected: str | None) -> list[str]:
    """Say which language a text is in, if it is surely not the expected one."""
    if not expected or sum(map(str.isalpha, text)) < LETTERS:
        return []
    ranked = language_probabilities(text[:500])
    own = short_code(expected)
    best, probability = max(ranked.items(), key=lambda item: item[1])
    if own not in ranked or probability < SURE or ranked[own] > HARDLY:
        return []
    return [f"wrong language: {what} looks like {best}, not {own}"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _shown(characters: Sequence[str]) -> str:
    return " ".join(characters[:10]) + (" …" if len(characters) > 10 else "")
