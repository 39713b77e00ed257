"""Sentences whose `it` or `they` refers to a noun of an earlier sentence, on whose gender the Spanish depends.

A pattern is such a sentence without its antecedent: `I left it in the kitchen`. It has the nouns to which it may refer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.chance import pick
from translucid.corpora.phrasebook.clauses import Predicate, clause
from translucid.corpora.phrasebook.lexicon import Adjective, Noun, nouns
from translucid.corpora.phrasebook.nominals import IT, THEY, Subject, noun_phrase
from translucid.corpora.phrasebook.text import English, Expression, Part, Spanish, join, word
from translucid.corpora.phrasebook.verbs import Verb

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


CLOTHES = nouns("shirt dress hat coat shoe skirt jacket scarf sweater belt cap glove boot")
DISHES = nouns("plate spoon knife fork bottle")
FURNITURE = nouns("table chair bed sofa desk mirror lamp")
DEVICES = nouns("phone computer clock camera radio lamp")
CONTAINERS = nouns("bag box bottle backpack suitcase wallet basket drawer bucket jar fridge")
CARRIED = nouns("key ticket umbrella phone photo map letter notebook pen pencil wallet camera book hat scarf bag")
TOYS = nouns("toy doll bicycle")
FOOD = nouns("bread soup meat fish cheese chicken salad cake sandwich apple orange pear banana tomato carrot melon")
COOKED = nouns("soup fish meat chicken rice carrot tomato")
DRINKS = nouns("water coffee tea milk juice")
READ = nouns("book newspaper letter magazine story message poem novel report interview")
WRITTEN = nouns("letter message story song book poem novel report speech")
HEARD = nouns("song program message story radio speech interview")
LONG = nouns("movie game program class speech interview novel story book song letter")
INSTRUMENTS = nouns("piano guitar violin trumpet flute drum cello")
ROOMS = nouns("kitchen house office bathroom bedroom")
SIGHTS = nouns("museum city village university library garden church park hotel beach theater")
SHOPS = nouns("store bank museum market library restaurant theater church")
PEOPLE = nouns("brother sister son daughter uncle aunt nephew niece grandson granddaughter grandmother grandfather")
SOLD = (*FURNITURE, *DEVICES[1:5], *INSTRUMENTS, *nouns("car bicycle"))
GOODS = (*CLOTHES, *DEVICES, *CONTAINERS[:-4], *TOYS, *FURNITURE[:4], *INSTRUMENTS[:3], *nouns("umbrella pen notebook"))
COUNTED = (*GOODS, *FOOD[7:], *nouns("book newspaper magazine photo towel blanket cookie"))
"""Nouns of other things in a passage, in the singular or plural."""

SINGULAR = frozenset((*words.MASS_FOOD, *words.DRINKS, *ROOMS))
"""Nouns that are antecedents in the singular only."""
ONE = (False,)
MANY = (True,)
LEFT_AT = (
    when_where.AT_HOME,
    Expression("in the kitchen", "en la cocina"),
    Expression("in the office", "en la oficina"),
    Expression("in the garden", "en el jardín"),
    Expression("on the table", "en la mesa"),
    Expression("in the car", "en el coche"),
)
TO_PLACES = (
    Expression("to the beach", "a la playa"), Expression("to school", "a la escuela", "0-0 1-1 1-2"),
    Expression("to the park", "a el parque"), Expression("to the office", "a la oficina"),
)  # fmt: skip
_NOT_READ = (*CLOTHES, *FOOD[7:])
_NOT_EATEN = (*CLOTHES, *FURNITURE, *DEVICES)
_NOT_BROKEN = nouns("apple orange pear banana tomato carrot sandwich")
_NOT_LONG = nouns("apple orange pear tomato melon cake")
_PLACES = nouns("beach park museum library market theater church")

OBJECTS = (
    ObjectPattern("leave", CARRIED, "where bought found", verb=verbs.LEAVE, endings=LEFT_AT),
    ObjectPattern("see", CARRIED, "where lost", verb=verbs.SEE, endings=LEFT_AT),
    ObjectPattern("find", (*CARRIED, *CLOTHES), "need bought", verb=verbs.FIND, modes=("can",), negative=True,
                  endings=(when_where.TODAY, when_where.NOW)),
    ObjectPattern("lose", (*CARRIED, *CLOTHES[1:]), "bought had", verb=verbs.LOSE),
    ObjectPattern("need", (*CARRIED, *DEVICES), "where lost this", verb=verbs.NEED, modes=("present",), endings=(
        when_where.TODAY, when_where.NOW, when_where.TOMORROW)),
    ObjectPattern("use", (*DEVICES, *CONTAINERS, *TOYS[2:], *DISHES, *FURNITURE[:5]), "have bought this",
                  verb=verbs.USE, modes=("present",), unlike=FOOD[7:]),
    ObjectPattern("sell", SOLD, "have", verb=verbs.SELL, modes=("will", "going")),
    ObjectPattern("buy", (*GOODS, *READ, *FOOD), "like saw", verb=verbs.BUY, modes=("will", "going", "past")),
    ObjectPattern("take", (*CARRIED, *TOYS, *CONTAINERS[:5]), "bought have", verb=verbs.TAKE, endings=TO_PLACES,
                  modes=("past", "will", "going")),
    ObjectPattern("wear", CLOTHES, "bought have like", verb=verbs.WEAR, modes=("present",),
                  unlike=(*FURNITURE, *FOOD[7:])),
    ObjectPattern("wash", (*CLOTHES, *DISHES), "dirty", verb=verbs.WASH, modes=("past", "will", "going")),
    ObjectPattern("clean", (*ROOMS, *FURNITURE, *nouns("car window garden")), "dirty", verb=verbs.CLEAN,
                  modes=("past", "will", "going")),
    ObjectPattern("repair", (*DEVICES, *FURNITURE, *TOYS, *nouns("car umbrella guitar piano violin")), "broken have",
                  verb=verbs.REPAIR, modes=("past", "will", "going"), unlike=_NOT_BROKEN),
    ObjectPattern("read", READ, "bought found have", verb=verbs.READ, modes=("past", "will", "going"),
                  unlike=_NOT_READ),
    ObjectPattern("write", WRITTEN, "this", verb=verbs.WRITE, unlike=_NOT_READ),
    ObjectPattern("eat", FOOD, "bought", verb=verbs.EAT, modes=("past", "will", "going"), unlike=_NOT_EATEN),
    ObjectPattern("cook", COOKED, "bought", verb=verbs.COOK, modes=("past", "will", "going"),
                  unlike=_NOT_EATEN),
    ObjectPattern("drink", DRINKS, "bought", verb=verbs.DRINK, numbers=ONE, unlike=(*_NOT_EATEN, *FOOD[7:])),
    ObjectPattern("play", INSTRUMENTS, "bought have", verb=verbs.PLAY_MUSIC, modes=("present", "past"),
                  unlike=_NOT_READ),
    ObjectPattern("listen", HEARD, "like", verb=verbs.LISTEN, modes=("present", "past"), unlike=_NOT_READ),
    ObjectPattern("open", (*CONTAINERS, *nouns("letter gift message")), "found have saw", verb=verbs.OPEN,
                  modes=("past", "will", "going"), unlike=nouns("chair hat pencil knife lamp spoon")),
    ObjectPattern("visit", SIGHTS, "like", verb=verbs.VISIT, modes=("past", "will", "going"), unlike=GOODS),
    ObjectPattern("call", PEOPLE, "live", verb=verbs.CALL, modes=("past", "will", "going"), numbers=MANY,
                  unlike=COUNTED),
    ObjectPattern("meet", PEOPLE, "live", verb=verbs.VISIT, modes=("past", "will", "going"), numbers=MANY,
                  unlike=COUNTED),
    ObjectPattern("help", PEOPLE, "live", verb=verbs.HELP, modes=("past", "will", "present"), numbers=MANY,
                  unlike=COUNTED),
)  # fmt: skip
PREPOSITIONS = (
    PrepositionPattern("go with", PEOPLE, "live", modes=("past", "will", "going"), destinations=_PLACES, numbers=MANY),
    PrepositionPattern("work with", PEOPLE, "live", verb=verbs.WORK, modes=("present", "past"), numbers=MANY),
    PrepositionPattern("work without", (*DEVICES, *nouns("car table desk notebook pen pencil")), "need lost like",
                       verb=verbs.WORK, modes=("can",), preposition=("without", "sin"), negative=True),
    PrepositionPattern("travel without", (*CARRIED, *CONTAINERS[3:6]), "need lost like", verb=verbs.TRAVEL,
                       modes=("can",), preposition=("without", "sin"), negative=True),
)  # fmt: skip


def _adjectives(
    adjective_pairs: str,
    antecedents: Sequence[Noun],
    openings: str,
    unlike: Sequence[Noun] = (),
    *,
    verb: Verb = verbs.SER,
    modes: tuple[str, ...] = ("present",),
    gradable: bool = True,
    numbers: tuple[bool, ...] = (False, False, True),
) -> list[Pattern]:
    """Return a pattern for each adjective, `english spanish`, separated by `;`."""
    patterns: list[Pattern] = []
    for adjective in words.adjectives(adjective_pairs):
        pattern = AdjectivePattern(
            adjective.english,
            antecedents,
            openings,
            unlike,
            numbers,
            adjective=adjective,
            verb=verb,
            modes=modes,
            gradable=gradable,
        )
        patterns.append(pattern)
    return patterns


NOW_OR_BEFORE = ("present", "past")
ADJECTIVES = (
    *_adjectives("expensive caro; cheap barato", (*GOODS, *READ, *FOOD, *DRINKS), "bought saw"),
    *_adjectives("beautiful bonito", (*GOODS, *SIGHTS), "saw"),
    *_adjectives("new nuevo; old viejo; small pequeño", (*GOODS, *FURNITURE, *ROOMS), "saw like"),
    *_adjectives("red rojo; white blanco; black negro; yellow amarillo", (*CLOTHES, *CONTAINERS, *nouns("car bicycle"
                 " umbrella chair sofa lamp phone")), "bought have saw", gradable=False),
    *_adjectives("boring aburrido; long largo; funny divertido", LONG, "remember", _NOT_LONG,
                 modes=NOW_OR_BEFORE, numbers=ONE),
    *_adjectives("clean limpio; dirty sucio", (*CLOTHES, *DISHES, *ROOMS, *FURNITURE, *nouns("car window")),
                 "saw", verb=verbs.ESTAR, modes=NOW_OR_BEFORE),
    *_adjectives("broken roto", (*DEVICES, *DISHES, *TOYS, *FURNITURE, *nouns("umbrella window")), "have found saw",
                 _NOT_BROKEN, gradable=False, verb=verbs.ESTAR, modes=NOW_OR_BEFORE),
    *_adjectives("empty vacío; full lleno", CONTAINERS, "found have saw", nouns("pencil chair pen spoon fork"),
                 gradable=False, verb=verbs.ESTAR, modes=NOW_OR_BEFORE),
    *_adjectives("open abierto; closed cerrado", SHOPS, "went", FOOD[7:], gradable=False, numbers=ONE,
                 verb=verbs.ESTAR, modes=NOW_OR_BEFORE),
    *_adjectives("delicious delicioso", (*FOOD, *DRINKS), "bought", _NOT_EATEN, gradable=False,
                 verb=verbs.ESTAR, modes=NOW_OR_BEFORE),
)  # fmt: skip
