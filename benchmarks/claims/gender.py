"""Claim 17: where is a noun's gender represented? Activation patching of minimal pairs from the phrasebook.

    translucid demo --out runs/demo
    translucid train runs/demo/config.yaml --out runs/demo-2 --set training.seed=2
    python benchmarks/claims/gender.py runs/demo runs/demo-2

A pair is a test sentence with `el` or `la` before a noun in its translation, and the same English sentence with a noun
of the other gender from the same group of meanings. Neither is a training sentence. The target prefix is the reference
translation before the article. There are three kinds of pairs, each with a feminine CLEAN noun in half of them: the
noun has an article in English, at the beginning of the sentence or later, or none (I like music, me gusta la música).

--quick uses 8 pairs; its page is written beside the first run.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

from common import DOCS, mean_interval, show, table, write
from rich.console import Console
from rich.progress import track

from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook.lexicon import NOUNS, Noun
from translucid.corpora.phrasebook.text import Phrase
from translucid.inspection.patching import ENCODER, Patching

GROUPS = [
    [words.PEOPLE, words.ANIMALS, words.SPORTS + words.SUBJECTS, words.MASS_FOOD + words.DRINKS, words.COUNT_FOOD],
    [words.INSTRUMENTS, words.READING, words.SHOWS + words.SONGS, words.THINGS, words.OPENABLE, words.PLACES],
]
PLACES = ("noun", "the", "word before the noun", "word after the noun", "other words (mean)", "end token")
OPPOSITE = {"el": "la", "la": "el", "El": "La", "La": "El"}
MARKS = ".,;:!?"
KINDS = ("*The* at the beginning of the sentence", "*the* later in the sentence", "No article in English")
TRAINED = 60_000
"""The number of training sentences of the demo."""
SPANISH = {noun.spanish: noun for noun in NOUNS.values()}


class Pair(NamedTuple):
    """Two sentences that differ in a noun of the other gender."""

    clean: str
    other: str
    prefix: list[str]
    """The words of the reference before the article."""
    article: str
    """The Spanish article of CLEAN's noun."""
    noun: int
    """The position of the noun in the source."""
    the: int | None
    """The position of the English article; None without one."""

    @property
    def kind(self) -> str:
        """The heading of the pairs of its kind."""
        if self.the is None:
            return KINDS[2]
        return KINDS[1] if self.the else KINDS[0]


def pairs_of(phrase: Phrase, random: Random) -> Iterator[Pair]:
    """Yield a pair for each article of a sentence, which is CLEAN; the noun of OTHER is chosen at random."""
    source, target = phrase.source.split(), phrase.target.split()
    linked = defaultdict(list)
    for s, t in phrase.alignment:
        linked[t].append(s)
    for k, article in enumerate(target[:-1]):
        # After "a" and "de", "el" would be contracted.
        if article not in OPPOSITE or target[k - 1 : k] in (["a"], ["A"], ["de"], ["De"]):
            continue
        noun = SPANISH.get(target[k + 1].strip(MARKS))
        if noun is None or noun.spanish == "agua" or len(linked[k]) != 1 or len(linked[k + 1]) != 1:
            continue
        (position,), (origin,) = linked[k + 1], linked[k]
        if source[position].strip(MARKS).lower() != noun.singular:
            continue
        the = origin if source[origin].lower() == "the" else None
        if the is None and origin != position:
            continue
        candidates = replacements(noun, source)
        if candidates:
            replacement = random.choice(candidates).singular
            word = source[position]
            stem = word.strip(MARKS)
            changed = word.replace(stem, replacement.capitalize() if stem[0].isupper() else replacement)
            counterpart = " ".join([*source[:position], changed, *source[position + 1 :]])
            yield Pair(phrase.source, counterpart, target[:k], article, position, the)


def replacements(noun: Noun, source: Sequence[str]) -> list[Noun]:
    """Return the nouns of the other gender that can replace a noun in a sentence."""
    candidates = []
    present = {word.strip(MARKS).lower() for word in source}
    for group in (*GROUPS[0], *GROUPS[1]):
        if noun in group:
            for candidate in group:
                same_grammar = (candidate.preposition, candidate.article) == (noun.preposition, noun.article)
                if candidate.feminine != noun.feminine and same_grammar and candidate.singular not in present:
                    candidates.append(candidate)
    return [candidate for candidate in dict.fromkeys(candidates) if candidate.spanish != "agua"]


