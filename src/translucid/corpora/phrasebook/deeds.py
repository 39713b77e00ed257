"""Activities that people choose, other events, also with other people, and lasting states: verbs with complements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, sometimes, weighted
from .clauses import INDIRECT, Predicate
from .lexicon import Noun
from .nominals import (
    Subject,
    any_of,
    drink,
    food,
    goods,
    noun_phrase,
    person_phrase,
    some_of,
    thing,
    with_a,
)
from .text import English, Part, join, word
from .verbs import Verb

NOTHING = Part([], [])
Make: TypeAlias = Callable[[Random, Subject], Predicate]
"""Returns an activity of a subject."""


def activity(
    verb: Verb, complement: Callable[[Random], Part], places: Sequence[Noun] = (), place_probability: float = 0.2
) -> Make:
    """Return a kind of activity: a verb with a random complement, and sometimes with a companion and a place."""

    def make(rng: Random, subject: Subject) -> Predicate:
        part = complement(rng)
        if places and rng.random() < place_probability * 0.6:
            part = join(part, when_where.together(rng, subject))
        if places and rng.random() < place_probability:
            part = join(part, when_where.at(rng, places, "por" if verb is verbs.WALK else "en"))
        return Predicate(verb, part)

    return make


def one_of(*choices: tuple[float, Make]) -> Make:
    """Return a kind of activity that is one of several, each with its probability."""

    def make(rng: Random, subject: Subject) -> Predicate:
        return weighted(rng, choices)(rng, subject)

    return make


def nothing(_: Random) -> Part:
    """Return no complement."""
    return NOTHING


def _music(_: Random) -> Part:
    return noun_phrase(words.SUBJECTS[1])


def _game(rng: Random) -> Part:
    return with_a(noun_phrase(pick(rng, words.SPORTS), generic=True))


def _study_subject(rng: Random) -> Part:
    return any_of(rng, pick(rng, (words.LANGUAGES, words.STUDIED)))


def _well_or_a_lot(rng: Random) -> Part:
    return pick(rng, (when_where.VERY_WELL, when_where.A_LOT)).say()


def _meal(rng: Random) -> Part:
    return any_of(rng, words.MASS_FOOD) if rng.random() < 0.6 else some_of(rng, words.COUNT_FOOD)


def abroad(rng: Random) -> Part:
    """Return a country or city as a destination."""
    return join(word("to", "a"), any_of(rng, words.COUNTRIES))


def _visit_person(rng: Random, subject: Subject) -> Predicate:
    return Predicate(verbs.VISIT, with_a(person_phrase(rng, subject)[0]))


def speak(rng: Random, subject: Subject) -> Predicate:
    """Return speaking a language, sometimes very well or with someone."""
    language = any_of(rng, words.LANGUAGES)
    chance = rng.random()
    if chance < 0.25:
        language = join(language, when_where.VERY_WELL.say())
    elif chance < 0.45:
        language = join(language, when_where.together(rng, subject))
    return Predicate(verbs.SPEAK, language)


def go(rng: Random, subject: Subject) -> Predicate:
    """Return going home, abroad or to a place, sometimes with someone."""
    chance = rng.random()
    if chance < 0.08:
        goal = when_where.HOME.say()
    elif chance < 0.2:
        goal = abroad(rng)
    else:
        goal = when_where.to(rng, words.GO_PLACES)
    if chance > 0.8:
        goal = join(goal, when_where.together(rng, subject))
    return Predicate(verbs.GO, goal)


def stay(rng: Random, subject: Subject) -> Predicate:
    """Return staying at home, sometimes with someone."""
    home = when_where.AT_HOME.say()
    if rng.random() >= 0.75:
        home = join(home, when_where.together(rng, subject))
    return Predicate(verbs.STAY, home)


def _go_out(rng: Random, subject: Subject) -> Predicate:
    goal = when_where.to(rng, FUN) if rng.random() < 0.85 else abroad(rng)
    if rng.random() < 0.2:
        goal = join(goal, when_where.together(rng, subject))
    return Predicate(verbs.GO, goal)


PRAISE = (*words.CONTENT, words.GOOD, words.GREAT)
FUN = words.nouns("beach beach park park museum theater market restaurant library city village school store")
_TO_BUY = words.nouns("shirt dress hat bag gift flower lamp shoe")
_COOKED = words.nouns("rice soup fish meat chicken")
_MUSEUMS = words.nouns("museum church city")
_SHOW_QUALITIES = (*words.CONTENT[:2], words.GOOD, words.GREAT)
_LONG_OR_GOOD = (words.CONTENT[2], words.GOOD)
_THE_OR_THIS = ("the", "the", "this")
_song = partial(thing, nouns=words.SONGS, qualities=(words.VALUES[2],), owned=False)

eat = activity(verbs.EAT, food, words.EAT_PLACES)
have_drink = activity(verbs.DRINK, drink)
have_hot_drink = activity(verbs.DRINK, partial(any_of, nouns=words.DRINKS[1:3]))
cook = activity(verbs.COOK, partial(any_of, nouns=_COOKED), words.EAT_PLACES[1:2])
buy = activity(verbs.BUY, partial(goods, edible=0.4), words.SHOP_PLACES)
read = activity(verbs.READ, partial(thing, nouns=words.READING, qualities=PRAISE), words.READ_PLACES)
write = activity(verbs.WRITE, partial(thing, nouns=words.WRITING, qualities=_LONG_OR_GOOD, owned=False))
watch = activity(verbs.WATCH, partial(thing, nouns=words.SHOWS, qualities=_SHOW_QUALITIES, owned=False))
listen = one_of(
    (0.6, activity(verbs.LISTEN, _music, words.EAT_PLACES[1:3])),
    (0.4, activity(verbs.LISTEN, _song)),
)
play = activity(verbs.PLAY_GAME, _game, words.PLAY_PLACES, 0.3)
play_music = activity(verbs.PLAY_MUSIC, partial(any_of, nouns=words.INSTRUMENTS, determiner="the"))
study = activity(verbs.STUDY, _study_subject, words.STUDY_PLACES)
clean = activity(verbs.CLEAN, partial(any_of, nouns=words.CLEANABLE, determiner=("the", "the", "my", "our")))
visit = one_of(
    (0.3, activity(verbs.VISIT, partial(any_of, nouns=words.COUNTRIES))),
    (0.3, _visit_person),
    (0.4, activity(verbs.VISIT, partial(any_of, nouns=words.SIGHTS, determiner=_THE_OR_THIS))),
)
visit_museum = activity(verbs.VISIT, partial(any_of, nouns=_MUSEUMS, determiner=_THE_OR_THIS))
walk = activity(verbs.WALK, nothing, words.WALK_PLACES, 0.7)
swim = activity(verbs.SWIM, nothing, words.GO_PLACES[:1], 0.5)
dance = one_of(
    (0.4, activity(verbs.DANCE, _well_or_a_lot)),
    (0.6, activity(verbs.DANCE, nothing, words.PLAY_PLACES, 0.5)),
)
sing = one_of((0.4, activity(verbs.SING, _well_or_a_lot)), (0.6, activity(verbs.SING, _song, words.PLAY_PLACES)))

choice = one_of(
    (0.09, eat), (0.05, have_drink), (0.04, cook), (0.07, buy), (0.08, read), (0.05, write), (0.06, watch),
    (0.05, listen), (0.09, play), (0.04, play_music), (0.06, study), (0.04, speak), (0.03, clean), (0.05, visit),
    (0.1, go), (0.03, walk), (0.02, swim), (0.02, dance), (0.02, sing), (0.01, stay),
)  # fmt: skip
"""An activity that people choose, and so may want or plan."""

# Activities in general, as objects of `like`: reading books, going to the beach.
_books = partial(some_of, nouns=words.READING, qualities=(PRAISE[0], PRAISE[2]))
_shows = partial(some_of, nouns=words.SHOWS[:2], qualities=(words.GOOD, words.CONTENT[0]))
_texts = partial(some_of, nouns=words.WRITING[:4], qualities=_LONG_OR_GOOD)
_wares = partial(some_of, nouns=_TO_BUY, qualities=words.VALUES[:2] + words.SIZES[2:3])
leisure = one_of(
    (0.12, activity(verbs.READ, _books, words.READ_PLACES)), (0.08, activity(verbs.WATCH, _shows)),
    (0.05, activity(verbs.WRITE, _texts)), (0.07, activity(verbs.EAT, _meal, words.EAT_PLACES)),
    (0.05, activity(verbs.BUY, _wares, words.SHOP_PLACES)), (0.27, _go_out), (0.1, play),
    (0.05, play_music), (0.05, listen), (0.03, cook), (0.03, speak), (0.03, study), (0.02, swim), (0.03, walk),
    (0.01, dance), (0.01, sing),
)  # fmt: skip
"""An activity that people may like."""

# Other events: helping, giving, arriving.

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
