"""Claim 16: at which layer is a word decided? By frequency, part of speech and alignment distance.

    python benchmarks/claims/deciding.py [--tatoeba RUN TEST TRAIN] [--quick]

Each word of a reference translation is forced. It is decided at the first decoder layer from which on it has rank 1, in
the logit lens and in the tuned lens, which is learned on validation pairs. Only words of one piece that the model would
write count: a word of several pieces is not decided before its last one, whatever it means.

The phrasebook has gold alignments and a lexicon with parts of speech. For a run on Tatoeba, links come from the model's
attention.

Runs are cached in runs/claims/deciding. --quick trains for 60 updates and uses 20 sentences; its figures mean nothing
and are written beside the runs.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from common import DOCS, table, train_once, write
from rich.console import Console
from rich.progress import track
from scipy.stats import spearmanr

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import being, generate, lexicon, nominals, verbs
from translucid.data.readers.corpus import read_pairs
from translucid.data.text_pipeline import EncodedPair
from translucid.inspection.alignment import read_alignment
from translucid.inspection.lens import TunedLens, learn_tuned_lens, read_lens
from translucid.runs.configuration import resolve

COMMAND = "python benchmarks/claims/deciding.py --tatoeba RUN TEST TRAIN"
SEEDS = (1, 2)
FEWEST = 20
"""The least number of words in a row of a table."""
LINKS = tuple[tuple[int, int], ...]


class Word(NamedTuple):
    """A word of one piece that the model would write."""

    decided: dict[str, int]
    """The deciding layer by lens; 0 is the input."""
    frequency: int
    """Its occurrences in the training text."""
    kind: str
    """Its part of speech."""
    distance: float | None
    """The distance in words between its position and that of the source words to which it is linked."""
    position: int
    """The number of words before it."""
    log_prob: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tatoeba", nargs=3, metavar=("RUN", "TEST", "TRAIN"), help="a run and its files of pairs")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/deciding"))
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 4], help="layers of encoder and decoder")
    parser.add_argument("--quick", action="store_true", help="60 updates, 20 sentences, figures not written to docs")
    arguments = parser.parse_args()
    count, runs, docs, updates = arguments.sentences, arguments.runs, DOCS, 1100
    if arguments.quick:
        runs = docs = arguments.runs / "quick"
        count, updates = 20, 60
    parts = []
    for layers in arguments.layers:
        measured, layer_count, undecided = phrasebook(runs, layers, updates, count)
        parts.append(section(f"Phrasebook, {layers} layers", measured, layer_count, undecided))
    if arguments.tatoeba:
        run, test, train = arguments.tatoeba
        measured, layer_count, undecided = on_tatoeba(run, test, train, count)
        parts.append(section("Tatoeba", measured, layer_count, undecided))
    write("16-deciding-layer.md", page(parts, count), docs)


def phrasebook(runs: Path, layers: int, updates: int, count: int) -> tuple[dict[str, list[Word]], int, float]:
    """Return the words of the test sentences in a model of each seed."""
    train, valid, test = (
        list(generate(n, split=split)) for n, split in ((60_000, "train"), (500, "valid"), (count, "test"))
    )
    kinds, counts = parts_of_speech(), frequencies(phrase.target for phrase in train)
    as_pairs = []
    for phrases in (train, valid, test):
        as_pairs.append([Pair(phrase.source, phrase.target) for phrase in phrases])
    links = [phrase.alignment for phrase in test]
    measured, undecided = {}, []
    for seed in SEEDS:
        name = f"{layers}-layers-seed-{seed}"
        Console(stderr=True).rule(name)
        overrides = {"training.seed": seed, "training.max_steps": updates}
        overrides |= {"model.encoder_layers": layers, "model.decoder_layers": layers}
        run = train_once(runs / name, resolve(preset="demo", overrides=overrides), *as_pairs[:2])
        translator = Translator.load(run.path, engine="torch")
        lens = tuned(translator, as_pairs[1])
        words, share = words_of(translator, lens, as_pairs[2], links, counts, lambda word: kinds.get(word, "other"))
        measured[f"seed {seed}"] = words
        undecided.append(share)
    return measured, layers, statistics.fmean(undecided)


def on_tatoeba(run: str, test: str, train: str, count: int) -> tuple[dict[str, list[Word]], int, float]:
    """Return the words of test sentences in a run, whose validation pairs train the tuned lens."""
    translator = Translator.load(run, engine="torch")
    valid = list(read_pairs(*translator.configuration.data.valid))[:2000]
    pairs = list(read_pairs(test))
    pairs = pairs[:: max(1, len(pairs) // count)][:count]
    links = []
    for inspected in translator.inspector.inspect_all(pairs):
        links.append(tuple(read_alignment(inspected, translator.configuration.alignment)))
    counts = frequencies(pair.target for pair in read_pairs(train))
    words, undecided = words_of(translator, tuned(translator, valid), pairs, links, counts, lambda word: "")
    return {"run": words}, translator.configuration.model.decoder_layers, undecided


def tuned(translator: Translator, pairs: Sequence[Pair]) -> TunedLens:
    """Return a tuned lens, which is not kept in the run."""
    ids = [pair.ids for pair in translator.pipeline.pairs(pairs) if pair.longest <= translator.pipeline.longest]
    with Console(stderr=True).status("learning a tuned lens"):
        return learn_tuned_lens(translator.model, ids, translator.device)


def words_of(
    translator: Translator,
    lens: TunedLens,
    pairs: Sequence[Pair],
    links: Sequence[LINKS],
    counts: Counter[str],
    kind_of: Callable[[str], str],
) -> tuple[list[Word], float]:
    """Return the words of one piece that the model would write, and the share of those that it would not."""
    words, left_out = [], 0
    encoded = translator.pipeline.pairs(pairs)
    for pair, ids, of_pair in track([*zip(pairs, encoded, links, strict=True)], "words", console=Console(stderr=True)):
        if ids.longest > translator.pipeline.longest:
            continue
        texts, sources = pair.target.split(), of_source(of_pair)
        decided = {"logit": deciding(translator, ids, None), "tuned": deciding(translator, ids, lens)}
        if len(decided["logit"]) != len(texts):
            continue  # the tokenizer splits the text into other words
        for position, text in enumerate(texts):
            layers = {name: row[position][0] for name, row in decided.items()}
            pieces, log_prob = decided["logit"][position][1:]
            if pieces > 1 or not text.isalpha():
                continue
            if None in layers.values():
                left_out += 1
                continue
            distance = None
            if position in sources:
                distance = abs(statistics.fmean(sources[position]) - position)
            word = text.lower()
            words.append(Word(layers, counts[word], kind_of(word), distance, position, log_prob))
    return words, left_out / max(1, left_out + len(words))


def deciding(translator: Translator, pair: EncodedPair, lens: TunedLens | None) -> list[tuple[int | None, int, float]]:
    """Return the deciding layer, the number of pieces and the log-probability of each word without the end token."""
    source = torch.tensor([pair.source], device=translator.device)
    result = read_lens(translator.model, translator.tokenizer, source, pair.target, pair.masked, lens)
    rows = []
    for word, (_, first, after) in zip(result.words[:-1], result.spans, strict=False):
        rows.append((word.decided, after - first, result.log_probs[-1, first:after].sum().item()))
    return rows


def of_source(links: LINKS) -> dict[int, list[int]]:
    """Return the source positions of each target position that has any."""
    sources: dict[int, list[int]] = {}
    for source, target in links:
        sources.setdefault(target, []).append(source)
    return sources


def frequencies(texts: Iterable[str]) -> Counter[str]:
    """Count the words of texts without punctuation."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.strip(".,?!¿¡").lower() for word in text.split())
    return counts


