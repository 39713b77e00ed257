"""Noun phrases and subjects: determiners and adjectives that agree, the dropped pronoun, the personal a."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from .lexicon import FAMILY, NAMES, NUMBERS, PARENTS, PEOPLE, Adjective, Noun
from .text import English, Part, Spanish

T = TypeVar("T")

DETERMINERS = {
    # English: Spanish by feminine + 2 * plural
    "the": ("el", "la", "los", "las"),
    "a": ("un", "una", "unos", "unas"),
    "this": ("este", "esta", "estos", "estas"),
    "that": ("ese", "esa", "esos", "esas"),
    "these": ("este", "esta", "estos", "estas"),
    "those": ("ese", "esa", "esos", "esas"),
    "my": ("mi", "mi", "mis", "mis"),
    "your": ("tu", "tu", "tus", "tus"),
    "his": ("su", "su", "sus", "sus"),
    "her": ("su", "su", "sus", "sus"),
    "their": ("su", "su", "sus", "sus"),
    "our": ("nuestro", "nuestra", "nuestros", "nuestras"),
    "some": ("algún", "alguna", "algunos", "algunas"),
    "many": ("mucho", "mucha", "muchos", "muchas"),
}
DETERMINERS |= {english: (spanish,) * 4 for english, spanish in NUMBERS}
POSSESSIVES = ("my", "my", "your", "his", "her", "our", "their")


def pick(rng: Random, choices: Sequence[T]) -> T:
    """Choose one of several; quicker than `Random.choice`, and as stable as `Random.random`."""
    return choices[int(rng.random() * len(choices))]


def weighted(rng: Random, choices: Sequence[tuple[float, T]]) -> T:
    """Choose by weight; the weights add up to 1."""
    left = rng.random()
    for weight, choice in choices:
        left -= weight
        if left < 0:
            return choice
    return choices[-1][1]


def noun_phrase(
    noun: Noun,
    determiner: str = "",
    adjective: Adjective | None = None,
    *,
    plural: bool = False,
    very: bool = False,
    owner: Noun | None = None,
    generic: bool = False,
) -> Part:
    """Build a noun phrase with agreement.

    Args:
        noun: its head.
        determiner: an English determiner, or none.
        adjective: an adjective, in front of the noun in English and usually behind it in Spanish.
        plural: whether it is plural.
        very: whether the adjective is intensified (not for adjectives in front).
        owner: a name: Ana's car, el coche de Ana.
        generic: a bare English noun that takes the Spanish article, which is linked to the noun: soccer, el fútbol.
    """
    form = noun.feminine + 2 * plural
    head = English(noun.plural if plural else noun.singular)
    english: list[English] = []
    spanish: list[Spanish] = []
    possessor = None
    if owner is not None:
        possessor = English(owner.singular + "'s")
        english.append(possessor)
    if generic or possessor is not None:
        spanish.append(Spanish(_article(noun, form), head))
    elif determiner:
        source = English(determiner)
        english.append(source)
        text = _article(noun, form) if determiner == "the" else DETERMINERS[determiner][form]
        spanish.append(Spanish(text, source))
    target = Spanish(noun.spanish_plural if plural else noun.spanish, head)
    if adjective is None:
        spanish.append(target)
    else:
        quality = English(adjective.english)
        described = Spanish(adjective.spanish[form], quality)
        if adjective.before:
            spanish += [described, target]
        else:
            spanish.append(target)
            if very:
                intensity = English("very")
                english.append(intensity)
                spanish.append(Spanish("muy", intensity))
            spanish.append(described)
        english.append(quality)
    english.append(head)
    if owner is not None and possessor is not None:
        spanish += [Spanish("de", possessor), Spanish(owner.spanish, possessor)]
    return Part(english, spanish)


def _article(noun: Noun, form: int) -> str:
    """Return the definite article; `el agua`, though feminine, because of its stressed first a."""
    return "el" if noun.spanish == "agua" else DETERMINERS["the"][form]


class Member(NamedTuple):
    """One noun of a subject, with its determiner."""

    noun: Noun
    determiner: str = ""
    plural: bool = False


class Subject(NamedTuple):
    """Who: a pronoun, which Spanish drops, or one or two nouns. It can be said any number of times."""

    pronoun: str
    """What English calls it when it comes again: `Ana` is `she`."""
    person: int
    """Of the Spanish verb: yo 0 .. ellos 4."""
    english_person: int
    feminine: bool
    members: tuple[Member, ...] = ()
    human: bool = True
    taken_up: bool = False
    """Whether it has been named already, so that the pronoun is enough."""

    @property
    def named(self) -> bool:
        """Tell whether it is said with nouns, not with a pronoun that Spanish drops."""
        return bool(self.members) and not self.taken_up

    @property
    def form(self) -> int:
        """Index of agreeing adjectives: `feminine + 2 * plural`."""
        return self.feminine + 2 * (self.person > 2)

    def say(self, *, personal: bool = False) -> tuple[Part, tuple[English, ...]]:
        """Say it; with `personal`, each member gets the preposition a (A Ana y a Pedro les gusta...).

        Returns:
            its words, and the English words that a clitic standing for it is linked to.
        """
        if not self.named:
            pronoun = English(self.pronoun)
            return Part([pronoun], []), (pronoun,)
        english: list[English] = []
        spanish: list[Spanish] = []
        heads = []
        for member in self.members:
            if english:
                also = English("and")
                english.append(also)
                spanish.append(Spanish("y", also))
            part = noun_phrase(member.noun, member.determiner, plural=member.plural)
            if personal and member.noun is _ME:
                part.spanish[0].text = "mí"
            if personal:
                spanish.append(Spanish("a", part.english[-1]))
            english += part.english
            spanish += part.spanish
            heads.append(part.english[-1])
        return Part(english, spanish), tuple(heads)

    def again(self) -> Subject:
        """Return the pronoun that takes it up later in the sentence."""
        return self._replace(taken_up=True, english_person=self.person) if self.members else self


I = Subject("I", 0, 0, False)  # noqa: E741
YOU = Subject("you", 1, 1, False)
HE = Subject("he", 2, 2, False)
SHE = Subject("she", 2, 2, True)
WE = Subject("we", 3, 3, False)
THEY = Subject("they", 4, 4, False)
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)
IT = Subject("it", 2, 2, False, human=False)
THERE = Subject("there", 2, 2, False, human=False)
THERE_ARE = Subject("there", 2, 4, False, human=False)
EVERYONE = Subject("they", 4, 2, False, (Member(Noun("everyone", "everyone", "todos", "todos", False)),))
NOBODY = Subject("they", 2, 2, False, (Member(Noun("nobody", "nobody", "nadie", "nadie", False)),))
WHO = Subject("who", 2, 2, False, (Member(Noun("who", "who", "quién", "quién", False)),))
_ME = Noun("I", "I", "yo", "yo", False)


def of_nouns(*members: Member, human: bool = True) -> Subject:
    """Return the subject made of one or more nouns."""
    plural = len(members) > 1 or members[0].plural
    feminine = all(member.noun.feminine for member in members)
    if not human:
        pronoun = "they" if plural else "it"
    else:
        pronoun = "they" if plural else "she" if feminine else "he"
    person = 4 if plural else 2
    return Subject(pronoun, person, person, feminine, members, human)


def named(rng: Random) -> Subject:
    """Return someone other than the people present, by name or description."""
    kind = rng.random()
    if kind < 0.4:
        return of_nouns(Member(pick(rng, NAMES)))
    if kind < 0.66:
        return of_nouns(Member(pick(rng, FAMILY), pick(rng, POSSESSIVES)))
    if kind < 0.8:
        return of_nouns(Member(pick(rng, PEOPLE), "the", rng.random() < 0.35))
    if kind < 0.86:
        return of_nouns(Member(PARENTS if rng.random() < 0.5 else FAMILY[8], pick(rng, POSSESSIVES), True))
    if kind < 0.92:
        first, second = pick(rng, NAMES), pick(rng, NAMES)
        if first is not second:
            return of_nouns(Member(first), Member(second))
        return of_nouns(Member(first))
    if kind < 0.955:
        return Subject("we", 3, 3, False, (Member(pick(rng, FAMILY), "my"), Member(_ME)))
    return EVERYONE if kind < 0.985 else NOBODY


def someone(rng: Random) -> Subject:
    """Return any person a sentence can begin with."""
    kind = rng.random()
    if kind < 0.66:
        return weighted(rng, ((0.42, I), (0.12, YOU), (0.13, HE), (0.13, SHE), (0.12, WE), (0.08, THEY)))
    return named(rng)


def other_than(rng: Random, subject: Subject) -> Subject:
    """Return someone else, whom Spanish can tell from the subject without a pronoun."""
    if rng.random() < 0.25:
        return pick(rng, [pronoun for pronoun in (I, YOU, WE) if pronoun.person != subject.person])
    while True:
        other = named(rng)
        if other.person == other.english_person and other is not NOBODY and other.members != subject.members:
            return other


def next_subject(rng: Random, before: Subject) -> Subject:
    """Return the subject of a later clause: the same one again, or one that no dropped pronoun confuses with it."""
    if rng.random() < 0.6 and before is not NOBODY:
        return before.again()
    return other_than(rng, before)


def person_phrase(rng: Random, subject: Subject) -> tuple[Part, English, bool]:
    """Return someone other than the subject as an object or companion, the head noun, and whether it is plural."""
    kind = rng.random()
    noun = pick(rng, NAMES if kind < 0.35 else FAMILY if kind < 0.75 else PEOPLE)
    if any(member.noun.singular == noun.singular for member in subject.members):
        return person_phrase(rng, subject)
    if kind < 0.35:
        determiner, plural = "", False
    elif kind < 0.75:
        determiner, plural = pick(rng, POSSESSIVES), noun.singular == "friend" and rng.random() < 0.5
    else:
        determiner, plural = "the", rng.random() < 0.3
    part = noun_phrase(noun, determiner, plural=plural)
    return part, part.english[-1], plural


def personal_a(part: Part, head: English) -> Part:
    """Put the personal a in front of a human object; it belongs to the object's head."""
    part.spanish.insert(0, Spanish("a", head))
    return part


def enumeration(parts: Sequence[Part], conjunction: tuple[str, str] = ("and", "y")) -> Part:
    """Join parts as a list: a, b and c."""
    english = list(parts[0].english)
    spanish = list(parts[0].spanish)
    for place, part in enumerate(parts[1:], 1):
        if place < len(parts) - 1:
            english[-1].text += ","
            spanish[-1].text += ","
        else:
            link = English(conjunction[0])
            english.append(link)
            spanish.append(Spanish(conjunction[1], link))
        english += part.english
        spanish += part.spanish
    return Part(english, spanish)
