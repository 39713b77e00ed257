"""Passages of two to four sentences, of which the last can be translated only with those before it, in pairs of twins.

Twins end with the same English sentence, which each of them translates differently: what is right in one passage is
wrong in the other. So a system that reads only the last sentence is right in exactly half of them. One of the sentences
before the last one mentions the antecedent, and one may mention something else.

`it` or `they` of the last sentence refers to the antecedent, on whose gender the Spanish depends. A pattern is such a
sentence without its antecedent, `I left it in the kitchen`, and has the nouns to which it may refer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import Any, NamedTuple, TypeAlias

from translucid.corpora import splits, table
from translucid.ground.errors import UserError

from . import adverbials as when_where
from . import lexicon as words
from . import verbs
from .being import presented, quality, weather
from .chance import pick, weighted
from .clauses import Predicate, clause, felt
from .deeds import NOTHING
from .generation import SPLITS, Split
from .lexicon import Adjective, Noun, nouns
from .nominals import IT, THEY, WE, I, Member, Subject, noun_phrase, of_nouns
from .simple_sentences import WHERE
from .text import English, Expression, Part, Phrase, Spanish, join, word, write
from .verbs import Verb
from .word_labels import LABELING, Labels, SentenceLabels, labeling, name_antecedent

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
    """The names of the sentences that can mention the antecedent (`OPENINGS`), separated by spaces."""
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
    noun_part = noun_phrase(mention.noun, _possessive(mention.subject), plural=mention.plural)
    return presented(noun_part, mention.plural, mention.noun.feminine + 2 * mention.plural)


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


CHOICES = table("phrasebook/choices.tsv")
"""Sentences with two translations, and the ambiguous word in them."""
SENSES = {row["word"]: row for row in table("phrasebook/senses.tsv")}
"""The translations of ambiguous nouns."""
CONTEXTS = table("phrasebook/contexts.tsv")
"""Pairs of sentences that determine the translation of a word; the words that do have asterisks."""


class Passage(NamedTuple):
    """Sentences of a document. The translation of the last one depends on an earlier one."""

    sentences: tuple[tuple[str, str], ...]
    """English and Spanish."""
    antecedent: tuple[tuple[int, int], ...]
    """The words on which the translation depends: (sentence, word), counted from 0; white space separates words."""
    contrast: str
    """The translation of the last sentence that would be right with another antecedent."""
    phenomenon: str
    """`pronoun`, `adjective`, `subject` or `sense`."""
    labels: tuple[SentenceLabels, ...] | None = None
    """The labels of the words of each sentence, if someone asked for them."""

    def records(self, document: str) -> list[dict[str, Any]]:
        """Return a record for each sentence: source, target and document; the last one has the other fields, too."""
        records: list[dict[str, Any]] = []
        for source, target in self.sentences:
            records.append({"source": source, "target": target, "document": document})
        for record, labels in zip(records, self.labels or (), strict=False):
            record |= {"source_labels": labels.source, "target_labels": labels.target}
        records[-1] |= {"contrast": self.contrast, "antecedent": self.antecedent, "phenomenon": self.phenomenon}
        return records


Twins: TypeAlias = tuple[Passage, Passage]


class MarkedSentence(NamedTuple):
    """A sentence that mentions the antecedent, and the positions of the words that determine the translation."""

    phrase: Phrase
    words: tuple[int, ...]


def generate_passages(count: int, *, split: Split = "train", seed: int = 1, labels: bool = False) -> Iterator[Passage]:
    """Generate distinct passages; twins follow each other.

    No antecedent has the same dependent sentence in two splits, though each is in the training split with others.

    Args:
        count: the number of passages, which is even.
        split: the split.
        seed: determines which passages of the split are drawn.
        labels: whether the passages have labels of their words.

    Raises:
        UserError: the count is odd, the split is unknown, or, while iterating, the split has too few passages.
    """
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r} of the phrasebook", fix=f"Known: {', '.join(SPLITS)}.")
    if count % 2:
        raise UserError(f"{count:,} passages are no pairs", fix="Ask for an even number: two passages share their end.")
    rng = Random(f"passages {split} {seed}")

    def draw() -> Twins:
        kind, twins = weighted(rng, KINDS), None
        with labeling() if labels else nullcontext():
            while twins is None:
                twins = kind(rng, split)
        return twins

    def content(twins: Twins) -> str:
        sentences = chain.from_iterable(passage.sentences for passage in twins)
        return " ".join(source for source, _ in sentences)

    what = f"pairs of {split} passages in the phrasebook"
    for twins in splits.distinct(count // 2, draw, content, what=what, fix="Ask for fewer."):
        yield from twins


def _reference(patterns: Sequence[Pattern], rng: Random, split: Split) -> Twins | None:
    """Return twins whose antecedents differ in gender; None if the drawn pattern has none in the split."""
    pattern = pick(rng, patterns)
    plural = pick(rng, pattern.numbers)
    opening = pick(rng, pattern.openings.split())
    subject = subject_of(rng, opening)
    ending = pattern.draw(rng, subject.again(), plural=plural)
    contracted = rng.random() < 0.7
    masculine, feminine = (_dependent(ending(gender), gender, contracted=contracted) for gender in (False, True))
    twins = []
    for right, wrong, gender in ((masculine, feminine, False), (feminine, masculine, True)):
        nouns = _antecedents(pattern, split, feminine=gender, plural=plural)
        if not nouns:
            return None
        mention = Mention(pick(rng, nouns), plural, subject)
        preceding = _reference_context(rng, pattern, opening, mention)
        if right.labels:
            right = right._replace(labels=name_antecedent(right.labels, mention.noun.singular))
        twins.append(_passage(preceding, right, wrong.target, pattern.phenomenon))
    return twins[0], twins[1]


def _dependent(part: Part, feminine: bool, *, contracted: bool) -> Phrase:
    """Return a sentence whose pronoun refers to an antecedent of this gender."""
    if labels := LABELING.get():
        labels.refer(part, ("it", "they", "them"), feminine=feminine)
    return _write(part, ".", contracted=contracted)


def _write(part: Part, ending: str, *, contracted: bool) -> Phrase:
    """Return a sentence, with its labels in the context of a labeling."""
    phrase = write(part, ending, contracted=contracted)
    labels = LABELING.get()
    return phrase._replace(labels=labels.sentence(part, is_whole=False)) if labels else phrase


def _antecedents(pattern: Pattern, split: Split, *, feminine: bool, plural: bool) -> list[Noun]:
    """Return the antecedents of a pattern that belong to the split."""
    nouns = []
    for noun in pattern.antecedents:
        fits = noun.feminine == feminine and not (plural and noun in SINGULAR)
        if fits and splits.split_of(f"{pattern.name} {noun.singular}") == split:
            nouns.append(noun)
    return nouns


def _reference_context(rng: Random, pattern: Pattern, opening: str, mention: Mention) -> list[Phrase | MarkedSentence]:
    """Return the sentences before a pronoun."""
    part = OPENINGS[opening](rng, mention)
    phrase = _written(rng, part, "?" if opening == "where" else ".")
    form = mention.noun.plural if mention.plural else mention.noun.singular
    (head,) = (word for word in part.english if word.text == form)
    fillers = []
    for position in range(_filler_count(rng)):
        if position == 0 and rng.random() < 0.75:
            fillers.append(_written(rng, distractor(rng, pattern, mention)))
        else:
            fillers.append(_written(rng, filler(rng, other_than(rng, mention.subject))))
    return _in_order(rng, MarkedSentence(phrase, (head.position,)), fillers)


def _choice(phenomenon: str, rng: Random, split: Split) -> Twins | None:
    """Return twins with a word that has two translations; None if the drawn sentences are of another split."""
    choice = pick(rng, [row for row in CHOICES if row["phenomenon"] == phenomenon])
    context = pick(rng, [row for row in CONTEXTS if row["word"] == choice["word"]])
    if splits.split_of(f"{choice['english']} {context['english']}") != split:
        return None
    twins = []
    for prefix, other_prefix in (("", "other_"), ("other_", "")):
        fillers = [_written(rng, filler(rng, pick(rng, (I, WE)))) for _ in range(_filler_count(rng))]
        preceding = _in_order(rng, _marked(context[prefix + "english"], context[prefix + "spanish"]), fillers)
        right = _fixed(choice["english"], choice[prefix + "spanish"], choice["word"], prefix)
        twins.append(_passage(preceding, right, choice[other_prefix + "spanish"], phenomenon))
    return twins[0], twins[1]


def _marked(english: str, spanish: str) -> MarkedSentence:
    """Return a sentence without the asterisks, and the positions of the words that have them."""
    positions = tuple(position for position, word in enumerate(english.split()) if "*" in word)
    return MarkedSentence(_fixed(english.replace("*", ""), spanish), positions)


def _fixed(english: str, spanish: str, word: str = "", prefix: str = "") -> Phrase:
    """Return a sentence that is not built from parts; of its labels, only those of the ambiguous word are known."""
    phrase = Phrase(english, spanish, ())
    if LABELING.get() is None:
        return phrase
    row = SENSES.get(word)
    if row is not None:
        sense = row[prefix + "sense"]
        source, target = _ambiguous(english, word, sense), _ambiguous(spanish, sense, word)
    else:
        number = {"person": "second", "number": "plural" if prefix else "singular"}
        source = tuple(number if word and text.strip("?") == word else {} for text in english.split())
        target = tuple(number if word and "staba" in text else {} for text in spanish.split())
    return phrase._replace(labels=SentenceLabels(source, target))


def _ambiguous(sentence: str, word: str, translation: str) -> tuple[Labels, ...]:
    """Return the labels of a sentence with an ambiguous word, in the singular or plural."""
    known = {"part of speech": "noun", "sense": f"{word}: {translation}"}
    return tuple(known if text.strip(".,?!¿¡").lower() in (word, word + "s") else {} for text in sentence.split())


def _filler_count(rng: Random) -> int:
    """Return the number of sentences of a passage besides the two that matter."""
    return pick(rng, (0, 0, 0, 1, 1, 1, 1, 2, 2))


def _in_order(rng: Random, marked: MarkedSentence, fillers: list[Phrase]) -> list[Phrase | MarkedSentence]:
    """Return the sentences before the last one; most others are between the antecedent and its pronoun."""
    position = int(rng.random() ** 2 * (len(fillers) + 1))
    return [*fillers[:position], marked, *fillers[position:]]


def _written(rng: Random, part: Part, ending: str = ".") -> Phrase:
    return _write(part, ending, contracted=rng.random() < 0.7)


def _passage(context: list[Phrase | MarkedSentence], right: Phrase, contrast: str, phenomenon: str) -> Passage:
    phrases: list[Phrase] = []
    antecedent: list[tuple[int, int]] = []
    for number, sentence in enumerate(context):
        if isinstance(sentence, MarkedSentence):
            antecedent += ((number, position) for position in sentence.words)
            sentence = sentence.phrase
        phrases.append(sentence)
    phrases.append(right)
    sentences = tuple((phrase.source, phrase.target) for phrase in phrases)
    labels = tuple(phrase.labels for phrase in phrases if phrase.labels)
    return Passage(sentences, tuple(antecedent), contrast, phenomenon, labels or None)


KINDS: tuple[tuple[float, Callable[[Random, Split], Twins | None]], ...] = (
    (0.3, partial(_reference, OBJECTS)),
    (0.1, partial(_reference, PREPOSITIONS)),
    (0.3, partial(_reference, ADJECTIVES)),
    (0.2, partial(_choice, "sense")),
    (0.1, partial(_choice, "subject")),
)
"""The functions that make twins, and how often each is used."""
