"""Sentences of one clause: statements about what people do, want and have, questions, greetings and fragments."""

from __future__ import annotations

from random import Random

from . import adverbials as when_where
from . import deeds, verbs
from . import lexicon as words
from .being import is_, there_is, thing_is
from .chance import pick, weighted
from .clauses import Predicate, clause, continuation, deed, felt
from .deeds import NOTHING, Make, action, choice, lasting
from .likes import hurts, likes
from .nominals import (
    HE,
    NOBODY,
    SHE,
    THEY,
    WE,
    WHO,
    YOU,
    I,
    Member,
    Subject,
    named,
    noun_phrase,
    of_nouns,
    person_phrase,
    thing,
)
from .text import Expression, Part, Spanish, comma, english_words, join, word
from .verbs import Verb
from .word_labels import LABELING

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

    Chance decides on an empty `mode` (of `clause`) and on `negative` if None. `timed` is the probability of an
    adverbial of time; 0 also excludes adverbs of frequency.
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

    Chance decides on `negative` if None, and on the verb if `kind` is negative; only then it may be in the past.
    `kind` below 0.18: would like, below 0.5: have to, then want, need, prefer. `timed`: the probability of an
    adverbial of time.
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


WHERE = Expression("where", "dónde")
WHERE_TO = Expression("where", "adónde")
WHEN = Expression("when", "cuándo")
WHAT = Expression("what", "qué")
HOW = Expression("how", "cómo")
WHY = Expression("why", "por qué", "0-0 0-1")
HOW_MUCH = Expression("how much", "cuánto", "0-0 1-0")
HOW_OLD = Expression("how old", "cuántos años", "0-0 1-1")
WHAT_TIME = Expression("what time", "a qué hora", "0-0 0-1 1-2")
GREETINGS = (
    Expression("good morning", "buenos días"),
    Expression("good afternoon", "buenas tardes"),
    Expression("good night", "buenas noches"),
    Expression("thank you", "gracias", "0-0 1-0"),
    Expression("hello", "hola"),
    Expression("goodbye", "adiós"),
)
MEETING_GREETINGS = (GREETINGS[0], GREETINGS[1], GREETINGS[4], GREETINGS[4])
REQUESTS = (choice, choice, deeds.open_or_close, deeds.open_or_close, deeds.help_someone)
PLEASE = Expression("please", "por favor", "0-0 0-1")
YES = Expression("yes", "sí")
NO = Expression("no", "no")


def asked_person(rng: Random) -> Subject:
    """Return the person whom a question is about."""
    chance = rng.random()
    if chance < 0.5:
        return YOU
    if chance < 0.72:
        return pick(rng, (HE, HE, SHE, SHE, THEY, THEY, WE))
    while True:
        subject = named(rng)
        if len(subject.members) == 1 and subject.is_specific:
            return subject


def yes_no(rng: Random) -> Part:
    """Return a yes/no question: do you like soccer, ¿te gusta el fútbol?"""
    subject = asked_person(rng)
    kind = rng.random()
    if kind < 0.3:
        return likes(rng, subject, length=pick(rng, (1, 1, 1, 2)), question=True)
    if kind < 0.5:
        return is_(rng, subject, question=True)
    if kind < 0.57:
        return thing_is(rng, question=True)
    if kind < 0.63:
        return there_is(rng, question=True)
    if kind < 0.73:
        return clause(subject, lasting(rng, subject), "present", question=True)
    if kind < 0.83:
        verb = pick(rng, (verbs.WANT, verbs.WANT, verbs.PREFER, verbs.HAVE_TO))
        doing = choice(rng, subject)
        wish = obliged(doing, subject) if verb is verbs.HAVE_TO else deed(doing, subject.person, "to")
        return clause(subject, Predicate(verb, wish), "present", question=True)
    mode = pick(rng, ("present", "past", "past", "will", "going", "progressive", "can"))
    predicate = action(rng, subject)
    if mode == "progressive" and not can_go_on(predicate):
        mode = "present"
    part = clause(subject, predicate, mode, question=True)
    if rng.random() < 0.25 and predicate.verb not in MOMENTARY:
        return join(part, when_where.when(rng, mode))
    return part


