"""The rules that reject bad pairs, and the profile of what is usual in a corpus, to which they compare a pair.

A rule is a function that returns what is wrong with a pair, or "" if nothing is wrong. The profile has the languages of
the corpus, its scripts, and the lengths of its translations.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from ftfy import fix_encoding
from ftfy.badness import is_bad

from bitext.languages import Languages, short_code
from bitext.pair import Pair
from bitext.protected_spans import fixed_parts, is_non_translatable, lost_numbers, without_fixed
from translucid.data.filtering import Filter, fault
from translucid.data.sentences import language_probabilities
from translucid.data.statistics import script

SAMPLE = 10_000
"""The number of pairs in the sample."""
GROUP_SIZE, MAX_GROUPS = 20, 100
"""The number of texts whose language is identified together, and the most such groups."""
MIN_SHARE = 0.05
"""The least share of the letters of a side that makes a script usual there."""
SLACK = 5
"""Characters that are added to both lengths, because the ratios of short texts vary more."""
MIN_PAIRS = 100
"""The fewest pairs from which the distribution of the ratio of lengths is estimated."""


@dataclass(frozen=True)
class Profile:
    """What is usual in a corpus."""

    languages: Languages
    scripts: tuple[frozenset[str], frozenset[str]]
    """The usual scripts of the source and of the target."""
    ratio: float = 0.0
    """The median of log(target / source characters)."""
    spread: float = math.inf
    """The standard deviation of that logarithm, from its quartiles, because bad pairs hardly change them."""

    @classmethod
    def of(cls, sample: Sequence[Pair], languages: Languages) -> Profile:
        """Return the profile of a sample; languages that are not given are identified."""
        sources = [pair.source for pair in sample if pair.source.strip()]
        targets = [pair.target for pair in sample if pair.target.strip()]
        source, target = languages
        profile = cls(
            (source or guess_language(sources), target or guess_language(targets)),
            (frozenset(_scripts(sources)), frozenset(_scripts(targets))),
        )
        ratios = [log_ratio(pair) for pair in sample if pair.source.strip() and pair.target.strip()]
        if len(ratios) < MIN_PAIRS:
            return profile
        low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        # The quartiles of a normal distribution are 1.349 standard deviations apart.
        return replace(profile, ratio=float(ratio), spread=float(high - low) / 1.349)


def log_ratio(pair: Pair) -> float:
    """Return log(target / source) of the lengths in characters, each with `SLACK`."""
    return math.log((len(pair.target.strip()) + SLACK) / (len(pair.source.strip()) + SLACK))


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the language of most texts, None if they have no letters.

    Groups of texts are identified together, because the language of a short text is uncertain.
    """
    votes: Counter[str] = Counter()
    for start in range(0, min(len(texts), GROUP_SIZE * MAX_GROUPS), GROUP_SIZE):
        group = " ".join(texts[start : start + GROUP_SIZE])
        if any(map(str.isalpha, group)):
            probabilities = language_probabilities(group)
            votes[max(probabilities, key=probabilities.__getitem__)] += 1
    return votes.most_common(1)[0][0] if votes else None


def known_language(code: str | None) -> str | None:
    """Return the ISO 639 code of a language, None if `language_probabilities` does not know it."""
    language = short_code(code) if code else ""
    return language if language and language in language_probabilities("a") else None


def _scripts(texts: Sequence[str]) -> list[str]:
    letters = Counter(filter(None, map(script, "".join(texts))))
    return [kind for kind, count in letters.items() if count >= MIN_SHARE * letters.total()]


Rule = Callable[[Pair], str]

_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff]")
"""The replacement character, control characters, and characters for private use, which each font draws differently."""
_QUESTION = re.compile(r"(?<!\?)\?++(?:\s*([^\W\d_])|[.,;:])")
"""A question mark with the letter or the punctuation after it."""
MAX_SHOWN = 200
"""The most characters of a text in a reason."""
_WORD = re.compile(r"[^\W\d_]+")
_ALIKE_SCRIPTS = {"LATIN", "CYRILLIC", "GREEK"}
"""Scripts with letters that look alike."""
_NO_SCRIPT = (None, "control", "private", "MODIFIER", "FEMININE", "MASCULINE")
"""Results of `script` that are not scripts of letters."""
ODD_LETTERS = 0.2
"""The largest share of a side's letters in scripts that are unusual there."""
COPIED, COPIED_WORDS = 0.8, 4
"""A target is a copy if it has at least this many distinct words, and this share of them is in the source."""
DEVIATIONS = 4.5
"""The most standard deviations between the log ratio of a pair's lengths and the median."""
LETTERS, LETTERS_OTHER = 15, 6
"""The fewest letters for which any language can be recognized, and for which that of the other side can."""
TIMES, TIMES_OTHER = 6.0, 3.0
"""How many times as probable as the right language another one must be, and the language of the other side."""
SHORT, SHORT_OTHER = 30, 15
"""The numbers of letters below which it must be even more probable: a button such as `Enlace roto` says little."""
TIMES_SHORT, TIMES_SHORT_OTHER = 30.0, 10.0
"""The factors for such short texts: of 13,895 right messages of programs, in 18 languages, they reject 3, not 21."""


def empty(pair: Pair) -> str:
    """Reject pairs with an empty side."""
    missing = [name for name, text in zip(pair._fields, pair, strict=True) if not text.strip()]
    return f"no {' and no '.join(missing)}" if missing else ""


