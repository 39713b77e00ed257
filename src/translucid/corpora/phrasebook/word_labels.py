"""Labels of words: part of speech, gender, number, person, tense, sense, role, antecedent and topic.

The grammar knows them while it builds a sentence. If someone asks for labels, `LABELING` holds the `Labeling` to which
the functions of the grammar report what they derived. Otherwise it holds None, and the grammar does nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from translucid.corpora import table

from . import lexicon, verbs
from .lexicon import Adjective, Noun
from .text import English, Part, Spanish
from .verbs import ESTAR, GIVE, GO, HACER, SER, TENER, Verb

if TYPE_CHECKING:
    from .nominals import Subject

Word: TypeAlias = English | Spanish
Labels: TypeAlias = dict[str, str]
"""The value of each label that applies to a word."""
LABELS = ("part of speech", "gender", "number", "person", "tense", "sense", "role", "antecedent", "topic")


class SentenceLabels(NamedTuple):
    """The labels of the whitespace-separated words of a sentence pair."""

    source: tuple[Labels, ...]
    target: tuple[Labels, ...]


GENDERS = ("masculine", "feminine")
NUMBERS = ("singular", "plural")
PERSONS = (
    ("first", "singular"),
    ("second", "singular"),
    ("third", "singular"),
    ("first", "plural"),
    ("third", "plural"),
)
"""Person and number by the index of a form in the conjugation."""
TENSES = {"will": "future", "would": "conditional", "past": "past"}
"""English tenses by the mode of a clause; all others are in the present."""
HEADS = ("noun", "proper noun", "pronoun")
"""The parts of speech that have a role."""
AGREEING = ("noun", "adjective", "determiner")
"""The parts of speech whose English words have the gender and number of their translations."""
POSSESSORS = {"my": "first", "your": "second", "his": "third", "her": "third", "our": "first", "their": "third"}
PRONOUN_NOUNS = {"everyone": "third", "nobody": "third", "who": "third", "I": "first"}
"""Pronouns that the grammar treats as nouns, and their persons."""
OBJECT_PRONOUNS = {
    "me": (0, ""), "you": (1, ""), "him": (2, "masculine"), "her": (2, "feminine"), "us": (3, ""), "them": (4, ""),
    "it": (2, ""),
}  # fmt: skip
CLITICS = {
    "me": (0, ""), "te": (1, ""), "nos": (3, ""), "le": (2, ""), "les": (4, ""),
    "lo": (2, "masculine"), "la": (2, "feminine"), "los": (4, "masculine"), "las": (4, "feminine"),
}  # fmt: skip
PARTICLES = {"to": "preposition", "in": "preposition", "up": "adverb", "bed": "noun", "interested": "adjective"}


def _forms() -> dict[str, Adjective]:
    """Return the adjectives of the lexicon by the English word and by each Spanish form."""
    by_form: dict[str, Adjective] = {}
    for value in vars(lexicon).values():
        for adjective in value if isinstance(value, tuple) and not isinstance(value, Adjective) else (value,):
            if isinstance(adjective, Adjective):
                by_form |= dict.fromkeys((adjective.english, *adjective.spanish), adjective)
    return by_form


def _translations() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the Spanish verbs of each English verb, and the English verbs of each Spanish verb."""
    spanish: dict[str, set[str]] = {}
    english: dict[str, set[str]] = {}
    for verb in vars(verbs).values():
        if isinstance(verb, Verb):
            spanish.setdefault(verb.base, set()).add(verb.infinitive)
            english.setdefault(verb.infinitive, set()).add(verb.base)
    return spanish, english


ADJECTIVES = _forms()
SPANISH_VERBS, ENGLISH_VERBS = _translations()
FIXED = {
    (row["language"], row["word"], row["translation"]): {name: row[name] for name in LABELS if row.get(name)}
    for row in table("phrasebook/fixed_words.tsv")
}
"""The labels of words of fixed expressions, by language, word, and translation if the word has others."""
NOUN_COMPLEMENTS = {spanish: lexicon.Noun("", "", spanish, "", spanish in ("hambre", "sed")) for spanish in (
    "hambre", "sed", "sueño", "frío", "calor", "miedo", "sol", "viento")}  # fmt: skip
"""Spanish nouns where English has adjectives: to be hungry, tener hambre."""


