"""Aligned text: two lists of words, in which each Spanish word has references to the English words that it translates.

Each side is built in its own word order, which therefore does not affect the alignment. Positions are counted only in
`write`, which also contracts and adapts neighbouring words: English `do not` -> `don't` and `a` -> `an`, Spanish `a el`
-> `al`, `de el` -> `del`, `y` -> `e` and `o` -> `u`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .word_labels import SentenceLabels


class Phrase(NamedTuple):
    """A sentence pair with gold word alignments."""

    source: str
    """English."""
    target: str
    """Spanish."""
    alignment: tuple[tuple[int, int], ...]
    """Sorted pairs (source word, target word) of positions among the whitespace-separated words, counted from 0."""
    labels: SentenceLabels | None = None
    """The labels of the words of both sides, if someone asked for them."""


class English:
    """An English word; `write` sets its `position`."""

    __slots__ = ("position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0


class Spanish:
    """A Spanish word, and the English words to which it is linked."""

    __slots__ = ("sources", "text")

    def __init__(self, text: str, *sources: English) -> None:
        self.text = text
        self.sources = sources


def english_words(*texts: str) -> list[English]:
    """Return new English words."""
    return [English(text) for text in texts]


class Part(NamedTuple):
    """A constituent on both sides. Its words have positions, so each sentence needs new parts."""

    english: list[English]
    spanish: list[Spanish]


class Expression:
    """A fixed expression, of which each call of `say` makes a new `Part`."""

    def __init__(self, english: str, spanish: str, links: str = "") -> None:
        """Take both sides and Pharaoh links (`0-0 1-2`); without links, word i translates word i."""
        self.english = english.split()
        self.spanish = spanish.split()
        links = links or " ".join(f"{i}-{i}" for i in range(len(self.spanish)))
        self.sources: list[list[int]] = [[] for _ in self.spanish]
        """The positions of the English words of each Spanish word."""
        for link in links.split():
            source, target = map(int, link.split("-"))
            self.sources[target].append(source)

    def say(self) -> Part:
        """Return the expression as new words."""
        english = english_words(*self.english)
        spanish = []
        for text, source_positions in zip(self.spanish, self.sources, strict=True):
            spanish.append(Spanish(text, *[english[position] for position in source_positions]))
        return Part(english, spanish)


def join(*parts: Part) -> Part:
    """Concatenate parts, in the same order on both sides."""
    joined = Part([], [])
    for part in parts:
        joined.english.extend(part.english)
        joined.spanish.extend(part.spanish)
    return joined


def comma(part: Part) -> Part:
    """Put a comma after a part, on both sides."""
    part.english[-1].text += ","
    part.spanish[-1].text += ","
    return part


def word(english: str, spanish: str) -> Part:
    """Return a part of one word on each side."""
    source = English(english)
    return Part([source], [Spanish(spanish, source)])


NOT = {
    "do": "don't", "does": "doesn't", "did": "didn't", "is": "isn't", "are": "aren't", "was": "wasn't",
    "were": "weren't", "will": "won't", "can": "can't",
}  # fmt: skip
BE = {
    ("I", "am"): "I'm", ("it", "is"): "it's", ("he", "is"): "he's", ("she", "is"): "she's",
    ("you", "are"): "you're", ("we", "are"): "we're", ("they", "are"): "they're",
}  # fmt: skip


def write(part: Part, ending: str, *, contracted: bool) -> Phrase:
    """Return the text of a sentence, with contractions, articles, capitals and punctuation, and its alignment.

    Args:
        part: the sentence.
        ending: `.`, `!`, `?` or nothing. `?` and `!` also open the Spanish sentence, unless a later word begins with ¿.
        contracted: whether English contracts (`don't`, `I'm`).
    """
    english = _write_english(part.english, contracted)
    spanish: list[str] = []
    links: set[tuple[int, int]] = set()
    words = part.spanish
    for position, token in enumerate(words):
        text = token.text
        next_word = _next_text(words, position)
        if text == "el" and spanish and spanish[-1].lstrip("¿") in ("a", "de"):
            spanish[-1] += "l"
        elif text == "y" and _sounds_like_i(next_word):
            spanish.append("e")
        elif text == "o" and next_word.lower().startswith(("o", "ho", "ó")):
            spanish.append("u")
        else:
            spanish.append(text)
        links.update((source.position, len(spanish) - 1) for source in token.sources)
    if not ending:
        spanish = [text.lstrip("¿") for text in spanish]
    english[0], spanish[0] = _capital(english[0]), _capital(spanish[0])
    if ending:
        english[-1] += ending
        spanish[-1] += ending
    if ending == "!":
        spanish[0] = "¡" + spanish[0]
    elif ending == "?" and "¿" not in "".join(spanish):
        spanish[0] = "¿" + spanish[0]
    return Phrase(" ".join(english), " ".join(spanish), tuple(sorted(links)))


def _write_english(tokens: list[English], contracted: bool) -> list[str]:
    words: list[str] = []
    for position, token in enumerate(tokens):
        text = token.text
        previous_word = words[-1] if words else ""
        next_word = _next_text(tokens, position)
        if text in ("not", "not,") and previous_word in NOT and (contracted or previous_word == "can"):
            words[-1] = (NOT[previous_word] if contracted else "cannot") + text[3:]  # with the comma, if any
        # Not at the end of a sentence. Before `not`, only `I'm` is written: `you aren't` is preferred to `you're not`.
        elif contracted and (previous_word, text) in BE and next_word and (next_word != "not" or text == "am"):
            words[-1] = BE[previous_word, text]
        elif text == "a" and next_word[0] in "aeiou" and not next_word.startswith("uni"):
            words.append("an")
        else:
            words.append(text)
        token.position = len(words) - 1
    return words


def _next_text(words: Sequence[English] | Sequence[Spanish], position: int) -> str:
    """Return the next word; it is empty at the end of a sentence."""
    return words[position + 1].text if position + 1 < len(words) else ""


def _sounds_like_i(spanish: str) -> bool:
    """Whether a Spanish word begins with the vowel i, before which `y` becomes `e`; `hielo` does not."""
    lower = spanish.lower()
    return lower.startswith(("i", "hi")) and not lower.startswith(("hie", "hia"))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
