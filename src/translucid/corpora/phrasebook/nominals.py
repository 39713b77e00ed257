"""Noun phrases and subjects: determiners and adjectives that agree, the dropped pronoun, the personal a.

Noun phrases for objects are about things that people have, buy, eat and read.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from . import lexicon as words
from .chance import pick, sometimes, weighted
from .lexicon import FAMILY, NAMES, NUMBERS, PARENTS, PEOPLE, Adjective, Noun
from .text import English, Part, Spanish, comma, join, word
from .word_labels import LABELING

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
        noun: the head.
        determiner: an English determiner, or none.
        adjective: an adjective, before the noun in English and usually after it in Spanish.
        plural: whether the phrase is plural.
        very: whether to add `very` to the adjective; not for adjectives that precede the noun in Spanish.
        owner: a name: Ana's car, el coche de Ana.
        generic: whether only Spanish has an article, which is then linked to the noun: soccer, el fútbol.
    """
    form = noun.feminine + 2 * plural
    head = word(noun.plural, noun.spanish_plural) if plural else word(noun.singular, noun.spanish)
    quality = Part([], [])
    if adjective is not None:
        quality = word(adjective.english, adjective.spanish[form])
        if very and not adjective.precedes_noun:
            quality = join(word("very", "muy"), quality)
    spanish = [*head.spanish, *quality.spanish]
    if adjective is not None and adjective.precedes_noun:
        spanish = [*quality.spanish, *head.spanish]
    english = [*quality.english, *head.english]
    if generic or owner is not None:
        determiner = "the"
        spanish.insert(0, Spanish(_spanish_determiner("the", noun, form), *head.english))
    elif determiner:
        article = word(determiner, _spanish_determiner(determiner, noun, form))
        english, spanish = [*article.english, *english], [*article.spanish, *spanish]
    if owner is not None:
        possessor = English(owner.singular + "'s")
        english.insert(0, possessor)
        spanish += [Spanish("de", possessor), Spanish(owner.spanish, possessor)]
    part = Part(english, spanish)
    if labels := LABELING.get():
        labels.noun_phrase(part, noun, determiner, adjective, plural=plural, owner=owner)
        if determiner:
            labels.determiner(spanish[0], DETERMINERS[determiner], form, english=determiner)
    return part


def _spanish_determiner(determiner: str, noun: Noun, form: int) -> str:
    """Return the Spanish determiner of a noun: `el agua` is feminine, but begins with a stressed a."""
    if determiner == "the" and noun.spanish == "agua":
        return "el"
    return DETERMINERS[determiner][form]


class Member(NamedTuple):
    """A noun of a subject, with its determiner."""

    noun: Noun
    determiner: str = ""
    plural: bool = False


class Subject(NamedTuple):
    """A subject: a pronoun, which Spanish drops, or one or two nouns. It can be used any number of times."""

    pronoun: str
    """The English pronoun for a repeated subject: `Ana` becomes `she`."""
    person: int
    """The person of the Spanish verb: yo 0 .. ellos 4."""
    english_person: int
    feminine: bool
    members: tuple[Member, ...] = ()
    human: bool = True
    is_repeated: bool = False
    """Whether it has been mentioned before, so that a pronoun is used."""

    @property
    def named(self) -> bool:
        """Whether it consists of nouns, not of a pronoun that Spanish drops."""
        return bool(self.members) and not self.is_repeated

    @property
    def is_specific(self) -> bool:
        """Whether it is neither `everyone` nor `nobody`, which are not negated."""
        return self not in (EVERYONE, NOBODY)

    @property
    def form(self) -> int:
        """The index of adjectives that agree: `feminine + 2 * plural`."""
        return self.feminine + 2 * (self.person > 2)

    def say(self, *, personal: bool = False) -> tuple[Part, tuple[English, ...]]:
        """Return the words; with `personal`, each member gets the preposition a (A Ana y a Pedro les gusta...).

        Returns:
            the words, and the English words to which a clitic for the subject is linked.
        """
        if not self.named:
            pronoun = English(self.pronoun)
            if labels := LABELING.get():
                labels.subject_pronoun(pronoun, self)
            return Part([pronoun], []), (pronoun,)
        parts = []
        for member in self.members:
            part = noun_phrase(member.noun, member.determiner, plural=member.plural)
            if personal:
                with_a(part)
                if member.noun is _ME:
                    part.spanish[-1].text = "mí"
            parts.append(part)
        heads = tuple(part.english[-1] for part in parts)
        return enumeration(parts), heads

    def again(self) -> Subject:
        """Return the subject as a pronoun, for a later clause of the sentence."""
        return self._replace(is_repeated=True, english_person=self.person) if self.members else self


I = Subject("I", 0, 0, False)  # noqa: E741
YOU = Subject("you", 1, 1, False)
HE = Subject("he", 2, 2, False)
SHE = Subject("she", 2, 2, True)
WE = Subject("we", 3, 3, False)
THEY = Subject("they", 4, 4, False)
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
    if plural:
        return Subject("they", 4, 4, feminine, members, human)
    pronoun = "it"
    if human:
        pronoun = "she" if feminine else "he"
    return Subject(pronoun, 2, 2, feminine, members, human)


