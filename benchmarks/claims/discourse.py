"""Claim 21: how much document context (the preceding sentences) improves translations.

    python benchmarks/claims/discourse.py [--tico all.en-es.tmx.gz --base RUN] [--quick]

A model with the settings of the demo is trained on single sentences of the phrasebook. Three models are initialized
from it and trained for as many updates again: the first on the same single sentences, the second also on passages whose
last sentence depends on an earlier one (docs/phrasebook.md), without context, and the third on the same passages with
up to three sentences of context. Words of the added text are added to their vocabularies. Runs are cached in
runs/claims/discourse.

With `--tico`, the run `--base` is fine-tuned on documents of TICO-19, once with two sentences of context and once
without, and tested on other documents.

--quick trains on little data for 30 updates; its figures mean nothing and are written beside the runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from common import DOCS, scored, table, train_once, translations, write

from bitext.pair import Pair
from translucid.api.evaluation.contrast import preferences
from translucid.api.evaluation.scoring import translated
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.discourse import generate_passages
from translucid.corpora.phrasebook.generation import Split
from translucid.data.document_context import preceding
from translucid.data.readers.corpus import read_pairs
from translucid.evaluation.contrast import TOP, ContrastRow, contrast_rows, read_contrasts
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder


class Sizes(NamedTuple):
    """Numbers of passages for training and testing; half of the passages are counterparts of the others."""

    sentences: int
    passages: int
    tested_sentences: int
    tested_passages: int
    updates: int


COMMAND = "python benchmarks/claims/discourse.py --tico all.en-es.tmx.gz --base RUN"
SIZES = Sizes(sentences=60_000, passages=80_000, tested_sentences=5_000, tested_passages=2_000, updates=8_000)
QUICK = Sizes(sentences=2_000, passages=400, tested_sentences=10, tested_passages=40, updates=30)
CONTEXT = 3
FIRST = "single sentences"
CONTINUED = {
    "single sentences, twice the updates": (False, 0),
    "then also passages, without context": (True, 0),
    f"then also passages, {CONTEXT} sentences of context": (True, CONTEXT),
}
"""Models initialized from the first one, by name: whether they learn from passages, and their context."""
ADDED = 500
"""The maximum number of words added to the vocabulary."""
GENTLY = ["training.learning_rate=0.002", "training.warmup=50"]
"""Settings for the few documents of TICO-19."""
UPDATES_FOR_DOCUMENTS = 1_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tico", type=Path, help="TICO-19 as .tmx")
    parser.add_argument("--base", type=Path, help="the English-Spanish run to fine-tune on TICO-19")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/discourse"))
    parser.add_argument("--quick", action="store_true", help="little data and 30 updates; figures not written to docs")
    arguments = parser.parse_args()
    runs, docs, sizes = arguments.runs, DOCS, SIZES
    if arguments.quick:
        runs = docs = arguments.runs / "quick"
        sizes = QUICK
    sections = [phrasebook(runs, sizes)]
    if arguments.tico:
        sections.append(tico(runs, arguments.tico, arguments.base, min(sizes.updates, UPDATES_FOR_DOCUMENTS)))
    write("21-discourse.md", page(sections, sizes), docs)


def sentences(count: int, split: Split) -> list[Pair]:
    """Return single sentences, which belong to no document."""
    return [Pair(phrase.source, phrase.target) for phrase in generate(count, split=split)]


def passages(count: int, split: Split) -> list[Pair]:
    """Return the sentences of passages, with the numbers of their documents."""
    pairs = []
    for number, passage in enumerate(generate_passages(count, split=split)):
        pairs += (Pair(*sentence).of_document(number) for sentence in passage.sentences)
    return pairs


def write_test(file: Path, count: int) -> Path:
    """Write the test passages as a file for contrastive evaluation."""
    lines = []
    for number, passage in enumerate(generate_passages(count, split="test")):
        for record in passage.records(str(number)):
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    write_atomically(file, "".join(lines).encode())
    return file


def phrasebook(runs: Path, sizes: Sizes) -> str:
    """Train and score the models of the phrasebook; return the tables."""
    runs.mkdir(parents=True, exist_ok=True)
    single = {"train": sentences(sizes.sentences, "train"), "valid": sentences(500, "valid")}
    test = sentences(sizes.tested_sentences, "test")
    mixed = {
        "train": [*single["train"], *passages(sizes.passages, "train")],
        "valid": [*single["valid"], *passages(200, "valid")],
    }
    file = write_test(runs / "passages.jsonl", sizes.tested_passages)
    settings = [
        *("data.source_language=en", "data.target_language=es"),
        *("data.tokenizer.vocabulary=2000", f"training.max_steps={sizes.updates}"),
    ]
    first = train_once(runs / "first", resolve(preset="demo", assignments=settings), single["train"], single["valid"])
    systems = {FIRST: first}
    settings += [f"training.begin_from={first.path}", f"data.tokenizer.added={ADDED}"]
    for name, (with_passages, context) in CONTINUED.items():
        corpora = mixed if with_passages else single
        folder = runs / f"{'mixed' if with_passages else 'single'}-{context}"
        configuration = resolve(preset="demo", assignments=[*settings, f"data.context={context}"])
        systems[name] = train_once(folder, configuration, corpora["train"], corpora["valid"])
    rows, shares = [], {}
    for name, run in systems.items():
        bleu, half, chrf = scored(translations(run, test, beam=5), test)
        shares[name] = contrastive(run, file)
        in_all = shares[name][0]
        accuracy = in_all.alone if in_all.in_context is None else in_all.in_context
        rows.append([name, f"{bleu:.1f} ± {half:.1f}", f"{chrf:.1f}", percent(accuracy)])
    head = ["trained on", "BLEU, single sentences", "chrF", "contrastive accuracy"]
    *_, with_context = shares
    return f"""## Phrasebook

