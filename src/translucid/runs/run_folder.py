"""The run folder: configuration, model, tokenizer, metrics; and `state/`, without which it is a model to give away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from translucid import __version__
from translucid.data.readers.corpus import Pair, read_pairs
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import replace, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import digest, refuse_strange
from translucid.runs.configuration import Configuration, validated
from translucid.runs.renamed_settings import with_current_names
from translucid.runs.safe_yaml import LONGEST
from translucid.runs.settings import read_settings
from translucid.runs.tensor_file import load_tensors, read_header, save_tensors
from translucid.runs.weight_loading import fill, refuse_misfits, refuse_other_options

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import Model, SequenceModel

FOUND = "tuned.json", "shortlist.tsv"
"""What has been found to be the fastest way to translate with the model, and the target pieces considered."""
CONFIDENCE = "confidence.json"
"""How features of the model's translations become a probability that they are good."""
ALIGNMENT = "alignment.safetensors"
"""Tells which words of a translation belong to which of its source, as `tune --alignments` has taught it."""
VALIDATION = "validation-scores.json"
"""What the model's own validation sentences measure; sentences that differ too much are warned of."""
ADAPTER = "adapter.safetensors"
"""What a fine-tuning by differences of low rank has learned; see `adapters.py`."""
SCENES = "scenes"
"""Where a demo keeps its pictures, which are there before the run."""
PAIRS = "pairs"
"""Where the pairs of a memory are that a run learns from; these are there before it, too."""
OURS = (
    *("config.yaml", "model.safetensors", "metrics.jsonl", "tokenizer.model", "source.model", "target.model"),
    *("bad-lines.jsonl", "provenance.jsonl", ADAPTER, CONFIDENCE, ALIGNMENT, VALIDATION),
    *FOUND,
)
_LARGEST = {
    "config.yaml": LONGEST,
    "tuned.json": 1 << 16,
    CONFIDENCE: 1 << 16,
    VALIDATION: 1 << 24,
    "shortlist.tsv": 1 << 26,
    "metrics.jsonl": 1 << 28,
}
"""Bytes that a file may have; tokenizers have a limit of their own, tensors are as many as the model says."""


