"""Clauses: a subject, a verb in some mode, negation and questions, with the links that the two grammars call for.

Links: what has no counterpart goes with what it belongs to. The dropped pronoun and English auxiliaries (do, will, be)
link to the Spanish verb, reflexive pronouns to the English verb, the preposition and clitic that announce an
experiencer to the English subject.
"""

from __future__ import annotations

from typing import NamedTuple

from .conjugation import Verb
from .nominals import Subject
from .text import English, Expression, Part, Spanish
from .verbs import CAN, ESTAR, GO

DO = ("do", "do", "does", "do", "do")
AM = ("am", "are", "is", "are", "are")
WAS = ("was", "were", "was", "were", "were")
REFLEXIVE = ("me", "te", "se", "nos", "se")
INDIRECT = ("me", "te", "le", "nos", "les")


class Predicate(NamedTuple):
    """A verb with all that follows it, to be said once, of one subject."""

    verb: Verb
    complement: Part
    clitic: str = ""
    """The Spanish object pronoun, if any."""
    clitic_of: tuple[English, ...] = ()
    """The English words of that pronoun."""


class _Group(NamedTuple):
    """The English verb: an auxiliary, words between, and the main verb (either may be missing)."""

    support: list[English]
    going: list[English]
    main: list[English]


def _english(verb: Verb, person: int, mode: str, *, bare: bool) -> _Group:
    """Conjugate in English; `bare` asks for an auxiliary (negation, question)."""
    particle = [English(text) for text in verb.particle]
    if mode in ("will", "can", "would"):
        return _Group([English(mode)], [], [English(verb.base), *particle])
    if mode == "going":
        return _Group([English(AM[person])], [English("going"), English("to")], [English(verb.base), *particle])
    if mode == "progressive":
        return _Group([English(AM[person])], [], [English(verb.ing), *particle])
    past = mode == "past"
    if verb.is_be:
        return _Group([English((WAS if past else AM)[person])], [], particle)
    if bare:
        return _Group([English("did" if past else DO[person])], [], [English(verb.base), *particle])
    text = verb.past if past else verb.third if person == 2 else verb.base
    return _Group([], [], [English(text), *particle])


def clause(
    subject: Subject,
    predicate: Predicate,
    mode: str = "present",
    *,
    negative: bool = False,
    question: bool = False,
    adverb: Expression | None = None,
    opener: Part | None = None,
) -> Part:
    """Say something of someone.

    Args:
        subject: who.
        predicate: what.
        mode: `present`, `past`, `will`, `going`, `progressive` or `can`.
        negative: with not / no.
        question: English inverts and uses do; Spanish puts the subject behind the verb.
        adverb: one that English puts before its main verb and Spanish before everything but the subject: always.
        opener: a question word or adverbial in front of it all.
    """
    verb, complement = predicate.verb, predicate.complement
    support, going, main = _english(verb, subject.english_person, mode, bare=negative or question)
    said, _ = subject.say()
    middle = adverb.say() if adverb else Part([], [])
    negation = [English("not")] if negative else []
    if question:
        english = [*support, *said.english, *negation, *middle.english, *going, *main]
    else:
        english = [*said.english, *support, *negation, *middle.english, *going, *main]

    dropped = () if said.spanish else tuple(said.english)
    person = subject.person
    clitic, clitic_of = predicate.clitic, predicate.clitic_of
    if verb.reflexive:
        clitic, clitic_of = REFLEXIVE[person], tuple(main)
    rest: list[Spanish] = []
    if mode == "going" or mode == "can":
        if mode == "going":
            finite = Spanish(GO.finite["present"][person], *dropped, *support, going[0])
            rest.append(Spanish("a", going[1]))
        else:
            finite = Spanish(CAN.finite["present"][person], *dropped, *support)
        rest.append(Spanish(verb.infinitive + clitic, *main, *clitic_of))
        clitic = ""
    elif mode == "progressive" and verb is not GO:
        finite = Spanish(ESTAR.finite["present"][person], *dropped, *support)
        rest.append(Spanish(verb.gerund, *main))
    else:
        tense = "present" if mode == "progressive" else mode
        finite = Spanish(verb.finite[tense][person], *dropped, *support, *main)
    before = [*middle.spanish, *[Spanish("no", word) for word in negation]]
    if clitic:
        before.append(Spanish(clitic, *clitic_of))
    if question and verb.is_be and complement.spanish and complement.spanish[0].text not in ("en", "un", "una"):
        # ¿Está abierta la puerta?, but ¿Está Ana en casa? and ¿Es Ana profesora?
        last = [] if complement.english[0].text == "a" else complement.spanish
        first = [] if last else complement.spanish
        return _opened(
            opener, Part(english + complement.english, [*before, finite, *rest, *last, *said.spanish, *first])
        )
    if question and opener is not None:
        spanish = [*before, finite, *rest, *said.spanish]  # ¿Dónde va a comer Ana?
    elif question:
        spanish = [*before, finite, *said.spanish, *rest]  # ¿Va Ana a comer pan?
    else:
        spanish = [*said.spanish, *before, finite, *rest]
    return _opened(opener, Part(english + complement.english, spanish + complement.spanish))


