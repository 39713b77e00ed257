"""The sentences before the last one: one that mentions the antecedent, one that mentions something else, and others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeAlias

from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.being import quality, weather
from translucid.corpora.phrasebook.chance import pick
from translucid.corpora.phrasebook.clauses import Predicate, clause, felt
from translucid.corpora.phrasebook.conjugation import Verb
from translucid.corpora.phrasebook.deeds import NOTHING
from translucid.corpora.phrasebook.lexicon import Noun
from translucid.corpora.phrasebook.nominals import DETERMINERS, WE, I, Member, Subject, noun_phrase, of_nouns
from translucid.corpora.phrasebook.questions import WHERE
from translucid.corpora.phrasebook.text import Part, join, word

from .patterns import Pattern
from .references import COUNTED, ROOMS, SIGHTS, SINGULAR

POSSESSIVE = {0: "my", 2: "his", 3: "our"}
"""The English possessives of persons."""
DEFINITE = frozenset((*SINGULAR, *ROOMS, *SIGHTS))
"""Nouns that are mentioned with `the` where others have `a`."""


class Mention(NamedTuple):
    """The antecedent, and who mentions it."""

    noun: Noun
    plural: bool
    subject: Subject


Opening: TypeAlias = Callable[[Random, Mention], Part]


def _indefinite(rng: Random, noun: Noun, *, plural: bool) -> Part:
    """Return a thing that has not been mentioned: a lamp, two lamps, the soup."""
    determiner = "a"
    if plural:
        determiner = pick(rng, words.NUMBERS[:4])[0]
    elif noun in DEFINITE:
        determiner = "the"
    return noun_phrase(noun, determiner, plural=plural)


def _possessive(subject: Subject) -> str:
    if subject.person == 2 and subject.feminine:
        return "her"
    return POSSESSIVE[subject.person]


def _something(verb: Verb, mode: str) -> Opening:
    """Return a sentence in which someone has, buys or sees something."""

    def say(rng: Random, mention: Mention) -> Part:
        thing = _indefinite(rng, mention.noun, plural=mention.plural)
        return clause(mention.subject, Predicate(verb, thing), mode)

    return say


def _possession(verb: Verb, mode: str) -> Opening:
    """Return a sentence about something that belongs to the subject: Ana lost her keys."""

    def say(_: Random, mention: Mention) -> Part:
        thing = noun_phrase(mention.noun, _possessive(mention.subject), plural=mention.plural)
        return clause(mention.subject, Predicate(verb, thing), mode)

    return say


def _of_thing(mention: Mention) -> Subject:
    determiner = _possessive(mention.subject)
    if mention.noun in DEFINITE:
        determiner = "the"
    return of_nouns(Member(mention.noun, determiner, mention.plural), human=False)


def _state(english: str, spanish: str) -> Opening:
    """Return the state of something: the kitchen was dirty."""
    (adjective,) = words.adjectives(f"{english} {spanish}")

    def say(_: Random, mention: Mention) -> Part:
        thing = _of_thing(mention)
        return clause(thing, Predicate(verbs.ESTAR, word(english, adjective.spanish[thing.form])), "past")

    return say


def _where(_: Random, mention: Mention) -> Part:
    return clause(_of_thing(mention), Predicate(verbs.ESTAR, NOTHING), question=True, opener=WHERE.say())


def _this_is(_: Random, mention: Mention) -> Part:
    form = mention.noun.feminine + 2 * mention.plural
    english = ("this", "these")[mention.plural]
    pointer = word(english, DETERMINERS[english][form])
    be = word(("is", "are")[mention.plural], ("es", "son")[mention.plural])
    return join(pointer, be, noun_phrase(mention.noun, _possessive(mention.subject), plural=mention.plural))


def _like(_: Random, mention: Mention) -> Part:
    thing = noun_phrase(mention.noun, ("this", "these")[mention.plural], plural=mention.plural)
    return felt(mention.subject, verbs.LIKE, thing, plural=mention.plural)


def _went(_: Random, mention: Mention) -> Part:
    goal = noun_phrase(mention.noun, "the", generic=not mention.noun.article)
    return clause(mention.subject, Predicate(verbs.GO, join(word("to", "a"), goal)), "past")


def _remember(_: Random, mention: Mention) -> Part:
    return clause(mention.subject, Predicate(verbs.REMEMBER, noun_phrase(mention.noun, "the")), "present")


def _live(rng: Random, mention: Mention) -> Part:
    people = of_nouns(Member(mention.noun, _possessive(mention.subject), plural=True))
    if rng.random() < 0.5:
        return clause(people, Predicate(verbs.LIVE, when_where.at(rng, words.TOWNS)), "present")
    return clause(people, Predicate(verbs.WORK, when_where.at(rng, words.WORK_PLACES)), "present")


OPENINGS: dict[str, Opening] = {
    "bought": _something(verbs.BUY, "past"), "found": _something(verbs.FIND, "past"),
    "saw": _something(verbs.SEE, "past"), "have": _something(verbs.HAVE, "present"),
    "had": _something(verbs.HAVE, "past"), "need": _possession(verbs.NEED, "present"),
    "lost": _possession(verbs.LOSE, "past"), "dirty": _state("dirty", "sucio"), "broken": _state("broken", "roto"),
    "where": _where, "this": _this_is, "like": _like, "went": _went, "remember": _remember, "live": _live,
}  # fmt: skip
WITHOUT_SUBJECT = frozenset(("where", "this", "dirty", "broken", "live"))
"""The openings that do not mention their subject, who is therefore the speaker."""


def subject_of(rng: Random, opening: str) -> Subject:
    """Return who mentions the antecedent: the speaker, or someone whom the opening names."""
    if opening in WITHOUT_SUBJECT or rng.random() < 0.5:
        return pick(rng, (I, I, WE))
    return _person(rng)


def other_than(rng: Random, subject: Subject) -> Subject:
    """Return someone who can't be confused with the subject when the pronoun is dropped."""
    return _person(rng) if subject.person in (0, 3) else pick(rng, (I, I, WE))


