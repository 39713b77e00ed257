"""Claim 26, second part: a memory, fuzzy matches, retrieval in the decoder, and an adapter learned from corrections.

    TRANSLUCID_DATA=DATA python benchmarks/claims/corrections_learned.py --run RUN --general TRAIN.tsv [--po FOLDER]

It prints the tables of docs/claims/26-corrections.md. --po is the unpacked source package of apt, which
`apt-get source --download-only apt` fetches: its messages and manual pages, by source file.

A memory has the first halves of all documents of a corpus. The adapter is learned from it once, with the settings of
`serve --learn` but for those in `SHORT`. Then the second half of each document is translated segment by segment, by
each system in turn, and its references are added to the memory. No segment sees its own reference or a later one.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import DATA, table
from corrections import (
    BEAM,
    MIXTURE,
    SHORTEST,
    Document,
    ReplayedRetrieval,
    bleu_of,
    counts_of,
    interval,
    libreoffice,
    selected,
    tico,
)
from sacrebleu.metrics import BLEU

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from bitext.readers.po import entries
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.data.text_pipeline import translatable
from translucid.ground.console import Console
from translucid.kernels.devices import configure_process
from translucid.runs.run_folder import ADAPTER
from translucid.training import memory_updates
from translucid.training.experiment import prepared

DOCUMENTS, SEGMENTS = 6, 20
"""The documents of each corpus, and the number of segments of a document; the rest of a longer one is left out."""
LONGEST_SEGMENT = 250
"""The most characters of a segment."""
FUZZY = 85
SHORT = ["max_steps=40", "validate_every=20", "validate_sentences=50", "batch_tokens=1024", "warmup=5"]
"""The settings of the adapter's training that make it fit into a minute of one core."""
GENERAL = 100
"""The number of sentences of Tatoeba's test set."""
SYSTEMS = ["memory", f"memory, matches from {FUZZY} %", "--knn", "adapter", "adapter and --knn"]
TAG = re.compile(r"<[^<>]*>|\s+")


def po_files(folder: Path) -> list[Document]:
    """Return the messages and manual pages of apt, by the source file that the first reference names."""
    by_name: dict[str, list[Pair]] = {}
    for file in (folder / "po" / "es.po", folder / "doc" / "po" / "es.po"):
        text = file.read_text(encoding="utf-8")
        for entry in entries(text.splitlines(keepends=True), lambda *problem: None):
            references = [text[start:end].split()[1] for start, end in entry.comments if text[start:].startswith("#: ")]
            target = entry.forms[min(entry.forms)].text
            if references and entry.source and target and not entry.fuzzy:
                sides = (" ".join(TAG.sub(" ", side).split()) for side in (entry.source, target))
                by_name.setdefault(references[0].partition(":")[0], []).append(Pair(*sides))
    return [*by_name.values()]


def short(documents: Sequence[Document]) -> list[Document]:
    """Return the documents that are translated, without long segments."""
    parts = [[pair for pair in document if len(pair.source) <= LONGEST_SEGMENT] for document in documents]
    chosen = selected([part for part in parts if len(part) >= SHORTEST], tuned=False, most=DOCUMENTS)
    return [document[:SEGMENTS] for document in chosen]


def learned(run: Path, memory: Path, general: Path, settings: Sequence[str]) -> tuple[Path, float]:
    """Learn an adapter from a memory as a server does; return its file, and the processor time."""
    out, start, console = memory.with_suffix(".run"), time.process_time(), Console(stderr=True)
    values = [f"{name}={value}" for name, value in memory_updates.ADAPTER.items()]
    chosen = [f"training.{value}" for value in [*values, *SHORT]]
    with TranslationMemory.open(memory) as entries:
        update = memory_updates.prepare_update(
            run, entries, out, relearn=True, mix={str(general): 0.8}, settings=[*chosen, *settings]
        )
    update.configuration.data.valid_general[:] = [str(DATA / "tatoeba-eng-spa" / "dev.tsv")]
    with prepared(update.configuration, out, console=console) as (trainer, display):
        trainer.fit(display)
    return out / ADAPTER, time.process_time() - start


