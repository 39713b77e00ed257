"""The cache of the models that were converted for a fast engine.

They are stored in the user's cache: opening one needs no PyTorch, which takes longer to load than most texts take to
translate. They are not stored in the run folder, which may come from an untrusted source.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bitext.reading import digest
from translucid import __version__
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.agreement import equations_digest
from translucid.engines.tuned import Tuned
from translucid.ground.cache import add_to_cache, find_cached
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.runs.adapters import Adapter

KEPT = 8
"""The number of models of a kind in the cache; the one that was used least recently is removed."""
DIFFERENCE = "difference.json"
"""The file with the difference between the converted model and ours, in nats a token; see `agreement`."""

_PROGRAM = """import sys; sys.path[:] = {path}
from translucid.engines.converted import convert_job
from {engine.__module__} import {engine.__name__}
convert_job({engine.__name__})
"""
"""The conversion in another process, with the packages of this one. An installed module needs no `__main__` guard."""

Opened = TypeVar("Opened")


class ConvertedEngine(Protocol):
    """An engine that searches with a converted model."""

    @classmethod
    def save(
        cls, torch_engine: TorchEngine, tokenizer: Tokenizer, folder: Path, tuned: Tuned, shortlist: Path | None
    ) -> None:
        """Write the converted model of the PyTorch engine, and the difference between the two, into a folder."""


def open_converted(
    kind: str, identity: Mapping[str, object], convert: Callable[[Path], None], open_model: Callable[[Path], Opened]
) -> Opened:
    """Open a converted model from the cache, or convert it first.

    Args:
        kind: the engine that opens the model.
        identity: whatever the converted numbers depend on, for JSON. A change makes another model.
        convert: writes a converted model into a folder.
        open_model: opens the model in a folder, which may be deleted afterwards.

    Raises:
        UserError: the model can't be converted.
    """
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    cached = find_cached(kind, fingerprint)
    if cached:
        with suppress(OSError, ValueError, RuntimeError, UserError):  # a damaged model is converted again
            return open_model(cached)
    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        folder = Path(name) / "model"
        convert(folder)
        with suppress(OSError):  # without space or a home folder, the model is not kept
            add_to_cache(kind, fingerprint, partial(shutil.copytree, folder), KEPT)
        return open_model(folder)


def convert_in_other_process(
    engine: type[ConvertedEngine],
    run: RunFolder,
    configuration: Configuration,
    tuned: Tuned,
    adapter: Adapter | None,
    folder: Path,
) -> bool:
    """Convert a run's model in another process, as `convert_job` does; return whether that has succeeded.

    A server lives long, and would keep PyTorch and the model in it, which it needs for no ordinary translation.

    Where this returns False, convert the model in this process: PyTorch is loaded already, so that its equations may
    have been replaced in memory; or the other process failed, and the error, if it is one, will be raised here.

    Args:
        engine: the class whose `save` converts the model.
        run: the run folder.
        configuration: the configuration of the run.
        tuned: the weights and candidates.
        adapter: the model's adapter, if any.
        folder: the folder to write; missing if the conversion fails.
    """
    if "torch" in sys.modules or not sys.executable or getattr(sys, "frozen", False):
        return False
    job = {
        "run": str(run.path),
        "configuration": configuration.model_dump(mode="json"),
        "tuned": tuned.model_dump(mode="json"),
        "shortlist": _text(tuned.shortlist(run.path)),
        "adapter": _text(adapter.file if adapter else None),
        "folder": str(folder),
    }
    command = [sys.executable, "-c", _PROGRAM.format(path=sys.path, engine=engine)]
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if sys.platform == "win32":
        options["creationflags"] = subprocess.CREATE_NO_WINDOW  # which a program without a console would open
    with suppress(OSError):
        if subprocess.run(command, input=json.dumps(job).encode(), check=False, **options).returncode == 0:
            return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def convert_job(engine: type[ConvertedEngine]) -> None:
    """Convert the model that standard input describes for an engine; see `convert_in_other_process`.

    Raises:
        UserError: the model is damaged or can't be converted.
    """
    import torch

    from translucid.decoding.search import TorchEngine
    from translucid.runs.adapters import Adapter, with_adapter

    job = json.load(sys.stdin)
    run, tuned = RunFolder(Path(job["run"])), Tuned.model_validate(job["tuned"])
    configuration = Configuration.model_validate(job["configuration"])
    tokenizer = run.tokenizer().between(*configuration.data.languages, configuration.data.tokenizer)
    shortlist = Path(job["shortlist"]) if job["shortlist"] else None
    model = run.load_sequence_model(configuration, tokenizer)
    if job["adapter"]:
        model = with_adapter(model, Adapter(Path(job["adapter"]), run))
    torch_engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    torch_engine = torch_engine.restricted(tuned.considered, shortlist, tokenizer)
    engine.save(torch_engine, tokenizer, Path(job["folder"]), tuned, shortlist)


def conversion_identity(
    run: RunFolder,
    configuration: Configuration,
    tokenizer: Tokenizer,
    *,
    shortlist: Path | None,
    adapter: Adapter | None,
    versions: Sequence[str] = (),
    code: Iterable[Path],
) -> dict[str, object]:
    """Return whatever the numbers of a converted model depend on: an edited equation or another version changes it.

    Args:
        run: the run folder.
        configuration: the configuration of the run.
        tokenizer: the tokenizer of the run.
        shortlist: the file with the candidates, if there is one.
        adapter: the model's adapter, if any.
        versions: the versions of the packages of the engine.
        code: the files that convert the model.
    """
    return {
        "model": run.model_digest(),
        "adapter": adapter and adapter.fingerprint,
        "shape": configuration.model.model_dump(),
        "tokenizer": tokenizer.fingerprint,
        "shortlist": shortlist and digest(shortlist),
        "by": [__version__, *versions, *map(digest, code)],
        "equations": equations_digest(),
    }


def save_difference(folder: Path, difference: float) -> None:
    """Note the difference between a converted model and ours in its folder."""
    (folder / DIFFERENCE).write_text(json.dumps(difference), encoding="utf-8")


def load_difference(folder: Path) -> float:
    """Return the difference that was noted in the folder of a converted model; 0 where none was measured."""
    file = folder / DIFFERENCE
    return float(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else 0.0
