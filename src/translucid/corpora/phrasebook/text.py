"""Aligned text: two lists of words in which every Spanish word knows the English words it translates.

The two sides are built independently, each in its own order, so word order never touches the alignment. Nothing is
counted before `write`, which also settles what neighbouring words do to each other: English `do not` -> `don't` and
`a` -> `an`, Spanish `a el` -> `al`, `de el` -> `del`, `y` -> `e` and `o` -> `u`.
"""

from __future__ import annotations

from typing import NamedTuple


class Phrase(NamedTuple):
    """A sentence pair with gold word alignments."""

    source: str
    """English."""
    target: str
    """Spanish."""
    alignment: tuple[tuple[int, int], ...]
    """Sorted pairs (source word, target word), counted from 0 over the whitespace-separated words."""


class English:
    """One English word; `place` is its position, known once the sentence is written."""

    __slots__ = ("place", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0


class Spanish:
    """One Spanish word and the English words it is linked to."""

    __slots__ = ("of", "text")

    def __init__(self, text: str, *of: English) -> None:
        self.text = text
        self.of = of


class Part(NamedTuple):
    """A constituent on both sides. Its words are used once: parts are built anew for every sentence."""

    english: list[English]
    spanish: list[Spanish]


class Expression:
    """A fixed expression that makes a fresh `Part` each time it is said."""

    def __init__(self, english: str, spanish: str, links: str = "") -> None:
        """Take both sides and Pharaoh links (`0-0 1-2`); without links, word i translates word i."""
        self.english = english.split()
        self.spanish = spanish.split()
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        if not pairs:
            pairs = [(place, place) for place in range(len(self.spanish))]
        self.of = [tuple(source for source, target in pairs if target == place) for place in range(len(self.spanish))]

    def say(self) -> Part:
        """Return the expression as new words."""
        english = [English(text) for text in self.english]
        return Part(
            english,
            [Spanish(text, *[english[i] for i in of]) for text, of in zip(self.spanish, self.of, strict=True)],
        )


def join(*parts: Part) -> Part:
    """Put parts one after the other, in the same order on both sides."""
    return Part([word for part in parts for word in part.english], [word for part in parts for word in part.spanish])


def comma(part: Part) -> Part:
    """Put a comma after a part, on both sides."""
    part.english[-1].text += ","
    part.spanish[-1].text += ","
    return part


def word(english: str, spanish: str) -> Part:
    """One word for one word."""
    source = English(english)
    return Part([source], [Spanish(spanish, source)])


NOT = {
    "do": "don't", "does": "doesn't", "did": "didn't", "is": "isn't", "are": "aren't", "was": "wasn't",
    "were": "weren't", "will": "won't", "can": "can't",
}  # fmt: skip
BE = {("I", "am"): "I'm", ("it", "is"): "it's"} | {
    (pronoun, verb): f"{pronoun}'{verb[-2 if verb == 'are' else -1 :]}"
    for verb, pronouns in {"is": "he she", "are": "you we they"}.items()
    for pronoun in pronouns.split()
}


def write(part: Part, ending: str, *, contracted: bool) -> Phrase:
    """Write a sentence down: contractions, articles, capitals, punctuation, positions.

    Args:
        part: the sentence.
        ending: `.`, `!`, `?` or nothing; `?` and `!` also open the Spanish sentence, unless a later word has ¿ on it.
        contracted: whether English contracts (`don't`, `I'm`).
    """
    english = _write_english(part.english, contracted)
    spanish: list[str] = []
    links: set[tuple[int, int]] = set()
    words = part.spanish
    for place, token in enumerate(words):
        text = token.text
        after = words[place + 1].text if place + 1 < len(words) else ""
        if text == "el" and spanish and spanish[-1].lstrip("¿") in ("a", "de"):
            spanish[-1] += "l"
        elif text == "y" and _sounds_like_i(after):
            spanish.append("e")
        elif text == "o" and after.lower().startswith(("o", "ho", "ó")):
            spanish.append("u")
        else:
            spanish.append(text)
        links.update((source.place, len(spanish) - 1) for source in token.of)
    if not ending:
        spanish = [text.lstrip("¿") for text in spanish]
    english[0], spanish[0] = _capital(english[0]), _capital(spanish[0])
    if ending:
        english[-1] += ending
        spanish[-1] += ending
    if ending == "!" or (ending == "?" and not any(text.startswith("¿") for text in spanish)):
        spanish[0] = ("¿" if ending == "?" else "¡") + spanish[0]
    return Phrase(" ".join(english), " ".join(spanish), tuple(sorted(links)))


def _write_english(tokens: list[English], contracted: bool) -> list[str]:
    words: list[str] = []
    for place, token in enumerate(tokens):
        text = token.text
        if text in ("not", "not,") and words[-1] in NOT and (contracted or words[-1] == "can"):
            words[-1] = (NOT[words[-1]] if contracted else "cannot") + text[3:]
        elif (
            contracted
            and words
            and (words[-1], text) in BE
            and place + 1 < len(tokens)
            and (tokens[place + 1].text != "not" or text == "am")
        ):
            words[-1] = BE[words[-1], text]
        elif text == "a" and tokens[place + 1].text[0] in "aeiou" and not tokens[place + 1].text.startswith("uni"):
            words.append("an")
        else:
            words.append(text)
        token.place = len(words) - 1
    return words


def _sounds_like_i(spanish: str) -> bool:
    """Tell whether a word begins with the vowel i, before which `y` becomes `e` (not in `hielo`)."""
    lower = spanish.lower()
    return lower.startswith(("i", "hi")) and not lower.startswith(("hie", "hia"))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