def parts_of_speech() -> dict[str, str]:
    """Return the part of speech of each Spanish word of the lexicon that has only one."""
    tags: dict[str, set[str]] = {}

    def add(kind: str, *words: str) -> None:
        for word in words:
            tags.setdefault(word.lower(), set()).add(kind)

    for noun in lexicon.NOUNS.values():
        add("noun", noun.spanish, noun.spanish_plural)
    for module in (lexicon, being):
        for value in vars(module).values():
            for adjective in value if isinstance(value, tuple) else (value,):
                if type(adjective) is lexicon.Adjective:
                    add("adjective", *adjective.spanish)
    for forms in nominals.DETERMINERS.values():
        add("determiner", *forms)
    for verb in vars(verbs).values():
        if isinstance(verb, verbs.Verb):
            add("verb", verb.infinitive, verb.gerund, verb.imperative)
            for forms in verb.finite.values():
                add("verb", *forms)
    kind_by_word = {}
    for word, kinds in tags.items():
        kind_by_word[word] = kinds.pop() if len(kinds) == 1 else "ambiguous"
    return kind_by_word


Group = tuple[str, Callable[[Word], bool]]
FREQUENCIES: list[Group] = [
    ("frequency over 10,000", lambda word: word.frequency > 10_000),
    ("1,001 to 10,000", lambda word: 1_000 < word.frequency <= 10_000),
    ("up to 1,000", lambda word: word.frequency <= 1_000),
]
DISTANCES: list[Group] = [
    ("alignment distance below 1", lambda word: word.distance is not None and word.distance < 1),
    ("1 to below 3", lambda word: word.distance is not None and 1 <= word.distance < 3),
    ("3 or more", lambda word: word.distance is not None and word.distance >= 3),
    ("not linked", lambda word: word.distance is None),
]
FACTORS: dict[str, Callable[[Word], float | None]] = {
    "frequency": lambda word: float(word.frequency),
    "alignment distance": lambda word: word.distance,
    "words before it": lambda word: float(word.position),
    "log-probability": lambda word: word.log_prob,
}


