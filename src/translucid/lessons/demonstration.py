"""The main job on the built-in phrasebook: what `translucid demo` trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from translucid.api.scoring import save_alignment_options
from translucid.api.translator import Translator
from translucid.api.validation_fitting import fit_validation_scores
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import Pair
from translucid.evaluation.alignment_error import Gold
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.inspection.alignment import choose
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import prepared

SIZES = {"train": 60_000, "valid": 500, "test": 1000}
"""Sentence pairs of each split."""
GOLD = 200
"""Pairs by whose word links the layer is chosen that alignments are read from."""


def phrasebook_files(run: Path) -> dict[str, Path]:
    """Return where a demo run keeps its corpus, by split."""
    return {split: run / "phrasebook" / f"{split}.tsv" for split in SIZES}


def train_demo(
    run: Path, *, overwrite: bool, device: str, console: Console, command: Sequence[str] | None = None
) -> None:
    """Write the phrasebook into the run folder and train on it; a run that was interrupted goes on."""
    folder = RunFolder(run)
    resume = folder.exists and not overwrite
    files = phrasebook_files(run)
    overrides = {
        "data.train": [str(files["train"])],
        "data.valid": [str(files["valid"])],
        "data.source_language": "en",
        "data.target_language": "es",
    }
    configuration = folder.configuration() if resume else resolve(preset="demo", overrides=overrides)
    if not resume:
        folder.refuse_to_lose(overwrite)
    with console.status("writing the phrasebook"):
        corpus = {split: list(generate(count, split=split)) for split, count in SIZES.items()}  # type: ignore[arg-type]
    pairs = {split: [Pair(p.source, p.target) for p in phrases] for split, phrases in corpus.items()}
    corpora = Corpora.of(pairs["train"], pairs["valid"])
    with prepared(
        configuration,
        run,
        corpora=corpora,
        resume=resume,
        overwrite=overwrite,
        device=device,
        console=console,
        command=command,
    ) as (trainer, display):
        for split, file in files.items():  # a training that is interrupted is resumed with them
            _write(file, pairs[split])
        trainer.fit(display)
    fit_validation_scores(run, console=console, device=device)


def find_alignments(run: Path, translator: Translator) -> None:
    """Find the layer whose attention aligns words best, by the phrasebook's own links, and read alignments there."""
    gold = list(generate(GOLD, split="valid"))
    seen = translator.inspect([(p.source, p.target) for p in gold])
    links = [Gold(frozenset(p.alignment), frozenset(p.alignment)) for p in gold]
    save_alignment_options(run, choose(seen, links))


def _write(file: Path, pairs: Iterable[Pair]) -> None:
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs).encode())
