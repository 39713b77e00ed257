"""Activities that people choose: verbs with suitable complements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, weighted
from .clauses import Predicate
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
from .text import Part, join, word
from .verbs import Verb

NOTHING = Part([], [])
Make: TypeAlias = Callable[[Random, Subject], Predicate]
"""Returns an activity of a subject."""


def activity(
    verb: Verb, complement: Callable[[Random], Part], places: Sequence[Noun] = (), place_probability: float = 0.2
) -> Make:
    """Return a kind of activity: a verb with a random complement, and sometimes with a companion and a place.

    Args:
        verb: the verb.
        complement: returns a complement.
        places: the places, if a companion and a place may follow.
        place_probability: the probability of a place.
    """

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