class Labeling:
    """The labels of the words of sentences that the grammar is building.

    A label of a word is never replaced: what a part of a sentence says about its words precedes what the whole says.
    """

    def __init__(self) -> None:
        self._labels: dict[Word, Labels] = {}
        self._nouns: dict[Word, str] = {}
        """The names of nouns: their English singulars."""

    def note(self, word: Word, **labels: str) -> None:
        """Add labels to a word; those that are empty, or which it has already, are left out."""
        known = self._labels.setdefault(word, {})
        for name, value in labels.items():
            if value:
                known.setdefault(name.replace("_", " "), value)

    def noun_phrase(
        self,
        part: Part,
        noun: Noun,
        determiner: str = "",
        adjective: Adjective | None = None,
        *,
        plural: bool = False,
        owner: Noun | None = None,
    ) -> None:
        """Label a noun phrase of `nominals.noun_phrase`; `determiner` is the English one."""
        form = noun.feminine + 2 * plural
        for word in part.english:
            if word.text in (noun.singular, noun.plural):
                self._noun(word, noun, plural=plural)
            elif adjective is not None and word.text == adjective.english:
                self.note(word, part_of_speech="adjective", sense=_adjective_sense(adjective))
            elif word.text == determiner:
                self.determiner(word)
            elif owner is not None and word.text != "very":
                self._noun(word, owner, plural=False)
                self.note(word, role="possessor")
        for spanish in part.spanish:
            if spanish.text in (noun.spanish, noun.spanish_plural):
                self._noun(spanish, noun, plural=plural)
            elif adjective is not None and spanish.text == adjective.spanish[form]:
                self.agreement(spanish, adjective.spanish, form, "adjective")
            elif owner is not None and spanish.text == owner.spanish:
                self._noun(spanish, owner, plural=False)
                self.note(spanish, role="possessor")

    def _noun(self, word: Word, noun: Noun, *, plural: bool) -> None:
        self._nouns[word] = noun.singular
        person = PRONOUN_NOUNS.get(noun.singular)
        if person:
            self.note(word, part_of_speech="pronoun", person=person)
            plural = word.text == "todos"
        else:
            part_of_speech = "proper noun" if word.text[0].isupper() else "noun"
            self.note(word, part_of_speech=part_of_speech, gender=GENDERS[noun.feminine], topic=noun.topic)
        self.note(word, number=NUMBERS[plural])

    def determiner(self, word: Word, forms: Sequence[str] = (), form: int = 0, english: str = "") -> None:
        """Label a determiner: of Spanish with all four forms and the English determiner that it translates."""
        determiner = english or word.text
        numerals = [number for pair in lexicon.NUMBERS for number in pair]
        part_of_speech = "numeral" if determiner in numerals else "determiner"
        sense = f"su: {english}" if forms and forms[0] == "su" else ""
        self.note(word, part_of_speech=part_of_speech, person=POSSESSORS.get(determiner, ""), sense=sense)
        if forms:
            self.agreement(word, forms, form, part_of_speech)

    def agreement(self, word: Word, forms: Sequence[str], form: int, part_of_speech: str) -> None:
        """Label a word that agrees, with the gender and number that its form shows.

        Args:
            word: the word.
            forms: its forms, by `feminine + 2 * plural`.
            form: the index of the form.
            part_of_speech: its part of speech.
        """
        gender = GENDERS[form % 2] if forms[form] != forms[form ^ 1] else ""
        number = NUMBERS[form // 2] if forms[form] != forms[form ^ 2] else ""
        self.note(word, part_of_speech=part_of_speech, gender=gender, number=number)

    def subject_pronoun(self, word: English, subject: Subject) -> None:
        """Label the pronoun of a subject; if it is repeated, with its antecedent."""
        if subject.pronoun == "there":
            self.note(word, part_of_speech="pronoun")
            return
        person, number = PERSONS[subject.person]
        gender = GENDERS[subject.feminine] if subject.person == 2 and subject.human else ""
        self.note(word, part_of_speech="pronoun", person=person, number=number, gender=gender)
        self._refer(word, subject)

    def _refer(self, word: Word, subject: Subject) -> None:
        """Label a word that refers to a subject mentioned before."""
        if subject.is_repeated:
            self.note(word, antecedent=" and ".join(member.noun.singular for member in subject.members))

    def verb_group(
        self,
        verb: Verb,
        mode: str,
        subject: Subject,
        english: tuple[Sequence[English], Sequence[English], Sequence[English]],
        spanish: tuple[Spanish | None, Sequence[Spanish]],
    ) -> None:
        """Label a finite verb with its auxiliaries, and the infinitive or gerund.

        Args:
            verb: the verb.
            mode: the mode of its clause.
            subject: the subject, with which the finite forms agree.
            english: the auxiliary, `going to`, and the main verb with its particles.
            spanish: the finite verb, and the words that follow it.
        """
        support, going, main = english
        is_copula = verb.is_be and mode in ("present", "past")
        english_sense, spanish_sense = _senses(verb)
        if support:
            sense = english_sense if is_copula else ""
            self.note(support[0], part_of_speech="verb" if is_copula else "auxiliary", sense=sense)
        for going_word, part_of_speech in zip(going, ("auxiliary", "particle"), strict=False):
            self.note(going_word, part_of_speech=part_of_speech)
        self._english_verb(main if is_copula else main[1:], () if is_copula else main[:1], english_sense)
        for word in (support or main)[:1]:
            person, number = PERSONS[subject.english_person]
            self.note(word, person=person, number=number, tense=TENSES.get(mode, "present"))
        finite, nonfinite = spanish
        if finite is not None:
            is_auxiliary = mode in ("going", "can") or (mode == "progressive" and verb is not GO)
            self.finite(finite, verb, mode, subject.person, is_auxiliary=is_auxiliary)
            self._refer(finite, subject)
        for infinitive in nonfinite:
            if infinitive.text == "a":
                self.note(infinitive, part_of_speech="preposition")
            else:
                self.note(infinitive, part_of_speech="verb", sense=spanish_sense)

    def felt(
        self,
        subject: Subject,
        verb: Verb,
        mode: str,
        english: tuple[Sequence[English], Sequence[English], Sequence[English]],
        spanish: tuple[Spanish, Spanish],
        *,
        plural: bool,
    ) -> None:
        """Label the verb of `clauses.felt`, and the clitic for its subject; `spanish` are the clitic and the verb."""
        clitic, finite = spanish
        self.verb_group(verb, mode, subject, english, (None, ()))
        self.finite(finite, verb, mode, 4 if plural else 2)
        self.clitic(clitic, subject.person, "indirect object")
        self._refer(clitic, subject)

    def _english_verb(self, particles: Sequence[English], main: Sequence[English], sense: str) -> None:
        for word in main:
            self.note(word, part_of_speech="verb", sense=sense)
        for word in particles:
            self.note(word, part_of_speech=PARTICLES[word.text])

    def finite(self, word: Spanish, verb: Verb, mode: str, person: int, *, is_auxiliary: bool = False) -> None:
        """Label a finite Spanish verb; `person` is the index of its form."""
        tense = TENSES.get(mode, "present")
        if mode == "past":
            # Only the imperfect has the same form for the first and third person: comía, but comí and comió.
            tense = "imperfect" if verb.finite["past"][0] == verb.finite["past"][2] else "preterite"
        part_of_speech = "auxiliary" if is_auxiliary else "verb"
        sense = "" if is_auxiliary else _senses(verb)[1]
        person_name, number = PERSONS[person]
        self.note(word, part_of_speech=part_of_speech, sense=sense, person=person_name, number=number, tense=tense)

    def deed(self, verb: Verb, english: Sequence[English], infinitive: Spanish, complement: Part) -> None:
        """Label an activity, whose verb is not finite: `to read a book`, `leer un libro`."""
        start = int(english[0].text == "to")
        for to in english[:start]:
            self.note(to, part_of_speech="particle")
        english_sense, spanish_sense = _senses(verb)
        self._english_verb(english[start + 1 :], english[start : start + 1], english_sense)
        self.note(infinitive, part_of_speech="verb", sense=spanish_sense)
        self.complement(verb, complement)

    def imperative(self, verb: Verb, english: Sequence[English], spanish: Spanish, complement: Part) -> None:
        """Label a request."""
        english_sense, spanish_sense = _senses(verb)
        self._english_verb(english[1:], english[:1], english_sense)
        verbs: tuple[tuple[Word, str], ...] = ((english[0], english_sense), (spanish, spanish_sense))
        for word, sense in verbs:
            self.note(word, part_of_speech="verb", sense=sense, person="second", number="singular")
        self.complement(verb, complement)

    def clitic(self, word: Spanish, person: int, role: str, english: Sequence[English] = ()) -> None:
        """Label a pronoun before a verb and the English pronoun that it translates; `person` is that of a reflexive."""
        index, gender = CLITICS.get(word.text, (person, ""))
        self.note(word, part_of_speech="pronoun", person=PERSONS[index][0], number=PERSONS[index][1], gender=gender)
        self.note(word, role=role)
        for pronoun in english:
            if not self._part_of_speech(pronoun) and pronoun.text in OBJECT_PRONOUNS:
                index, gender = OBJECT_PRONOUNS[pronoun.text]
                self.note(pronoun, part_of_speech="pronoun", person=PERSONS[index][0], number=PERSONS[index][1])
                self.note(pronoun, gender=gender, role=role)

    def presentation(self, pointer: Part, be: Part, forms: Sequence[str], form: int) -> None:
        """Label `this is`, `esta es`; forms and form are those of `agreement`."""
        pointers: list[Word] = [*pointer.english, *pointer.spanish]
        for word in pointers:
            self.note(word, part_of_speech="pronoun", role="subject", person="third", number=NUMBERS[form // 2])
        self.agreement(pointer.spanish[0], forms, form, "pronoun")
        self.note(be.english[0], part_of_speech="verb", person="third", number=NUMBERS[form // 2], tense="present")
        self.note(be.english[0], sense=_senses(SER)[0])
        self.finite(be.spanish[0], SER, "present", 4 if form > 1 else 2)

    def complement(self, verb: Verb, complement: Part, subject: Subject | None = None) -> None:
        """Label what follows a verb: the roles of its nouns, and adjectives, which agree with the subject."""
        is_noun = verb in (TENER, HACER)  # to be hungry, tener hambre
        for spanish in complement.spanish:
            if spanish in self._labels:
                continue
            noun, adjective = NOUN_COMPLEMENTS.get(spanish.text), ADJECTIVES.get(spanish.text)
            if is_noun and noun is not None:
                self._noun(spanish, noun, plural=False)
                self.note(spanish, role="object")
                (source,) = spanish.sources
                self.note(source, part_of_speech="adjective", sense=_sense_of_need(source.text, spanish.text))
            elif adjective is not None and subject is not None:
                self.agreement(spanish, adjective.spanish, subject.form, "adjective")
                self.note(spanish.sources[0], part_of_speech="adjective", sense=_adjective_sense(adjective))
                self.note(spanish, role="predicative")
        self._fill(complement)
        role = "predicative" if verb in (SER, ESTAR, TENER, HACER) else "object"
        self.roles(complement.english, role, receiver=verb is GIVE)
        for spanish in complement.spanish:
            roles = [self._labels[source].get("role", "") for source in spanish.sources if source in self._labels]
            if self._part_of_speech(spanish) in HEADS:
                self.note(spanish, role="object" if is_noun else "".join(roles[:1]))

    def roles(self, words: Sequence[English] | Sequence[Spanish], role: str, *, receiver: bool = False) -> None:
        """Label the nouns and pronouns without a role: `role` before the first preposition, then oblique.

        Times have no role. With `receiver`, a noun after `to` is an indirect object.
        """
        for word in words:
            part_of_speech = self._part_of_speech(word)
            if part_of_speech == "preposition":
                role = "indirect object" if receiver and word.text == "to" else "oblique"
            elif part_of_speech in HEADS and self._labels[word].get("topic") == "time":
                continue  # tomorrow, last week: no object
            elif part_of_speech in HEADS or (part_of_speech == "adjective" and role == "predicative"):
                self.note(word, role=role)

    def _part_of_speech(self, word: Word) -> str:
        return self._labels.get(word, {}).get("part of speech", "")

    def _fill(self, part: Part) -> None:
        """Label the words of fixed expressions, from their table."""
        translations: dict[English, list[str]] = {}
        for spanish in part.spanish:
            for source in spanish.sources:
                translations.setdefault(source, []).append(_bare(spanish.text))
        for word in part.english:
            if not self._part_of_speech(word):
                self._look_up("en", word, translations.get(word, ()))
        for spanish in part.spanish:
            if not self._part_of_speech(spanish):
                self._look_up("es", spanish, [_bare(source.text) for source in spanish.sources])

    def _look_up(self, language: str, word: Word, translations: Sequence[str]) -> None:
        text = _bare(word.text)
        labels = FIXED.get((language, text, ""), {})
        for translation in translations:
            labels = FIXED.get((language, text, translation), labels)
        self._labels.setdefault(word, {}).update({**labels, **self._labels.get(word, {})})

    def refer(self, part: Part, pronouns: Sequence[str], *, feminine: bool) -> None:
        """Label a sentence whose pronoun refers to something in another one; `name_antecedent` adds its name."""
        for word in part.english:
            if _bare(word.text) in pronouns:
                self._labels[word].pop("gender", None)
                self.note(word, gender=GENDERS[feminine])
                self._labels[word]["antecedent"] = ""
        for spanish in part.spanish:
            if any(_bare(source.text) in pronouns for source in spanish.sources):
                self._labels[spanish]["antecedent"] = ""
                if self._part_of_speech(spanish) == "pronoun":
                    self.note(spanish, gender=GENDERS[feminine])

    def sentence(self, part: Part, *, is_whole: bool = True) -> SentenceLabels:
        """Return the labels of the written words of a sentence.

        A contraction (don't, I'm, al) has the labels of its first word, and those that only its second word has.

        Args:
            part: the sentence, written.
            is_whole: whether all antecedents are in it. A pronoun may also replace someone whom no word mentions.
        """
        self._fill(part)
        mentioned = {self._nouns[word] for word in part.english if word in self._nouns}
        written: list[Word] = [*part.english, *part.spanish]
        for word in written if is_whole else ():
            if not mentioned.issuperset(self._labels[word].get("antecedent", "").split(" and ")):
                self._labels[word].pop("antecedent", None)
        for spanish in part.spanish:
            for source in spanish.sources:
                shared = self._part_of_speech(source)
                if shared in AGREEING and shared == self._part_of_speech(spanish):
                    agreement = self._labels[spanish]
                    self.note(source, gender=agreement.get("gender", ""), number=agreement.get("number", ""))
        source_labels: list[Labels] = []
        for word in part.english:
            _merge(source_labels, word.position, self._labels[word])
        target_labels: list[Labels] = []
        position, previous = -1, ""
        for spanish in part.spanish:
            is_contracted = spanish.text == "el" and previous.lstrip("¿") in ("a", "de")
            position += not is_contracted
            previous = spanish.text
            _merge(target_labels, position, self._labels[spanish])
        return SentenceLabels(tuple(map(_ordered, source_labels)), tuple(map(_ordered, target_labels)))


LABELING: ContextVar[Labeling | None] = ContextVar("LABELING", default=None)


@contextmanager
def labeling() -> Iterator[Labeling]:
    """Label the sentences that the grammar builds in this context."""
    labels = Labeling()
    token = LABELING.set(labels)
    try:
        yield labels
    finally:
        LABELING.reset(token)


def name_antecedent(labels: SentenceLabels, name: str) -> SentenceLabels:
    """Return labels with the name of the antecedent of the words of `Labeling.refer`."""
    sides = []
    for side in labels:
        sides.append(tuple({**word, "antecedent": name} if word.get("antecedent") == "" else word for word in side))
    return SentenceLabels(*sides)


def _senses(verb: Verb) -> tuple[str, str]:
    """Return the English and the Spanish sense of a verb: its translation, if the verb has several."""
    english = f"{verb.base}: {verb.infinitive}" if len(SPANISH_VERBS[verb.base]) > 1 else ""
    spanish = f"{verb.infinitive}: {verb.base}" if len(ENGLISH_VERBS[verb.infinitive]) > 1 else ""
    return english, spanish


def _adjective_sense(adjective: Adjective) -> str:
    return f"{adjective.english}: {adjective.spanish[0]}" if adjective.english in ("cold", "hot") else ""


def _sense_of_need(english: str, spanish: str) -> str:
    return f"{english}: {spanish} (noun)" if english in ("cold", "hot") else ""


def _bare(text: str) -> str:
    return text.strip(",¿").lower()


def _merge(words: list[Labels], position: int, labels: Mapping[str, str]) -> None:
    if position == len(words):
        words.append(dict(labels))
    else:
        words[position] = {**labels, **words[position]}


def _ordered(labels: Labels) -> Labels:
    return {name: labels[name] for name in LABELS if name in labels}