def _opened(opener: Part | None, part: Part) -> Part:
    return Part(opener.english + part.english, opener.spanish + part.spanish) if opener else part


def continued(subject: Subject, predicate: Predicate, mode: str) -> Part:
    """Say something more of the same subject, which neither language repeats: `and drinks water`, `y bebe agua`."""
    verb = predicate.verb
    group = _english(verb, subject.english_person, mode, bare=False)
    words = group.main if mode in ("will", "can", "going", "progressive") else [*group.support, *group.main]
    clitic, clitic_of = predicate.clitic, predicate.clitic_of
    if verb.reflexive:
        clitic, clitic_of = REFLEXIVE[subject.person], tuple(words)
    if mode in ("going", "can"):
        spanish = [Spanish(verb.infinitive + clitic, *words, *clitic_of)]
    else:
        spanish = [Spanish(verb.finite[mode][subject.person], *words)]
        if clitic:
            spanish.insert(0, Spanish(clitic, *clitic_of))
    return Part(words + predicate.complement.english, spanish + predicate.complement.spanish)


def deed(predicate: Predicate, person: int, form: str) -> Part:
    """Name a deed: `to go`, `go` or `going` to the beach, all `ir a la playa`.

    Args:
        predicate: the deed.
        person: whose deed it is, for reflexive verbs.
        form: `to`, `base` or `ing`; to links to the infinitive.
    """
    verb = predicate.verb
    words = [English(verb.ing if form == "ing" else verb.base), *[English(text) for text in verb.particle]]
    if form == "to":
        words.insert(0, English("to"))
    clitic = REFLEXIVE[person] if verb.reflexive else predicate.clitic
    infinitive = Spanish(verb.infinitive + clitic, *words, *predicate.clitic_of)
    return Part([*words, *predicate.complement.english], [infinitive, *predicate.complement.spanish])


def felt(
    subject: Subject,
    verb: Verb,
    stimulus: Part,
    *,
    plural: bool,
    mode: str = "present",
    negative: bool = False,
    question: bool = False,
    adverb: Expression | None = None,
    opener: Part | None = None,
) -> Part:
    """Say what someone likes: the English object is the Spanish subject (I like sports, Me gustan los deportes).

    Args:
        subject: who feels; Spanish marks a noun with a and takes it up with a clitic (A Ana le gusta).
        verb: like, love, be interested in.
        stimulus: what is liked.
        plural: whether the Spanish verb is plural.
        mode: `present`, `past`, `will` or `going`.
        negative, question, adverb, opener: as in `clause`.
    """
    support, going, main = _english(verb, subject.english_person, mode, bare=negative or question)
    said, heads = subject.say(personal=True)
    middle = adverb.say() if adverb else Part([], [])
    negation = [English("not")] if negative else []
    order = [*support, *said.english] if question else [*said.english, *support]
    english = [*order, *negation, *middle.english, *going, *main]
    person = 4 if plural else 2
    clitic = Spanish(INDIRECT[subject.person], *heads)
    if mode == "going":
        words = [
            Spanish(GO.finite["present"][person], *support, going[0]),
            Spanish("a", going[1]),
            Spanish(verb.infinitive, *main),
        ]
    else:
        words = [Spanish(verb.finite[mode][person], *support, *main)]
    spanish = [*said.spanish, *middle.spanish, *[Spanish("no", word) for word in negation], clitic, *words]
    return _opened(opener, Part(english + stimulus.english, spanish + stimulus.spanish))