{len(test):,} single test sentences, and {sizes.tested_passages:,} test passages. {TOP} words of the context, drawn at
random, contain the antecedent in {percent(found_by_chance(file))} % of the passages.

{table(head, rows)}
The model with context, by phenomenon and distance:

{details(shares[with_context])}"""


def contrastive(run: RunFolder, file: Path) -> list[ContrastRow]:
    """Return how often a run prefers the right translation, by phenomenon and distance."""
    pairs, contrasts = read_contrasts(file)
    return contrast_rows(preferences(Translator.load(run.path, "cpu", "torch"), pairs, contrasts))


def found_by_chance(file: Path) -> float:
    """Return the probability that random words of the context contain the antecedent, as a mean over the contrasts."""
    pairs, contrasts = read_contrasts(file)
    positions = preceding(pair.document for pair in pairs)
    probabilities = []
    for contrast in contrasts:
        context = pairs[contrast.number - positions[contrast.number] : contrast.number]
        words = sum(len(pair.source.split()) for pair in context)
        probabilities.append(1 - comb(words - len(contrast.antecedent), TOP) / comb(words, TOP))
    return fmean(probabilities)


def details(shares: Sequence[ContrastRow]) -> str:
    """Return the table of one model, by phenomenon and distance."""
    rows = []
    for row in shares:
        figures = map(percent, (row.alone, row.in_context, row.antecedent_found))
        rows.append([row.name, f"{row.sentences:,}", *figures])
    return table(["", "sentences", "without context", "with context", "antecedent found"], rows)


def percent(share: float | None) -> str:
    """Format a share in percent."""
    return "" if share is None else f"{100 * share:.1f}"


def tico(runs: Path, file: Path, base: Path, updates: int) -> str:
    """Fine-tune and score the models of TICO-19; return the table."""
    parts = documents(runs, list(read_pairs(file, languages=("en", "es"), documents=True)))
    test = list(read_pairs(parts["test"], documents=True))
    rows = []
    for context in (0, 2):
        run = runs / f"tico-{context}"
        if not (run / "model.safetensors").exists():
            settings = [f"data.context={context}", f"training.max_steps={updates}", *GENTLY]
            files = ["--train", str(parts["train"]), "--valid", str(parts["valid"])]
            command = ["train", "--init-from", str(base), *files, "--out", str(run)]
            if run_command([*command, *(argument for setting in settings for argument in ("--set", setting))]):
                raise SystemExit("the training failed")
        translator = Translator.load(run, "cpu")
        systems = {f"fine-tuned with {context} sentences of context": translator}
        if context:
            systems["the same, without its context"] = replace(
                translator, pipeline=replace(translator.pipeline, context=None)
            )
        for name, system in systems.items():
            bleu, half, chrf = scored(translated(system, test, split=False, console=Console(stderr=True)), test)
            rows.append([name, f"{bleu:.1f} ± {half:.1f}", f"{chrf:.1f}"])
    return f"## TICO-19\n\n{len(test):,} sentences of held-out documents.\n\n{table(['system', 'BLEU', 'chrF'], rows)}"


def documents(runs: Path, pairs: Sequence[Pair]) -> dict[str, Path]:
    """Write a fifth of the documents for testing, a fifth for validation, and the others for training."""
    names = {0: "test", 1: "valid"}
    lines: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    numbers: dict[int | None, int] = {}
    for pair in pairs:
        number = numbers.setdefault(pair.document, len(numbers))
        record = {"source": pair.source, "target": pair.target, "document": number}
        lines[names.get(number % 5, "train")].append(json.dumps(record, ensure_ascii=False) + "\n")
    files = {name: runs / f"tico-{name}.jsonl" for name in lines}
    for name, file in files.items():
        write_atomically(file, "".join(lines[name]).encode())
    return files


def page(sections: Sequence[str], sizes: Sizes) -> str:
    """Return the page of claim 21."""
    return f"""# Claim 21: the value of previous sentences

Contrastive accuracy (Bawden et al. 2018) is the share of sentences whose right translation is more probable than the
one that would be right after other sentences, in per cent; chance is 50. The antecedent is in the top {TOP} if it is
among the {TOP} words of the context that contribute most (ALTI+) to the first token in which the two translations
differ. The models have the size of the demo. The first one learns {sizes.sentences:,} single sentences for
{sizes.updates:,} updates. The others start from it and learn for {sizes.updates:,} more, with up to {ADDED} further
words in their vocabularies. There are {sizes.passages:,} passages. No training passage has the same combination of
antecedent and last sentence as a test passage. There is one seed; ± is the 95 % bootstrap interval of BLEU.

{chr(10).join(sections)}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