def translate(
    systems: Sequence[tuple[str, Translator, bool]], file: Path, document: Document, turn: int
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Return the translations of the second half of a document by each system, and its processor time.

    What each segment finds in the memory is looked up at its time, and all segments are translated together.
    """
    half = document[len(document) // 2 :]
    with TranslationMemory.open(file, write=True) as memory:
        engine = systems[0][1].with_knn(memory).retrieval_engine
        matches: dict[int, list[str | None]] = {100: [], FUZZY: []}
        similar: dict[tuple[int, ...], tuple[Pair, ...]] = {}
        for pair in half:
            for percent, texts in matches.items():
                match = Recall(memory, percent).replacement(pair.source)
                texts.append(match.target if match else None)
            (pieces,) = systems[0][1].pipeline.pieces([pair.source], split=True)
            for ids in systems[0][1].pipeline.inputs(translatable(pieces)):
                similar.setdefault(tuple(ids), engine.similar(ids))
            memory.add([pair], "reference")
        results, seconds = {}, {}
        for name, translator, has_knn in [*systems[turn:], *systems[:turn]]:
            texts = matches[FUZZY if str(FUZZY) in name else 100]
            sources = [pair.source for pair, text in zip(half, texts, strict=True) if text is None]
            if has_knn:
                translator = dataclasses.replace(translator, retrieval=ReplayedRetrieval(memory, MIXTURE, similar))
            start = time.process_time()
            translations = iter(translator.translate(sources, BEAM))
            seconds[name] = time.process_time() - start
            results[name] = [next(translations).text if text is None else text for text in texts]
    return results, seconds


def rows_of(name: str, documents: Sequence[Document], run: Path, general: Path, settings: Sequence[str]) -> list[list]:
    """Return the rows of a corpus, and print what it does to Tatoeba's sentences."""
    plain = Translator.load(run, "cpu", "torch")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "first-halves.memory"
        with TranslationMemory.open(file, write=True) as memory:
            memory.add([pair for document in documents for pair in document[: len(document) // 2]], "reference")
            size = len(memory)
        adapter, seconds = learned(run, file, general, settings)
        print(f"{name}: adapter of {size} entries, {seconds:.0f} s", flush=True)
        adapted = plain.with_adapter(adapter)
        systems = [(system, adapted if "adapter" in system else plain, "--knn" in system) for system in SYSTEMS]
        replays: dict[str, list[list[str]]] = {system: [] for system in SYSTEMS}
        times = dict.fromkeys(SYSTEMS, 0.0)
        for i, document in enumerate(documents):
            copied = Path(folder) / f"{i}.memory"
            shutil.copy(file, copied)
            results, spent = translate(systems, copied, document, i % len(systems))
            for system, texts in results.items():
                replays[system].append(texts)
                times[system] += spent[system]
        print_general(name, file, systems)
    counts = {system: counts_of(documents, texts) for system, texts in replays.items()}
    segments = sum(len(texts) for texts in replays[SYSTEMS[0]])
    rows = []
    for system in SYSTEMS:
        difference = bleu_of(counts[system]) - bleu_of(counts[SYSTEMS[0]])
        low, high = interval(counts[SYSTEMS[0]], counts[system])
        interval_text = "" if system == SYSTEMS[0] else f"{difference:+.1f} ({low:+.1f} to {high:+.1f})"
        relative = f"{times[system] / times[SYSTEMS[0]]:.2f}"
        rows.append(
            [
                name,
                f"{len(documents)}",
                f"{segments}",
                system,
                f"{bleu_of(counts[system]):.1f}",
                interval_text,
                relative,
            ]
        )
        print(rows[-1], flush=True)
    return rows


def print_general(name: str, file: Path, systems: Sequence[tuple[str, Translator, bool]]) -> None:
    """Print BLEU of Tatoeba's sentences with the memory of a corpus."""
    pairs = list(read_pairs(DATA / "tatoeba-eng-spa" / "test.tsv"))[:GENERAL]
    sources, references = [pair.source for pair in pairs], [[pair.target for pair in pairs]]
    with TranslationMemory.open(file) as memory:
        scores = []
        for system, translator, has_knn in systems:
            if str(FUZZY) in system:
                continue
            translator = translator.with_knn(memory) if has_knn else translator
            texts = [translation.text for translation in translator.translate(sources, BEAM)]
            scores.append(f"{system} {BLEU().corpus_score(texts, references).score:.1f}")
    print(f"{name}, Tatoeba: {', '.join(scores)}", flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--general", type=Path, required=True, help="the training pairs of the run")
    parser.add_argument("--po", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--set", nargs="+", default=[], help="settings of the adapter's training")
    arguments = parser.parse_args()
    configure_process()
    corpora = {"TICO-19": tico, "LibreOffice": libreoffice}
    if arguments.po:
        corpora["apt"] = lambda: po_files(arguments.po)
    rows = []
    for name, read in corpora.items():
        if not arguments.only or name in arguments.only:
            rows += rows_of(name, short(read()), arguments.run, arguments.general.resolve(), arguments.set)
    head = ["corpus", "documents", "segments", "system", "BLEU", "difference", "time"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