def minimal_pairs(count: int, seed: int = 17) -> list[Pair]:
    """Sample the same number of pairs of each kind: with and without an English article, masculine and feminine."""
    random = Random(seed)
    trained = {phrase.source for phrase in generate(TRAINED)}
    cells = list(product(KINDS, (False, True)))
    remaining = {cell: count // len(cells) + (i < count % len(cells)) for i, cell in enumerate(cells)}
    pairs: list[Pair] = []
    for phrase in generate(20_000, split="test", seed=seed, max_words=14):
        for pair in pairs_of(phrase, random):
            cell = pair.kind, pair.article.lower() == "la"
            if remaining[cell] and pair.other not in trained:
                remaining[cell] -= 1
                pairs.append(pair)
                break  # one pair of each sentence
        if not any(remaining.values()):
            break
    return pairs


class Measured(NamedTuple):
    """A pair with its result."""

    pair: Pair
    patching: Patching

    @property
    def right(self) -> bool:
        """Whether the model prefers the right article for both sentences."""
        clean, counterpart = self.patching.log_odds
        return clean > 0 > counterpart


def measured(translator: Translator, pairs: Sequence[Pair], name: str) -> list[Measured]:
    results = []
    for pair in track(pairs, name, console=Console(stderr=True)):
        target = " ".join([*pair.prefix, pair.article])
        choice = pair.article, OPPOSITE[pair.article]
        patching = translator.inspector.patch(pair.clean, pair.other, choice, target=target)
        # The prefix must end at the article that differs, not at an earlier one of the same form.
        assert patching.prefix == " ".join(pair.prefix), (pair, patching.prefix)
        results.append(Measured(pair, patching))
    return results


def place_of(pair: Pair, column: int, columns: int) -> str:
    """Return the role of a source word in the pair."""
    if column == columns - 1:
        return "end token"
    if column == pair.noun:
        return "noun"
    if column == pair.the:
        return "the"
    if pair.the is None and column == pair.noun - 1:
        return "word before the noun"
    return "word after the noun" if column == pair.noun + 1 else "other words (mean)"


Cells = dict[tuple[str, str], str]
"""Figures by layer and by role of the position."""


def encoder_cells(results: Sequence[Measured]) -> Cells:
    """Return mean shares, and in brackets how often the role has the largest share of its layer."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    largest: dict[tuple[str, str], int] = defaultdict(int)
    for pair, patching in results:
        part = patching.parts[0]
        assert part.kind == ENCODER
        for layer, row in zip(part.layers, part.carried.tolist(), strict=True):
            by_place: dict[str, list[float]] = defaultdict(list)
            for column, share in enumerate(row):
                by_place[place_of(pair, column, len(row))].append(share)
            for place, place_shares in by_place.items():
                shares[layer, place].append(100 * sum(place_shares) / len(place_shares))
            largest[layer, place_of(pair, row.index(max(row)), len(row))] += 1
    cells = {}
    for key, values in sorted(shares.items(), key=lambda item: (item[0][0], PLACES.index(item[0][1]))):
        often = 100 * largest[key] / len(results)
        cells[key] = f"{show(*mean_interval(values))} ({often:.0f})"
    return cells


def decoder_cells(results: Sequence[Measured]) -> Cells:
    """Return mean shares at the position that predicts the article, and at those before it."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _, patching in results:
        for part in patching.parts[1:]:
            for layer, (*before, last) in zip(part.layers, part.carried.tolist(), strict=True):
                name = f"{part.kind}, {layer}"
                shares[name, "predicts the article"].append(100 * last)
                if before:
                    shares[name, "before (mean)"].append(100 * sum(before) / len(before))
    return {key: show(*mean_interval(values)) for key, values in shares.items()}


def side_by_side(head: Sequence[str], by_run: Sequence[Cells]) -> str:
    """Return a table with a column for each run."""
    rows = []
    for layer, place in by_run[0]:
        rows.append([layer, place, *(cells[layer, place] for cells in by_run)])
    return table(head, rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="runs of the demo with different seeds")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="8 pairs, page not written to docs")
    arguments = parser.parse_args()
    docs, count = DOCS, arguments.pairs
    if arguments.quick:
        docs, count = arguments.runs[0], 8
    pairs = minimal_pairs(count)
    write("17-gender.md", page(arguments.runs, pairs), docs)


def page(runs: Sequence[Path], pairs: Sequence[Pair]) -> str:
    seeds, right, uneven = [], [], 0
    for run in runs:
        translator = Translator.load(run, "cpu", "torch")
        seeds.append(f"seed {translator.configuration.training.seed}")
        results = measured(translator, pairs, str(run))
        right.append([result for result in results if result.right])
    for pair in pairs:
        clean, counterpart = (len(ids) for ids in translator.tokenizer.encode_source([pair.clean, pair.other]))
        uneven += clean != counterpart
    tables = ""
    for kind in KINDS:
        of_kind = []
        for results in right:
            of_kind.append([result for result in results if result.pair.kind == kind])
        numbers = " and ".join(str(len(results)) for results in of_kind)
        tables += f"## {kind}\n\n{example(pairs, kind)} {numbers} pairs.\n\n"
        tables += side_by_side(["encoder states", "place", *seeds], [encoder_cells(results) for results in of_kind])
        tables += side_by_side(["decoder", "position", *seeds], [decoder_cells(results) for results in of_kind])
    numbers = " and ".join(str(len(results)) for results in right)
    return f"""# Claim 17: where a noun's gender is

{len(pairs)} minimal pairs of the phrasebook: a test sentence with `el` or `la` before a noun in its translation, and
the same sentence with a noun of the other gender. Neither is a training sentence. States of the run on one sentence are
put into the run on the other ([activation patching](../interventions.md#activation-patching)). The share, in per
cent, is how far the log-odds of `el` and `la` move from one run to the other; the target prefix is the reference before
the article. ± is the 95 % interval over sentences. The number in brackets is the percentage of pairs in which this
place has the largest share of its layer.

The models have the demo's size and {len(runs)} seeds. They prefer the right article for both sentences of {numbers}
pairs; the tables cover these pairs. In {uneven} pairs the nouns have different numbers of pieces.

{tables}To reproduce: `translucid demo --out runs/demo`, `translucid train runs/demo/config.yaml --out runs/demo-2 --set
training.seed=2`, and `python benchmarks/claims/gender.py runs/demo runs/demo-2`.
"""


def example(pairs: Sequence[Pair], kind: str) -> str:
    """Return a pair of a kind as text."""
    pair = next(pair for pair in pairs if pair.kind == kind)
    return f"Such as *{pair.clean}* and *{pair.other}*, after *{' '.join(pair.prefix) or '(nothing)'}*."


if __name__ == "__main__":
    main()
