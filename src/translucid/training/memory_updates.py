"""A run that learns what has come into a translation memory since it last did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from translucid.data.readers.corpus import Pair, sides
from translucid.ground.atomic import explained, output, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import digest
from translucid.memory.folding import Folded
from translucid.memory.translation_memory import TranslationMemory
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.initialization import settings_from
from translucid.runs.run_folder import PAIRS, RunFolder

FEWEST = 20
"""Pairs from which something can be learned and seen to be learned."""
HELD_OUT = 10
"""One of so many pairs is not learned from, but shows what was learned; the same one whenever it is met."""
MOST_HELD_OUT = 500
GENERAL_SHARE = 0.8
"""Of each epoch, from what the run was trained on before; docs/fine-tuning.md has the trials."""
FEW: dict[str, Any] = {
    "warmup": 20,
    "max_epochs": None,
    "max_steps": 300,
    "validate_every": 25,
    "validate_sentences": 200,
}
"""How little is learned, of which an epoch has a handful of batches: the best of many validations stays."""
MANY_PAIRS = 5000
"""Pairs from which on the settings are those of all fine-tuning."""
ADAPTER: dict[str, Any] = {"adapter_rank": 8, "learning_rate": 0.003}
_LEARNED = "learned by "
"""Begins the name of a fact: what a model, told by its fingerprint, has learned of the memory."""


@dataclass(frozen=True)
class Lesson:
    """What there is to learn."""

    configuration: Configuration
    new: int
    """Pairs that are new."""
    held_out: int
    change: int
    """Of the memory, up to which the run will have learned it."""
    general: Mapping[str, float]
    """What is mixed in, so that it is not forgotten."""


def lesson(
    run: Path,
    memory: TranslationMemory,
    out: Path,
    *,
    again: bool = False,
    adapter: bool = False,
    mix: Mapping[str, float] | None = None,
    settings: Sequence[str] = (),
) -> Lesson:
    """Write what is new in a memory into a folder where a run will be, and say how it is learned.

    Args:
        run: that goes on learning.
        memory: of its languages.
        out: the run that will come of it; nothing of it may be there.
        again: whether it learns what it has learned before, too.
        adapter: whether it learns differences of low rank.
        mix: general pairs and their shares; those that the run was trained on if not given, as far as they are there.
        settings: `key=value`, which win.

    Raises:
        UserError: there is too little to learn, or it can't be written.
    """
    if out.resolve() == run.resolve():
        raise UserError("is the run that learns", file=out, fix="Choose another --out.")
    before = RunFolder(run).configuration()
    memory.refuse_other_languages(before.data.languages)
    since, change = 0 if again else learned(run, memory), memory.change
    there = (out / PAIRS).is_dir()
    files, (taught, tested) = _written(memory.pairs(since), out / PAIRS, turned=before.data.reverse)
    if taught + tested < FEWEST or not tested:
        for file in files.values():
            file.unlink()
        if not there:
            (out / PAIRS).rmdir()
        what = f"has {taught + tested:,} pairs" + (" that are new to this run" if since else "")
        fix = f"It takes {FEWEST} to learn and to see what was learned" + ("; --relearn takes all." if since else ".")
        raise UserError(what, file=memory.file, fix=fix)
    begun = settings_from(run, None)
    begun["training"] |= (FEW if taught < MANY_PAIRS else {}) | (ADAPTER if adapter else {})
    general = _general(before) if mix is None else mix
    overrides: dict[str, Any] = {f"data.{name}": [str(file)] for name, file in files.items()}
    overrides["data.mix"] = dict(general)
    if general and (guard := _there(before.data.valid_general or before.data.valid)):
        overrides["data.valid_general"] = guard
    configuration = resolve(None, None, settings, overrides, begun)
    return Lesson(configuration, taught + tested, tested, change, general)


def learned(run: Path, memory: TranslationMemory) -> int:
    """Return up to which change of a memory a run has learned it; 0 if it has not."""
    noted = memory.facts().get(_LEARNED + RunFolder(run).model_digest(), "")
    return int(noted) if noted.isdecimal() and len(noted) < 20 else 0


def note_learned(run: Path, memory: TranslationMemory, change: int) -> None:
    """Note that a run has learned a memory up to a change.

    Raises:
        UserError: the memory can't be written.
    """
    memory.note({_LEARNED + RunFolder(run).model_digest(): str(change)})


def keep_adapter(learned_by: Path, run: Path, name: str) -> Path:
    """Copy what a run has learned to where the run that it began as finds it by a name."""
    kept = run / "adapters" / f"{name}.safetensors"
    kept.parent.mkdir(exist_ok=True)
    write_atomically(kept, (learned_by / "adapter.safetensors").read_bytes())
    return kept


def remove_earlier_pairs(out: Path, found: Lesson) -> None:
    """Remove the pairs that an earlier run in the same folder learned from, when a new one has taken its place."""
    data = found.configuration.data
    for file in (out / PAIRS).glob("*.tsv"):
        if str(file) not in (*data.train, *data.valid):
            file.unlink()


def _written(pairs: Iterable[Pair], folder: Path, *, turned: bool) -> tuple[dict[str, Path], tuple[int, int]]:
    """Part what is learned from what is held out; return the files, and how many pairs there are in each.

    Their names tell their content, so that those of a run that is there stay until another one takes its place. Texts
    that differ in numbers, case or punctuation alone stay together.
    """
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    new = {split: folder / f"{split}.new" for split in ("train", "valid")}
    counts, held_out = [0, 0], set[int]()
    with output(new["train"]) as taught, output(new["valid"]) as tested:
        for pair in pairs:
            key = sum(Folded(pair.source).pairs)
            held = key in held_out or (key % HELD_OUT == 0 and counts[1] < MOST_HELD_OUT)
            if held:
                held_out.add(key)
            written = pair.swapped if turned else pair
            (tested if held else taught).write(f"{written.source}\t{written.target}\n".encode())
            counts[held] += 1
    files = {split: file.replace(folder / f"{split}-{digest(file)[:12]}.tsv") for split, file in new.items()}
    return files, (counts[0], counts[1])


def _general(before: Configuration) -> dict[str, float]:
    """Return what a run was trained on, in general, with the share of each corpus."""
    files = _there(before.data.mix or before.data.train)
    return {file: GENERAL_SHARE / len(files) for file in files}


def _there(files: Iterable[str]) -> list[str]:
    return [file for file in files if all(side.exists() for side in sides(file))]
