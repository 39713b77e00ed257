"""The run folder: configuration, model, tokenizer, metrics, and `state/`, which only a resumed training needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitext.pair import Pair
from bitext.reading import digest, refuse_unsafe
from translucid import __version__
from translucid.data.readers.corpus import read_pairs
from translucid.data.seen_sentences import SEEN, SEEN_BEFORE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import replace, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.lock import LOCK, locked_folder
from translucid.runs.configuration import Configuration, validated
from translucid.runs.directions import ANY_SOURCE
from translucid.runs.settings import LONGEST, Settings, read_settings, with_current_names
from translucid.runs.tensor_file import (
    fill,
    load_tensors,
    read_header,
    refuse_misfits,
    refuse_other_options,
    save_tensors,
    weight_shapes,
)

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import Model, SequenceModel

TUNING_FILES = "tuned.json", "shortlist.tsv"
"""The fastest configuration of the engine that `tune speed` has found, and its shortlist of target pieces."""
CONFIDENCE = "confidence.json"
"""The weights with which features of a translation predict the probability that it is good."""
ALIGNMENT, LENS = "alignment.safetensors", "lens.safetensors"
"""The word aligner that `tune alignments` has trained, and the tuned lens of `tune lens`."""
RANKING = "ranking.json"
"""The weights with which runs of the other direction rank hypotheses."""
VALIDATION = "validation-scores.json"
"""The scores of the validation sentences; a warning is given for sentences that differ too much from them."""
ADAPTER = "adapter.safetensors"
"""The low-rank differences of a fine-tuning (`adapters.py`)."""
DIRECTIONS = "directions"
"""A folder with the results of `tune` and of validation for each direction of a multilingual model."""
TARGET_PIECES = "target-pieces"
"""A folder with the pieces of each target language of a multilingual model."""
CIRCUITS = "circuits"
"""A folder with the dictionary of features of the model's sublayers."""
SCENES, PAIRS, DISTILLATION = "scenes", "pairs", "distillation"
"""Folders that exist before the run: a demo's pictures, pairs of a translation memory, a student's stages."""
RUN_FILES = (
    *("config.yaml", "model.safetensors", "metrics.jsonl", "tokenizer.model", "source.model", "target.model"),
    *("bad-lines.jsonl", "provenance.jsonl", ADAPTER, CONFIDENCE, ALIGNMENT, LENS, RANKING, VALIDATION, SEEN),
    *TUNING_FILES,
)
RUN_FOLDERS = "state", DIRECTIONS, TARGET_PIECES, SEEN_BEFORE, CIRCUITS
_MAX_BYTES = {
    "config.yaml": LONGEST,
    "tuned.json": 1 << 16,
    CONFIDENCE: 1 << 16,
    RANKING: 1 << 16,
    VALIDATION: 1 << 24,
    "shortlist.tsv": 1 << 26,
    "metrics.jsonl": 1 << 28,
    SEEN: 1 << 34,
}
"""The maximum size of files in bytes. Tokenizers are limited where they are read, tensors by the model's shape."""


