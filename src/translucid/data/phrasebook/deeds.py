"""What people do: verbs with complements that make sense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .clauses import INDIRECT, Predicate
from .conjugation import Verb
from .lexicon import Adjective, Noun
from .nominals import POSSESSIVES, Subject, noun_phrase, person_phrase, personal_a, pick, weighted
from .text import English, Part, Spanish, join, word

NOTHING = Part([], [])
OBJECT_PRONOUNS = (
    ("me", "me", 0), ("you", "te", 1), ("him", "lo", 2), ("her", "la", 2), ("us", "nos", 3), ("them", "los", 4),
)  # fmt: skip
Make = Callable[[Random, Subject], Predicate]


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


def _where(rng: Random, subject: Subject, predicate: Predicate, places: Sequence[Noun], often: float = 0.2) -> Predicate:
    """Add, now and then, with whom and where."""
    complement = predicate.complement
    if rng.random() < often * 0.6:
        complement = join(complement, when_where.together(rng, subject))
    if rng.random() < often:
        complement = join(complement, when_where.at(rng, places))
    return predicate._replace(complement=complement)


# What one does by choice: makers of one deed each. The second argument is whoever does it.


def eat(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.EAT, food(rng)), words.EAT_PLACES)


def have_drink(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.DRINK, drink(rng))


def cook(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.COOK, noun_phrase(pick(rng, COOKED))), words.EAT_PLACES[1:2])


COOKED = tuple(noun for noun in words.MASS_FOOD if noun.singular in ("rice", "soup", "fish", "meat", "chicken"))


def buy(rng: Random, _: Subject) -> Predicate:
    bought = food(rng) if rng.random() < 0.4 else thing(rng, words.THINGS, words.THING_ADJECTIVES, owned=False)
    return _where(rng, subject, Predicate(verbs.BUY, bought), words.SHOP_PLACES)


def read(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.READ, thing(rng, words.READING, PRAISE)), words.READ_PLACES)


PRAISE = (*words.CONTENT, words.GOOD, words.GREAT)


def write(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WRITE, thing(rng, words.WRITING, (words.CONTENT[2], words.GOOD), owned=False))


def watch(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WATCH, thing(rng, words.SHOWS, (*words.CONTENT[:2], words.GOOD, words.GREAT), owned=False))


def listen(rng: Random, _: Subject) -> Predicate:
    if rng.random() < 0.6:
        return _where(rng, subject, Predicate(verbs.LISTEN, noun_phrase(words.SUBJECTS[1])), words.EAT_PLACES[1:3])
    return Predicate(verbs.LISTEN, thing(rng, words.SONGS, (words.VALUES[2],), owned=False))


def play(rng: Random, _: Subject) -> Predicate:
    game = noun_phrase(pick(rng, words.SPORTS), generic=True)
    game.spanish.insert(0, Spanish("a", *game.english))
    return _where(rng, subject, Predicate(verbs.PLAY_GAME, game), words.PLAY_PLACES, 0.3)


def play_music(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.PLAY_MUSIC, noun_phrase(pick(rng, words.INSTRUMENTS), "the"))


def study(rng: Random, _: Subject) -> Predicate:
    studied = pick(rng, words.LANGUAGES if rng.random() < 0.5 else words.SUBJECTS)
    return _where(rng, subject, Predicate(verbs.STUDY, noun_phrase(studied)), words.STUDY_PLACES)


def speak(rng: Random, _: Subject) -> Predicate:
    language = noun_phrase(pick(rng, words.LANGUAGES))
    chance = rng.random()
    if chance < 0.25:
        return Predicate(verbs.SPEAK, join(language, when_where.VERY_WELL.say()))
    return Predicate(verbs.SPEAK, join(language, when_where.together(rng, subject)) if chance < 0.45 else language)


def clean(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.CLEAN, noun_phrase(pick(rng, words.CLEANABLE), pick(rng, ("the", "the", "my", "our"))))


def visit(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.3:
        return Predicate(verbs.VISIT, noun_phrase(pick(rng, words.COUNTRIES)))
    if chance < 0.6:
        return Predicate(verbs.VISIT, personal_a(*person_phrase(rng)))
    return Predicate(verbs.VISIT, noun_phrase(pick(rng, words.SIGHTS), pick(rng, ("the", "the", "this"))))


def go(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    goal = (
        when_where.HOME.say() if chance < 0.08 else abroad(rng) if chance < 0.2 else when_where.to(rng, words.GO_PLACES)
    )
    return Predicate(verbs.GO, join(goal, when_where.together(rng, subject)) if chance > 0.8 else goal)


def abroad(rng: Random) -> Part:
    """Say to which country or city."""
    return join(word("to", "a"), noun_phrase(pick(rng, words.COUNTRIES)))


def walk(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.WALK, NOTHING), words.WALK_PLACES, 0.7)


def swim(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.SWIM, NOTHING), words.GO_PLACES[:1], 0.5)


def dance(rng: Random, _: Subject) -> Predicate:
    if rng.random() < 0.4:
        return Predicate(verbs.DANCE, pick(rng, (when_where.VERY_WELL, when_where.A_LOT)).say())
    return _where(rng, subject, Predicate(verbs.DANCE, NOTHING), words.PLAY_PLACES, 0.5)


def sing(rng: Random, _: Subject) -> Predicate:
    if rng.random() < 0.4:
        return Predicate(verbs.SING, pick(rng, (when_where.VERY_WELL, when_where.A_LOT)).say())
    return _where(
        rng, Predicate(verbs.SING, thing(rng, words.SONGS, (words.VALUES[2],), owned=False)), words.PLAY_PLACES
    )


def sleep(rng: Random, _: Subject) -> Predicate:
    how = pick(rng, (when_where.A_LOT, when_where.VERY_WELL, when_where.AT_HOME))
    return Predicate(verbs.SLEEP, how.say())


def stay(rng: Random, _: Subject) -> Predicate:
    return (
        _where(rng, subject, Predicate(verbs.STAY, when_where.AT_HOME.say()), (), 0)
        if rng.random() < 0.7
        else _with_company(rng)
    )


def _with_company(rng: Random) -> Predicate:
    return Predicate(verbs.STAY, join(when_where.AT_HOME.say(), when_where.together(rng, subject)))


def get_up(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GET_UP, _hour(rng))


def go_to_bed(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.GO_TO_BED, _hour(rng))


def _hour(rng: Random) -> Part:
    return pick(rng, (when_where.EARLY, when_where.LATE, pick(rng, when_where.AT_HOUR))).say()


# What happens.


def work(rng: Random, subject: Subject) -> Predicate:
    if any(member.noun.singular in ("boy", "girl") for member in subject.members):
        return study(rng, subject)
    if rng.random() < 0.15:
        return Predicate(verbs.WORK, when_where.A_LOT.say())
    place = when_where.at(rng, words.WORK_PLACES)
    return Predicate(verbs.WORK, join(place, when_where.together(rng, subject)) if rng.random() > 0.85 else place)


def open_or_close(rng: Random, _: Subject) -> Predicate:
    verb = verbs.OPEN if rng.random() < 0.5 else verbs.CLOSE
    return Predicate(verb, noun_phrase(pick(rng, words.OPENABLE), "the", plural=rng.random() < 0.2))


def arrive(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.35:
        return Predicate(verbs.ARRIVE, _hour(rng))
    goal = join(word("at", "a"), noun_phrase(pick(rng, words.GO_PLACES[7:12]), "the"))
    return Predicate(verbs.ARRIVE, join(goal, _hour(rng)) if chance < 0.7 else goal)


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
    """Help, call, see someone: personal a, or an object pronoun (not one for the subject itself)."""
    if rng.random() < 0.4:
        english, spanish, person = pick(rng, OBJECT_PRONOUNS)
        if subject.person != person and {subject.person, person} != {0, 3}:
            source = English(english)
            return Predicate(verb, Part([source], []), spanish, (source,))
    return Predicate(verb, personal_a(*person_phrase(rng)))


def give(rng: Random, subject: Subject) -> Predicate:
    """Give me a book (me das un libro), give a book to Ana (le das un libro a Ana)."""
    gift = thing(rng, words.GIFTS, owned=False)
    if rng.random() < 0.4:
        person = pick(rng, (0, 1, 3))
        if person != subject.person and {person, subject.person} != {0, 3}:
            source = English(("me", "you", "", "us")[person])
            return Predicate(verbs.GIVE, Part([source, *gift.english], gift.spanish), INDIRECT[person], (source,))
    receiver, head = person_phrase(rng)
    to = English("to")
    complement = Part([*gift.english, to, *receiver.english], [*gift.spanish, Spanish("a", to), *receiver.spanish])
    plural = receiver.spanish[0].text == "los" or receiver.spanish[0].text == "las" or head.text == "friends"
    return Predicate(verbs.GIVE, complement, "les" if plural else "le", (head,))


# What is so.


def have(rng: Random, subject: Subject) -> Predicate:
    chance = rng.random()
    plural = rng.random() < 0.4
    quality = None
    if chance < 0.35:
        noun = pick(rng, words.ANIMALS)
        if rng.random() < 0.5:
            quality = pick(rng, (*words.COLORS[1:3], *words.SIZES[:2]))
    elif chance < 0.5:
        noun = pick(rng, words.FAMILY[2:6])
    else:
        noun = pick(rng, (*words.THINGS, words.HOUSE, *words.READING[:1]))
        if rng.random() < 0.5:
            quality = pick(rng, words.THING_ADJECTIVES)
    number = pick(rng, words.NUMBERS[:9])[0] if rng.random() < 0.7 else "many"
    return Predicate(verbs.HAVE, noun_phrase(noun, number if plural else "a", quality, plural=plural))


def need(rng: Random, _: Subject) -> Predicate:
    needed = food(rng) if rng.random() < 0.3 else thing(rng, words.THINGS, words.THING_ADJECTIVES, owned=False)
    return Predicate(verbs.NEED if rng.random() < 0.5 else verbs.WANT, needed)


def live(rng: Random, _: Subject) -> Predicate:
    chance = rng.random()
    if chance < 0.5:
        return Predicate(verbs.LIVE, join(word("in", "en"), noun_phrase(pick(rng, words.COUNTRIES))))
    if chance < 0.7:
        return Predicate(verbs.LIVE, when_where.together(rng, subject))
    size = pick(rng, words.PLACE_ADJECTIVES)
    home = noun_phrase(pick(rng, (*words.TOWNS, words.HOUSE)), "a", size, very=rng.random() < 0.2)
    return Predicate(verbs.LIVE, join(word("in", "en"), home))


# Deeds in general, as one likes them: reading books, going to the beach.


def _reading(rng: Random, _: Subject) -> Predicate:
    return _where(rng, subject, Predicate(verbs.READ, some_of(rng, words.READING, PRAISE[:1] + PRAISE[2:3])), words.READ_PLACES)


def _watching(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WATCH, some_of(rng, words.SHOWS[:2], (words.GOOD, words.CONTENT[0])))


def _writing(rng: Random, _: Subject) -> Predicate:
    return Predicate(verbs.WRITE, some_of(rng, words.WRITING[:4], (words.CONTENT[2], words.GOOD)))


def _eating(rng: Random, _: Subject) -> Predicate:
    mass = rng.random() < 0.6
    eaten = noun_phrase(pick(rng, words.MASS_FOOD)) if mass else some_of(rng, words.COUNT_FOOD)
    return _where(rng, subject, Predicate(verbs.EAT, eaten), words.EAT_PLACES)


def _buying(rng: Random, _: Subject) -> Predicate:
    return _where(
        rng, Predicate(verbs.BUY, some_of(rng, BOUGHT, words.VALUES[:2] + words.SIZES[2:3])), words.SHOP_PLACES
    )


BOUGHT = tuple(
    n for n in words.THINGS if n.singular in ("shirt", "dress", "hat", "bag", "gift", "flower", "shoe", "lamp")
)


def _out(rng: Random, _: Subject) -> Predicate:
    goal = when_where.to(rng, FUN) if rng.random() < 0.85 else abroad(rng)
    return Predicate(verbs.GO, join(goal, when_where.together(rng, subject)) if rng.random() < 0.2 else goal)


FUN = words.places("beach beach park park museum theater market restaurant library city village school store")

FREE: tuple[tuple[float, Make], ...] = (
    (0.09, eat), (0.05, have_drink), (0.04, cook), (0.07, buy), (0.08, read), (0.05, write), (0.06, watch), (0.05, listen),
    (0.09, play), (0.04, play_music), (0.06, study), (0.04, speak), (0.03, clean), (0.05, visit), (0.1, go), (0.03, walk),
    (0.02, swim), (0.02, dance), (0.02, sing), (0.01, stay),
)  # fmt: skip
OTHER: tuple[tuple[float, Make], ...] = (
    (0.1, open_or_close), (0.16, help_someone), (0.16, give), (0.2, work), (0.1, arrive), (0.1, see), (0.05, sleep),
    (0.07, get_up), (0.06, go_to_bed),
)  # fmt: skip
STATES: tuple[tuple[float, Make], ...] = ((0.38, have), (0.27, need), (0.2, live), (0.15, love))
LEISURE: tuple[tuple[float, Make], ...] = (
    (0.12, _reading), (0.08, _watching), (0.06, _writing), (0.08, _eating), (0.06, _buying), (0.22, _out), (0.12, play),
    (0.05, play_music), (0.05, listen), (0.03, cook), (0.03, speak), (0.03, study), (0.02, swim), (0.03, walk), (0.01, dance),
    (0.01, sing),
)  # fmt: skip


def choice(rng: Random, subject: Subject) -> Predicate:
    """Return something one does by choice, and so may want or plan."""
    return weighted(rng, FREE)(rng, subject)


def leisure(rng: Random, subject: Subject) -> Predicate:
    """Return something one may like doing."""
    return weighted(rng, LEISURE)(rng, subject)


def action(rng: Random, subject: Subject) -> Predicate:
    """Return anything that happens, in any mode."""
    return weighted(rng, FREE if rng.random() < 0.72 else OTHER)(rng, subject)


def lasting(rng: Random, subject: Subject) -> Predicate:
    """Return something that is so: having, needing, living, loving. Not for the progressive."""
    return weighted(rng, STATES)(rng, subject)
