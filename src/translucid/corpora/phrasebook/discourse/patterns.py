"""Sentences whose `it` or `they` refers to a noun of an earlier sentence, on whose gender the Spanish depends.

A pattern is such a sentence without its antecedent: `I left it in the kitchen`. `references.py` lists the patterns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.chance import pick
from translucid.corpora.phrasebook.clauses import Predicate, clause
from translucid.corpora.phrasebook.conjugation import Verb
from translucid.corpora.phrasebook.lexicon import Adjective, Noun
from translucid.corpora.phrasebook.nominals import IT, THEY, Subject, noun_phrase
from translucid.corpora.phrasebook.text import English, Expression, Part, Spanish, join, word

Say: TypeAlias = Callable[[bool], Part]
"""Returns a sentence whose antecedent is feminine, or masculine; the English is the same."""


@dataclass(frozen=True)
class Pattern(ABC):
    """A sentence with a pronoun, and what its antecedent can be."""

    name: str
    """Its name, which the splits depend on."""
    antecedents: Sequence[Noun]
    """The nouns to which it can refer."""
    openings: str
    """The names of the sentences that can mention the antecedent (`openings.py`), separated by spaces."""
    unlike: Sequence[Noun] = ()
    """Nouns to which it can't refer, because of its meaning: nobody eats a lamp."""
    numbers: tuple[bool, ...] = (False, False, True)
    """Whether the antecedent is plural; one of them is chosen."""

    @property
    @abstractmethod
    def phenomenon(self) -> str:
        """What depends on the antecedent."""

    @abstractmethod
    def draw(self, rng: Random, subject: Subject, *, plural: bool) -> Say:
        """Choose the rest of the sentence; `subject` is its subject, unless that is the antecedent."""


@dataclass(frozen=True, kw_only=True)
class ObjectPattern(Pattern):
    """The pronoun is the object: I left it in the kitchen, la dejé en la cocina."""

    verb: Verb
    modes: tuple[str, ...] = ("past",)
    endings: Sequence[Expression] = ()
    """What follows; by default a time that suits the mode."""
    negative: bool = False
    phenomenon = "pronoun"

    def draw(self, rng: Random, subject: Subject, *, plural: bool) -> Say:
        """Choose the mode and what follows."""
        mode = pick(rng, self.modes)
        ending = pick(rng, self.endings or when_where.TIMES[mode])

        def say(feminine: bool) -> Part:
            pronoun = English(("it", "them")[plural])
            clitic = ("lo", "la", "los", "las")[feminine + 2 * plural]
            complement = join(Part([pronoun], []), ending.say())
            predicate = Predicate(self.verb, complement, clitic, (pronoun,))
            return clause(subject, predicate, mode, negative=self.negative)

        return say


@dataclass(frozen=True, kw_only=True)
class PrepositionPattern(Pattern):
    """The pronoun follows a preposition: I went to the beach with them, fui a la playa con ellas."""

    verb: Verb = verbs.GO
    modes: tuple[str, ...] = ("past",)
    destinations: Sequence[Noun] = ()
    """The destinations, if the verb has one."""
    preposition: tuple[str, str] = ("with", "con")
    negative: bool = False
    phenomenon = "pronoun"

    def draw(self, rng: Random, subject: Subject, *, plural: bool) -> Say:
        """Choose the mode and the destination."""
        mode = pick(rng, self.modes)
        destination = pick(rng, self.destinations or (None,))

        def say(feminine: bool) -> Part:
            pronoun = English(("it", "them")[plural])
            spanish = Spanish(("él", "ella", "ellos", "ellas")[feminine + 2 * plural], pronoun)
            complement = join(word(*self.preposition), Part([pronoun], [spanish]))
            if destination is not None:
                complement = join(word("to", "a"), noun_phrase(destination, "the"), complement)
            return clause(subject, Predicate(self.verb, complement), mode, negative=self.negative)

        return say


@dataclass(frozen=True, kw_only=True)
class AdjectivePattern(Pattern):
    """The pronoun is the subject, which Spanish drops, and an adjective agrees: it is expensive, es cara."""

    adjective: Adjective
    verb: Verb = verbs.SER
    modes: tuple[str, ...] = ("present",)
    gradable: bool = True
    """Whether `very` can precede the adjective."""
    phenomenon = "adjective"

    def draw(self, rng: Random, subject: Subject, *, plural: bool) -> Say:
        """Choose the mode, a negation and `very`."""
        mode = pick(rng, self.modes)
        negative = rng.random() < 0.15
        very = self.gradable and rng.random() < 0.4

        def say(feminine: bool) -> Part:
            pronoun = (IT, THEY)[plural]._replace(feminine=feminine, human=False)
            complement = word(self.adjective.english, self.adjective.spanish[feminine + 2 * plural])
            if very:
                complement = join(word("very", "muy"), complement)
            return clause(pronoun, Predicate(self.verb, complement), mode, negative=negative)

        return say
