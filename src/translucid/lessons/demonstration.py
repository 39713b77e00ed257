"""The training of `translucid demo` on the built-in phrasebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bitext.pair import Pair
from translucid.api.evaluation.scoring import save_alignment_options
from translucid.api.fitting.confidence_fitting import fit_validation_scores
from translucid.api.translator import Translator
from translucid.corpora.phrasebook.generation import LONGEST, Split, generate
from translucid.evaluation.alignment_error import Gold
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.inspection.alignment import choose
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import prepared

SIZES: dict[Split, int] = {"train": 60_000, "valid": 500, "test": 1000}
"""The number of sentence pairs of each split."""
GOLD = 200
"""The number of pairs whose gold links choose the layer from which alignments are read."""


def phrasebook_files(run: Path) -> dict[Split, Path]:
    """Return the files of a demo run's corpus by split."""
    return {split: run / "phrasebook" / f"{split}.tsv" for split in SIZES}


def train_demo(
    run: Path, *, overwrite: bool, device: str, console: Console, command: Sequence[str] | None = None
) -> None:
    """Write the phrasebook into the run folder and train on it, or resume an interrupted run."""
    files = phrasebook_files(run)
    overrides = {
        "data.train": [str(files["train"])],
        "data.valid": [str(files["valid"])],
        "data.source_language": "en",
        "data.target_language": "es",
    }
    configuration, resume = resumed_or_new(run, "demo", overrides, overwrite=overwrite)
    with console.status("writing the phrasebook"):
        pairs = {split: phrasebook_pairs(count, split) for split, count in SIZES.items()}
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
        for split, file in files.items():  # an interrupted training reads them when it resumes
            _write(file, pairs[split])
        trainer.fit(display)
    # With these scores, translating warns about sentences that are unlike the phrasebook.
    fit_validation_scores(run, console=console, device=device)


def resumed_or_new(
    run: Path, preset: str, overrides: Mapping[str, Any], *, overwrite: bool = False
) -> tuple[Configuration, bool]:
    """Return the configuration of an interrupted training, or else of a new one, and whether it was interrupted.

    Raises:
        UserError: the folder contains files that do not belong to a run.
    """
    folder = RunFolder(run)
    if folder.exists and not overwrite:
        return folder.configuration(), True
    folder.refuse_overwrite(overwrite)
    return resolve(preset=preset, overrides=overrides), False


def find_alignments(translator: Translator) -> None:
    """Find the layer whose attention agrees best with the phrasebook's gold links, and save it for alignments."""
    pairs, links = [], []
    for phrase in generate(GOLD, split="valid"):
        pairs.append(Pair(phrase.source, phrase.target))
        links.append(Gold(frozenset(phrase.alignment), frozenset(phrase.alignment)))
    ranked = choose(translator.inspector.inspect(pairs, contributions=True), links)
    save_alignment_options(translator, ranked, pairs)


def phrasebook_pairs(count: int, split: Split, max_words: int = LONGEST) -> list[Pair]:
    """Return sentence pairs of the phrasebook."""
    return [Pair(phrase.source, phrase.target) for phrase in generate(count, split=split, max_words=max_words)]


def _write(file: Path, pairs: Iterable[Pair]) -> None:
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs).encode())
