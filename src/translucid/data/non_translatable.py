"""The parts of a text that a translation must not change: placeholders, tags, addresses and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias

from translucid.data.placeholder_syntax import PATTERNS, PlaceholderSyntax

Part: TypeAlias = tuple[str, int, int]
"""A part of a text, with the offsets of its first character and of the character after it."""

_PROSE = PlaceholderSyntax.prose
_SCHEME = "(?:https?|s?ftp|file|wss?|git|ssh|s3|[a-z][a-z0-9+.-]{1,15})://"
_IN_ADDRESS = "(?:\\{\\{[^{}\\n]*+\\}\\}|[^\\s\x00<>\"'«»“”„。，、；：！？（）「」『』【】《》])"
_ADDRESS = (
    rf"(?P<address>(?<![A-Za-z0-9]){_SCHEME}{_IN_ADDRESS}+|www\.{_IN_ADDRESS}+"
    rf"|(?<!\w)(?:mailto:{_IN_ADDRESS}+|(?:tel|sms):\+?\d[\d().-]*+)"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+)"
)
STYLE_OR_SCRIPT = (
    # An element ends before the next one begins, so that the search takes linear time.
    r"(?i:<style\b[^<>]*>[^<]*+(?:<(?!/?style\b)[^<]*+)*</style\s*+>)"
    r"|(?i:<script\b[^<>]*>[^<]*+(?:<(?!/?script\b)[^<]*+)*</script\s*+>)"
)
"""A pattern of the two HTML elements whose contents are not text."""
_TAG = (
    rf"{STYLE_OR_SCRIPT}"
    r"|</?[A-Za-z0-9][^<>]*>|<!--(?:(?!<!--).)*?-->|&#?\w+;"
)
# Arrows, symbols, pictographs and flags.
_SIGN = "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u00a9\u00ae\u2122]"
# A keycap such as 1️⃣, or signs with variation selectors (U+FE0E, U+FE0F), joiners (U+200D) and skin tones.
_EMOJI = f"(?:[0-9#*]\ufe0f?\u20e3|{_SIGN}[\ufe0e\ufe0f]?(?:\u200d{_SIGN}[\ufe0e\ufe0f]?|[\U0001f3fb-\U0001f3ff])*)+"
_STAND_IN = r"\[X[0-9]+X\]"  # Weblate sends this instead of a placeholder
# A text without a match has no such part: a fast test, before the slow patterns are tried.
_MAY_HAVE_FIXED = re.compile(r"[%{<@$&\[_:~\d]|www\.")
_MAY_HAVE_KEPT = re.compile(f"{_MAY_HAVE_FIXED.pattern}|⟦|\u20e3|{_SIGN}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_END_OF_SENTENCE = ".,;:!?'\"»"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
PART_MARK = "\x00"
"""The character that replaces a recognised part of a text; it keeps its neighbours from forming another part."""
MAX_IN_WORDS = 100
"""The most different parts that are searched for within words."""
SHORTEST_NUMBER = 2
"""Digits of a number that a translation must keep: shorter numbers are often spelled out, as `3 cats`: `tres gatos`."""


@cache
def _fixed_pattern(syntax: PlaceholderSyntax) -> re.Pattern[str]:
    return re.compile(f"{_ADDRESS}|{_TAG}|{PATTERNS[syntax]}", re.DOTALL)


@cache
def _kept_pattern(syntax: PlaceholderSyntax) -> re.Pattern[str]:
    return re.compile(f"{_ADDRESS}|{_TAG}|{PATTERNS[syntax]}|⟦[0-9]+⟧|{_STAND_IN}|{_EMOJI}", re.DOTALL)


def fixed_parts(text: str, syntax: PlaceholderSyntax = _PROSE) -> list[str]:
    """Return the placeholders, tags, web and e-mail addresses of a text, in order.

    >>> fixed_parts("Dear %s, see https://example.com/a?b=1.")
    ['%s', 'https://example.com/a?b=1']
    """
    return [part for part, _, _ in _find_fixed(text, syntax)]


def is_non_translatable(text: str, syntax: PlaceholderSyntax = _PROSE) -> bool:
    """Whether a text has nothing to translate: no letter outside of its fixed parts.

    >>> is_non_translatable("%s: {name} (42)"), is_non_translatable("%s files")
    (True, False)
    """
    if not any(map(str.isalpha, text)):
        return bool(text.strip())
    return not any(map(str.isalpha, without_fixed(text, syntax)))


def without_fixed(text: str, syntax: PlaceholderSyntax = _PROSE) -> str:
    """Return a text with a space in place of each fixed part.

    >>> without_fixed("Dear %s!")
    'Dear  !'
    """
    return _replace_parts(text, _find_fixed(text, syntax), " ")


def lost_and_invented(source: str, target: str, syntax: PlaceholderSyntax = _PROSE) -> tuple[list[str], list[str]]:
    """Return the parts of the source that the target lacks, and those of the target that the source lacks.

    Numbers are compared by their digits, so that 1,000.5 may become 1.000,5. Numbers of one digit may be spelled out. A
    number counts as invented only if another one is lost, because `two hundred` may become 200.
    """
    if not _MAY_HAVE_FIXED.search(source) and not _MAY_HAVE_FIXED.search(target):
        return [], []
    lost, invented = differences(Counter(fixed_parts(source, syntax)), target, syntax, signs=False)
    numbers = lost_numbers(source, target, syntax=syntax)
    if numbers:
        invented += lost_numbers(target, source, syntax=syntax)
    return lost + numbers, invented


def differences(
    expected: Counter[str], target: str, syntax: PlaceholderSyntax = _PROSE, *, signs: bool = True
) -> tuple[list[str], list[str]]:
    """Return the expected parts that a text lacks, and the parts that it has in addition.

    An expected part counts wherever it occurs, even next to letters.

    Args:
        expected: how often the text should have each part.
        target: the text.
        syntax: the placeholder syntax of the text.
        signs: whether emoji and other signs count as parts.
    """
    find = kept_parts if signs else _find_fixed
    parts = list(find(target, syntax))
    counts = Counter[str]()
    unexpected = []
    for part, _, _ in parts:
        name = part.replace(PART_MARK, "")
        if name in expected:
            counts[name] += 1
        else:
            unexpected.append(part)
    lost = _missing(expected, counts)
    if lost:
        # A lost part may be the beginning of a longer one that includes the letters next to it: `%s` in `%sfiles`. It
        # must be the beginning, because `{{n}}` does not contain the placeholder `{n}`.
        longest = sorted(lost, key=len, reverse=True)[:MAX_IN_WORDS]
        prefixes = tuple(longest)
        recognised = []
        for span in parts:
            if span[0].replace(PART_MARK, "") in expected or not span[0].startswith(prefixes):
                recognised.append(span)
        masked = _replace_parts(target, recognised, PART_MARK)
        in_words = re.compile("|".join(map(_escaped, longest)))
        counts.update(in_words.findall(masked))
        unexpected = [part for part in unexpected if not part.startswith(prefixes)]
        unexpected.extend(part for part, _, _ in find(in_words.sub(PART_MARK, masked), syntax))
        lost = _missing(expected, counts)
    repeated = [part for part, count in expected.items() if counts[part] > count]
    names = filter(None, [part.replace(PART_MARK, "") for part in unexpected])
    return lost, list(dict.fromkeys([*repeated, *names]))


def _missing(expected: Counter[str], counts: Counter[str]) -> list[str]:
    return [part for part, count in expected.items() if counts[part] < count]


def kept_parts(text: str, syntax: PlaceholderSyntax = _PROSE) -> Iterator[Part]:
    """Yield the parts that are copied from a text to its translation: its fixed parts, emoji and other signs.

    >>> list(kept_parts("Dear %s 👋🏽"))
    [('%s', 5, 7), ('👋🏽', 8, 10)]
    """
    return _find_parts(_kept_pattern(syntax), text) if _MAY_HAVE_KEPT.search(text) else iter(())


def numbers(text: str, syntax: PlaceholderSyntax = _PROSE) -> Iterator[Part]:
    """Yield the numbers of a text that are not within a kept part."""
    kept_spans = kept_parts(text, syntax)
    part = next(kept_spans, None)
    for match in _NUMBER.finditer(text):
        while part and part[2] <= match.start():
            part = next(kept_spans, None)
        if not part or match.end() <= part[1]:
            yield match[0], *match.span()


def lost_numbers(
    source: str, target: str, shortest: int = SHORTEST_NUMBER, syntax: PlaceholderSyntax = _PROSE
) -> list[str]:
    """Return the numbers of the source, of at least `shortest` digits, whose digits are not in the target."""
    digits = _digits(target)
    counts = Counter(_NUMBER.findall(without_fixed(source, syntax)))
    lost = []
    for number, count in counts.items():
        number_digits = _digits(number)
        if len(number_digits) >= shortest and digits.count(number_digits) < count:
            lost.append(number)
    return lost


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _escaped(part: str) -> str:
    """Return a pattern that matches a part; `$HOME` and `:name` do not occur in `$HOMEPAGE` and `:names`."""
    has_no_end = part[0] in "$:@" and (part[-1].isalnum() or part[-1] == "_")
    return re.escape(part) + (r"(?!\w)" if has_no_end else "")


def _replace_parts(text: str, parts: Iterable[Part], replacement: str) -> str:
    """Return a text with a replacement in place of each of its parts."""
    segments, position = [], 0
    for _, start, end in parts:
        segments.append(text[position:start])
        position = end
    return replacement.join([*segments, text[position:]])


def _find_fixed(text: str, syntax: PlaceholderSyntax) -> Iterator[Part]:
    """Yield the fixed parts of a text."""
    return _find_parts(_fixed_pattern(syntax), text) if _MAY_HAVE_FIXED.search(text) else iter(())


def _find_parts(pattern: re.Pattern[str], text: str) -> Iterator[Part]:
    for match in pattern.finditer(text):
        part = match[0]
        if match["address"]:
            part = part[: _end_of_address(part)]
        yield part, match.start(), match.start() + len(part)


def _end_of_address(address: str) -> int:
    """Return where an address ends: before the punctuation of the sentence, and before brackets that it did not open.

    >>> [a[: _end_of_address(a)] for a in ("https://a.b/C_(d)).", "https://a.b/{id}?")]
    ['https://a.b/C_(d)', 'https://a.b/{id}']
    """
    end = len(address)
    unopened = {closing: address.count(closing) - address.count(opening) for closing, opening in _BRACKETS.items()}
    while end:
        last = address[end - 1]
        if last in _BRACKETS and unopened[last] > 0:
            unopened[last] -= 1
        elif last not in _END_OF_SENTENCE:
            break
        end -= 1
    return end
