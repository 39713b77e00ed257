"""What no translation may change: placeholders, tags, addresses and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_ADDRESS = r"(?P<address>(?:https?|ftp)://[^\s<>\"']+|www\.[^\s<>\"']+|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+)"
_TAG = r"</?[A-Za-z0-9][^<>]*>|<!--(?:(?!<!--).)*?-->|&#?\w+;"
_PLACEHOLDER = (
    r"\{\{[^{}]*\}\}|[%$#]?\{[^{}\s]*\}"  # {{name}}, {0}, {}, ${name}, %{name}, #{name}
    r"|%\([^()\s]+\)[a-zA-Z]"  # %(name)s
    r"|%(?:\d++\$)?+[-+#0]*+\d*+(?:\.\d++)?+(?:hh?|ll?|z)?[sdiufFeEgGxXoc@](?![A-Za-z])"  # %s, %-5d, %1$s, %.2f, %@
    r"|\$[A-Za-z_]\w*"  # $HOME
)
_WORDLIKE = re.compile(f"{_ADDRESS}|{_TAG}|{_PLACEHOLDER}", re.DOTALL)
# Signs, not letters: arrows, symbols, pictures and flags, with what changes their look or joins them to one.
_SIGN = "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u00a9\u00ae\u2122]"
_EMOJI = f"(?:[0-9#*]\ufe0f?\u20e3|{_SIGN}[\ufe0e\ufe0f]?(?:\u200d{_SIGN}[\ufe0e\ufe0f]?|[\U0001f3fb-\U0001f3ff])*)+"
_STAND_IN = r"\[X[0-9]+X\]"  # what Weblate sends for a placeholder
_KEPT = re.compile(f"{_ADDRESS}|{_TAG}|{_PLACEHOLDER}|⟦[0-9]+⟧|{_STAND_IN}|{_EMOJI}", re.DOTALL)
_MAYBE_KEPT = re.compile(f"\\[X|[%{{<@$&⟦\u20e3]|www\\.|://|{_SIGN}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MAYBE = re.compile(r"[%{<@$&\d]|www\.|://")
_END_OF_SENTENCE = ".,;:!?)]}'\"»"
SHORTEST_NUMBER = 2
"""Digits of a number that must stay: shorter ones are often written out, as `3 cats` is `tres gatos`."""


def fixed_parts(text: str) -> list[str]:
    """Return the placeholders, tags, web and e-mail addresses of a text, in order.

    >>> fixed_parts("Dear %s, see https://example.com/a?b=1.")
    ['%s', 'https://example.com/a?b=1']
    """
    return [part for part, _, _ in _found(text)]


def stands_alone(text: str) -> bool:
    """Whether a text has nothing to translate: no letter outside of what must stay as it is.

    >>> stands_alone("%s: {name} (42)"), stands_alone("%s files")
    (True, False)
    """
    if not any(map(str.isalpha, text)):
        return bool(text.strip())
    return not any(map(str.isalpha, without_fixed(text)))


def without_fixed(text: str) -> str:
    """Return a text with a space in the place of each of its fixed parts.

    >>> without_fixed("Dear %s!")
    'Dear  !'
    """
    rest, at = [], 0
    for _, first, after in _found(text):
        rest.append(text[at:first])
        at = after
    return " ".join([*rest, text[at:]])


def lost_and_invented(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return what of the source is not in the target, and what of the target's is not in the source.

    Numbers are compared by their digits, so that 1,000.5 may become 1.000,5. Those of one digit may be written out, and
    a number counts as invented only where another one is lost, as `two hundred` may become 200.
    """
    if not _MAYBE.search(source) and not _MAYBE.search(target):
        return [], []
    before, after = Counter(fixed_parts(source)), Counter(fixed_parts(target))
    lost = [part for part, count in before.items() if target.count(part) < count]
    invented = [part for part, count in after.items() if source.count(part) < count]
    numbers = lost_numbers(source, target)
    if numbers:
        invented += lost_numbers(target, source)
    return lost + numbers, invented


def kept_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield all that is copied from a text to its translation: the fixed parts, and emoji and other signs.

    Each with the places of its first character and of the one behind it.

    >>> list(kept_parts("Dear %s 👋🏽"))
    [('%s', 5, 7), ('👋🏽', 8, 10)]
    """
    return _matches(_KEPT, text) if _MAYBE_KEPT.search(text) else iter(())


def numbers(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the numbers of a text that are in no fixed part, likewise."""
    inside = [(first, after) for _, first, after in kept_parts(text)]
    for match in _NUMBER.finditer(text):
        if not any(first <= match.start() < after for first, after in inside):
            yield match[0], *match.span()


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each part with the places of its first character and of the one behind it."""
    return _matches(_WORDLIKE, text) if _MAYBE.search(text) else iter(())


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int, int]]:
    for match in pattern.finditer(text):
        part = match[0]
        if match["address"]:
            part = part.rstrip(_END_OF_SENTENCE)
        yield part, match.start(), match.start() + len(part)


def lost_numbers(source: str, target: str, shortest: int = SHORTEST_NUMBER) -> list[str]:
    """Return the numbers of one text, of so many digits at least, whose digits are not in the other."""
    digits = "".join(character for character in target if character.isdigit())
    found = Counter(_NUMBER.findall(_WORDLIKE.sub(" ", source)))
    lost = []
    for number, count in found.items():
        own = "".join(filter(str.isdigit, number))
        if len(own) >= shortest and digits.count(own) < count:
            lost.append(number)
    return lost
