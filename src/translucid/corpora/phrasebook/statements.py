"""Statements of one clause about what people do, want and have."""

from __future__ import annotations

from random import Random

from . import adverbials as when_where
from . import verbs
from .being import is_
from .chance import pick, weighted
from .clauses import Predicate, clause, continuation, deed, felt
from .deeds import Make, choice
from .events import action, lasting
from .likes import hurts, likes
from .nominals import NOBODY, Subject
from .text import Part, join, word

MODES = ((0.4, "present"), (0.26, "past"), (0.12, "will"), (0.1, "going"), (0.06, "progressive"), (0.06, "can"))
MOMENTARY = frozenset((verbs.ARRIVE, verbs.SEE, verbs.GET_UP, verbs.GO_TO_BED))
"""Verbs of momentary events, which have no progressive, and whose complement may be the hour already."""
FRONTED = ("present", "past", "will", "going")


def does(
    rng: Random,
    subject: Subject,
    mode: str = "",
    *,
    maker: Make = action,
    timed: float = 0.35,
    negative: bool | None = None,
) -> Part:
    """Return what someone does: I always eat bread, Ana will go to the beach tomorrow.

    Args:
        rng: the random generator.
        subject: the subject.
        mode: the mode of `clause`; empty leaves it to chance.
        maker: the kind of activity.
        timed: the probability of an adverbial of time; 0 also excludes adverbs of frequency.
        negative: whether the clause is negated; None leaves it to chance.
    """
    mode = mode or weighted(rng, MODES)
    if negative is None:
        negative = rng.random() < 0.13 and mode != "progressive"
    negative = negative and subject.is_specific
    has_time = rng.random() < timed
    predicate = in_mode(rng, subject, mode, maker, has_time=has_time)
    if mode == "progressive" and not can_go_on(predicate):
        mode = "present"
    if not has_time or predicate.verb in MOMENTARY:
        frequency = None
        if timed and mode == "present" and not negative and subject is not NOBODY and rng.random() < 0.18:
            frequency = pick(rng, when_where.FREQUENCY)
        return clause(subject, predicate, mode, negative=negative, adverb=frequency)
    time = when_where.when(rng, mode)
    if rng.random() < 0.25 and mode in FRONTED:
        return clause(subject, predicate, mode, negative=negative, opener=time)
    return join(clause(subject, predicate, mode, negative=negative), time)


def in_mode(rng: Random, subject: Subject, mode: str, maker: Make = action, *, has_time: bool = False) -> Predicate:
    """Return an activity that can be expressed in a mode.

    English does not distinguish `I read` (leo) from `I read` (leí), so it is in the past only together with a time.
    """
    predicate = maker(rng, subject)
    while predicate.verb is verbs.READ and mode == "past" and not has_time:
        predicate = action(rng, subject)
    return predicate


def can_go_on(predicate: Predicate) -> bool:
    """Whether an activity has a progressive, and no object pronoun, which Spanish could put in two places."""
    return predicate.verb not in MOMENTARY and not predicate.clitic


def does_and_does(rng: Random, subject: Subject) -> Part:
    """Return two activities of one subject: I get up early and drink coffee."""
    mode = pick(rng, ("present", "past", "past", "will", "going"))
    first = in_mode(rng, subject, mode)
    second = in_mode(rng, subject, mode)
    while second.verb.base == first.verb.base:
        second = in_mode(rng, subject, mode)
    return join(clause(subject, first, mode), word("and", "y"), continuation(subject, second, mode))


def has(rng: Random, subject: Subject) -> Part:
    """Return what someone has, needs or loves, or where they live."""
    predicate = lasting(rng, subject)
    mode = "present" if rng.random() < 0.75 or predicate.verb is verbs.LOVE_PERSON else "past"
    return clause(subject, predicate, mode, negative=rng.random() < 0.13 and subject.is_specific)


def plans(
    rng: Random,
    subject: Subject,
    *,
    maker: Make = choice,
    negative: bool | None = None,
    kind: float = -1,
    timed: float = 0.2,
) -> Part:
    """Return what someone wants, has, needs or would like to do.

    Args:
        rng: the random generator.
        subject: the subject.
        maker: the kind of activity.
        negative: whether the clause is negated; None leaves it to chance.
        kind: the verb: below 0.18 would like, below 0.5 have to, then want, need, prefer. A negative number leaves it
            to chance, and only then the clause may be in the past.
        timed: the probability of an adverbial of time.
    """
    predicate = maker(rng, subject)
    if negative is None:
        negative = rng.random() < 0.15
    negative = negative and subject.is_specific
    modes: tuple[str, ...] = ("present",)
    if kind < 0:
        kind, modes = rng.random(), ("present", "present", "present", "past")
    if kind < 0.18:
        return felt(subject, verbs.LIKE, deed(predicate, subject.person, "to"), plural=False, mode="would")
    if kind < 0.5:
        verb, complement = verbs.HAVE_TO, obliged(predicate, subject)
    else:
        verb = verbs.WANT
        if kind >= 0.9:
            verb, modes, negative = verbs.PREFER, ("present",), False
        elif kind >= 0.8:
            verb = verbs.NEED
        complement = deed(predicate, subject.person, "to")
    mode = pick(rng, modes)
    part = clause(subject, Predicate(verb, complement), mode, negative=negative)
    if rng.random() < timed and mode == "present":
        return join(part, pick(rng, when_where.TIMES["will"][:4]).say())
    return part


def obliged(predicate: Predicate, subject: Subject) -> Part:
    """Return the complement of `have`: to eat bread, que comer pan."""
    return join(word("to", "que"), deed(predicate, subject.person, "base"))


def statement(rng: Random, subject: Subject) -> Part:
    """Return any clause about a person."""
    kind = rng.random()
    if kind < 0.36:
        return does(rng, subject)
    if kind < 0.62:
        return likes(rng, subject, length=pick(rng, (1, 1, 1, 1, 2, 2, 2, 3)), past=True)
    if kind < 0.74:
        return is_(rng, subject)
    if kind < 0.84:
        return plans(rng, subject)
    if kind < 0.93:
        return has(rng, subject)
    if kind < 0.97 or subject.named or subject.person > 2:
        return does_and_does(rng, subject)
    return hurts(rng, subject)
