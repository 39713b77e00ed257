"""The rules by which a pair is rubbish, each a function that says what it has seen, or "" where nothing is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from ftfy import fix_encoding
from ftfy.badness import is_bad

from translucid.data.cleaning.profile import Profile, known_language, log_ratio
from translucid.data.filtering import Filter, fault
from translucid.data.non_translatable import fixed_parts, lost_numbers, stands_alone, without_fixed
from translucid.data.readers.corpus import Pair
from translucid.data.sentences import language_probabilities
from translucid.data.statistics import script

Rule = Callable[[Pair], str]

_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff]")
"""The sign of what could not be read, control characters, and what each font may draw in its own way."""
_QUESTION = re.compile(r"(?<!\?)\?++(?:\s*([^\W\d_])|[.,;:])")
"""A question mark and what stands behind it."""
SHOWN = 200
"""Characters of a text that is told of."""
_WORD = re.compile(r"[^\W\d_]+")
_ALIKE_SCRIPTS = {"LATIN", "CYRILLIC", "GREEK"}
"""Scripts with letters that look like each other's."""
ODD_LETTERS = 0.2
"""Share of a side's letters in scripts that are not usual there, above which it is rejected."""
COPIED, COPIED_WORDS = 0.8, 4
"""A copy has this share of its different words in the source, and at least so many."""
DEVIATIONS = 4.5
"""Standard deviations of the log ratio of lengths that a pair may be off the median."""
LETTERS, LETTERS_OTHER = 15, 6
"""Letters of a text that any language is told of, and of one that is told from the language of the other side."""
TIMES, TIMES_OTHER = 6.0, 3.0
"""How much likelier than the right language another one has to be, and the language of the other side."""
SHORT, SHORT_OTHER = 30, 15
"""Letters below which it has to be more: a button, such as `Enlace roto`, has hardly any letters that tell."""
TIMES_SHORT, TIMES_SHORT_OTHER = 30.0, 10.0
"""How much likelier then: of 13,895 right messages of programs, in 18 languages, 3 are rejected, and not 21."""


def empty(pair: Pair) -> str:
    """A side without a text."""
    missing = [name for name, text in zip(pair._fields, pair, strict=True) if not text.strip()]
    return f"no {' and no '.join(missing)}" if missing else ""


def encoding(pair: Pair) -> str:
    """Characters that were read in the wrong encoding, or lost."""
    for at, (name, text) in enumerate(zip(pair._fields, pair, strict=True)):
        if found := _BROKEN.search(text):
            return f"{name} has U+{ord(found[0]):04X}"
        if not text.isascii() and is_bad(text):
            repaired = fix_encoding(text)
            return f"{name} was read in a wrong encoding" + (f": {repaired[:SHOWN]}" if repaired != text else "")
        if around := _letter_lost(without_fixed(text), pair[1 - at]):
            return f"{name} has a question mark for a letter: {around}"
    return ""


def _letter_lost(text: str, other: str) -> str:
    """Return what stands around a question mark that was a letter, as in `espa?ol` and `est? bien`.

    It has no partner in the other text, and no sentence ends there.
    """
    if text.count("?") <= other.count("?"):
        return ""
    for found in _QUESTION.finditer(text):
        letter = found[1]
        if letter is None or letter.islower() or found[0].endswith(f"?{letter}"):
            return text[max(0, found.start() - 10) : found.end() + 10]
    return ""


def untranslated(pair: Pair) -> str:
    """The same text twice, or nearly; names of one word and what has nothing to translate may be the same."""
    source, target = (_WORD.findall(without_fixed(text).casefold()) for text in pair)
    if len(target) < 2 or stands_alone(pair.source):
        return ""
    if source == target:
        return "the target is the source"
    different = set(target)
    if len(different) >= COPIED_WORDS and len(different & set(source)) >= COPIED * len(different):
        return "most words of the target are those of the source"
    return ""


