"""Fine-tuning of a run on the pairs that are new in a translation memory since the last time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitext.memory.match import Folded
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from bitext.reading import digest
from translucid.data.readers.corpus import label, sides, without_languages
from translucid.ground.atomic import explain_write_errors, output, write_atomically
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration, resolve
from translucid.runs.data_options import DataOptions
from translucid.runs.directions import model_code
from translucid.runs.initialization import settings_from
from translucid.runs.run_folder import PAIRS, RunFolder

MIN_PAIRS = 20
"""The minimum number of pairs for training and validation."""
HELD_OUT = 10
"""One of this number of pairs is held out for validation: always the same pairs."""
MAX_HELD_OUT = 500
"""The maximum number of pairs for validation."""
GENERAL_SHARE = 0.8
"""The share of the run's earlier training data in each epoch; docs/fine-tuning.md has the experiments."""
FEW_PAIRS: dict[str, Any] = {
    "warmup": 20,
    "max_epochs": None,
    "max_steps": 300,
    "validate_every": 25,
    "validate_sentences": 200,
}
"""The training settings for few pairs, with only a handful of batches per epoch: short, with many validations."""
MANY_PAIRS = 5000
"""The number of pairs from which the settings are those of all fine-tuning."""
ADAPTER: dict[str, Any] = {"adapter_rank": 8, "learning_rate": 0.003}
"""The training settings for low-rank differences."""
_LEARNED = "learned by "
"""The prefix of a fact in a memory: how much of it the model with the fingerprint that follows has learned."""


@dataclass(frozen=True)
class MemoryUpdate:
    """The fine-tuning of a run on a memory."""

    configuration: Configuration
    pairs: int
    """The number of new pairs."""
    held_out: int
    change: int
    """The number of the memory's last change that the run will have learned."""
    general: Mapping[str, float]
    """The general corpora that are mixed in against forgetting, and their shares."""


def prepare_update(
    run: Path,
    memory: TranslationMemory,
    out: Path,
    *,
    relearn: bool = False,
    adapter: bool = False,
    mix: Mapping[str, float] | None = None,
    settings: Sequence[str] = (),
) -> MemoryUpdate:
    """Write the new pairs of a memory into the folder of a future run, and return the configuration of its training.

    Args:
        run: the run to fine-tune.
        memory: a memory with the languages of the run.
        out: the folder of the new run.
        relearn: whether to learn all pairs, not only new ones.
        adapter: whether to learn low-rank differences.
        mix: general corpora and their shares; by default, the run's training data, if the files still exist.
        settings: `key=value` settings, which take precedence.

    Raises:
        UserError: there are too few pairs, they can't be written, or they need languages.
    """
    if out.resolve() == run.resolve():
        raise UserError("is the run to fine-tune", file=out, fix="Choose another `out`.")
    base = RunFolder(run).configuration()
    if not base.data.tokenizer.languages:
        memory.refuse_other_languages(base.data.languages)
    suffix = _languages_after_name(memory, base.data)
    since = 0 if relearn else last_learned_change(run, memory)
    change = memory.change
    folder_existed = (out / PAIRS).is_dir()
    files, train_count, valid_count = _write_pairs(memory.pairs(since), out / PAIRS, reverse=base.data.reverse)
    count = train_count + valid_count
    if count < MIN_PAIRS or not valid_count:
        for file in files.values():
            file.unlink()
        if not folder_existed:
            (out / PAIRS).rmdir()
        what, fix = f"has {count:,} pairs", f"At least {MIN_PAIRS} are needed to train and to validate"
        if since:
            what, fix = f"{what} that are new to this run", f"{fix}; `relearn=True` takes all"
        raise UserError(what, file=memory.file, fix=f"{fix}.")
    base_settings = settings_from(run, None)
    if train_count < MANY_PAIRS:
        base_settings["training"] |= FEW_PAIRS
    if adapter:
        base_settings["training"] |= ADAPTER
    if mix is None:
        mix = _general_corpora(base)
    overrides: dict[str, Any] = {f"data.{split}": [f"{file}{suffix}"] for split, file in files.items()}
    overrides["data.mix"] = dict(mix)
    # The pairs that are mixed in have to keep all directions of the run.
    overrides["data.both_directions"] = base.data.both_directions
    general_validation = _existing(base.data.valid_general or base.data.valid)
    if mix and general_validation:
        overrides["data.valid_general"] = general_validation
    configuration = resolve(None, None, settings, overrides, base_settings)
    return MemoryUpdate(configuration, count, valid_count, change, mix)


