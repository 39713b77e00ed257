"""Activities that people choose: verbs with suitable complements.

Each maker returns an activity; its second argument is the subject.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, weighted
from .clauses import Predicate
from .lexicon import Noun
from .nominals import Subject, noun_phrase, person_phrase, personal_a
from .objects import drink, food, goods, some_of, thing
from .text import Part, Spanish, join, word

NOTHING = Part([], [])
Make = Callable[[Random, Subject], Predicate]


def _where(
    rng: Random, subject: Subject, predicate: Predicate, places: Sequence[Noun], often: float = 0.2
) -> Predicate:
    """Add sometimes a companion and a place."""
    complement = predicate.complement
    if rng.random() < often * 0.6:
        complement = join(complement, when_where.together(rng, subject))
    if rng.random() < often:
        complement = join(complement, when_where.at(rng, places, "por" if predicate.verb is verbs.WALK else "en"))
    return predicate._replace(complement=complement)


def eat(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.EAT, food(rng)), words.EAT_PLACES)


def have_drink(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.DRINK, drink(rng))


def have_hot_drink(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.DRINK, noun_phrase(pick(rng, words.DRINKS[1:3])))


def cook(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.COOK, noun_phrase(pick(rng, COOKED))), words.EAT_PLACES[1:2])


COOKED = words.nouns("rice soup fish meat chicken")


def buy(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.BUY, goods(rng, edible=0.4)), words.SHOP_PLACES)


def read(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.READ, thing(rng, words.READING, PRAISE)), words.READ_PLACES)


PRAISE = (*words.CONTENT, words.GOOD, words.GREAT)


def write(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WRITE, thing(rng, words.WRITING, (words.CONTENT[2], words.GOOD), owned=False))


def watch(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WATCH, thing(rng, words.SHOWS, (*words.CONTENT[:2], words.GOOD, words.GREAT), owned=False))


def listen(rng: Random, subject: Subject) -> Predicate:
    if rng.random() < 0.6:
        return _where(rng, subject, Predicate(verbs.LISTEN, noun_phrase(words.SUBJECTS[1])), words.EAT_PLACES[1:3])
    return Predicate(verbs.LISTEN, thing(rng, words.SONGS, (words.VALUES[2],), owned=False))


def play(rng: Random, subject: Subject) -> Predicate:
    game = noun_phrase(pick(rng, words.SPORTS), generic=True)
    game.spanish.insert(0, Spanish("a", *game.english))
    return _where(rng, subject, Predicate(verbs.PLAY_GAME, game), words.PLAY_PLACES, 0.3)


def play_music(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.PLAY_MUSIC, noun_phrase(pick(rng, words.INSTRUMENTS), "the"))


def study(rng: Random, subject: Subject) -> Predicate:
    studied = pick(rng, pick(rng, (words.LANGUAGES, words.STUDIED)))
    return _where(rng, subject, Predicate(verbs.STUDY, noun_phrase(studied)), words.STUDY_PLACES)


def speak(rng: Random, subject: Subject) -> Predicate:
    language = noun_phrase(pick(rng, words.LANGUAGES))
    chance = rng.random()
    if chance < 0.25:
        language = join(language, when_where.VERY_WELL.say())
    elif chance < 0.45:
        language = join(language, when_where.together(rng, subject))
    return Predicate(verbs.SPEAK, language)


def clean(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.CLEAN, noun_phrase(pick(rng, words.CLEANABLE), pick(rng, ("the", "the", "my", "our"))))


def visit(rng: Random, subject: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.3:
        return Predicate(verbs.VISIT, noun_phrase(pick(rng, words.COUNTRIES)))
    if chance < 0.6:
        return Predicate(verbs.VISIT, personal_a(*person_phrase(rng, subject)[:2]))
    return Predicate(verbs.VISIT, noun_phrase(pick(rng, words.SIGHTS), pick(rng, ("the", "the", "this"))))


def visit_museum(rng: Random, _: Subject) -> Predicate:
    place = pick(rng, MUSEUMS)
    return Predicate(verbs.VISIT, noun_phrase(place, pick(rng, ("the", "the", "this"))))


MUSEUMS = words.nouns("museum church city")


def go(rng: Random, subject: Subject) -> Predicate:
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


def abroad(rng: Random) -> Part:
    """Return a country or city as a destination."""
    return join(word("to", "a"), noun_phrase(pick(rng, words.COUNTRIES)))


def walk(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.WALK, NOTHING), words.WALK_PLACES, 0.7)


def swim(rng: Random, subject: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.SWIM, NOTHING), words.GO_PLACES[:1], 0.5)


def dance(rng: Random, subject: Subject) -> Predicate:
    if rng.random() < 0.4:
        return Predicate(verbs.DANCE, pick(rng, (when_where.VERY_WELL, when_where.A_LOT)).say())
    return _where(rng, subject, Predicate(verbs.DANCE, NOTHING), words.PLAY_PLACES, 0.5)


def sing(rng: Random, subject: Subject) -> Predicate:
    if rng.random() < 0.4:
        return Predicate(verbs.SING, pick(rng, (when_where.VERY_WELL, when_where.A_LOT)).say())
    song = thing(rng, words.SONGS, (words.VALUES[2],), owned=False)
    return _where(rng, subject, Predicate(verbs.SING, song), words.PLAY_PLACES)


def stay(rng: Random, subject: Subject) -> Predicate:
    home = when_where.AT_HOME.say()
    if rng.random() >= 0.75:
        home = join(home, when_where.together(rng, subject))
    return Predicate(verbs.STAY, home)


# Activities in general, as objects of `like`: reading books, going to the beach.


def _reading(rng: Random, subject: Subject) -> Predicate:
    books = some_of(rng, words.READING, (PRAISE[0], PRAISE[2]))
    return _where(rng, subject, Predicate(verbs.READ, books), words.READ_PLACES)


def _watching(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WATCH, some_of(rng, words.SHOWS[:2], (words.GOOD, words.CONTENT[0])))


def _writing(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WRITE, some_of(rng, words.WRITING[:4], (words.CONTENT[2], words.GOOD)))


def _eating(rng: Random, subject: Subject) -> Predicate:
    if rng.random() < 0.6:
        eaten = noun_phrase(pick(rng, words.MASS_FOOD))
    else:
        eaten = some_of(rng, words.COUNT_FOOD)
    return _where(rng, subject, Predicate(verbs.EAT, eaten), words.EAT_PLACES)


def _buying(rng: Random, subject: Subject) -> Predicate:
    bought = some_of(rng, BOUGHT, words.VALUES[:2] + words.SIZES[2:3])
    return _where(rng, subject, Predicate(verbs.BUY, bought), words.SHOP_PLACES)


BOUGHT = words.nouns("shirt dress hat bag gift flower lamp shoe")


def _out(rng: Random, subject: Subject) -> Predicate:
    goal = when_where.to(rng, FUN) if rng.random() < 0.85 else abroad(rng)
    if rng.random() < 0.2:
        goal = join(goal, when_where.together(rng, subject))
    return Predicate(verbs.GO, goal)


FUN = words.nouns("beach beach park park museum theater market restaurant library city village school store")

FREE: tuple[tuple[float, Make], ...] = (
    (0.09, eat), (0.05, have_drink), (0.04, cook), (0.07, buy), (0.08, read), (0.05, write), (0.06, watch),
    (0.05, listen), (0.09, play), (0.04, play_music), (0.06, study), (0.04, speak), (0.03, clean), (0.05, visit),
    (0.1, go), (0.03, walk), (0.02, swim), (0.02, dance), (0.02, sing), (0.01, stay),
)  # fmt: skip
LEISURE: tuple[tuple[float, Make], ...] = (
    (0.12, _reading), (0.08, _watching), (0.05, _writing), (0.07, _eating), (0.05, _buying), (0.27, _out), (0.1, play),
    (0.05, play_music), (0.05, listen), (0.03, cook), (0.03, speak), (0.03, study), (0.02, swim), (0.03, walk),
    (0.01, dance), (0.01, sing),
)  # fmt: skip


def choice(rng: Random, subject: Subject) -> Predicate:
    """Return an activity that people choose, and so may want or plan."""
    return weighted(rng, FREE)(rng, subject)


def leisure(rng: Random, subject: Subject) -> Predicate:
    """Return an activity that people may like."""
    return weighted(rng, LEISURE)(rng, subject)