class RunFolder:
    """A training run on disk. Every write is atomic."""

    def __init__(self, path: Path) -> None:
        """Describe a folder, which need not exist; read and write nothing yet."""
        self.path = path
        self.config_file = path / "config.yaml"
        self.model_file = path / "model.safetensors"
        self.metrics_file = path / "metrics.jsonl"
        self.state_file = path / "state" / "checkpoint.safetensors"
        self.next_state_file = path / "state" / "next.safetensors"
        self.previous_state_file = path / "state" / "previous.safetensors"
        self.held_out_file = path / "state" / "held-out.jsonl"
        self.bad_lines_file = path / "bad-lines.jsonl"
        self.provenance_file = path / "provenance.jsonl"
        self.corpus_folder = path / "state" / "corpus"
        self.soft_targets_folder = path / "state" / "soft-targets"
        self.images_folder = path / "state" / "images"
        self.texts_folder = path / "state" / "texts"
        self.trackers_folder = path / "state" / "trackers"
        self.next_corpus_folder = path / "state" / "corpus.next"

    @property
    def exists(self) -> bool:
        """Whether the folder contains a run."""
        return self.config_file.exists()

    def begin(self, configuration: Configuration, tokenizer: Tokenizer, held_out: Sequence[Pair] | None = None) -> None:
        """Write the files that do not change during a training. The folder must not contain a run; `staging` checks it.

        Args:
            configuration: all settings.
            tokenizer: the tokenizer of the run.
            held_out: validation pairs that were taken from the training text, if any.

        Raises:
            UserError: the folder can't be created, or a file can't be written.
        """
        try:
            (self.path / "state").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"can't be made ({error.strerror})", file=self.path, fix="Choose another folder."
            ) from error
        # The configuration comes first: `--resume` compares it with that of an interrupted preparation.
        self.save_configuration(configuration)
        tokenizer.save(self.path)
        if held_out is not None:
            lines = [json.dumps(pair._asdict()) + "\n" for pair in held_out]
            write_atomically(self.held_out_file, "".join(lines).encode())

    def refuse_overwrite(self, overwrite: bool) -> None:
        """Check, before any work, that a new run may be started here.

        Raises:
            UserError: the folder contains a run, or files that do not belong to one.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise UserError("is a file, not a folder", file=self.path, fix="Choose another folder.")
        if self.exists and not overwrite:
            fix = (
                "Replace it with `overwrite=True`, or choose another folder; `train(resume=True)` continues a training."
            )
            raise UserError("holds a run already", file=self.path, fix=fix)
        visible = {item.name for item in self.path.iterdir() if not item.name.startswith(".")}
        allowed = {*RUN_FILES, *RUN_FOLDERS, SCENES, PAIRS, DISTILLATION}
        if not self.exists and not visible <= allowed:
            raise UserError("holds other files", file=self.path, fix="Choose a new folder.")

    def tidy(self) -> None:
        """Remove temporary files of a killed process, and put a complete checkpoint in its place."""
        shutil.rmtree(self.next_corpus_folder, ignore_errors=True)
        for temporary in (*self.path.glob(".*.tmp"), *self.path.glob("state/.*.tmp")):
            temporary.unlink(missing_ok=True)
        self._advance()

    def save_configuration(self, configuration: Configuration) -> None:
        """Write `config.yaml`, with the versions of this package and of those that determine the results."""
        versions = {"translucid": __version__, **{name: metadata.version(name) for name in ("torch", "sentencepiece")}}
        if code := configuration.model.code:
            from translucid.models.user_code import fingerprint

            versions[code] = fingerprint(code)
        text = configuration.model_copy(update={"versions": versions}).to_yaml()
        write_atomically(self.config_file, text.encode())

    def configuration(self, reads: str | None = None) -> Configuration:
        """Read `config.yaml`.

        Args:
            reads: the kind of input that the model must have, such as `text`; any if not given.

        Raises:
            UserError: this is not a run folder, its configuration was damaged, or the model has another kind of input.
        """
        try:
            is_folder = self.path.is_dir()
        except OSError as error:  # such as a sentence instead of a folder, too long for a name
            raise UserError(f"can't be read ({error.strerror})", file=self.path, fix="Give a run folder.") from error
        if not is_folder:
            fix = "Train a model first (`translucid demo` makes runs/demo), or give the folder of one."
            raise UserError("there is no such folder", file=self.path, fix=fix)
        if not self.exists:
            fix = "Give the folder given to `train(out)`."
            raise UserError("is not a run folder: it has no config.yaml", file=self.path, fix=fix)
        self.refuse_strange_files()
        settings = read_settings(self.config_file)
        # The versions are the last group. A file that was cut short would otherwise get defaults for what it lacks.
        if not settings.get("versions"):
            raise UserError("has no versions: it was cut short", file=self.config_file, fix="Take it from a backup.")
        configuration = validated(_with_learned(with_current_names(settings)), self.config_file)
        if reads:
            configuration.refuse_other_input(reads, self.path)
        return configuration

    def held_out(self) -> list[Pair] | None:
        """Read the pairs that were held out for validation, if any."""
        return list(read_pairs(self.held_out_file)) if self.held_out_file.exists() else None

    def refuse_strange_files(self) -> None:
        """Check, before a file of the run is opened, that all are regular files in this folder and not too large.

        Raises:
            UserError: one is not.
        """
        states = self.next_state_file, self.state_file, self.previous_state_file, self.held_out_file
        folder_files = (f"{DIRECTIONS}/*/*", f"{TARGET_PIECES}/*", f"{SEEN_BEFORE}/*")
        language_files = chain.from_iterable(map(self.path.glob, folder_files))
        run_files = [self.path / name for name in RUN_FILES]
        for file in (*run_files, *states, *language_files):
            refuse_unsafe(file, self.path, _MAX_BYTES.get(file.name))
        folders = *RUN_FOLDERS, "state/corpus", "state/images", "state/trackers"
        for name in (".lock", *folders, ".preparing", ".ready", ".moving", ".replaced"):
            if (self.path / name).is_symlink():
                raise UserError("is a link, and would be written through", file=self.path / name, fix="Remove it.")

    def tokenizer(self) -> Tokenizer:
        """Read the tokenizer; if there is a model, it must be the tokenizer of its training.

        Raises:
            UserError: there is none, it is damaged, or it is not the model's.
        """
        fingerprint = None
        if self.model_file.exists():
            with suppress(UserError):  # `load_model` reports a damaged model
                fingerprint = read_header(self.model_file)[1].get("tokenizer")
        return Tokenizer.load(self.path, fingerprint)

    def save_model(self, model: Model, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        """Write `model.safetensors`, with `facts` such as step and BLEU, its options and its tokenizer's fingerprint.

        Results of `tune` for the previous model are deleted, because they do not hold for this one.
        """
        from translucid.layers.low_rank import merged

        for name in (*TUNING_FILES, CONFIDENCE, ALIGNMENT, LENS, RANKING, VALIDATION):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.path / DIRECTIONS, ignore_errors=True)
        shape = model.options.model_dump(mode="json")
        save_tensors(self.model_file, merged(model), {**facts, "model": shape, "tokenizer": tokenizer.fingerprint})

    def load_model(self, configuration: Configuration, tokenizer: Tokenizer) -> Model:
        """Read the model, in evaluation mode, on the CPU.

        Raises:
            UserError: there is none yet, it is damaged, or it does not fit the configuration.
        """
        from translucid.models.build import meta_model, refuse_too_large

        self._refuse_untrained()
        self._warn_of_changed_code(configuration)
        saved_shapes, facts = read_header(self.model_file)
        try:
            model = meta_model(
                configuration.model, tokenizer.source_size, tokenizer.target_size, tokenizer.target_vocabulary
            )
        except ValueError as error:
            fix = "It does not belong to the files beside it."
            raise UserError(str(error), file=self.config_file, fix=fix) from error
        # Before memory is allocated, because a configuration may ask for ten thousand layers.
        refuse_misfits(weight_shapes(model), saved_shapes, self.model_file)
        refuse_other_options(facts.get("model"), configuration.model, self.config_file)
        refuse_too_large(model)
        fill(model, load_tensors(self.model_file)[0], self.model_file)
        return model.eval()

    def _warn_of_changed_code(self, configuration: Configuration) -> None:
        """Warn if the user's code that the model needs has changed since the training."""
        code = configuration.model.code
        if code is None:
            return
        from translucid.models.user_code import fingerprint

        if configuration.versions.get(code) != fingerprint(code):
            # Imported here, because Rich draws random numbers when it is imported.
            from translucid.ground.console import Console

            warning = f"warning: {self.path} was trained with another version of {code}; its translations may differ"
            Console(stderr=True).print(warning, soft_wrap=True)

    def load_sequence_model(self, configuration: Configuration, tokenizer: Tokenizer) -> SequenceModel:
        """Read the model as `load_model` does, for a configuration of a sequence model."""
        from translucid.models.protocol import SequenceModel

        model = self.load_model(configuration, tokenizer)
        assert isinstance(model, SequenceModel)
        return model

    def model_digest(self) -> str:
        """Return a fingerprint of the model's file.

        Raises:
            UserError: there is none yet, or its size is not that of its header.
        """
        self._refuse_untrained()
        read_header(self.model_file)  # compares the size first, as a sparse file may have terabytes
        return digest(self.model_file)

    def _refuse_untrained(self) -> None:
        if not self.model_file.exists():
            what = "has no model.safetensors: the training had not reached its first validation"
            raise UserError(what, file=self.path, fix=f"Resume it with `train(resume=True, out={self.path})`.")

    def check_model(self) -> None:
        """Verify the checksum of `model.safetensors`.

        Raises:
            UserError: it is missing or damaged.
        """
        load_tensors(self.model_file)

    def save_state(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Write the checkpoint for `--resume`; the previous one is kept in case this one gets damaged."""
        save_tensors(self.next_state_file, tensors, facts)
        self._advance()

    def _advance(self) -> None:
        """Put a complete next checkpoint in the place of the current one, and that in the place of the previous one."""
        if self.next_state_file.exists():
            if self.state_file.exists():
                replace(self.state_file, self.previous_state_file)
            replace(self.next_state_file, self.state_file)

    def load_state(
        self, on_damage: Callable[[str], None] | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the current checkpoint, or the previous one if it is missing or damaged; None if there is none.

        Args:
            on_damage: called with a message about a damaged checkpoint if an earlier one is read instead.

        Raises:
            UserError: all checkpoints are damaged.
        """
        files = [self.next_state_file] if self.next_state_file.exists() else []  # complete, but not yet in its place
        if self.previous_state_file.exists():
            files += [self.state_file, self.previous_state_file]
        elif self.state_file.exists():
            files.append(self.state_file)
        damages = []
        for file in files:
            try:
                state = load_tensors(file, finite=False)  # a training that diverged has infinite values
            except UserError as error:
                if file == files[-1]:
                    raise
                damages.append(f"{error} The checkpoint before it is used.")
                continue
            for damage in damages:
                if on_damage:
                    on_damage(damage)
            return state
        return None

    def refuse_changes(self, recorded: Mapping[str, str], current: Mapping[str, str]) -> None:
        """Compare the fingerprints of a resumed run with those of its start, by name.

        Raises:
            UserError: something that must stay the same has changed.
        """
        for what, fingerprint in current.items():
            if recorded.get(what) != fingerprint:
                fix = "Put back what was there, or begin a new run with another `out`."
                if self.first_version() != __version__:
                    fix = f"{fix} (The run was begun by translucid {self.first_version()}; this is {__version__}.)"
                raise UserError(f"{what} has changed since this run was begun", file=self.path, fix=fix)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock that keeps other trainings out of the folder.

        Raises:
            UserError: another training uses the folder, or it can't be written.
        """
        self.refuse_strange_files()
        file = self.path / LOCK
        is_new_lock, is_new_folder = not file.exists(), not self.path.exists()
        with locked_folder(self.path, "training"):
            try:
                yield
            except UserError:
                # A refusal leaves nothing behind. Nobody waits for the lock, so its file may be removed while it is
                # held.
                if is_new_lock:
                    with suppress(OSError):  # Windows removes it only when it is released
                        file.unlink()
                if is_new_folder:
                    with suppress(OSError):  # the folder is not empty
                        self.path.rmdir()
                raise

    def add_metrics(self, row: dict[str, Any]) -> None:
        """Append a row to `metrics.jsonl`."""
        with self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def add_provenance(self, row: dict[str, Any]) -> None:
        """Append a row to `provenance.jsonl`, which records the origin of the weights."""
        content = self.provenance_file.read_bytes() if self.provenance_file.exists() else b""
        write_atomically(self.provenance_file, b"\n".join([*content.splitlines(), json.dumps(row).encode(), b""]))

    def first_version(self) -> str:
        """Return the version of this package that began the run's training, or `of another version`."""
        try:
            first = self.provenance_file.read_text(encoding="utf-8").partition("\n")[0]
            return str(json.loads(first)["translucid"])
        except (OSError, ValueError, LookupError, TypeError):
            return "of another version"

    def last_version(self) -> str | None:
        """Return the commit of this package that trained the run at last, else its version, None if unknown."""
        try:
            last = json.loads(self.provenance_file.read_text(encoding="utf-8").splitlines()[-1])
            return last.get("commit") or last.get("translucid")
        except (OSError, ValueError, LookupError, AttributeError):
            return None

    def metrics(self) -> list[dict[str, Any]]:
        """Read `metrics.jsonl` without lines that are not rows, such as a last line that a crash cut short."""
        self.refuse_strange_files()
        if not self.metrics_file.exists():
            return []
        rows = []
        with self.metrics_file.open("rb") as file:
            for line in file:
                row = None
                with suppress(ValueError, RecursionError):
                    row = json.loads(line)
                if isinstance(row, dict) and isinstance(row.get("step"), int) and isinstance(row.get("kind"), str):
                    rows.append(row)
        return rows

    def forget_metrics_after(self, step: int) -> None:
        """Remove the rows of updates that a resumed training will repeat."""
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in self.metrics() if row["step"] <= step]
        write_atomically(self.metrics_file, "".join(lines).encode("utf-8", "replace"))


def _with_learned(settings: Settings) -> Settings:
    """Return the settings of a run; those of older runs do not say what was learned before a fine-tuning.

    Their own files name the directions. M2M100 and NLLB have learned all directions before.
    """
    data = settings.get("data")
    if not isinstance(data, dict) or "learned" in data or not (settings.get("training") or {}).get("begin_from"):
        return settings
    tokenizer = data.get("tokenizer") or {}
    if tokenizer.get("language_pieces") != "both-sides":
        return settings
    return {**settings, "data": {**data, "learned": {ANY_SOURCE: sorted(tokenizer.get("languages") or ())}}}