def section(title: str, measured: dict[str, list[Word]], layers: int, undecided: float) -> str:
    """Return the tables of one corpus."""
    lenses = ["logit", "tuned"]
    columns = [(name, lens) for lens in lenses for name in measured]
    some = next(iter(measured.values()))
    kinds: list[Group] = []
    for kind in sorted({word.kind for word in some} - {"", "ambiguous"}):
        kinds.append((kind, lambda word, kind=kind: word.kind == kind))  # type: ignore[misc]
    rows = []
    for group, belongs in [("all words", lambda word: True), *kinds, *FREQUENCIES, *DISTANCES]:
        deciding_layers = []
        for name, lens in columns:
            deciding_layers.append([word.decided[lens] for word in measured[name] if belongs(word)])
        if min(map(len, deciding_layers)) < FEWEST:
            continue
        cells = []
        for values in deciding_layers:
            early_share = statistics.fmean(value < layers for value in values)
            cells.append(f"{statistics.fmean(values):.2f} / {100 * early_share:.0f}")
        rows.append([group, f"{len(deciding_layers[0]):,}", *cells])
    correlations = []
    for factor, value_of in FACTORS.items():
        row = [factor]
        for name, lens in columns:
            known = [(value_of(word), word.decided[lens]) for word in measured[name] if value_of(word) is not None]
            row.append(f"{spearmanr(known).statistic:+.2f}" if len(known) >= FEWEST else "")
        correlations.append(row)
    names = [f"{lens}, {name}" for name, lens in columns]
    return f"""## {title}

The mean deciding layer (0 is the input, {layers} the last layer) / words decided before the last layer, %.
The model would not write {100 * undecided:.0f} % of the words, which are left out.

{table(["words", "number", *names], rows)}
Spearman's rank correlation with the deciding layer:

{table(["factor", *names], correlations)}"""


def page(parts: Sequence[str], count: int) -> str:
    """Return the page of claim 16."""
    sections = "\n".join(parts)
    return f"""# Claim 16: at which layer a word is decided

{count} test sentences of each corpus, with forced reference translations. A word is decided at the first decoder layer
from which on it has rank 1, by the logit lens or by a tuned lens learned on validation pairs. Only words of one piece
count. Frequencies are counted in the training text. The alignment distance is the distance between the positions of a
word and of the source words to which it is aligned.

{sections}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
