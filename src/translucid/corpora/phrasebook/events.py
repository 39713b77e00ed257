"""Other events, also with other people, and lasting states: helping, giving, arriving, having, living."""

from __future__ import annotations

from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, sometimes, weighted
from .clauses import INDIRECT, Predicate
from .conjugation import Verb
from .deeds import FREE, Make, study
from .nominals import Subject, noun_phrase, person_phrase, personal_a
from .objects import goods, thing
from .text import English, Part, Spanish, join, word

OBJECT_PRONOUNS = (
    ("me", "me", 0), ("you", "te", 1), ("him", "lo", 2), ("her", "la", 2), ("us", "nos", 3), ("them", "los", 4),
)  # fmt: skip


def work(rng: Random, subject: Subject) -> Predicate:
    if any(member.noun.singular in ("boy", "girl") for member in subject.members):
        return study(rng, subject)
    if rng.random() < 0.15:
        return Predicate(verbs.WORK, when_where.A_LOT.say())
    place = when_where.at(rng, words.WORK_PLACES)
    if rng.random() > 0.85:
        place = join(place, when_where.together(rng, subject))
    return Predicate(verbs.WORK, place)


def open_or_close(rng: Random, _: Subject) -> Predicate:
    verb = pick(rng, (verbs.OPEN, verbs.CLOSE))
    return Predicate(verb, noun_phrase(pick(rng, words.OPENABLE), "the", plural=rng.random() < 0.2))


def arrive(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.35:
        return Predicate(verbs.ARRIVE, hour(rng))
    goal = join(word("at", "a"), noun_phrase(pick(rng, words.GO_PLACES[7:12]), "the"))
    if chance < 0.7:
        goal = join(goal, hour(rng))
    return Predicate(verbs.ARRIVE, goal)


def see(rng: Random, subject: Subject) -> Predicate:
    if rng.random() < 0.5:
        return _to_person(rng, verbs.SEE, subject)
    return Predicate(verbs.SEE, thing(rng, words.ANIMALS, (*words.COLORS[1:3], *words.SIZES[:2], words.VALUES[2])))


def help_someone(rng: Random, subject: Subject) -> Predicate:
    return _to_person(rng, verbs.HELP if rng.random() < 0.55 else verbs.CALL, subject)


def call(rng: Random, subject: Subject) -> Predicate:
    return _to_person(rng, verbs.CALL, subject)


def love(rng: Random, subject: Subject) -> Predicate:
    return _to_person(rng, verbs.LOVE_PERSON, subject)


def _to_person(rng: Random, verb: Verb, subject: Subject) -> Predicate:
    """Return a verb with a personal object, with the personal `a`, or an object pronoun that is not reflexive."""
    if rng.random() < 0.4:
        english, spanish, person = pick(rng, OBJECT_PRONOUNS)
        if subject.person != person and {subject.person, person} != {0, 3}:
            source = English(english)
            return Predicate(verb, Part([source], []), spanish, (source,))
    return Predicate(verb, personal_a(*person_phrase(rng, subject)[:2]))


def give(rng: Random, subject: Subject) -> Predicate:
    """Return a gift to someone: give me a book (me das un libro), give a book to Ana (le das un libro a Ana)."""
    gift = thing(rng, words.GIFTS, owned=False)
    if rng.random() < 0.4:
        person = pick(rng, (0, 1, 3))
        if person != subject.person and {person, subject.person} != {0, 3}:
            source = English(("me", "you", "", "us")[person])
            return Predicate(verbs.GIVE, Part([source, *gift.english], gift.spanish), INDIRECT[person], (source,))
    receiver, head, plural = person_phrase(rng, subject)
    to = English("to")
    complement = Part([*gift.english, to, *receiver.english], [*gift.spanish, Spanish("a", to), *receiver.spanish])
    return Predicate(verbs.GIVE, complement, "les" if plural else "le", (head,))


# Lasting states.


def have(rng: Random, subject: Subject) -> Predicate:
    chance = rng.random()
    plural = rng.random() < 0.4
    quality = None
    if chance < 0.35:
        noun = pick(rng, words.ANIMALS)
        quality = sometimes(rng, 0.5, (*words.COLORS[1:3], *words.SIZES[:2]))
    elif chance < 0.5:
        noun = pick(rng, words.FAMILY[2:6])
    else:
        noun = pick(rng, (*words.THINGS, words.HOUSE, *words.READING[:1]))
        quality = sometimes(rng, 0.5, words.THING_ADJECTIVES)
    determiner = pick(rng, words.NUMBERS[:9])[0] if rng.random() < 0.7 else "many"
    if not plural:
        determiner = "a"
    return Predicate(verbs.HAVE, noun_phrase(noun, determiner, quality, plural=plural))


def need(rng: Random, _: Subject) -> Predicate:
    needed = goods(rng, edible=0.3)
    return Predicate(pick(rng, (verbs.NEED, verbs.WANT)), needed)


def live(rng: Random, subject: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.5:
        return Predicate(verbs.LIVE, join(word("in", "en"), noun_phrase(pick(rng, words.COUNTRIES))))
    if chance < 0.7:
        return Predicate(verbs.LIVE, when_where.together(rng, subject))
    size = pick(rng, words.PLACE_ADJECTIVES)
    home = noun_phrase(pick(rng, (*words.TOWNS, words.HOUSE)), "a", size, very=rng.random() < 0.2)
    return Predicate(verbs.LIVE, join(word("in", "en"), home))


def sleep(rng: Random, _: Subject) -> Predicate:
    how = pick(rng, (when_where.A_LOT, when_where.VERY_WELL, when_where.AT_HOME))
    return Predicate(verbs.SLEEP, how.say())


def get_up(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GET_UP, hour(rng))


def get_up_early(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GET_UP, when_where.EARLY.say())


def go_to_bed(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GO_TO_BED, hour(rng))


def hour(rng: Random) -> Part:
    return pick(rng, (when_where.EARLY, when_where.LATE, pick(rng, when_where.AT_HOUR))).say()


OTHER: tuple[tuple[float, Make], ...] = (
    (0.1, open_or_close), (0.16, help_someone), (0.16, give), (0.2, work), (0.1, arrive), (0.1, see), (0.05, sleep),
    (0.07, get_up), (0.06, go_to_bed),
)  # fmt: skip
STATES: tuple[tuple[float, Make], ...] = ((0.38, have), (0.27, need), (0.2, live), (0.15, love))


def action(rng: Random, subject: Subject) -> Predicate:
    """Return any event, for any mode."""
    return weighted(rng, FREE if rng.random() < 0.72 else OTHER)(rng, subject)


def lasting(rng: Random, subject: Subject) -> Predicate:
    """Return a lasting state: having, needing, living, loving. It is not for the progressive."""
    return weighted(rng, STATES)(rng, subject)
