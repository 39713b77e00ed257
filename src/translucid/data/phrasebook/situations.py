"""What goes with what: one eats when hungry, stays at home when it rains, goes to the library to read."""

from __future__ import annotations

from random import Random

from . import adverbials as when_where
from . import deeds
from . import verbs
from .being import WEATHER, it_is, rain
from .clauses import Predicate, clause, deed
from .deeds import Make
from .lexicon import NEEDS, STATES, Adjective, Noun, places
from .nominals import IT, Subject, noun_phrase, pick
from .text import English, Part, Spanish, join, word

_STATE = {state.english: state for state in STATES}
_NEED = dict(NEEDS)
_WEATHER = dict(WEATHER)

REACTIONS: dict[str, tuple[Make, ...]] = {
    "hungry": (deeds.eat, deeds.eat, deeds.cook, deeds.eat),
    "thirsty": (deeds.have_drink,),
    "sleepy": (deeds.sleep, deeds.go_to_bed, deeds.have_drink),
    "afraid": (deeds.call, deeds.stay),
    "tired": (deeds.sleep, deeds.stay, deeds.go_to_bed, deeds.have_drink),
    "happy": (deeds.sing, deeds.dance, deeds.play_music, deeds.walk, deeds.play),
    "sad": (deeds.listen, deeds.call, deeds.eat, deeds.walk, deeds.write),
    "sick": (deeds.stay, deeds.sleep, deeds.have_drink, deeds.call),
    "alone": (deeds.read, deeds.watch, deeds.call, deeds.listen, deeds.cook),
    "nervous": (deeds.walk, deeds.listen, deeds.call, deeds.have_drink, deeds.clean),
    "busy": (deeds.stay, deeds.have_drink),
    "angry": (deeds.walk, deeds.swim, deeds.clean, deeds.listen),
    "ready": (deeds.go, deeds.visit),
    "cold": (deeds.have_drink, deeds.stay, deeds.cook, deeds.read, deeds.watch),
    "hot": (deeds.swim, deeds.have_drink, deeds.swim),
    "sunny": (deeds.walk, deeds.swim, deeds.play, deeds.play),
    "windy": (deeds.stay, deeds.read, deeds.study),
    "rain": (deeds.stay, deeds.read, deeds.watch, deeds.study, deeds.play_music, deeds.write),
}
"""What people do about it."""
WAYS = ("busy", "sick", "tired")
"""States that keep people from doing what they like."""
PURPOSES: tuple[tuple[Noun, Make], ...] = tuple(
    zip(
        places("store market library library restaurant beach park park museum university"),
        (
            deeds.buy, deeds.buy, deeds.read, deeds.study, deeds.eat, deeds.swim, deeds.walk, deeds.play, deeds.study,
            deeds.study,
        ),
        strict=True,
    )
)  # fmt: skip
"""What people go to a place for."""


def in_state(rng: Random, subject: Subject, state: str, mode: str = "present") -> Part:
    """Say that someone is hungry, tired and so on."""
    verb, complement = being(subject, state)
    return clause(subject, Predicate(verb, complement), mode)


def being(subject: Subject, state: str) -> tuple[verbs.Verb, Part]:
    """Return the Spanish verb and the complement of a state: tener hambre, estar cansado."""
    if state in _NEED:
        return verbs.TENER, word(state, _NEED[state])
    quality: Adjective = _STATE[state]
    return verbs.ESTAR, word(state, quality.spanish[subject.form])


def circumstance(rng: Random, subject: Subject, mode: str = "present") -> tuple[Part, str]:
    """Say how someone is or how the weather is; return it with its name in `REACTIONS`."""
    if rng.random() < 0.7:
        state = pick(rng, _PERSONAL)
        return in_state(rng, subject, state, mode), state
    kind = pick(rng, (*WEATHER, ("rain", "")))
    return (rain(mode) if kind[0] == "rain" else it_is(rng, kind, mode)), kind[0]


_PERSONAL = (
    "hungry",
    "thirsty",
    "hungry",
    "thirsty",
    "sleepy",
    "tired",
    "tired",
    *(s.english for s in STATES),
    "cold",
    "hot",
)


def reaction(rng: Random, state: str) -> Make:
    """Return a deed that suits a circumstance."""
    return pick(rng, REACTIONS[state])


def outing(rng: Random, subject: Subject) -> tuple[Predicate, Part]:
    """Return going somewhere, and what for: go to the library, to read / para leer."""
    place, maker = pick(rng, PURPOSES)
    goal = join(word("to", "a"), noun_phrase(place, "the"))
    doing = maker(rng, subject)
    while any(spanish.text == "en" for spanish in doing.complement.spanish):  # no second place
        doing = maker(rng, subject)
    to = English("to")
    purpose = deed(doing, subject.person, "base")
    return Predicate(verbs.GO, goal), Part([to, *purpose.english], [Spanish("para", to), *purpose.spanish])


def duty(rng: Random, subject: Subject) -> Predicate:
    """Return something one has to do."""
    return pick(rng, (deeds.study, deeds.work, deeds.clean, deeds.cook, deeds.help_someone, deeds.get_up, deeds.buy))(
        rng, subject
    )


__all__ = [
    "IT",
    "PURPOSES",
    "REACTIONS",
    "WAYS",
    "circumstance",
    "duty",
    "in_state",
    "outing",
    "reaction",
    "when_where",
]
