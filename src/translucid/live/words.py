"""The sentence ends of a text that arrives in parts, and the words of its pieces.

Whether a sentence ends is decided by the words read so far, so it does not depend on the parts in which they arrive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bitext.words import stands_alone
from translucid.data.sentences import split_sentences
from translucid.data.tokenizing.pieces import SPACE

SPAN = 200
"""The most characters of a placeholder or a tag that is awaited."""
_BEGUN = re.compile(r"(?:<[A-Za-z/!?%][^<>]*|\{[^{}]*)\Z")
"""The beginning of a placeholder such as `{{ name }}`, or of a tag."""
_NEXT = " A"
"""A space and a word that could begin the next sentence."""


def within_span(text: str) -> bool:
    """Return whether a text ends within a placeholder or a tag, which may have spaces.

    >>> within_span("Dear {{ first"), within_span('see <a href="x"'), within_span("Dear {{ first }}, I <3 you")
    (True, True, False)
    """
    return _BEGUN.search(text, max(0, len(text) - SPAN)) is not None


def ends_sentence(text: str, language: str | None) -> bool:
    """Return whether a sentence may end after a text: the next word would begin another one.

    >>> ends_sentence("I met Mr.", "en"), ends_sentence("It costs 3.5", "en"), ends_sentence("I like it.", "en")
    (False, False, True)
    """
    *_, (last, _) = split_sentences(text + _NEXT, language)
    return last == _NEXT.strip()


def words_of_pieces(pieces: Sequence[str]) -> list[int]:
    """Return for each piece of a text the word in which it ends, from 0.

    >>> words_of_pieces(["▁I", "▁lik", "e", "▁我爱"])
    [0, 1, 1, 3]
    """
    numbers, count, within = [], 0, False
    for piece in pieces:
        for character in piece.replace(SPACE, " "):
            alone = stands_alone(character)
            if not character.isspace() and (alone or not within):
                count += 1
            within = not (alone or character.isspace())
        numbers.append(max(count - 1, 0))
    return numbers
