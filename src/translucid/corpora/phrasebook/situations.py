"""Activities that suit a situation: eating when hungry, staying at home when it rains, reading in the library."""

from __future__ import annotations

from random import Random

from . import deeds, events, verbs
from .being import WEATHER, it_is, rain
from .chance import pick
from .clauses import Predicate, clause, deed
from .deeds import Make
from .lexicon import NEEDS, READING, SHOWS, SPORT, STATES, SUBJECTS, Noun, nouns
from .nominals import Subject, noun_phrase
from .text import Part, join, word

_STATE = {state.english: state for state in STATES}
_NEED = dict(NEEDS)

REACTIONS: dict[str, tuple[Make, ...]] = {
    "hungry": (deeds.eat, deeds.eat, deeds.cook, deeds.eat),
    "thirsty": (deeds.have_drink,),
    "sleepy": (events.sleep, events.go_to_bed, deeds.have_hot_drink),
    "afraid": (events.call, deeds.stay),
    "tired": (events.sleep, deeds.stay, events.go_to_bed, deeds.have_hot_drink),
    "happy": (deeds.sing, deeds.dance, deeds.play_music, deeds.walk, deeds.play),
    "sad": (deeds.listen, events.call, deeds.eat, deeds.walk, deeds.write),
    "sick": (deeds.stay, events.sleep, deeds.have_hot_drink, events.call),
    "alone": (deeds.read, deeds.watch, events.call, deeds.listen, deeds.cook),
    "nervous": (deeds.walk, deeds.listen, events.call, deeds.have_hot_drink, deeds.clean),
    "busy": (deeds.stay, deeds.have_hot_drink),
    "angry": (deeds.walk, deeds.swim, deeds.clean, deeds.listen),
    "ready": (deeds.go, deeds.visit),
    "cold": (deeds.have_hot_drink, deeds.stay, deeds.cook, deeds.read, deeds.watch),
    "hot": (deeds.swim, deeds.have_drink, deeds.swim),
    "sunny": (deeds.walk, deeds.swim, deeds.play, deeds.play),
    "windy": (deeds.stay, deeds.read, deeds.study),
    "rain": (deeds.stay, deeds.read, deeds.watch, deeds.study, deeds.play_music, deeds.write),
}
"""Activities with which people react to a state or to the weather."""
HINDRANCES = ("busy", "sick", "tired")
"""States that prevent people from doing what they like."""
PURPOSES: tuple[tuple[Noun, Make], ...] = tuple(
    zip(
        nouns("store market library library restaurant beach park park museum university"),
        (
            deeds.buy, deeds.buy, deeds.read, deeds.study, deeds.eat, deeds.swim, deeds.walk, deeds.play, deeds.study,
            deeds.study,
        ),
        strict=True,
    )
)  # fmt: skip
"""Places, and the activities for which people go there."""
DUTIES = (deeds.study, events.work, deeds.clean, deeds.cook, events.help_someone, events.get_up_early, deeds.buy)
MUSIC, BOOKS, MOVIES, STORIES = (SUBJECTS[1], False), (READING[0], True), (SHOWS[0], True), (READING[4], True)
RELISHED: tuple[tuple[Make, tuple[Noun, bool]], ...] = (
    (deeds.play, (SPORT, True)), (deeds.play, (SPORT, True)), (deeds.read, BOOKS), (deeds.read, (SUBJECTS[3], False)),
    (deeds.watch, MOVIES), (deeds.listen, MUSIC), (deeds.play_music, MUSIC), (deeds.sing, MUSIC), (deeds.dance, MUSIC),
    (deeds.write, (SUBJECTS[3], False)), (deeds.visit_museum, (SUBJECTS[2], False)),
    (deeds.visit_museum, (SUBJECTS[0], False)), (deeds.walk, (SUBJECTS[5], False)), (deeds.read, STORIES),
)  # fmt: skip
"""Activities, and what people who do them like."""


def in_state(subject: Subject, state: str) -> Part:
    """Return that someone is hungry (tener hambre), tired (estar cansado) and so on."""
    if state in _NEED:
        return clause(subject, Predicate(verbs.TENER, word(state, _NEED[state])))
    return clause(subject, Predicate(verbs.ESTAR, word(state, _STATE[state].spanish[subject.form])))


def circumstance(rng: Random, subject: Subject) -> tuple[Part, str]:
    """Return a clause about someone's state or the weather, and its name in `REACTIONS`."""
    if rng.random() < 0.7:
        state = pick(rng, _PERSONAL)
        return in_state(subject, state), state
    kind = pick(rng, (*WEATHER, ("rain", "")))
    if kind[0] == "rain":
        return rain("present"), "rain"
    return it_is(rng, kind, "present"), kind[0]


_PERSONAL = (
    "hungry", "thirsty", "hungry", "thirsty", "sleepy", "tired", "tired", *(state.english for state in STATES), "cold",
    "hot",
)  # fmt: skip
"""States of a person; those that occur twice are twice as frequent."""


def reaction(rng: Random, state: str) -> Make:
    """Return an activity that suits a circumstance."""
    return pick(rng, REACTIONS[state])


def outing(rng: Random) -> tuple[Predicate, Make]:
    """Return going somewhere, and the activity for which one goes there."""
    place, maker = pick(rng, PURPOSES)

    def activity_there(rng: Random, subject: Subject) -> Predicate:
        while True:
            doing = maker(rng, subject)
            if all(spanish.text not in ("en", "por") for spanish in doing.complement.spanish):  # no second place
                return doing

    return Predicate(verbs.GO, join(word("to", "a"), noun_phrase(place, "the"))), activity_there


def purpose(predicate: Predicate, subject: Subject) -> Part:
    """Return a purpose: to read a book, para leer un libro."""
    return join(word("to", "para"), deed(predicate, subject.person, "base"))


def relish(rng: Random, subject: Subject) -> tuple[Make, Part, bool]:
    """Return an activity, what people who do it like, and whether that is plural: playing tennis, and sports."""
    maker, (noun, plural) = pick(rng, RELISHED)
    return maker, noun_phrase(noun, generic=True, plural=plural), plural


def duty(rng: Random, subject: Subject) -> Predicate:
    """Return a duty."""
    return pick(rng, DUTIES)(rng, subject)