def wh(rng: Random) -> Part:
    """Return a question with what, where, when, why, who, how many or how much."""
    subject = asked_person(rng)
    kind = rng.random()
    mode = pick(rng, ("present", "past", "will", "going"))
    if kind < 0.13:
        verb = pick(rng, (verbs.LIVE, verbs.WORK, verbs.STUDY, verbs.SLEEP, verbs.EAT))
        return _ask(WHERE, subject, verb, "present" if verb is verbs.LIVE else mode)
    if kind < 0.22:
        return _ask(WHERE_TO, subject, verbs.GO, pick(rng, ("progressive", mode)))
    if kind < 0.38:
        verb = pick(
            rng, (verbs.EAT, verbs.BUY, verbs.READ, verbs.WRITE, verbs.STUDY, verbs.COOK, verbs.NEED, verbs.WANT)
        )
        wish = verb in (verbs.NEED, verbs.WANT)
        return _ask(WHAT, subject, verb, "present" if wish else pick(rng, (mode, "progressive")))
    if kind < 0.48:
        return clause(subject, _undated(rng, subject), mode, question=True, opener=WHEN.say())
    if kind < 0.54:
        verb = pick(rng, (verbs.GET_UP, verbs.GO_TO_BED, verbs.ARRIVE, verbs.EAT))
        return _ask(WHAT_TIME, subject, verb, mode)
    if kind < 0.63:
        if rng.random() < 0.4:
            return is_(rng, subject, question=True, opener=WHY.say())
        maker = lasting if rng.random() < 0.3 else action
        return clause(subject, maker(rng, subject), pick(rng, ("present", "past")), question=True, opener=WHY.say())
    if kind < 0.74:
        return _who(rng)
    if kind < 0.8:
        return how_many(rng, subject)
    if kind < 0.9:
        return about_thing(rng)
    if kind < 0.95:
        return _ask(HOW, subject, verbs.ESTAR, "present")
    if kind < 0.975:
        return _ask(HOW_OLD, subject, verbs.TENER, "present")
    return _ask(WHERE, subject, verbs.ESTAR, "present")


def _ask(opener: Expression, subject: Subject, verb: Verb, mode: str) -> Part:
    return clause(subject, Predicate(verb, NOTHING), mode, question=True, opener=opener.say())


def _undated(rng: Random, subject: Subject) -> Predicate:
    return pick(rng, (choice, choice, deeds.work, deeds.help_someone))(rng, subject)


def _who(rng: Random) -> Part:
    chance = rng.random()
    if chance < 0.35:
        return likes(rng, WHO)
    if chance < 0.5:
        return is_(rng, WHO, negative=False)
    if chance < 0.65:
        return has(rng, WHO)
    return does(rng, WHO, pick(rng, ("present", "past", "will", "can")), timed=0.2, negative=False)


HOW_MANY = ("cuánto", "cuánta", "cuántos", "cuántas")


def how_many(rng: Random, subject: Subject) -> Part:
    """Return a question about a number: how many books do you have, ¿cuántos libros tienes?"""
    noun = pick(rng, words.SMALL_THINGS + words.ANIMALS + words.FAMILY[2:6])
    how_many = Expression("how many", HOW_MANY[noun.feminine + 2], "0-0 1-0").say()
    if labels := LABELING.get():
        labels.determiner(how_many.spanish[0], HOW_MANY, noun.feminine + 2, english="many")
    opener = join(how_many, noun_phrase(noun, plural=True))
    return clause(subject, Predicate(verbs.HAVE, NOTHING), "present", question=True, opener=opener)


