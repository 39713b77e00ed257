"""The patterns of sentences with `it` or `they`, and the nouns to which they refer."""

from __future__ import annotations

from collections.abc import Sequence

from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.conjugation import Verb
from translucid.corpora.phrasebook.lexicon import Noun, nouns
from translucid.corpora.phrasebook.text import Expression

from .patterns import AdjectivePattern, ObjectPattern, Pattern, PrepositionPattern

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