class RunFolder:
    """One training run on disk. Every write is atomic."""

    def __init__(self, path: Path) -> None:
        """`path`: the folder, which need not exist yet."""
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
        self.images_folder = path / "state" / "images"
        self.texts_folder = path / "state" / "texts"
        self.next_corpus_folder = path / "state" / "corpus.next"

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        return self.config_file.exists()

    def begin(self, configuration: Configuration, tokenizer: Tokenizer, held_out: Sequence[Pair] | None = None) -> None:
        """Write what does not change any more into a folder that holds no run; see `staging` for one that may.

        Args:
            configuration: all settings.
            tokenizer: learned from the training text.
            held_out: pairs taken from the training text to validate with, if some were.

        Raises:
            UserError: the folder can't be made, or a file can't be written.
        """
        try:
            (self.path / "state").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"can't be made ({error.strerror})", file=self.path, fix="Choose another --out.") from error
        # First, so that an interrupted preparation can be told from another one when it is resumed.
        self.save_configuration(configuration)
        tokenizer.save(self.path)
        if held_out is not None:
            lines = (json.dumps(pair._asdict()) + "\n" for pair in held_out)
            write_atomically(self.held_out_file, "".join(lines).encode())

    def refuse_to_lose(self, overwrite: bool) -> None:
        """Check, before any work, that a new run may be begun here.

        Raises:
            UserError: there is a run, or something that is not ours.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise UserError("is a file, not a folder", file=self.path, fix="Choose another --out.")
        if self.exists and not overwrite:
            fix = "Continue it with --resume, replace it with --overwrite, or choose another --out."
            raise UserError("holds a run already", file=self.path, fix=fix)
        foreign = (item.name for item in self.path.iterdir() if not item.name.startswith("."))
        if not self.exists and not set(foreign) <= {*OURS, "state", SCENES, PAIRS}:
            raise UserError("holds other files", file=self.path, fix="Choose a new folder for --out.")

    def tidy(self) -> None:
        """Remove what a killed process was writing, and finish what it had all but done."""
        shutil.rmtree(self.next_corpus_folder, ignore_errors=True)
        for half in (*self.path.glob(".*.tmp"), *self.path.glob("state/.*.tmp")):
            half.unlink(missing_ok=True)
        self._advance()

    def save_configuration(self, configuration: Configuration) -> None:
        """Write `config.yaml`, with the versions at work."""
        versions = {"translucid": __version__, **{name: metadata.version(name) for name in ("torch", "sentencepiece")}}
        if code := configuration.model.code:
            from translucid.models.user_code import fingerprint

            versions[code] = fingerprint(code)
        text = configuration.model_copy(update={"versions": versions}).to_yaml()
        write_atomically(self.config_file, text.encode())

    def configuration(self) -> Configuration:
        """Read `config.yaml`.

        Raises:
            UserError: this is not a run folder, or its configuration was damaged.
        """
        try:
            there = self.path.is_dir()
        except OSError as error:  # such as a sentence in its place, too long for a name
            raise UserError(f"can't be read ({error.strerror})", file=self.path, fix="Give a run folder.") from error
        if not there:
            fix = "Train a model first (`translucid demo` makes runs/demo), or give the folder of one."
            raise UserError("there is no such folder", file=self.path, fix=fix)
        if not self.exists:
            fix = "Give the folder given to train --out."
            raise UserError("is not a run folder: it has no config.yaml", file=self.path, fix=fix)
        self.refuse_strange_files()
        settings = read_settings(self.config_file)
        if not settings.get("versions"):  # it is the last group: a file cut short would leave the rest to the defaults
            raise UserError("has no versions: it was cut short", file=self.config_file, fix="Take it from a backup.")
        return validated(with_current_names(settings), self.config_file)

    def held_out(self) -> list[Pair] | None:
        """Read the pairs that were held out for validation, if some were."""
        return list(read_pairs(self.held_out_file)) if self.held_out_file.exists() else None

    def refuse_strange_files(self) -> None:
        """Check that what has a name of ours is a file, in this folder, and not too large, before any is opened.

        Raises:
            UserError: one is not.
        """
        states = self.next_state_file, self.state_file, self.previous_state_file, self.held_out_file
        for file in (*(self.path / name for name in OURS), *states):
            refuse_strange(file, self.path, _LARGEST.get(file.name))
        for name in (".lock", "state", "state/corpus", "state/images", ".preparing", ".ready", ".moving", ".replaced"):
            written = self.path / name
            if written.is_symlink():
                raise UserError("is a link, and would be written through", file=written, fix="Remove it.")

    def tokenizer(self) -> Tokenizer:
        """Read the tokenizer, which must be the one that the model was trained with, if there is a model.

        Raises:
            UserError: there is none, it is damaged, or it is not the model's.
        """
        fingerprint = None
        if self.model_file.exists():
            with suppress(UserError):  # of a damaged model, who wants it will hear
                fingerprint = read_header(self.model_file)[1].get("tokenizer")
        return Tokenizer.load(self.path, fingerprint)

    def save_model(self, model: Model, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
        """Write `model.safetensors`; `facts`, such as step and BLEU, go with it, its options, and its tokenizer's mark.

        What was found for the model before does not hold for this one, and goes.
        """
        from translucid.layers.low_rank import merged

        for name in (*FOUND, CONFIDENCE, ALIGNMENT, VALIDATION):
            (self.path / name).unlink(missing_ok=True)
        shape = model.options.model_dump(mode="json")
        save_tensors(self.model_file, merged(model), {**facts, "model": shape, "tokenizer": tokenizer.fingerprint})

    def load_model(self, configuration: Configuration, tokenizer: Tokenizer) -> Model:
        """Read the model, in evaluation mode, on the CPU.

        Raises:
            UserError: there is none yet, it is damaged, or it does not fit the configuration.
        """
        from translucid.models.build import hollow_model, refuse_too_large, weight_shapes

        self._refuse_untrained()
        self._warn_of_changed_code(configuration)
        shapes, facts = read_header(self.model_file)
        try:
            model = hollow_model(
                configuration.model, tokenizer.source_size, tokenizer.target_size, tokenizer.target_vocabulary
            )
        except ValueError as error:
            raise UserError(
                str(error), file=self.config_file, fix="It does not belong to the files beside it."
            ) from error
        # Before any memory is asked for: a configuration may say ten thousand layers.
        refuse_misfits(weight_shapes(model), shapes, self.model_file)
        refuse_other_options(facts.get("model"), configuration.model, self.config_file)
        refuse_too_large(model)
        fill(model, load_tensors(self.model_file)[0], self.model_file)
        return model.eval()

    def _warn_of_changed_code(self, configuration: Configuration) -> None:
        """Say that a user's attention score is not the one that the model was trained with."""
        code = configuration.model.code
        if code is None:
            return
        from translucid.models.user_code import fingerprint

        if configuration.versions.get(code) != fingerprint(code):
            said = f"warning: {self.path} was trained with another version of {code}; its translations may differ"
            from translucid.ground.console import Console  # Rich draws random numbers when it is loaded

            Console(stderr=True).print(said, soft_wrap=True)

    def load_sequence_model(self, configuration: Configuration, tokenizer: Tokenizer) -> SequenceModel:
        """Do as `load_model` for a configuration whose model is not a classifier."""
        from translucid.models.protocol import SequenceModel

        model = self.load_model(configuration, tokenizer)
        assert isinstance(model, SequenceModel)
        return model

    def model_digest(self) -> str:
        """Return a fingerprint of the file of the model.

        Raises:
            UserError: there is none yet, or it has not the size that its header says.
        """
        self._refuse_untrained()
        read_header(self.model_file)  # a file full of holes may have terabytes
        return digest(self.model_file)

    def _refuse_untrained(self) -> None:
        if not self.model_file.exists():
            raise UserError(
                "has no model.safetensors: the training had not come to its first validation",
                file=self.path,
                fix="Go on with translucid train --resume --out " + str(self.path) + ".",
            )

    def check_model(self) -> None:
        """Read `model.safetensors` for the checksum's sake.

        Raises:
            UserError: it is missing or damaged.
        """
        load_tensors(self.model_file)

    def save_state(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Write the checkpoint that `--resume` starts from; the one before is kept, should this one get damaged."""
        save_tensors(self.next_state_file, tensors, facts)
        self._advance()

    def _advance(self) -> None:
        """Let a whole new checkpoint take the place of the last one, and that the place of the one before."""
        if self.next_state_file.exists():
            if self.state_file.exists():
                replace(self.state_file, self.previous_state_file)
            replace(self.next_state_file, self.state_file)

    def load_state(
        self, on_damage: Callable[[str], None] | None = None
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the last checkpoint, or the one before if it is missing or damaged; None if there is none.

        Args:
            on_damage: told what is wrong with the last checkpoint when the one before is read instead.

        Raises:
            UserError: the only checkpoint, or both, are damaged.
        """
        older = self.previous_state_file.exists()
        there = {
            self.next_state_file: self.next_state_file.exists(),  # whole, but not yet in its place
            self.state_file: self.state_file.exists() or older,
            self.previous_state_file: older,
        }
        files = [file for file, wanted in there.items() if wanted]
        said = []
        for file in files:
            try:
                state = load_tensors(file, finite=False)  # of a training that went wrong, too
            except UserError as error:
                if file == files[-1]:
                    raise
                said.append(f"{error} The checkpoint before it is used.")
                continue
            for line in said if on_damage else ():
                on_damage(line)  # type: ignore[misc]
            return state
        return None

    def refuse_changes(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Compare what a run is resumed with to what it was started with: fingerprints by name.

        Raises:
            UserError: something that must stay the same has changed.
        """
        for what, fingerprint in now.items():
            if before.get(what) != fingerprint:
                fix = "Put back what was there, or begin a new run with another --out."
                raise UserError(f"{what} has changed since this run was begun", file=self.path, fix=fix)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other trainings out of the folder meanwhile.

        Raises:
            UserError: one is at work there, or the folder can't be written to.
        """
        self.refuse_strange_files()
        file = self.path / ".lock"
        lock, made, new = FileLock(file, timeout=0), not file.exists(), not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout as error:
            fix = "Wait until it ends, or choose another --out."
            raise UserError("another training is at work in this folder", file=self.path, fix=fix) from error
        except OSError as error:
            what = f"can't be written ({error.strerror})"
            raise UserError(what, file=self.path, fix="Choose another --out.") from error
        try:
            yield
        except UserError:
            if made:  # a refusal changes nothing; as nobody waits for a lock, it may go while it is held
                with suppress(OSError):  # not on Windows, where it goes when it is released
                    file.unlink()
            if new:
                with suppress(OSError):  # it holds something
                    self.path.rmdir()
            raise
        finally:
            lock.release()

    def add_metrics(self, row: dict[str, Any]) -> None:
        """Append one row to `metrics.jsonl`."""
        with self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def add_provenance(self, row: dict[str, Any]) -> None:
        """Append one row to `provenance.jsonl`: where the weights come from."""
        before = self.provenance_file.read_bytes() if self.provenance_file.exists() else b""
        write_atomically(self.provenance_file, b"\n".join([*before.splitlines(), json.dumps(row).encode(), b""]))

    def metrics(self) -> list[dict[str, Any]]:
        """Read `metrics.jsonl`; what is not a row, such as a last line cut short by a crash, is left out."""
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
        """Drop the rows of updates that a resumed training will make again."""
        kept = [json.dumps(row, ensure_ascii=False) + "\n" for row in self.metrics() if row["step"] <= step]
        write_atomically(self.metrics_file, "".join(kept).encode("utf-8", "replace"))
