"""Noun phrases for objects: things that people have, buy, eat and read."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from . import lexicon as words
from .chance import pick, sometimes
from .lexicon import Adjective, Noun
from .nominals import POSSESSIVES, noun_phrase
from .text import Part


def any_of(rng: Random, nouns: Sequence[Noun], determiner: str | Sequence[str] = "") -> Part:
    """Return a noun, with the determiner or with one of several."""
    noun = pick(rng, nouns)
    return noun_phrase(noun, determiner if isinstance(determiner, str) else pick(rng, determiner))


def thing(
    rng: Random, nouns: Sequence[Noun], qualities: Sequence[Adjective] = (), *, owned: bool = True, many: float = 0.25
) -> Part:
    """Return a countable object: a book, the red car, my keys, two shirts, these shoes.

    Args:
        rng: the random generator.
        nouns: the nouns.
        qualities: adjectives that suit them.
        owned: whether it may have an owner (my keys, Ana's car).
        many: the probability of a plural.
    """
    noun = pick(rng, nouns)
    plural = rng.random() < many
    chance = rng.random()
    determiner = _plural_determiner(rng, chance) if plural else _singular_determiner(rng, chance)
    if owned and chance > 0.85:
        if chance > 0.96:
            return noun_phrase(noun, plural=plural, owner=pick(rng, words.NAMES))
        determiner = pick(rng, POSSESSIVES)
    return noun_phrase(noun, determiner, sometimes(rng, 0.3, qualities), plural=plural)


def _singular_determiner(rng: Random, chance: float) -> str:
    if chance >= 0.72:
        return pick(rng, ("this", "that"))
    return "a" if chance < 0.42 else "the"


def _plural_determiner(rng: Random, chance: float) -> str:
    if chance < 0.3:
        return ""
    if chance < 0.5:
        return "the"
    if chance < 0.65:
        return pick(rng, words.NUMBERS[:9])[0]
    return pick(rng, ("these", "those") if chance < 0.8 else ("many", "some"))


def some_of(rng: Random, nouns: Sequence[Noun], qualities: Sequence[Adjective] = ()) -> Part:
    """Return things in general: books, good movies."""
    quality = sometimes(rng, 0.25, qualities)
    return noun_phrase(pick(rng, nouns), adjective=quality, plural=True)


def food(rng: Random) -> Part:
    """Return something to eat: bread, the soup, apples, two eggs."""
    chance = rng.random()
    if chance < 0.6:
        return noun_phrase(pick(rng, words.MASS_FOOD), "the" if chance < 0.1 else "")
    noun = pick(rng, words.COUNT_FOOD)
    if chance < 0.74:
        return noun_phrase(noun, "a")
    return noun_phrase(noun, "" if chance < 0.9 else pick(rng, words.NUMBERS[:5])[0], plural=True)


def goods(rng: Random, edible: float) -> Part:
    """Return something to buy or need; with the probability `edible`, something to eat."""
    if rng.random() < edible:
        return food(rng)
    return thing(rng, words.THINGS, words.THING_ADJECTIVES, owned=False)


def drink(rng: Random) -> Part:
    """Return something to drink."""
    return any_of(rng, words.DRINKS)
