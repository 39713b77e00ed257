"""Terms with and without tags, and untranslated names, in phrasebook sentences that no model was trained on.

    python benchmarks/term_tags.py runs/demo

Twenty sentences of each of three kinds: a noun whose term differs from its usual translation; the same with a tag
around the noun; and a name that is not in the training text and must not be translated, every second one with a tag.
For each kind the script prints a line of JSON with the percentages of sentences in which

- `once`: the translation contains the term exactly once,
- `old word`: the translation also contains the usual translation of the noun,
- `tag`: the tag encloses the term and nothing else, except an article,
- `rest`: all other words of the reference occur, in any order, except articles,
- `clean`: none of the above is wrong, and nothing is repeated or broken off;

and the chrF against the reference with the term, and the time relative to that without terms.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import torch
from sacrebleu.metrics import CHRF

from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.words import words_in
from translucid.api.segment_translator import SegmentTranslator
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import Phrase, generate

EACH = 20
NOUNS = {
    "soccer": "balompié",
    "house": "vivienda",
    "beach": "costa",
    "car": "automóvil",
    "teacher": "docente",
    "cat": "minino",
    "book": "tomo",
    "city": "urbe",
    "doctor": "galeno",
    "message": "recado",
    "phone": "móvil",
    "computer": "computadora",
    "letter": "epístola",
    "shirt": "blusa",
    "song": "melodía",
    "movie": "cinta",
    "neighbor": "morador",
    "village": "aldea",
    "hat": "gorro",
    "store": "comercio",
}
NAMES = ("Acme Cloud", "Kestrel Mail", "Zorblat", "Quvex", "Globex Pay", "Wiklo Docs", "Fennimore", "Tandrix")
PEOPLE = {"Ana", "Luis", "Elena", "Pedro", "Carlos", "Irene", "Marta", "Oscar", "David", "Laura", "Pablo", "Lucia"}
ARTICLES = {"el", "la", "los", "las", "un", "una", "a", "al", "de", "del"}
PUNCTUATION = ".,;:!?¿¡"


class Case(NamedTuple):
    """A sentence with a term."""

    source: TaggedText
    source_term: str
    target: str
    old: str
    """The usual translation of the noun; of a name, the name of the phrasebook."""
    reference: str


def _around(text: str, part: str) -> TaggedText:
    start = text.index(part)
    pair = Mark(start, "<b>", Side.opens, 0), Mark(start + len(part), "</b>", Side.closes, 0)
    return TaggedText(text, pair)


def _found(phrase: Phrase, words: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the given words that occur once in a sentence, with their translations."""
    source = [word.strip(PUNCTUATION) for word in phrase.source.split()]
    target = [word.strip(PUNCTUATION) for word in phrase.target.split()]
    for i, word in enumerate(source):
        if word in words and source.count(word) == 1 and len(source) > 3:
            linked = [target[j] for s, j in phrase.alignment if s == i]
            if word[0].isupper():  # a name may also link to a pronoun
                linked = [variant for variant in linked if variant[:1].isupper() and len(variant) > 1]
            if linked and target.count(linked[-1]) == 1:
                yield word, linked[-1]


def cases() -> Iterator[tuple[str, list[Case]]]:
    """Yield the sentences of each kind."""
    phrases = list(generate(6000, split="test", min_words=4, max_words=12))
    nouns: dict[str, list[Case]] = {word: [] for word in NOUNS}
    proper_nouns: list[Case] = []
    draw = Random(1)
    for phrase in phrases:
        for word, old in _found(phrase, set(NOUNS)):
            term = NOUNS[word]
            reference = re.sub(rf"\b{old}\b", term, phrase.target)
            nouns[word].append(Case(TaggedText(phrase.source), word, term, old, reference))
        for word, old in _found(phrase, PEOPLE):
            name = NAMES[len(proper_nouns) % len(NAMES)]
            text = phrase.source.replace(word, name)
            marked = _around(text, name) if len(proper_nouns) % 2 else TaggedText(text)
            proper_nouns.append(Case(marked, name, name, old, re.sub(rf"\b{old}\b", name, phrase.target)))
    sampled = [case for group in nouns.values() for case in draw.sample(group, min(2, len(group)))]
    yield "nouns", sampled[::2][:EACH]
    yield (
        "nouns with tags",
        [case._replace(source=_around(case.source.text, case.source_term)) for case in sampled[1::2][:EACH]],
    )
    yield "names", draw.sample(proper_nouns[:200], EACH)