def named(rng: Random) -> Subject:
    """Return a third person, by name or description."""
    kind = rng.random()
    if kind < 0.4:
        return of_nouns(Member(pick(rng, NAMES)))
    if kind < 0.66:
        return of_nouns(Member(pick(rng, FAMILY), pick(rng, POSSESSIVES)))
    if kind < 0.8:
        return of_nouns(Member(pick(rng, PEOPLE), "the", rng.random() < 0.35))
    if kind < 0.86:
        return of_nouns(Member(pick(rng, (PARENTS, FAMILY[8])), pick(rng, POSSESSIVES), True))
    if kind < 0.92:
        first, second = pick(rng, NAMES), pick(rng, NAMES)
        if first is not second:
            return of_nouns(Member(first), Member(second))
        return of_nouns(Member(first))
    if kind < 0.955:
        return Subject("we", 3, 3, False, (Member(pick(rng, FAMILY), "my"), Member(_ME)))
    return EVERYONE if kind < 0.985 else NOBODY


def someone(rng: Random) -> Subject:
    """Return any person who can be the first subject of a sentence."""
    kind = rng.random()
    if kind < 0.66:
        return weighted(rng, ((0.42, I), (0.12, YOU), (0.13, HE), (0.13, SHE), (0.12, WE), (0.08, THEY)))
    return named(rng)


def other_than(rng: Random, subject: Subject) -> Subject:
    """Return someone else, who is distinct from the subject even if Spanish drops the pronoun."""
    if rng.random() < 0.25:
        return pick(rng, [pronoun for pronoun in (I, YOU, WE) if pronoun.person != subject.person])
    while True:
        someone = named(rng)
        if someone.person == someone.english_person and someone is not NOBODY and someone.members != subject.members:
            return someone


def next_subject(rng: Random, previous: Subject) -> Subject:
    """Return the subject of a later clause: the same one, or one that stays distinct when the pronoun is dropped."""
    if rng.random() < 0.6 and previous is not NOBODY:
        return previous.again()
    return other_than(rng, previous)


def person_phrase(rng: Random, subject: Subject) -> tuple[Part, bool]:
    """Return someone other than the subject as an object or companion, and whether it is plural."""
    kind = rng.random()
    nouns = PEOPLE
    if kind < 0.75:
        nouns = NAMES if kind < 0.35 else FAMILY
    noun = pick(rng, nouns)
    if any(member.noun.singular == noun.singular for member in subject.members):
        return person_phrase(rng, subject)
    if kind < 0.35:
        determiner, plural = "", False
    elif kind < 0.75:
        determiner, plural = pick(rng, POSSESSIVES), noun.singular == "friend" and rng.random() < 0.5
    else:
        determiner, plural = "the", rng.random() < 0.3
    return noun_phrase(noun, determiner, plural=plural), plural


def with_a(part: Part) -> Part:
    """Add the preposition a to an object, such as a person; it is linked to the object's head."""
    part.spanish.insert(0, Spanish("a", part.english[-1]))
    return part


def enumeration(parts: Sequence[Part], conjunction: tuple[str, str] = ("and", "y")) -> Part:
    """Join parts as a list: a, b and c."""
    if len(parts) == 1:
        return parts[0]
    return join(*map(comma, parts[:-2]), parts[-2], word(*conjunction), parts[-1])


def any_of(rng: Random, nouns: Sequence[Noun], determiner: str | Sequence[str] = "") -> Part:
    """Return a noun, with the determiner or with one of several."""
    noun = pick(rng, nouns)
    return noun_phrase(noun, determiner if isinstance(determiner, str) else pick(rng, determiner))


def thing(
    rng: Random, nouns: Sequence[Noun], qualities: Sequence[Adjective] = (), *, owned: bool = True, many: float = 0.25
) -> Part:
    """Return a countable object: a book, the red car, my keys, two shirts, these shoes.

    Only with `owned` it may have an owner (my keys, Ana's car). `many` is the probability of a plural.
    """
    noun = pick(rng, nouns)
    plural = rng.random() < many
    chance = rng.random()
    determiner = _plural_determiner(rng, chance) if plural else _singular_determiner(rng, chance)
    if owned and chance > 0.85:
        if chance > 0.96:
            return noun_phrase(noun, plural=plural, owner=pick(rng, words.NAMES))
        determiner = pick(rng, POSSESSIVES)
    return noun_phrase(noun, determiner, sometimes(rng, 0.3, qualities), plural=plural)


def _singular_determiner(rng: Random, chance: float) -> str:
    if chance >= 0.72:
        return pick(rng, ("this", "that"))
    return "a" if chance < 0.42 else "the"


def _plural_determiner(rng: Random, chance: float) -> str:
    if chance < 0.3:
        return ""
    if chance < 0.5:
        return "the"
    if chance < 0.65:
        return pick(rng, words.NUMBERS[:9])[0]
    return pick(rng, ("these", "those") if chance < 0.8 else ("many", "some"))


def some_of(rng: Random, nouns: Sequence[Noun], qualities: Sequence[Adjective] = ()) -> Part:
    """Return things in general: books, good movies."""
    quality = sometimes(rng, 0.25, qualities)
    return noun_phrase(pick(rng, nouns), adjective=quality, plural=True)


def food(rng: Random) -> Part:
    """Return something to eat: bread, the soup, apples, two eggs."""
    chance = rng.random()
    if chance < 0.6:
        return noun_phrase(pick(rng, words.MASS_FOOD), "the" if chance < 0.1 else "")
    noun = pick(rng, words.COUNT_FOOD)
    if chance < 0.74:
        return noun_phrase(noun, "a")
    return noun_phrase(noun, "" if chance < 0.9 else pick(rng, words.NUMBERS[:5])[0], plural=True)


def goods(rng: Random, edible: float) -> Part:
    """Return something to buy or need; with the probability `edible`, something to eat."""
    if rng.random() < edible:
        return food(rng)
    return thing(rng, words.THINGS, words.THING_ADJECTIVES, owned=False)


def drink(rng: Random) -> Part:
    """Return something to drink."""
    return any_of(rng, words.DRINKS)
