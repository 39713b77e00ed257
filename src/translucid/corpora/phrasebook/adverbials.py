"""Adverbials of time, place, company and manner."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .chance import pick
from .lexicon import NUMBERS, Noun, pairs, spanish_plural
from .nominals import Subject, noun_phrase, person_phrase
from .text import English, Expression, Part, Spanish, join, word

DAYS = pairs(
    "Monday lunes; Tuesday martes; Wednesday miércoles; Thursday jueves; Friday viernes; Saturday sábado;Sunday domingo"
)
ON_DAY = [Expression(f"on {english}", f"el {spanish}") for english, spanish in DAYS]
ON_DAYS = [Expression(f"on {english}s", f"los {spanish_plural(spanish)}") for english, spanish in DAYS]
IN_THE_MORNING = Expression("in the morning", "por la mañana")
IN_THE_AFTERNOON = Expression("in the afternoon", "por la tarde")
AT_NIGHT = Expression("at night", "por la noche", "0-0 1-1 1-2")
TOMORROW = Expression("tomorrow", "mañana")
TONIGHT = Expression("tonight", "esta noche", "0-0 0-1")
YESTERDAY = Expression("yesterday", "ayer")
NOW = Expression("now", "ahora")
TODAY = Expression("today", "hoy")
EVERY_DAY = Expression("every day", "todos los días", "0-0 0-1 1-2")
HOURS = NUMBERS[:11]
AT_HOUR = [Expression(f"at {hour} o'clock", f"a las {hora}", "0-0 2-1 1-2") for hour, hora in HOURS]
AT_HOUR += [Expression(f"at half past {hour}", f"a las {hora} y media", "0-0 3-1 3-2 2-3 1-4") for hour, hora in HOURS]
AT_HOUR.append(Expression("at one o'clock", "a la una", "0-0 2-1 1-2"))

TIMES: dict[str, list[Expression]] = {
    "present": [EVERY_DAY, *ON_DAYS, IN_THE_MORNING, IN_THE_AFTERNOON, AT_NIGHT]
    + [Expression("in the summer", "en el verano"), Expression("in the winter", "en el invierno")],
    "past": [
        *[YESTERDAY] * 3, Expression("last night", "anoche", "0-0 1-0"), *ON_DAY,
        Expression("last week", "la semana pasada", "1-0 1-1 0-2"),
        Expression("last year", "el año pasado", "1-0 1-1 0-2"), Expression("this morning", "esta mañana"),
    ],
    "will": [
        *[TOMORROW] * 3, TONIGHT, *ON_DAY, Expression("next week", "la próxima semana", "1-0 0-1 1-2"),
        Expression("next year", "el próximo año", "1-0 0-1 1-2"), Expression("this afternoon", "esta tarde"),
    ],
    "progressive": [NOW, NOW, TODAY],
    "can": [TODAY, NOW, TOMORROW, TONIGHT],
}  # fmt: skip
TIMES["going"] = TIMES["will"]

ALWAYS = Expression("always", "siempre")
NEVER = Expression("never", "nunca")
ALSO = Expression("also", "también")
OFTEN = Expression("often", "a menudo", "0-0 0-1")
FREQUENCY = (ALWAYS, ALWAYS, NEVER, NEVER, ALSO, ALSO, OFTEN)
A_LOT = Expression("a lot", "mucho", "0-0 1-0")
VERY_WELL = Expression("very well", "muy bien")
EARLY = Expression("early", "temprano")
LATE = Expression("late", "tarde")
AT_HOME = Expression("at home", "en casa")
HOME = Expression("home", "a casa", "0-0 0-1")
WITH_ME = Expression("with me", "conmigo", "0-0 1-0")
WITH_YOU = Expression("with you", "contigo", "0-0 1-0")


def at(rng: Random, choices: Sequence[Noun], spanish: str = "en") -> Part:
    """Return a place: at the beach, en la playa; for walking, with `por`."""
    location = pick(rng, choices)
    source = English(location.preposition)
    return join(Part([source], [Spanish(spanish, source)]), _definite(rng, location))


def to(rng: Random, choices: Sequence[Noun]) -> Part:
    """Return a destination: to the beach, a la playa."""
    source = English("to")
    return join(Part([source], [Spanish("a", source)]), _definite(rng, pick(rng, choices)))


def _definite(rng: Random, location: Noun) -> Part:
    if not location.article:
        return noun_phrase(location, generic=True)
    chance = rng.random()
    if chance < 0.9:
        return noun_phrase(location, "the")
    return noun_phrase(location, "this" if chance < 0.95 else "that")


def together(rng: Random, subject: Subject) -> Part:
    """Return a companion of the subject."""
    if rng.random() < 0.1:
        if subject.person in (2, 4):
            return pick(rng, (WITH_ME, WITH_YOU)).say()
        if subject.person < 2:
            return (WITH_ME if subject.person else WITH_YOU).say()
    return join(word("with", "con"), person_phrase(rng, subject)[0])


def when(rng: Random, mode: str) -> Part:
    """Return a time that suits the mode of the verb."""
    return pick(rng, TIMES[mode]).say()