def about_thing(rng: Random) -> Part:
    """Return a question about the place or the price of a thing."""
    if rng.random() < 0.6:
        if rng.random() < 0.5:
            noun, plural = pick(rng, words.SMALL_THINGS), rng.random() < 0.3
            determiner = pick(rng, ("my", "the", "your"))
        else:
            noun, plural, determiner = pick(rng, words.TO_FIND), False, "the"
        subject = of_nouns(Member(noun, determiner, plural), human=False)
        return _ask(WHERE, subject, verbs.ESTAR, "present")
    plural = rng.random() < 0.3
    determiner = pick(rng, ("these", "those", "the") if plural else ("this", "that", "the"))
    subject = of_nouns(Member(pick(rng, words.THINGS), determiner, plural), human=False)
    return _ask(HOW_MUCH, subject, verbs.COST, "present")


def request(rng: Random) -> Part:
    """Return a request: open the door, please."""
    while True:
        predicate = pick(rng, REQUESTS)(rng, YOU)
        if not predicate.verb.reflexive and not predicate.clitic:
            break
    verb = predicate.verb
    english_verb = english_words(verb.base, *verb.particle)
    imperative = Spanish(verb.imperative, *english_verb)
    if labels := LABELING.get():
        labels.imperative(verb, english_verb, imperative, predicate.complement)
    part = join(Part(english_verb, [imperative]), predicate.complement)
    chance = rng.random()
    if chance < 0.4:
        return part
    please = PLEASE.say()
    if chance < 0.75:
        return join(comma(part), please)
    please.spanish[-1].text += ","
    return join(please, part)


def answer(rng: Random, subject: Subject) -> Part:
    """Return a sentence that begins with yes or no."""
    negative = rng.random() < 0.5
    kind = rng.random()
    if kind < 0.4:
        statement = likes(rng, subject, negative=negative)
    elif kind < 0.7:
        statement = is_(rng, subject, negative=negative)
    else:
        statement = does(rng, subject, pick(rng, ("present", "past", "will", "can")), timed=0.1, negative=negative)
    return join(comma((NO if negative else YES).say()), statement)


def greeting(rng: Random) -> tuple[Part, str]:
    """Return a greeting, thanks or a farewell, sometimes with more words, and its final punctuation."""
    part = pick(rng, GREETINGS).say()
    chance = rng.random()
    if chance < 0.25:
        part = join(comma(part), noun_phrase(pick(rng, words.NAMES)))
    if chance < 0.35:
        return part, "."
    if chance < 0.6:
        return join(comma(_meeting(rng)), _with_opening_mark(wh(rng))), "?"
    if chance < 0.78:
        return join(comma(_meeting(rng)), _with_opening_mark(yes_no(rng))), "?"
    return join(comma(_meeting(rng)), plans(rng, I, negative=False, kind=pick(rng, (0.1, 0.6)))), "."


def _meeting(rng: Random) -> Part:
    return pick(rng, MEETING_GREETINGS).say()


def _with_opening_mark(question: Part) -> Part:
    """Add ¿ to a question that does not begin the sentence: Hola, ¿dónde estás?"""
    question.spanish[0].text = "¿" + question.spanish[0].text
    return question


def fragment(rng: Random) -> Part:
    """Return a phrase without a verb: a red car, to the beach, with my brother."""
    kind = rng.random()
    if kind < 0.4:
        return thing(rng, (*words.THINGS, words.HOUSE), words.THING_ADJECTIVES, many=0.35)
    if kind < 0.55:
        quality = pick(rng, (*words.PERSON_ADJECTIVES, words.GOOD, words.GREAT))
        return noun_phrase(pick(rng, words.PEOPLE), pick(rng, ("the", "a", "this")), quality)
    if kind < 0.72:
        return thing(rng, words.READING + words.SHOWS, deeds.PRAISE, many=0.35)
    if kind < 0.78:
        return person_phrase(rng, YOU)[0]
    if kind < 0.86:
        return when_where.at(rng, words.PLACES)
    if kind < 0.93:
        return when_where.to(rng, words.GO_PLACES)
    return when_where.together(rng, YOU)
