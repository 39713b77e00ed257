"""What people have, buy, eat and read: noun phrases for objects."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from . import lexicon as words
from .lexicon import Adjective, Noun
from .nominals import POSSESSIVES, noun_phrase, pick
from .text import Part


def thing(
    rng: Random, choices: Sequence[Noun], qualities: Sequence[Adjective] = (), *, owned: bool = True, many: float = 0.25
) -> Part:
    """Return a countable object: a book, the red car, my keys, two shirts, these shoes.

    Args:
        rng: the source of chance.
        choices: the nouns.
        qualities: adjectives that suit them.
        owned: whether it may be somebody's (my keys, Ana's car).
        many: how often it is plural.
    """
    noun = pick(rng, choices)
    plural = rng.random() < many
    chance = rng.random()
    if plural:
        determiner = (
            "" if chance < 0.3 else "the" if chance < 0.5 else pick(rng, words.NUMBERS[:9])[0] if chance < 0.65
            else pick(rng, ("these", "those")) if chance < 0.8 else pick(rng, ("many", "some"))
        )  # fmt: skip
    else:
        determiner = "a" if chance < 0.42 else "the" if chance < 0.72 else pick(rng, ("this", "that"))
    if owned and chance > 0.85:
        if chance > 0.96:
            return noun_phrase(noun, plural=plural, owner=pick(rng, words.NAMES))
        determiner = pick(rng, POSSESSIVES)
    quality = pick(rng, qualities) if qualities and rng.random() < 0.3 else None
    return noun_phrase(noun, determiner, quality, plural=plural)


def some_of(rng: Random, choices: Sequence[Noun], qualities: Sequence[Adjective] = ()) -> Part:
    """Return things in general: books, good movies."""
    quality = pick(rng, qualities) if qualities and rng.random() < 0.25 else None
    return noun_phrase(pick(rng, choices), adjective=quality, plural=True)


def food(rng: Random) -> Part:
    """Return something to eat: bread, the soup, apples, two eggs."""
    chance = rng.random()
    if chance < 0.6:
        return noun_phrase(pick(rng, words.MASS_FOOD), "the" if chance < 0.1 else "")
    noun = pick(rng, words.COUNT_FOOD)
    if chance < 0.74:
        return noun_phrase(noun, "a")
    return noun_phrase(noun, "" if chance < 0.9 else pick(rng, words.NUMBERS[:5])[0], plural=True)


def drink(rng: Random) -> Part:
    """Return something to drink."""
    return noun_phrase(pick(rng, words.DRINKS))
