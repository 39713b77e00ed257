"""A tiny run with placeholders, terms and fuzzy matches, and what can be combined with it."""

import json
import shutil
from pathlib import Path

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.engines.run_files import save_confidence
from translucid.evaluation.confidence import KINDS, Estimator
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder

FEATURES = [
    *("data.placeholders=0.4", "data.terms=0.3", "data.fuzzy_matches=50", "data.subword_dropout=0"),
    *("data.source_language=en", "data.target_language=es"),
]
MEMORY = [("Open %s now.", "Abre %s ahora."), ("I like tennis.", "Me gusta el tenis.")]


@pytest.fixture(scope="session")
def pairs():
    """Training pairs: sentences of the phrasebook, some of them with placeholders."""
    pairs = [Pair(p.source, p.target) for p in generate(104, max_words=8)]
    pairs[::4] = [Pair(f"%s: {pair.source}", f"%s: {pair.target}") for pair in pairs[::4]]
    return pairs


@pytest.fixture(scope="session")
def runs(train, pairs, made_once) -> Path:
    """A folder with the runs main, reverse, first (it writes what main reads) and other (fine-tuned from main).

    main has the adapter mine.
    """
    return made_once("combinations", lambda folder: _train_all(train, pairs, folder))


def _train_all(train, pairs, folder):
    corpora = Corpora.of(pairs[:100], pairs[100:])
    languages = ["data.source_language=en", "data.target_language=es"]
    train(folder / "main", *FEATURES, "training.max_steps=60", data=corpora)
    swapped = Corpora.of([pair.swapped for pair in pairs[:100]], [pair.swapped for pair in pairs[100:]])
    reverse = ["data.placeholders=0.4", "data.source_language=es", "data.target_language=en", "training.max_steps=10"]
    train(folder / "reverse", *reverse, data=swapped)
    first = ["data.placeholders=0.4", "data.source_language=pt", "data.target_language=en", "training.max_steps=10"]
    train(folder / "first", *first, data=swapped)
    fine_tuning = [
        f"training.begin_from={folder / 'main'}",
        "data.placeholders=0.4",
        *languages,
        "training.max_steps=5",
    ]
    train(folder / "other", *fine_tuning, "data.subword_dropout=0", data=corpora)
    train(folder / "adapted", *fine_tuning, "data.subword_dropout=0", "training.adapter_rank=2", data=corpora)
    (folder / "main" / "adapters").mkdir(exist_ok=True)
    shutil.copy(folder / "adapted" / "adapter.safetensors", folder / "main" / "adapters" / "mine.safetensors")
    weights = {name: {"mean": 0.0, "deviation": 1.0, "weight": 0.1} for name in KINDS["search"]}
    figures = {"threshold": 40.0, "pairs": 100, "bad": 50, "kind": "search"}
    estimator = Estimator(**figures, weights=weights, offset=0.0, slope=1.0, shift=0.0)
    main = RunFolder(folder / "main")
    save_confidence(main, main.tokenizer(), None, estimator)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """A folder with a list of terms, a memory and a document."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "terms.tsv").write_text("soccer\tfútbol\n", encoding="utf-8")
    lines = [f"{source}\t{target}\n" for source, target in MEMORY]
    (folder / "memory.tsv").write_text("".join(lines), encoding="utf-8")
    strings = {"first": "I like soccer.", "second": "Ana likes %s and {n}.", "third": "Open %s now."}
    (folder / "strings.json").write_text(json.dumps(strings), encoding="utf-8")
    return folder
