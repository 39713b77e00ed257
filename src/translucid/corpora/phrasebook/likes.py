"""Clauses with gustar, encantar, interesar and doler, in which the thing is the Spanish subject."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .chance import pick, sometimes, weighted
from .clauses import INDIRECT, Predicate, clause, deed, felt
from .deeds import buy, leisure, read, watch
from .lexicon import Noun
from .nominals import DETERMINERS, NOBODY, Member, Subject, enumeration, noun_phrase, of_nouns, other_than
from .text import Expression, Part, join, word
from .verbs import Verb
from .word_labels import LABELING

AND_ALSO = Expression("and also", "y también")


def _kinds(nouns: Sequence[Noun], *, plural: bool) -> tuple[tuple[Noun, bool], ...]:
    return tuple((noun, plural) for noun in nouns)


LIKED = (
    # Things that people like in general, and whether they are plural: music, dogs.
    _kinds(words.SPORTS, plural=False) + ((words.SPORT, True),),
    _kinds(words.SPORTS, plural=False),
    _kinds(words.SUBJECTS, plural=False),
    _kinds(words.MASS_FOOD + words.DRINKS, plural=False) + _kinds(words.COUNT_FOOD[:3], plural=True),
    _kinds(words.ANIMALS, plural=True),
    _kinds(words.READING[:1] + words.SHOWS[:1] + words.SONGS + words.READING[-1:] + words.FLOWERS, plural=True),
)
"""Groups of similar things; most things of a list are from one group."""


def likes(
    rng: Random,
    subject: Subject,
    *,
    length: int = 1,
    past: bool = False,
    negative: bool | None = None,
    question: bool = False,
) -> Part:
    """Return what someone likes, in a list of `length`: I like soccer, tennis and also going to the beach.

    The clause may be in the past only if `past`. With `negative` None, chance decides whether it is negated.
    """
    verb = weighted(rng, ((0.72, verbs.LIKE), (0.2, verbs.LOVE), (0.08, verbs.INTEREST)))
    if negative is None:
        negative = not question and rng.random() < 0.15
    negative = negative and subject.is_specific
    if negative or length > 2:
        verb = verbs.LIKE
    adverb = None
    if not (question or negative or length > 1 or subject is NOBODY) and rng.random() < 0.08:
        adverb = when_where.ALSO
    kind = rng.random()
    mode = "present"
    if verb is verbs.INTEREST:
        subjects = list(words.SUBJECTS)
        nouns = []
        for _ in range(min(length, 2)):
            nouns.append(noun_phrase(subjects.pop(int(rng.random() * len(subjects))), generic=True))
        stimulus, plural, adverb = enumeration(nouns), len(nouns) > 1, None
    elif length == 1 and kind < 0.14 and not negative:
        stimulus, plural = _specific_thing(rng, subject)
        if past and verb is verbs.LIKE and not question and rng.random() < 0.6:
            mode = "past"
    elif negative:
        stimulus, plural = _disliked_things(rng, subject, length)
    elif length == 1:
        stimulus, plural = _deed_or_thing(rng, subject, is_deed=kind < 0.4)
    else:
        stimulus, plural = _list(rng, subject, length)
    return felt(subject, verb, stimulus, plural=plural, mode=mode, negative=negative, question=question, adverb=adverb)


def _deed_or_thing(rng: Random, subject: Subject, *, is_deed: bool) -> tuple[Part, bool]:
    """Return what a person likes to do, or a thing that people like, and whether it is plural."""
    if is_deed:
        form = "to" if rng.random() < 0.25 else "ing"
        return _deeds(rng, subject, 1, form)[0], False
    things, plural = general(rng, 1)
    return things[0], plural


def general(rng: Random, count: int) -> tuple[list[Part], bool]:
    """Return things that people like in general, and whether the first is plural: soccer, el fútbol; dogs, los perros.

    Most of them are from one group of `LIKED`.
    """
    things: list[Part] = []
    seen: set[str] = set()
    first_plural = False
    group = pick(rng, LIKED)
    while len(things) < count:
        noun, plural = pick(rng, group if rng.random() < 0.7 else pick(rng, LIKED))
        if noun.singular not in seen:
            seen.add(noun.singular)
            first_plural = first_plural or (plural and not things)
            things.append(noun_phrase(noun, generic=True, plural=plural))
    return things, first_plural


def _list(rng: Random, subject: Subject, length: int) -> tuple[Part, bool]:
    """Return a list of things and activities, often ended by `and also`, and whether the Spanish verb is plural.

    The verb agrees with the nouns before `y`: several are plural (gustan el fútbol y el tenis), but what follows
    `y también`, and infinitives, do not count (gusta el fútbol y también ir a la playa).
    """
    kind = rng.random()
    also = rng.random() < 0.65
    if kind < 0.2 and length < 8:
        return _closed_list(_deeds(rng, subject, length), also=also), False
    deeds = min(8, max(1, int(length * rng.random() * 0.7))) if kind < 0.75 else 0
    things, plural = general(rng, length - deeds)
    several = len(things) - (also and not deeds) > 1
    return _closed_list([*things, *_deeds(rng, subject, deeds)], also=also), plural or several


def _closed_list(parts: list[Part], *, also: bool) -> Part:
    if not also:
        return enumeration(parts)
    joined = parts[0]
    for part in parts[1:-1]:
        joined.english[-1].text += ","
        joined.spanish[-1].text += ","
        joined = join(joined, part)
    return join(joined, AND_ALSO.say(), parts[-1])


def _disliked_things(rng: Random, subject: Subject, length: int) -> tuple[Part, bool]:
    """Return things that are not liked, and whether they are plural: soccer or tennis, el fútbol ni el tenis."""
    if rng.random() < 0.3:
        return _deeds(rng, subject, 1)[0], False
    things, plural = general(rng, min(length, 2))
    return enumeration(things, ("or", "ni")), plural


def _deeds(rng: Random, subject: Subject, count: int, form: str = "ing") -> list[Part]:
    parts: list[Part] = []
    seen: set[Verb] = set()
    while len(parts) < count:
        predicate = leisure(rng, subject)
        if predicate.verb not in seen:
            seen.add(predicate.verb)
            parts.append(deed(predicate, subject.person, form))
    return parts


def _specific_thing(rng: Random, subject: Subject) -> tuple[Part, bool]:
    """Return a specific thing, and whether it is plural: this movie, your shoes."""
    kind = rng.random()
    plural = kind < 0.75 and rng.random() < 0.3
    determiner = pick(rng, ("these", "those", "your", "his") if plural else ("this", "that", "your", "her"))
    if kind < 0.4:
        quality = sometimes(rng, 0.3, words.THING_ADJECTIVES)
        owner = sometimes(rng, 0.15, words.NAMES)
        noun = pick(rng, (*words.THINGS, words.HOUSE))
        stimulus = noun_phrase(noun, determiner, quality, plural=plural, owner=owner)
    elif kind < 0.75:
        stimulus = noun_phrase(pick(rng, words.SHOWS + words.READING[:1] + words.SONGS), determiner, plural=plural)
    elif kind < 0.85:
        stimulus = noun_phrase(pick(rng, words.SIGHTS), pick(rng, ("this", "that")))
    else:
        stimulus, plural = _with_relative_clause(rng, subject), False
    return stimulus, plural


def _with_relative_clause(rng: Random, subject: Subject) -> Part:
    """Return a thing with a relative clause: the book that you bought, el libro que compraste."""
    maker, nouns = pick(rng, ((buy, words.THINGS), (read, words.READING), (watch, words.SHOWS)))
    agent = other_than(rng, subject)
    relative_clause = clause(agent, Predicate(maker(rng, agent).verb, Part([], [])), "past")
    if maker is read or rng.random() < 0.3:
        relative_clause = join(relative_clause, pick(rng, when_where.TIMES["past"]).say())
    return join(noun_phrase(pick(rng, nouns), "the"), word("that", "que"), relative_clause)


def hurts(rng: Random, subject: Subject) -> Part:
    """Return a clause about a pain: my head hurts, me duele la cabeza. The subject is I, you, he or she."""
    owner = {"I": "my", "you": "your", "he": "his", "she": "her"}[subject.pronoun]
    pronoun, hurt = INDIRECT[subject.person], verbs.HURT.finite["present"]
    plural = rng.random() < 0.35
    if plural:
        noun = pick(rng, words.BODY_PAIRS)
        english = f"{owner} {noun.plural} hurt"
        spanish = f"{pronoun} {hurt[4]} {DETERMINERS['the'][noun.feminine + 2]} {noun.spanish_plural}"
    else:
        noun = pick(rng, words.BODY)
        english = f"{owner} {noun.singular} hurts"
        spanish = f"{pronoun} {hurt[2]} {DETERMINERS['the'][noun.feminine]} {noun.spanish}"
    part = Expression(english, spanish, "0-0 2-1 0-2 1-3").say()
    if labels := LABELING.get():
        labels.noun_phrase(part, noun, owner, plural=plural)
        clitic, finite, article, _ = part.spanish
        labels.determiner(article, DETERMINERS["the"], noun.feminine + 2 * plural, english="the")
        thing = of_nouns(Member(noun, owner, plural), human=False)
        labels.verb_group(verbs.HURT, "present", thing, ([], [], part.english[2:]), (finite, ()))
        labels.clitic(clitic, subject.person, "indirect object")
        labels.roles(part.english, "subject")
        labels.roles(part.spanish, "subject")
    return part