def last_learned_change(run: Path, memory: TranslationMemory) -> int:
    """Return the number of the memory's last change that a run has learned; 0 if it has learned none."""
    number = memory.facts().get(_LEARNED + RunFolder(run).model_digest(), "")
    if number.isdecimal() and len(number) < 20:  # a memory may come from anyone; SQLite's integers have 19 digits
        return int(number)
    return 0


def note_learned(run: Path, memory: TranslationMemory, change: int) -> None:
    """Record in a memory that a run has learned it up to a change.

    Raises:
        UserError: the memory can't be written.
    """
    memory.note({_LEARNED + RunFolder(run).model_digest(): str(change)})


def keep_adapter(fine_tuned_run: Path, run: Path, name: str) -> Path:
    """Copy the adapter of a fine-tuned run into the folder of its base run, under a name."""
    file = run / "adapters" / f"{name}.safetensors"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, (fine_tuned_run / "adapter.safetensors").read_bytes())
    return file


def remove_earlier_pairs(out: Path, update: MemoryUpdate) -> None:
    """Remove the pairs of an earlier run in the same folder, once a new run has replaced it."""
    data = update.configuration.data
    for file in (out / PAIRS).glob("*.tsv"):
        if str(file) not in without_languages([*data.train, *data.valid]):
            file.unlink()


def _write_pairs(pairs: Iterable[Pair], folder: Path, *, reverse: bool) -> tuple[dict[str, Path], int, int]:
    """Divide pairs into training and validation; return both files, and the number of pairs in each.

    File names contain a fingerprint of the content, so that the files of an earlier run stay until it is replaced.
    """
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    train_file, valid_file = folder / "train.new", folder / "valid.new"
    train_count, valid_count, held_out_keys = 0, 0, set[int]()
    with output(train_file) as train, output(valid_file) as valid:
        for pair in pairs:
            # Sources that differ only in numbers, case or punctuation have the same key and stay together.
            key = sum(Folded(pair.source).pairs)
            if reverse:
                pair = pair.swapped
            line = f"{pair.source}\t{pair.target}\n".encode()
            if key in held_out_keys or (key % HELD_OUT == 0 and valid_count < MAX_HELD_OUT):
                held_out_keys.add(key)
                valid.write(line)
                valid_count += 1
            else:
                train.write(line)
                train_count += 1
    files = {
        "train": train_file.replace(folder / f"train-{digest(train_file)[:12]}.tsv"),
        "valid": valid_file.replace(folder / f"valid-{digest(valid_file)[:12]}.tsv"),
    }
    return files, train_count, valid_count


def _languages_after_name(memory: TranslationMemory, data: DataOptions) -> str:
    """Return what follows the names of the files of a memory's pairs: the languages, if the run has several.

    Raises:
        UserError: the memory has no languages, and the run needs them.
    """
    if not data.tokenizer.languages:
        return ""
    source, target = memory.languages
    if not source or not target:
        if None not in data.languages:
            return ""
        fix = "Make it by `TranslationMemory.add`, for instance."
        raise UserError("the memory has no languages, and the run translates several directions", fix=fix)
    direction = model_code(source, data.all_languages), model_code(target, data.all_languages)
    return f":{label(direction[::-1] if data.reverse else direction)}"


def _general_corpora(base: Configuration) -> dict[str, float]:
    """Return the general training data of a run, with the share of each corpus."""
    files = _existing(base.data.mix or base.data.train)
    return dict.fromkeys(files, GENERAL_SHARE / max(len(files), 1))


def _existing(corpora: Iterable[str]) -> list[str]:
    """Return the corpora whose files exist; a corpus may be a pair of files."""
    return [corpus for corpus in corpora if all(map(Path.exists, sides(corpus)))]
