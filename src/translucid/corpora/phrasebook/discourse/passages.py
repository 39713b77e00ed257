"""Random passages of a split, in pairs of twins.

Twins end with the same English sentence, which each of them translates differently: what is right in one passage is
wrong in the other. So a system that reads only the last sentence is right in exactly half of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import Any, NamedTuple, TypeAlias

from translucid.corpora import splits, table
from translucid.corpora.phrasebook.chance import pick, weighted
from translucid.corpora.phrasebook.generation import SPLITS, Split
from translucid.corpora.phrasebook.lexicon import Noun
from translucid.corpora.phrasebook.nominals import WE, I
from translucid.corpora.phrasebook.text import Part, Phrase, write
from translucid.ground.errors import UserError

from .openings import OPENINGS, Mention, distractor, filler, other_than, subject_of
from .patterns import Pattern
from .references import ADJECTIVES, OBJECTS, PREPOSITIONS, SINGULAR

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
