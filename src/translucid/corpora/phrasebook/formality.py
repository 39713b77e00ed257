"""The phrasebook with two forms of address: *you* is *tú* or *usted*, and each pair says which.

The grammar writes *tú*. Here, the labels of its words say which of them address the reader, and each becomes what
*usted* takes: the third person of a verb, *le*, *lo* or *se*, *su*, *con usted*, and the subjunctive of a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from translucid.ground.special import Formality

from . import verbs
from .generation import LONGEST, SHORTEST, Split, generate
from .text import Phrase
from .verbs import GIVE, GO, SOFT, WATCH, Verb
from .word_labels import Labels

Kind: TypeAlias = Literal["finite", "infinitive", "request"]
_EDGES = ".,?!¿¡"
_WORDS = {"tu": "su", "tus": "sus", "contigo": "con usted"}
_IRREGULAR_REQUESTS = {GO: "vaya", GIVE: "dé", WATCH: "vea", verbs.SEE: "vea"}


class AddressedPhrase(NamedTuple):
    """A sentence pair, and how it addresses the reader."""

    phrase: Phrase
    """The pair, without labels of words."""
    formality: Formality | None = None
    """The form of address; None for a sentence without one."""
    contrast: str = ""
    """The translation with the other form of address, if there is one."""


def generate_addressed(
    count: int,
    *,
    split: Split = "train",
    seed: int = 1,
    min_words: int = SHORTEST,
    max_words: int = LONGEST,
    both_forms: bool = False,
) -> Iterator[AddressedPhrase]:
    """Generate the pairs of `generate`, of which those that address the reader are formal or informal at random.

    The split of a pair is that of the informal one, and the limits of length are for it. With `both_forms`, each that
    addresses the reader is followed by the other form; `count` is the number of sources.

    Raises:
        UserError: as `generate`.
    """
    rng = Random(f"formality {split} {seed}")
    phrases = generate(count, split=split, seed=seed, min_words=min_words, max_words=max_words, labels=True)
    for labeled in phrases:
        informal = labeled._replace(labels=None)
        formal = as_formal(labeled)
        if formal.target == informal.target:
            yield AddressedPhrase(informal)
            continue
        forms = [
            AddressedPhrase(formal, "formal", informal.target),
            AddressedPhrase(informal, "informal", formal.target),
        ]
        if rng.random() >= 0.5:
            forms.reverse()
        yield from forms if both_forms else forms[:1]


def as_formal(phrase: Phrase) -> Phrase:
    """Return a labeled pair with *usted* in place of *tú*, without labels."""
    assert phrase.labels
    words = phrase.target.split()
    english = phrase.source.lower().split()
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for position, (word, labels) in enumerate(zip(words, phrase.labels.target, strict=True)):
        sources = sorted(source for source, linked in phrase.alignment if linked == position)
        core = word.strip(_EDGES)
        next_labels = phrase.labels.target[position + 1] if position + 1 < len(words) else {}
        is_going = any(english[source].strip(_EDGES) == "go" for source in sources)
        formal = _formal_word(core.lower(), labels, next_labels, is_going=is_going)
        if core[:1].isupper():
            formal = formal[:1].upper() + formal[1:]
        start = len(target)
        target += word.replace(core, formal).split()
        # In `con usted`, the first word translates `with`, the second one `you`.
        last = len(target) - 1
        links += [(source, start if source == sources[0] else last) for source in sources]
    return Phrase(phrase.source, " ".join(target), tuple(sorted(links)))


def _formal_word(word: str, labels: Labels, next_labels: Labels, *, is_going: bool) -> str:
    """Return a lower-case word as *usted* takes it; `is_going`: whether `ve` is a request to go, not to see."""
    if word in _forms("infinitive"):  # ayudarte
        return _forms("infinitive")[word]
    if labels.get("person") != "second" or (labels.get("number") == "plural" and word not in _WORDS):
        return word
    if word in _WORDS:
        return _WORDS[word]
    if word == "te" and labels.get("role") == "indirect object":
        return "le"
    if word == "te":  # before a verb of the second person, it is reflexive
        return "se" if next_labels.get("person") == "second" else "lo"
    if word == GO.imperative and is_going:
        return _IRREGULAR_REQUESTS[GO]
    return _forms("finite").get(word) or _forms("request").get(word) or word


@cache
def _forms(kind: Kind) -> dict[str, str]:
    """Return the forms for *tú* of all verbs, with those for *usted*."""
    forms: dict[str, str] = {}
    for verb in filter(lambda value: isinstance(value, Verb), vars(verbs).values()):
        if kind == "finite":
            forms |= {tense[1]: tense[2] for tense in verb.finite.values()}
        elif kind == "request" and verb is not GO:
            forms[verb.imperative] = _request(verb)
        elif kind == "infinitive":
            pronoun = "le" if verb is GIVE else "se" if verb.reflexive else "lo"
            forms[f"{verb.infinitive}te"] = verb.infinitive + pronoun
    return forms


def _request(verb: Verb) -> str:
    """Return the request to someone who is *usted*: the present subjunctive, from the first person."""
    if verb in _IRREGULAR_REQUESTS:
        return _IRREGULAR_REQUESTS[verb]
    stem = verb.finite["present"][0].removesuffix("o")
    if not verb.infinitive.endswith("ar"):
        return stem + "a"
    return stem[:-1] + SOFT.get(stem[-1], stem[-1]) + "e"
