"""Random passages of a split, in pairs of twins.

Twins end with the same English sentence, which each of them translates differently: what is right in one passage is
wrong in the other. So a system that reads only the last sentence is right in exactly half of them. One of the sentences
before the last one mentions the antecedent, and one may mention something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import Any, NamedTuple, TypeAlias

from translucid.corpora import splits, table
from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.being import quality, weather
from translucid.corpora.phrasebook.chance import pick, weighted
from translucid.corpora.phrasebook.clauses import Predicate, clause, felt
from translucid.corpora.phrasebook.deeds import NOTHING
from translucid.corpora.phrasebook.generation import SPLITS, Split
from translucid.corpora.phrasebook.lexicon import Noun
from translucid.corpora.phrasebook.nominals import DETERMINERS, WE, I, Member, Subject, noun_phrase, of_nouns
from translucid.corpora.phrasebook.questions import WHERE
from translucid.corpora.phrasebook.text import Part, Phrase, join, word, write
from translucid.corpora.phrasebook.verbs import Verb
from translucid.ground.errors import UserError

from .references import (
    ADJECTIVES,
    COUNTED,
    OBJECTS,
    PREPOSITIONS,
    ROOMS,
    SIGHTS,
    SINGULAR,
    Pattern,
)

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


CHOICES = table("phrasebook/discourse/choices.tsv")
"""Sentences with two translations, and the ambiguous word in them."""
CONTEXTS = table("phrasebook/discourse/contexts.tsv")
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

    def records(self, document: str) -> list[dict[str, Any]]:
        """Return a record for each sentence: source, target and document; the last one has the other fields, too."""
        records: list[dict[str, Any]] = []
        for source, target in self.sentences:
            records.append({"source": source, "target": target, "document": document})
        records[-1] |= {"contrast": self.contrast, "antecedent": self.antecedent, "phenomenon": self.phenomenon}
        return records


Twins: TypeAlias = tuple[Passage, Passage]


class MarkedSentence(NamedTuple):
    """A sentence that mentions the antecedent, and the positions of the words that determine the translation."""

    phrase: tuple[str, str]
    words: tuple[int, ...]


def generate_passages(count: int, *, split: Split = "train", seed: int = 1) -> Iterator[Passage]:
    """Generate distinct passages; twins follow each other.

    No antecedent has the same dependent sentence in two splits, though each is in the training split with others.

    Args:
        count: the number of passages, which is even.
        split: the split.
        seed: determines which passages of the split are drawn.

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
    masculine, feminine = (write(ending(gender), ".", contracted=contracted) for gender in (False, True))
    twins = []
    for right, wrong, gender in ((masculine, feminine, False), (feminine, masculine, True)):
        nouns = _antecedents(pattern, split, feminine=gender, plural=plural)
        if not nouns:
            return None
        mention = Mention(pick(rng, nouns), plural, subject)
        preceding = _reference_context(rng, pattern, opening, mention)
        twins.append(_passage(preceding, right, wrong.target, pattern.phenomenon))
    return twins[0], twins[1]


def _antecedents(pattern: Pattern, split: Split, *, feminine: bool, plural: bool) -> list[Noun]:
    """Return the antecedents of a pattern that belong to the split."""
    nouns = []
    for noun in pattern.antecedents:
        fits = noun.feminine == feminine and not (plural and noun in SINGULAR)
        if fits and splits.split_of(f"{pattern.name} {noun.singular}") == split:
            nouns.append(noun)
    return nouns


def _reference_context(
    rng: Random, pattern: Pattern, opening: str, mention: Mention
) -> list[tuple[str, str] | MarkedSentence]:
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
        right = Phrase(choice["english"], choice[prefix + "spanish"], ())
        twins.append(_passage(preceding, right, choice[other_prefix + "spanish"], phenomenon))
    return twins[0], twins[1]


def _marked(english: str, spanish: str) -> MarkedSentence:
    """Return a sentence without the asterisks, and the positions of the words that have them."""
    positions = tuple(position for position, word in enumerate(english.split()) if "*" in word)
    return MarkedSentence((english.replace("*", ""), spanish), positions)


def _filler_count(rng: Random) -> int:
    """Return the number of sentences of a passage besides the two that matter."""
    return pick(rng, (0, 0, 0, 1, 1, 1, 1, 2, 2))


def _in_order(
    rng: Random, marked: MarkedSentence, fillers: list[tuple[str, str]]
) -> list[tuple[str, str] | MarkedSentence]:
    """Return the sentences before the last one; most others are between the antecedent and its pronoun."""
    position = int(rng.random() ** 2 * (len(fillers) + 1))
    return [*fillers[:position], marked, *fillers[position:]]


def _written(rng: Random, part: Part, ending: str = ".") -> tuple[str, str]:
    phrase = write(part, ending, contracted=rng.random() < 0.7)
    return phrase.source, phrase.target


def _passage(context: list[tuple[str, str] | MarkedSentence], right: Phrase, contrast: str, phenomenon: str) -> Passage:
    sentences: list[tuple[str, str]] = []
    antecedent: list[tuple[int, int]] = []
    for number, sentence in enumerate(context):
        if isinstance(sentence, MarkedSentence):
            antecedent += ((number, position) for position in sentence.words)
            sentence = sentence.phrase
        sentences.append(sentence)
    return Passage((*sentences, (right.source, right.target)), tuple(antecedent), contrast, phenomenon)


KINDS: tuple[tuple[float, Callable[[Random, Split], Twins | None]], ...] = (
    (0.3, partial(_reference, OBJECTS)),
    (0.1, partial(_reference, PREPOSITIONS)),
    (0.3, partial(_reference, ADJECTIVES)),
    (0.2, partial(_choice, "sense")),
    (0.1, partial(_choice, "subject")),
)
"""The functions that make twins, and how often each is used."""
