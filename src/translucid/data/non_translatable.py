"""What no translation may change: placeholders, tags, addresses and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from translucid.data.placeholder_syntax import PATTERNS, PlaceholderSyntax

_PROSE = PlaceholderSyntax.prose
_SCHEME = "(?:https?|s?ftp|file|wss?|git|ssh|s3|[a-z][a-z0-9+.-]{1,15})://"
_IN_ADDRESS = "(?:\\{\\{[^{}\\n]*+\\}\\}|[^\\s\x00<>\"'«»“”„。，、；：！？（）「」『』【】《》])"
_ADDRESS = (
    rf"(?P<address>(?<![A-Za-z0-9]){_SCHEME}{_IN_ADDRESS}+|www\.{_IN_ADDRESS}+"
    rf"|(?<!\w)(?:mailto:{_IN_ADDRESS}+|(?:tel|sms):\+?\d[\d().-]*+)"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+)"
)
STYLE_OR_SCRIPT = (
    # It ends before another one begins, so that searching takes linear time.
    r"(?i:<style\b[^<>]*>[^<]*+(?:<(?!/?style\b)[^<]*+)*</style\s*+>)"
    r"|(?i:<script\b[^<>]*>[^<]*+(?:<(?!/?script\b)[^<]*+)*</script\s*+>)"
)
"""A pattern of the two elements of HTML whose contents are no text."""
_TAG = (
    rf"{STYLE_OR_SCRIPT}"
    r"|</?[A-Za-z0-9][^<>]*>|<!--(?:(?!<!--).)*?-->|&#?\w+;"
)
# Signs, not letters: arrows, symbols, pictures and flags, with what changes their look or joins them to one.
_SIGN = "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u00a9\u00ae\u2122]"
_EMOJI = f"(?:[0-9#*]\ufe0f?\u20e3|{_SIGN}[\ufe0e\ufe0f]?(?:\u200d{_SIGN}[\ufe0e\ufe0f]?|[\U0001f3fb-\U0001f3ff])*)+"
_STAND_IN = r"\[X[0-9]+X\]"  # what Weblate sends for a placeholder
_MAYBE = re.compile(r"[%{<@$&\[_:~\d]|www\.")
_MAYBE_KEPT = re.compile(f"{_MAYBE.pattern}|⟦|\u20e3|{_SIGN}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_END_OF_SENTENCE = ".,;:!?'\"»"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
FOUND = "\x00"
"""Stands where a known part of a text was, so that its neighbours do not become something else."""
MOST_TOUCHING = 100
"""Different parts that are looked for within words, at most."""
SHORTEST_NUMBER = 2
"""Digits of a number that must stay: shorter ones are often written out, as `3 cats` is `tres gatos`."""


@cache
def _wordlike(syntax: PlaceholderSyntax) -> re.Pattern[str]:
    return re.compile(f"{_ADDRESS}|{_TAG}|{PATTERNS[syntax]}", re.DOTALL)


@cache
def _kept(syntax: PlaceholderSyntax) -> re.Pattern[str]:
    return re.compile(f"{_ADDRESS}|{_TAG}|{PATTERNS[syntax]}|⟦[0-9]+⟧|{_STAND_IN}|{_EMOJI}", re.DOTALL)


def fixed_parts(text: str, syntax: PlaceholderSyntax = _PROSE) -> list[str]:
    """Return the placeholders, tags, web and e-mail addresses of a text, in order.

    >>> fixed_parts("Dear %s, see https://example.com/a?b=1.")
    ['%s', 'https://example.com/a?b=1']
    """
    return [part for part, _, _ in _found(text, syntax)]


def stands_alone(text: str, syntax: PlaceholderSyntax = _PROSE) -> bool:
    """Whether a text has nothing to translate: no letter outside of what must stay as it is.

    >>> stands_alone("%s: {name} (42)"), stands_alone("%s files")
    (True, False)
    """
    if not any(map(str.isalpha, text)):
        return bool(text.strip())
    return not any(map(str.isalpha, without_fixed(text, syntax)))


def without_fixed(text: str, syntax: PlaceholderSyntax = _PROSE) -> str:
    """Return a text with a space in the place of each of its fixed parts.

    >>> without_fixed("Dear %s!")
    'Dear  !'
    """
    rest, at = [], 0
    for _, first, after in _found(text, syntax):
        rest.append(text[at:first])
        at = after
    return " ".join([*rest, text[at:]])


def lost_and_invented(source: str, target: str, syntax: PlaceholderSyntax = _PROSE) -> tuple[list[str], list[str]]:
    """Return what of the source is not in the target, and what of the target's is not in the source.

    Numbers are compared by their digits, so that 1,000.5 may become 1.000,5. Those of one digit may be written out, and
    a number counts as invented only where another one is lost, as `two hundred` may become 200.
    """
    if not _MAYBE.search(source) and not _MAYBE.search(target):
        return [], []
    lost, invented = differences(Counter(fixed_parts(source, syntax)), target, syntax, signs=False)
    numbers = lost_numbers(source, target, syntax=syntax)
    if numbers:
        invented += lost_numbers(target, source, syntax=syntax)
    return lost + numbers, invented


def differences(
    expected: Counter[str], target: str, syntax: PlaceholderSyntax = _PROSE, *, signs: bool = True
) -> tuple[list[str], list[str]]:
    """Return which of the expected parts a text lacks, and which it has beyond them.

    An expected part counts wherever it stands, even where it touches letters.

    Args:
        expected: how often each part has to be there.
        target: the text.
        syntax: of its placeholders.
        signs: whether emoji and the like are parts too.
    """
    find = kept_parts if signs else _found
    parts = list(find(target, syntax))
    known = [one for one in parts if one[0].replace(FOUND, "") in expected]
    found = Counter(part.replace(FOUND, "") for part, _, _ in known)
    lost = [part for part, count in expected.items() if found[part] < count]
    others = [part for part, _, _ in parts if part.replace(FOUND, "") not in expected]
    if lost:
        # What letters touch may be the beginning of another part, as %s is in %sfiles, but {n} is not in {{n}}.
        longest = sorted(lost, key=len, reverse=True)[:MOST_TOUCHING]
        beginnings, are_known = tuple(longest), {*known}
        rest = _replaced(target, [one for one in parts if one in are_known or not one[0].startswith(beginnings)])
        touching = re.compile("|".join(map(_escaped, longest)))
        found.update(touching.findall(rest))
        others = [part for part in others if not part.startswith(beginnings)]
        others += [part for part, _, _ in find(touching.sub(FOUND, rest), syntax)]
        lost = [part for part, count in expected.items() if found[part] < count]
    more = [part for part, count in expected.items() if found[part] > count]
    others = [name for part in others if (name := part.replace(FOUND, ""))]
    return lost, list(dict.fromkeys([*more, *others]))


def kept_parts(text: str, syntax: PlaceholderSyntax = _PROSE) -> Iterator[tuple[str, int, int]]:
    """Yield all that is copied from a text to its translation: the fixed parts, and emoji and other signs.

    Each with the places of its first character and of the one behind it.

    >>> list(kept_parts("Dear %s 👋🏽"))
    [('%s', 5, 7), ('👋🏽', 8, 10)]
    """
    return _matches(_kept(syntax), text) if _MAYBE_KEPT.search(text) else iter(())


def numbers(text: str, syntax: PlaceholderSyntax = _PROSE) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a text that are in no fixed part, likewise."""
    inside = kept_parts(text, syntax)
    part = next(inside, None)
    for match in _NUMBER.finditer(text):
        while part and part[2] <= match.start():
            part = next(inside, None)
        if not part or match.end() <= part[1]:
            yield match[0], *match.span()