def encoding(pair: Pair) -> str:
    """Reject characters that were read in the wrong encoding or lost."""
    for name, text, other_side in zip(pair._fields, pair, pair[::-1], strict=True):
        if broken := _BROKEN.search(text):
            return f"{name} has U+{ord(broken[0]):04X}"
        if not text.isascii() and is_bad(text):
            repaired = fix_encoding(text)
            suggestion = f": {repaired[:MAX_SHOWN]}" if repaired != text else ""
            return f"{name} was read in a wrong encoding{suggestion}"
        if excerpt := _letter_lost(without_fixed(text), other_side):
            return f"{name} has a question mark for a letter: {excerpt}"
    return ""


def _letter_lost(text: str, other_side: str) -> str:
    """Return the text around a question mark that replaces a letter, as in `espa?ol` and `est? bien`.

    The other side has fewer question marks, and no sentence ends there.
    """
    if text.count("?") <= other_side.count("?"):
        return ""
    for match in _QUESTION.finditer(text):
        letter = match[1]
        if letter is None or letter.islower() or match[0].endswith(f"?{letter}"):
            return text[max(0, match.start() - 10) : match.end() + 10]
    return ""


def untranslated(pair: Pair) -> str:
    """Reject targets that copy the source; single words, such as names, and fixed parts may be copied."""
    source = _WORD.findall(without_fixed(pair.source).casefold())
    target = _WORD.findall(without_fixed(pair.target).casefold())
    if len(target) < 2 or is_non_translatable(pair.source):
        return ""
    if source == target:
        return "the target is the source"
    distinct = set(target)
    if len(distinct) >= COPIED_WORDS and len(distinct & set(source)) >= COPIED * len(distinct):
        return "most words of the target are those of the source"
    return ""


def placeholders(pair: Pair) -> str:
    """Reject pairs with different placeholders, tags or addresses on both sides."""
    source, target = _checked_parts(pair.source), _checked_parts(pair.target)
    reasons = []
    if lost := source - target:
        reasons.append(f"lost {' '.join(lost)}")
    if invented := target - source:
        reasons.append(f"invented {' '.join(invented)}")
    return "; ".join(reasons)


def _checked_parts(text: str) -> Counter[str]:
    # Without character references, because `&amp;` may be translated to `&`.
    return Counter(part for part in fixed_parts(text) if not part.startswith("&"))


def numbers(pair: Pair) -> str:
    """Reject numbers that replace others. A missing number alone is accepted, because 2 may become `two`."""
    lost = lost_numbers(pair.source, pair.target, shortest=1, whole=False)
    invented = lost_numbers(pair.target, pair.source, shortest=1, whole=False)
    return f"{' '.join(lost)} became {' '.join(invented)}" if lost and invented else ""


def rules(profile: Profile, limits: Filter) -> dict[str, Rule]:
    """Return all rules by name, in the order in which they are applied."""

    def too_long(pair: Pair) -> str:
        """Reject sides that are too long for any model."""
        longest = max(map(len, pair))
        return f"{longest:,} characters" if longest > limits.max_characters else ""

    def length(pair: Pair) -> str:
        """Reject pairs whose ratio of lengths is unusual in the corpus."""
        if fault(pair, limits) == "unequal":
            return f"{len(pair.source)} and {len(pair.target)} characters"
        deviations = (log_ratio(pair) - profile.ratio) / max(profile.spread, 0.05)
        return f"{deviations:+.1f} deviations from the usual ratio of lengths" if abs(deviations) > DEVIATIONS else ""

    return {
        "empty": empty,
        "too-long": too_long,
        "encoding": encoding,
        "script": partial(_unusual_script, profile),
        "untranslated": untranslated,
        "language": partial(_wrong_language, tuple(map(known_language, profile.languages))),
        "length": length,
        "placeholders": placeholders,
        "numbers": numbers,
    }


def _unusual_script(profile: Profile, pair: Pair) -> str:
    """Reject letters of scripts that are unusual on a side, unless the other side has them too."""
    for name, text, other_side, usual in zip(pair._fields, pair, pair[::-1], profile.scripts, strict=True):
        if text.isascii() and "LATIN" in usual:
            continue
        letters = [letter for letter in text if script(letter) not in _NO_SCRIPT]
        unusual = [letter for letter in letters if script(letter) not in usual and letter not in other_side]
        if not unusual:
            continue
        if len(unusual) > ODD_LETTERS * len(letters):
            return f"{name} has letters of {script(unusual[0])}: {''.join(unusual)[:20]}"
        for word in _WORD.findall(text):
            if len(_ALIKE_SCRIPTS & set(map(script, word))) > 1 and len(word) > 2:
                return f"{name} has letters of two scripts in one word: {word}"
    return ""


def _wrong_language(codes: Sequence[str | None], pair: Pair) -> str:
    """Reject sides in another language than those with these codes."""
    for name, text, code, other_code in zip(pair._fields, pair, codes, codes[::-1], strict=True):
        words = _unshared_words(text, pair)
        letters = sum(map(str.isalpha, words))
        if code is None or code == other_code or letters < LETTERS_OTHER:
            continue
        probabilities = language_probabilities(words[:2000])
        candidates = []
        if letters >= LETTERS:
            likeliest = max(probabilities, key=probabilities.__getitem__)
            candidates.append((likeliest, TIMES if letters >= SHORT else TIMES_SHORT))
        if other_code:
            candidates.append((other_code, TIMES_OTHER if letters >= SHORT_OTHER else TIMES_SHORT_OTHER))
        for candidate, factor in candidates:
            if probabilities[candidate] > factor * probabilities[code]:
                return f"{name} looks like {candidate}, not like {code}"
    return ""


def _unshared_words(text: str, pair: Pair) -> str:
    """Return a side without its fixed parts, and without words that are on both sides, such as names."""
    common = set(_WORD.findall(pair.source.casefold())) & set(_WORD.findall(pair.target.casefold()))
    return _WORD.sub(lambda word: "" if word[0].casefold() in common else word[0], without_fixed(text))
