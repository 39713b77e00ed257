"""Random sentence pairs of a split, all different, in a range of lengths."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from random import Random
from typing import Literal, TypeAlias, get_args

from translucid.corpora import splits
from translucid.ground.errors import UserError

from .being import impersonal
from .nominals import someone
from .sentences import compound, long, speaker
from .simple_sentences import answer, fragment, greeting, request, statement, wh, yes_no
from .text import Part, Phrase, write
from .word_labels import LABELING, labeling

Split: TypeAlias = Literal["train", "valid", "test"]

SPLITS: tuple[Split, ...] = get_args(Split)
SHORTEST, LONGEST = 2, 60
BOOK = frozenset({"me gusta el fútbol", "me gusta el fútbol y también ir a la playa"})
"""The translations of `runs.presets.DEMO_TEXTS`; all sentences with these translations are test sentences."""
_MARKS = str.maketrans("", "", ".,?!¿¡")


def normalise(text: str) -> str:
    """Return the content of a sentence: lower case, without punctuation."""
    return text.translate(_MARKS).lower()


def split_of(target: str) -> Split:
    """Return the split of a Spanish sentence; it does not depend on case and punctuation.

    The grammar gives an English sentence only one translation, so pairs that share a side share the Spanish side. A
    hash of the Spanish side therefore separates the splits on both sides.
    """
    content = normalise(target)
    if content in BOOK:
        return "test"
    return splits.split_of(content)


def generate(
    count: int,
    *,
    split: Split = "train",
    seed: int = 1,
    min_words: int = SHORTEST,
    max_words: int = LONGEST,
    labels: bool = False,
) -> Iterator[Phrase]:
    """Generate distinct sentence pairs.

    Args:
        count: the number of pairs.
        split: the split of the pairs. It depends on their content, so the splits never share a sentence.
        seed: determines which sentences of the split are drawn.
        min_words, max_words: limits for the whitespace-separated words of both sides, within 2..60.
        labels: whether the pairs have labels of their words.

    Returns:
        an iterator over pairs with distinct English content; the same arguments give the same pairs.

    Raises:
        UserError: the arguments are impossible, or, while iterating, the range has too few sentences.
    """
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of the phrasebook", fix=f"Known: {', '.join(SPLITS)}.")
    if not SHORTEST <= min_words <= max_words <= LONGEST:
        raise UserError(
            f"the phrasebook has no sentences of {min_words} to {max_words} words",
            fix=f"Ask for a range within {SHORTEST} to {LONGEST}.",
        )
    rng = Random(f"{split} {seed}")

    def draw_from_split() -> Phrase | None:
        with labeling() if labels else nullcontext():
            phrase = draw(rng, min_words, max_words)
        return phrase if phrase and split_of(phrase.target) == split else None

    what = f"{split} sentences of {min_words} to {max_words} words in the phrasebook"
    fix = "Ask for fewer, or for a wider range of lengths."
    return splits.distinct(count, draw_from_split, lambda phrase: normalise(phrase.source), what=what, fix=fix)


def draw(rng: Random, min_words: int, max_words: int) -> Phrase | None:
    """Draw a sentence, with labels in the context of a labeling; return None if its length is out of range."""
    kind = rng.random()
    if max_words < 8 or (kind < 0.7 and min_words < 12):
        part, ending = short(rng)
    elif min_words < 14 and (kind < 0.9 or max_words < 14):
        part, ending = compound(rng, speaker(rng)), "."
    else:
        part, ending = long(rng, max(min_words, 8), max_words), "."
    if not min_words <= len(part.english) <= max_words + 4:
        return None
    if rng.random() < 0.16:
        ending = ""
    elif ending == "." and len(part.english) < 9 and rng.random() < 0.03:
        ending = "!"
    phrase = write(part, ending, contracted=rng.random() < 0.7)
    if labels := LABELING.get():
        phrase = phrase._replace(labels=labels.sentence(part))
    sizes = phrase.source.count(" ") + 1, phrase.target.count(" ") + 1
    return phrase if min_words <= min(sizes) and max(sizes) <= max_words else None


def short(rng: Random) -> tuple[Part, str]:
    """Return at most one clause, and its final punctuation."""
    kind = rng.random()
    if kind < 0.6:
        return statement(rng, someone(rng)), "."
    if kind < 0.68:
        return impersonal(rng), "."
    if kind < 0.79:
        return yes_no(rng), "?"
    if kind < 0.87:
        return wh(rng), "?"
    if kind < 0.9:
        return request(rng), "."
    if kind < 0.92:
        return answer(rng, someone(rng)), "."
    if kind < 0.94:
        return greeting(rng)
    return fragment(rng), ""
