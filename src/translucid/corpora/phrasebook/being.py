"""Clauses with ser, estar, tener and haber, and about the weather."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, sometimes
from .clauses import Predicate, clause, deed
from .deeds import NOTHING, leisure
from .nominals import (
    DETERMINERS,
    IT,
    NOBODY,
    THERE,
    THERE_ARE,
    Member,
    Subject,
    noun_phrase,
    of_nouns,
)
from .text import Expression, Part, join, word
from .word_labels import LABELING

JUDGED = tuple(adjective for adjective in words.CONTENT if adjective.english != "long")
WEATHER = words.pairs("cold frío; hot calor; sunny sol; windy viento")
AGED = frozenset(["son", "daughter", "boy", "girl", "brother", "sister"])


def is_(
    rng: Random, subject: Subject, *, negative: bool | None = None, question: bool = False, opener: Part | None = None
) -> Part:
    """Return what, how or where a person is: she is tall (es), he is tired (está), I am hungry (tengo hambre).

    With `negative` None, chance decides whether the clause is negated.
    """
    if negative is None:
        negative = not question and rng.random() < 0.12
    negative = negative and subject.is_specific
    kind = rng.random()
    modes: tuple[str, ...] = ("present",)
    if kind < 0.34:
        verb, complement = verbs.ESTAR, quality(rng, words.STATES, subject.form)
        modes = ("present", "present", "present", "past", "will")
    elif kind < 0.52:
        verb, complement = verbs.SER, quality(rng, words.PERSON_ADJECTIVES, subject.form)
    elif kind < 0.62 and subject.person < 3 and _is_grown(subject):
        verb, complement = verbs.SER, _job(rng, subject)
    elif kind < 0.66 and _has_age(subject):
        verb, complement, negative = verbs.TENER, _age(rng), False
    elif kind < 0.82:
        verb, complement = verbs.TENER, word(*pick(rng, words.NEEDS))
        modes = ("present", "present", "past")
    else:
        verb = verbs.ESTAR
        complement = when_where.AT_HOME.say() if rng.random() < 0.25 else when_where.at(rng, words.GO_PLACES)
        modes = ("present", "present", "past", "past", "will")
    mode = _mode(rng, modes, question=question)
    adverb = None
    if verb is verbs.ESTAR and mode == "present" and not (negative or question or subject is NOBODY):
        adverb = sometimes(rng, 0.1, (when_where.ALWAYS, when_where.NEVER))
    return clause(
        subject, Predicate(verb, complement), mode, negative=negative, question=question, adverb=adverb, opener=opener
    )


def _mode(rng: Random, modes: Sequence[str], *, question: bool) -> str:
    """Return one of the modes of a clause; questions are in the present."""
    return "present" if question else pick(rng, modes)


def quality(rng: Random, qualities: Sequence[words.Adjective], form: int, *, very: float = 0.2) -> Part:
    """Return an adjective that agrees, sometimes with `very`."""
    adjective = pick(rng, qualities)
    part = word(adjective.english, adjective.spanish[form])
    if adjective.english not in ("alone", "ready") and rng.random() < very:
        return join(word("very", "muy"), part)
    return part


def _job(rng: Random, subject: Subject) -> Part:
    """Return a profession, without an article in Spanish: a teacher, profesora."""
    english, man, woman = pick(rng, words.JOBS)
    job = Expression(f"a {english}", woman if subject.feminine else man, "0-0 1-0").say()
    if labels := LABELING.get():
        labels.noun_phrase(job, words.Noun(english, "", job.spanish[0].text, "", subject.feminine, topic="people"), "a")
    return job


def _is_grown(subject: Subject) -> bool:
    return subject is not NOBODY and all(member.noun.singular not in ("boy", "girl") for member in subject.members)


def _has_age(subject: Subject) -> bool:
    return all(not member.determiner or member.noun.singular in AGED for member in subject.members)


def _age(rng: Random) -> Part:
    english, spanish = pick(rng, words.NUMBERS[7:])
    return Expression(f"{english} years old", f"{spanish} años", "0-0 1-1 2-1").say()


def thing_is(rng: Random, *, question: bool = False) -> Part:
    """Return how or where a thing is: the house is old, the door is closed, the keys are on the table."""
    kind = rng.random()
    plural = rng.random() < 0.25
    determiner = pick(rng, ("the", "the", "the", "my", "your", "our", "this"))
    modes: tuple[str, ...] = ("present",)
    qualities: Sequence[words.Adjective] = ()
    verb, very = verbs.ESTAR, 0.2
    if kind < 0.3:
        verb, noun, qualities = verbs.SER, pick(rng, words.THINGS), words.THING_ADJECTIVES
    elif kind < 0.4:
        verb, noun, qualities = verbs.SER, pick(rng, words.BUILDINGS), words.PLACE_ADJECTIVES
        determiner = pick(rng, ("the", "the", "this"))
    elif kind < 0.6:
        verb, noun, qualities = verbs.SER, pick(rng, words.READING + words.SHOWS), words.CONTENT
        modes = ("present", "past")
    elif kind < 0.76:
        noun, modes = pick(rng, words.OPENABLE), ("present", "present", "past")
        qualities = words.CONDITIONS
        if noun.singular in ("door", "window", "store"):
            qualities = words.CONDITIONS[:2]
    elif kind < 0.9:
        noun, plural, modes = pick(rng, words.SERVED), False, ("present", "past")
        qualities, very = words.GOOD_FOOD, 0
        determiner = pick(rng, ("the", "the", "this"))
    else:
        noun = pick(rng, words.SMALL_THINGS)
    if plural and determiner == "this":
        determiner = "these"
    subject = of_nouns(Member(noun, determiner, plural), human=False)
    if qualities:
        complement = quality(rng, qualities, subject.form, very=very)
    else:
        complement = on_something(rng)
    mode = _mode(rng, modes, question=question)
    negative = not question and rng.random() < 0.12
    return clause(subject, Predicate(verb, complement), mode, negative=negative, question=question)


def on_something(rng: Random) -> Part:
    """Return a surface: on the table, en la mesa."""
    return join(word("on", "en"), noun_phrase(pick(rng, words.SURFACES), pick(rng, ("the", "the", "my"))))


def there_is(rng: Random, *, question: bool = False) -> Part:
    """Return what there is: there are two dogs in the garden, hay dos perros en el jardín."""
    plural = rng.random() < 0.55
    if rng.random() < 0.65:
        determiner = pick(rng, words.NUMBERS[:9])[0]
    elif question:
        determiner = "many"
    else:
        determiner = pick(rng, ("many", "some"))
    if not plural:
        determiner = "a"
    if rng.random() < 0.5:
        what = noun_phrase(pick(rng, words.SMALL_THINGS + words.COUNT_FOOD), determiner, plural=plural)
        where = on_something(rng)
    else:
        what = noun_phrase(pick(rng, words.ANIMALS + words.MEN[:2] + words.WOMEN), determiner, plural=plural)
        where = when_where.at(rng, words.PLAY_PLACES + words.SIGHTS[2:4])
    subject = THERE_ARE if plural else THERE
    negative = not question and not plural and rng.random() < 0.12
    mode = "present" if rng.random() < 0.8 or question else "past"
    return clause(subject, Predicate(verbs.HABER, join(what, where)), mode, negative=negative, question=question)


def weather(rng: Random) -> Part:
    """Return a clause about the weather: it is cold, hace frío."""
    mode = pick(rng, ("present", "past", "will", "going"))
    if rng.random() < 0.3:
        return rain(mode)
    return it_is(rng, pick(rng, WEATHER), mode)


def rain(mode: str) -> Part:
    """Return a clause about rain: it is raining, está lloviendo."""
    return clause(IT, Predicate(verbs.RAIN, NOTHING), "progressive" if mode == "present" else mode)


def it_is(rng: Random, kind: tuple[str, str], mode: str) -> Part:
    """Return that it is cold, hot, sunny or windy."""
    complement = word(*kind)
    if rng.random() < 0.2 and kind[0] != "sunny":
        complement = join(word("very", "mucho"), complement)
    return clause(IT, Predicate(verbs.HACER, complement), mode)


def important(rng: Random) -> Part:
    """Return a judgement of an activity: it is important to study, es importante estudiar."""
    complement = join(quality(rng, JUDGED, 0, very=0.25), deed(leisure(rng, IT), 2, "to"))
    return clause(IT, Predicate(verbs.SER, complement), "present", negative=rng.random() < 0.12)


def this_is(rng: Random) -> Part:
    """Return a clause that presents something or someone: this is my house, esta es mi casa."""
    plural, colour = False, None
    possessives = ("my", "your", "our", "his", "her", "their")
    if rng.random() < 0.4:
        noun, determiner = pick(rng, words.FAMILY), pick(rng, possessives)
    else:
        noun = pick(rng, (*words.THINGS, words.HOUSE))
        plural = rng.random() < 0.25
        determiner = pick(rng, possessives)
        if not plural and rng.random() < 0.3:
            determiner = "a"
        colour = sometimes(rng, 0.25, words.COLORS + words.SIZES[:2])
    noun_part = noun_phrase(noun, determiner, colour, plural=plural)
    form = noun.feminine + 2 * plural
    return presented(noun_part, plural, form)


def presented(noun_part: Part, plural: bool, form: int) -> Part:
    """Return that this is something: this is my house, esta es mi casa; `form` is that of the noun."""
    english, be, es = ("these", "are", "son") if plural else ("this", "is", "es")
    pointer, verb = word(english, DETERMINERS[english][form]), word(be, es)
    if labels := LABELING.get():
        labels.presentation(pointer, verb, DETERMINERS[english], form)
        labels.complement(verbs.SER, noun_part)
    return join(pointer, verb, noun_part)


def impersonal(rng: Random) -> Part:
    """Return any clause that is not about a person."""
    kind = rng.random()
    if kind < 0.4:
        return thing_is(rng)
    if kind < 0.6:
        return there_is(rng)
    if kind < 0.68:
        return weather(rng)
    return important(rng) if kind < 0.84 else this_is(rng)