def placeholders(pair: Pair) -> str:
    """Placeholders, tags and addresses that are not the same on both sides; `&amp;` may be `&`."""
    source, target = (Counter(part for part in fixed_parts(text) if not part.startswith("&")) for text in pair)
    lost, invented = [*(source - target)], [*(target - source)]
    return "; ".join([f"lost {' '.join(lost)}"] * bool(lost) + [f"invented {' '.join(invented)}"] * bool(invented))


def numbers(pair: Pair) -> str:
    """Numbers in the place of others; one that is missing may be written out, as 2 is `two`."""
    lost, invented = lost_numbers(*pair, shortest=1), lost_numbers(*pair[::-1], shortest=1)
    return f"{' '.join(lost)} became {' '.join(invented)}" if lost and invented else ""


def rules(profile: Profile, limits: Filter) -> dict[str, Rule]:
    """Return all rules by name, in the order in which they are asked."""

    def scripts(pair: Pair) -> str:
        """Letters of scripts that are not usual on a side, and do not stand on the other."""
        for name, text, other, usual in zip(pair._fields, pair, pair[::-1], profile.scripts, strict=True):
            if text.isascii() and "LATIN" in usual:
                continue
            letters = [(letter, kind) for letter in text if (kind := script(letter)) and kind not in _NO_SCRIPT]
            odd = [letter for letter, kind in letters if kind not in usual and letter not in other]
            if not odd:
                continue
            if len(odd) > ODD_LETTERS * len(letters):
                return f"{name} has letters of {script(odd[0])}: {''.join(odd)[:20]}"
            for word in _WORD.findall(text):
                if len(_ALIKE_SCRIPTS & set(map(script, word))) > 1 and len(word) > 2:
                    return f"{name} has letters of two scripts in one word: {word}"
        return ""

    codes = tuple(map(known_language, profile.languages))

    def language(pair: Pair) -> str:
        """A side in another language."""
        for name, text, code, other in zip(pair._fields, pair, codes, codes[::-1], strict=True):
            letters = sum(map(str.isalpha, text := _own_words(text, pair)))
            if code is None or code == other or letters < LETTERS_OTHER:
                continue
            found = language_probabilities(text[:2000])
            best = max(found, key=found.__getitem__) if letters >= LETTERS else None
            any_times = TIMES if letters >= SHORT else TIMES_SHORT
            other_times = TIMES_OTHER if letters >= SHORT_OTHER else TIMES_SHORT_OTHER
            for likely, times in ((best, any_times), (other, other_times)):
                if likely and found[likely] > times * found[code]:
                    return f"{name} looks like {likely}, not like {code}"
        return ""

    def too_long(pair: Pair) -> str:
        """A side that no model takes."""
        longest = max(map(len, pair))
        return f"{longest:,} characters" if longest > limits.max_characters else ""

    def length(pair: Pair) -> str:
        """A side far longer than the other than is usual in this corpus."""
        if fault(pair, limits) == "unequal":
            return f"{len(pair.source)} and {len(pair.target)} characters"
        off = (log_ratio(pair) - profile.ratio) / max(profile.spread, 0.05)
        return f"{off:+.1f} deviations from the usual ratio of lengths" if abs(off) > DEVIATIONS else ""

    return {
        "empty": empty,
        "too-long": too_long,
        "encoding": encoding,
        "script": scripts,
        "untranslated": untranslated,
        "language": language,
        "length": length,
        "placeholders": placeholders,
        "numbers": numbers,
    }


_NO_SCRIPT = ("control", "private", "MODIFIER", "FEMININE", "MASCULINE")


def _own_words(text: str, pair: Pair) -> str:
    """Return a side without the words that stand on both sides, such as names, and without placeholders."""
    source, target = (set(_WORD.findall(side.casefold())) for side in pair)
    both = source & target
    return _WORD.sub(lambda word: "" if word[0].casefold() in both else word[0], without_fixed(text))