def _person(rng: Random) -> Subject:
    if rng.random() < 0.7:
        return of_nouns(Member(pick(rng, words.NAMES)))
    return of_nouns(Member(pick(rng, words.FAMILY), pick(rng, ("my", "our"))))


def distractor(rng: Random, pattern: Pattern, mention: Mention) -> Part:
    """Return a sentence about something of the other gender, to which the pronoun can't refer.

    Either the pronoun has the other number, or the meaning of its sentence excludes it.
    """
    candidates, plural = COUNTED, not mention.plural
    if pattern.unlike and rng.random() < 0.6:
        candidates, plural = tuple(pattern.unlike), mention.plural
    candidates = tuple(noun for noun in candidates if noun.feminine != mention.noun.feminine)
    verb, mode = pick(rng, ((verbs.BUY, "past"), (verbs.HAVE, "present"), (verbs.SEE, "past"), (verbs.FIND, "past")))
    thing = _indefinite(rng, pick(rng, candidates), plural=plural)
    return clause(other_than(rng, mention.subject), Predicate(verb, thing), mode)


def filler(rng: Random, subject: Subject) -> Part:
    """Return a sentence without a thing to which a pronoun could refer."""
    if rng.random() < 0.4:
        return weather(rng)
    if rng.random() < 0.5:
        return clause(subject, Predicate(verbs.ESTAR, quality(rng, words.STATES, subject.form)), "present")
    verb = pick(rng, (verbs.WORK, verbs.SLEEP, verbs.ARRIVE, verbs.GET_UP))
    ending = when_where.when(rng, "past")
    if verb in (verbs.ARRIVE, verbs.GET_UP):
        ending = pick(rng, (when_where.EARLY, when_where.LATE)).say()
    return clause(subject, Predicate(verb, ending), "past")
