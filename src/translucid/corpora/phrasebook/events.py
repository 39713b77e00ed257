"""Other events, also with other people, and lasting states: helping, giving, arriving, having, living."""

from __future__ import annotations

from functools import partial
from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, sometimes
from .clauses import INDIRECT, Predicate
from .deeds import Make, activity, choice, one_of, study
from .nominals import Subject, goods, noun_phrase, person_phrase, thing, with_a
from .text import English, Part, join, word
from .verbs import Verb

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


def _openable(rng: Random) -> Part:
    return noun_phrase(pick(rng, words.OPENABLE), "the", plural=rng.random() < 0.2)


def arrive(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.35:
        return Predicate(verbs.ARRIVE, hour(rng))
    goal = join(word("at", "a"), noun_phrase(pick(rng, words.GO_PLACES[7:12]), "the"))
    if chance < 0.7:
        goal = join(goal, hour(rng))
    return Predicate(verbs.ARRIVE, goal)


def _to_person(rng: Random, subject: Subject, verb: Verb) -> Predicate:
    """Return a verb with a personal object, with the personal `a`, or an object pronoun that is not reflexive."""
    if rng.random() < 0.4:
        english, spanish, person = pick(rng, OBJECT_PRONOUNS)
        if subject.person != person and {subject.person, person} != {0, 3}:
            source = English(english)
            return Predicate(verb, Part([source], []), spanish, (source,))
    return Predicate(verb, with_a(person_phrase(rng, subject)[0]))


def give(rng: Random, subject: Subject) -> Predicate:
    """Return a gift to someone: give me a book (me das un libro), give a book to Ana (le das un libro a Ana)."""
    gift = thing(rng, words.GIFTS, owned=False)
    if rng.random() < 0.4:
        person = pick(rng, (0, 1, 3))
        if person != subject.person and {person, subject.person} != {0, 3}:
            source = English(("me", "you", "", "us")[person])
            return Predicate(verbs.GIVE, Part([source, *gift.english], gift.spanish), INDIRECT[person], (source,))
    receiver, plural = person_phrase(rng, subject)
    complement = join(gift, word("to", "a"), receiver)
    return Predicate(verbs.GIVE, complement, "les" if plural else "le", (receiver.english[-1],))


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
    goods_part = goods(rng, edible=0.3)
    return Predicate(pick(rng, (verbs.NEED, verbs.WANT)), goods_part)


def live(rng: Random, subject: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.5:
        return Predicate(verbs.LIVE, join(word("in", "en"), noun_phrase(pick(rng, words.COUNTRIES))))
    if chance < 0.7:
        return Predicate(verbs.LIVE, when_where.together(rng, subject))
    size = pick(rng, words.PLACE_ADJECTIVES)
    home = noun_phrase(pick(rng, (*words.TOWNS, words.HOUSE)), "a", size, very=rng.random() < 0.2)
    return Predicate(verbs.LIVE, join(word("in", "en"), home))


def _sleep_adverbial(rng: Random) -> Part:
    return pick(rng, (when_where.A_LOT, when_where.VERY_WELL, when_where.AT_HOME)).say()


def get_up_early(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GET_UP, when_where.EARLY.say())


def hour(rng: Random) -> Part:
    return pick(rng, (when_where.EARLY, when_where.LATE, pick(rng, when_where.AT_HOUR))).say()


_animal = partial(thing, nouns=words.ANIMALS, qualities=(*words.COLORS[1:3], *words.SIZES[:2], words.VALUES[2]))
call: Make = partial(_to_person, verb=verbs.CALL)
help_someone = one_of((0.55, partial(_to_person, verb=verbs.HELP)), (0.45, call))
see = one_of((0.5, partial(_to_person, verb=verbs.SEE)), (0.5, activity(verbs.SEE, _animal)))
open_or_close = one_of((0.5, activity(verbs.OPEN, _openable)), (0.5, activity(verbs.CLOSE, _openable)))
sleep = activity(verbs.SLEEP, _sleep_adverbial)
get_up = activity(verbs.GET_UP, hour)
go_to_bed = activity(verbs.GO_TO_BED, hour)
_other_event = one_of(
    (0.1, open_or_close), (0.16, help_someone), (0.16, give), (0.2, work), (0.1, arrive), (0.1, see), (0.05, sleep),
    (0.07, get_up), (0.06, go_to_bed),
)  # fmt: skip
action = one_of((0.72, choice), (0.28, _other_event))
"""Any event, for any mode."""
lasting = one_of((0.38, have), (0.27, need), (0.2, live), (0.15, partial(_to_person, verb=verbs.LOVE_PERSON)))
"""A lasting state: having, needing, living, loving. It is not for the progressive."""