def _words(text: str) -> list[str]:
    return [word.text.casefold() for word in words_in(text) if word.text.isalnum()]


def _broken(text: str, case: Case) -> bool:
    """Whether a part of the term occurs outside of it, or words are repeated that the reference has once."""
    rest = _words(re.sub(re.escape(case.target), " ", text, flags=re.IGNORECASE))
    first = case.target.split()[0].casefold()
    parts = [word for word in rest if word == first or (len(word) > 2 and first.startswith(word))]
    reference_words = _words(case.reference)
    pairs = Counter(pairwise(rest))
    twice = [pair for pair, count in pairs.items() if count > 1 and not set(pair) <= ARTICLES]
    return any(word not in reference_words or word == first for word in parts) or bool(twice)


def judged(case: Case, text: str, whole: str) -> dict[str, bool | None]:
    """Return the checks for a translation, given its text without and with tags."""
    words, term = _words(text), _words(case.target)
    count = sum(words[i : i + len(term)] == term for i in range(len(words)))
    reference = Counter(word for word in _words(case.reference) if word not in ARTICLES)
    lacking = reference - Counter(words)
    inside = re.search("<b>(.*?)</b>", whole)
    tag = None
    if case.source.marks:
        tagged = _words(inside[1]) if inside else []
        tag = [word for word in tagged if word not in ARTICLES] == term
    checks: dict[str, bool | None] = {
        "once": count == 1,
        "old word": case.old.casefold() in words,
        "tag": tag,
        "rest": not lacking,
    }
    right = checks["once"] and not checks["old word"] and tag is not False and not _broken(text, case)
    return {**checks, "clean": bool(right)}


def measured(translator: Translator, sampled: list[Case], show: bool) -> dict[str, Any]:
    """Translate with and without terms, and return the results."""
    terms = [(case.source_term, case.target) for case in sampled]
    sources = [case.source for case in sampled]
    seconds: list[float] = []
    for able in (translator, translator.with_terms(dict.fromkeys(terms))):
        segments = SegmentTranslator(able)
        targets = list(segments.stream(sources))
        took = []
        for _ in range(3):
            started = time.process_time()
            targets = list(segments.stream(sources))
            took.append(time.process_time() - started)
        seconds.append(min(took))
    results = []
    for case, target in zip(sampled, targets, strict=True):
        checks = judged(case, target.marked.text, target.marked.full_text)
        results.append(checks)
        if show:
            mark = " " if checks["clean"] else "x"
            print(f"{mark} {case.source.full_text} | {target.marked.full_text} | {case.reference} | {target.doubts}")
    shares = {}
    for name in results[0]:
        values = [result[name] for result in results if result[name] is not None]
        if values:
            shares[name] = round(100 * sum(map(bool, values)) / len(values))
    texts = [target.marked.text for target in targets]
    score = CHRF(word_order=2).corpus_score(texts, [[case.reference for case in sampled]]).score
    return {"sentences": len(sampled), **shares, "chrF++": round(score, 1), "time": round(seconds[1] / seconds[0], 2)}


def main() -> None:
    """Print a line of JSON for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--show", action="store_true", help="print each translation; x before those that are not clean")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    translator = Translator.load(arguments.run, engine=arguments.engine, threads=1)
    for kind, sampled in cases():
        print(json.dumps({"kind": kind, **measured(translator, sampled, arguments.show)}), flush=True)


if __name__ == "__main__":
    main()