def lost_numbers(
    source: str, target: str, shortest: int = SHORTEST_NUMBER, syntax: PlaceholderSyntax = _PROSE
) -> list[str]:
    """Return the numbers of one text, of so many digits at least, whose digits are not in the other."""
    digits = "".join(character for character in target if character.isdigit())
    found = Counter(_NUMBER.findall(without_fixed(source, syntax)))
    lost = []
    for number, count in found.items():
        own = "".join(filter(str.isdigit, number))
        if len(own) >= shortest and digits.count(own) < count:
            lost.append(number)
    return lost


def _escaped(part: str) -> str:
    """Return the pattern of a part; `$HOME` and `:name` do not stand in `$HOMEPAGE` and `:names`."""
    is_open = part[0] in "$:@" and (part[-1].isalnum() or part[-1] == "_")
    return re.escape(part) + r"(?!\w)" * is_open


def _replaced(text: str, parts: Iterable[tuple[str, int, int]]) -> str:
    """Return a text with `FOUND` in the place of parts."""
    rest, at = [], 0
    for _, first, after in parts:
        rest.append(text[at:first])
        at = after
    return FOUND.join([*rest, text[at:]])


def _found(text: str, syntax: PlaceholderSyntax) -> Iterator[tuple[str, int, int]]:
    """Yield each part with the places of its first character and of the one behind it."""
    return _matches(_wordlike(syntax), text) if _MAYBE.search(text) else iter(())


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int, int]]:
    for match in pattern.finditer(text):
        part = match[0]
        if match["address"]:
            part = part[: _end_of_address(part)]
        yield part, match.start(), match.start() + len(part)


def _end_of_address(address: str) -> int:
    """Return where an address ends: before punctuation of the sentence, and brackets that it has not opened.

    >>> [a[: _end_of_address(a)] for a in ("https://a.b/C_(d)).", "https://a.b/{id}?")]
    ['https://a.b/C_(d)', 'https://a.b/{id}']
    """
    end = len(address)
    unopened = {close: address.count(close) - address.count(opening) for close, opening in _BRACKETS.items()}
    while end:
        last = address[end - 1]
        if last in _BRACKETS and unopened[last] > 0:
            unopened[last] -= 1
        elif last not in _END_OF_SENTENCE:
            break
        end -= 1
    return end
