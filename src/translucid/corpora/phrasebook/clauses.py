"""Clauses: a subject, a verb in a mode, negation and questions, with their word alignment.

A word without a counterpart is linked to the counterpart of the word to which it belongs. The dropped pronoun and
English auxiliaries (do, will, be) are linked to the Spanish verb, reflexive pronouns to the English verb, and the
preposition and the clitic of an experiencer to the English subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .nominals import Subject
from .text import English, Expression, Part, Spanish, english_words, join
from .verbs import CAN, ESTAR, GIVE, GO, Verb
from .word_labels import LABELING

AM = ("am", "are", "is", "are", "are")
BE = {"present": AM, "past": ("was", "were", "was", "were", "were")}
DO = {"present": ("do", "do", "does", "do", "do"), "past": ("did", "did", "did", "did", "did")}
REFLEXIVE = ("me", "te", "se", "nos", "se")
INDIRECT = ("me", "te", "le", "nos", "les")


class Predicate(NamedTuple):
    """A verb with its complement, for a single clause."""

    verb: Verb
    complement: Part
    clitic: str = ""
    """The Spanish object pronoun, if any."""
    clitic_of: tuple[English, ...] = ()
    """The English words to which that pronoun is linked."""


class _Group(NamedTuple):
    """The English verb group: an auxiliary, `going to`, and the main verb; each may be missing."""

    support: list[English]
    going: list[English]
    main: list[English]


def _english(verb: Verb, person: int, mode: str, *, bare: bool) -> _Group:
    """Return the English verb group; with `bare`, for negations and questions, it has an auxiliary."""
    infinitive = english_words(verb.base, *verb.particle)
    if mode in ("will", "can", "would"):
        return _Group(english_words(mode), [], infinitive)
    if mode == "going":
        return _Group(english_words(AM[person]), english_words("going", "to"), infinitive)
    if mode == "progressive":
        return _Group(english_words(AM[person]), [], english_words(verb.ing, *verb.particle))
    if verb.is_be:
        return _Group(english_words(BE[mode][person]), [], english_words(*verb.particle))
    if bare:
        return _Group(english_words(DO[mode][person]), [], infinitive)
    text = verb.base
    if mode == "past":
        text = verb.past
    elif person == 2:
        text = verb.third
    return _Group([], [], english_words(text, *verb.particle))


def _spanish(verb: Verb, person: int, mode: str, group: _Group, dropped: tuple[English, ...]) -> list[Spanish]:
    """Return the Spanish verb group without an infinitive; `dropped` are the English words of a dropped subject."""
    support, going, main = group
    if mode == "going":
        return [Spanish(GO.finite["present"][person], *dropped, *support, going[0]), Spanish("a", going[1])]
    if mode == "can":
        return [Spanish(CAN.finite["present"][person], *dropped, *support)]
    if mode == "progressive" and verb is not GO:
        return [Spanish(ESTAR.finite["present"][person], *dropped, *support), Spanish(verb.gerund, *main)]
    tense = "present" if mode == "progressive" else mode  # `I am going` is `voy`
    return [Spanish(verb.finite[tense][person], *dropped, *support, *main)]


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
    """Return a clause.

    Args:
        subject: the subject.
        predicate: the predicate.
        mode: `present`, `past`, `will`, `going`, `progressive` or `can`.
        negative: whether the clause is negated, with not / no.
        question: whether it is a question: English inverts and uses do; Spanish puts the subject after the verb.
        adverb: an adverb such as `always`, before the English main verb and directly after the Spanish subject.
        opener: a question word or adverbial before the clause.
    """
    verb, complement = predicate.verb, predicate.complement
    group = _english(verb, subject.english_person, mode, bare=negative or question)
    subject_part, _ = subject.say()
    middle = _middle(adverb, negative=negative)
    english = _english_order(group, subject_part, middle, question=question)

    dropped = () if subject_part.spanish else tuple(subject_part.english)
    person = subject.person
    finite, *nonfinite = _spanish(verb, person, mode, group, dropped)
    preverbal = list(middle.spanish)
    clitics = _clitic(predicate, person, group.main)
    if mode in ("going", "can"):  # the clitic is part of the infinitive
        nonfinite.append(_infinitive(predicate, person, group.main))
    else:
        preverbal += clitics
    if labels := LABELING.get():
        labels.verb_group(verb, mode, subject, group, (finite, nonfinite))
        _label_clitics(predicate, clitics, person)
        labels.complement(verb, complement, subject)
        labels.roles(subject_part.english, "subject")
        labels.roles(subject_part.spanish, "subject")
    if not question:
        spanish = [*subject_part.spanish, *preverbal, finite, *nonfinite, *complement.spanish]
    elif verb.is_be and _precedes_subject(complement):
        # ¿Está abierta la puerta?
        spanish = [*preverbal, finite, *nonfinite, *complement.spanish, *subject_part.spanish]
    elif opener is not None:
        # ¿Dónde va a comer Ana?
        spanish = [*preverbal, finite, *nonfinite, *subject_part.spanish, *complement.spanish]
    else:
        # ¿Va Ana a comer pan?
        spanish = [*preverbal, finite, *subject_part.spanish, *nonfinite, *complement.spanish]
    part = Part(english + complement.english, spanish)
    return join(opener, part) if opener else part


def _label_clitics(predicate: Predicate, clitics: Sequence[Spanish], person: int) -> None:
    labels = LABELING.get()
    is_indirect = predicate.verb is GIVE or predicate.clitic in ("le", "les")
    for clitic in clitics:
        assert labels is not None
        labels.clitic(clitic, person, "indirect object" if is_indirect else "object", predicate.clitic_of)


def _middle(adverb: Expression | None, *, negative: bool) -> Part:
    """Return the negation and the adverb, which are in the opposite order in Spanish."""
    middle = adverb.say() if adverb else Part([], [])
    if negative:
        negation = English("not")
        middle.english.insert(0, negation)
        middle.spanish.append(Spanish("no", negation))
    return middle


def _english_order(group: _Group, subject_part: Part, middle: Part, *, question: bool) -> list[English]:
    """Return the English words of a clause before the complement; in a question, the auxiliary is first."""
    opening = [*group.support, *subject_part.english] if question else [*subject_part.english, *group.support]
    return [*opening, *middle.english, *group.going, *group.main]


def _clitic(predicate: Predicate, person: int, main: Sequence[English]) -> list[Spanish]:
    """Return the reflexive pronoun of the main verb, or the object pronoun, if there is one."""
    if predicate.verb.reflexive:
        return [Spanish(REFLEXIVE[person], *main)]
    if predicate.clitic:
        return [Spanish(predicate.clitic, *predicate.clitic_of)]
    return []


def _infinitive(predicate: Predicate, person: int, main: Sequence[English]) -> Spanish:
    """Return the infinitive, whose last part is the clitic: levantarse."""
    infinitive = Spanish(predicate.verb.infinitive, *main)
    for clitic in _clitic(predicate, person, main):
        infinitive = Spanish(infinitive.text + clitic.text, *infinitive.sources, *clitic.sources)
    return infinitive


def _precedes_subject(complement: Part) -> bool:
    """Whether the complement of a question with `be` precedes the Spanish subject: ¿Está abierta la puerta?

    In ¿Está Ana en casa? and ¿Es Ana profesora?, it follows the subject.
    """
    if not complement.spanish or complement.spanish[0].text in ("en", "un", "una"):
        return False
    return complement.english[0].text != "a"


def continuation(subject: Subject, predicate: Predicate, mode: str) -> Part:
    """Return a second clause for a subject that neither language repeats: `and drinks water`, `y bebe agua`."""
    verb = predicate.verb
    group = _english(verb, subject.english_person, mode, bare=False)
    words = group.main
    if mode in ("present", "past"):
        words = [*group.support, *group.main]
    clitics = _clitic(predicate, subject.person, words)
    finite = None
    if mode in ("going", "can"):
        spanish = [_infinitive(predicate, subject.person, words)]
    else:
        finite = Spanish(verb.finite[mode][subject.person], *words)
        spanish = [*clitics, finite]
    if labels := LABELING.get():
        labels.verb_group(verb, mode, subject, ([], [], words), (finite, spanish if finite is None else []))
        _label_clitics(predicate, clitics, subject.person)
        labels.complement(verb, predicate.complement, subject)
    return Part(words + predicate.complement.english, spanish + predicate.complement.spanish)


def deed(predicate: Predicate, person: int, form: str) -> Part:
    """Return an activity: `to go`, `go` or `going` to the beach, all `ir a la playa`.

    Args:
        predicate: the activity.
        person: the person of its subject, for reflexive verbs.
        form: `to`, `base` or `ing`; `to` is linked to the infinitive.
    """
    verb = predicate.verb
    words = english_words(verb.ing if form == "ing" else verb.base, *verb.particle)
    if form == "to":
        words.insert(0, English("to"))
    infinitive = _infinitive(predicate, person, words)
    if labels := LABELING.get():
        labels.deed(verb, words, infinitive, predicate.complement)
        _label_clitics(predicate, _clitic(predicate, person, words), person)
    return join(Part(words, [infinitive]), predicate.complement)


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
) -> Part:
    """Return a clause whose English object is the Spanish subject (I like sports, Me gustan los deportes).

    Args:
        subject: the experiencer; Spanish adds `a` to a noun and repeats it as a clitic (A Ana le gusta).
        verb: like, love, be interested in.
        stimulus: the thing or activity that is liked.
        plural: whether the Spanish verb is plural.
        mode: `present`, `past` or `would`.
        negative, question, adverb: as in `clause`.
    """
    group = _english(verb, subject.english_person, mode, bare=negative or question)
    subject_part, heads = subject.say(personal=True)
    middle = _middle(adverb, negative=negative)
    english = _english_order(group, subject_part, middle, question=question)
    clitic = Spanish(INDIRECT[subject.person], *heads)
    finite = Spanish(verb.finite[mode][4 if plural else 2], *group.support, *group.main)
    spanish = [*subject_part.spanish, *middle.spanish, clitic, finite]
    if labels := LABELING.get():
        labels.felt(subject, verb, mode, group, (clitic, finite), plural=plural)
        labels.roles(subject_part.english, "subject")
        labels.roles([word for word in subject_part.spanish if word.text != "a"], "indirect object")
        labels.roles(stimulus.english, "object")
        labels.roles(stimulus.spanish, "subject")
    return Part(english + stimulus.english, spanish + stimulus.spanish)
