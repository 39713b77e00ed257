"""Find the run for a folder, a name or a Hugging Face folder, for all commands and for Python."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from pathlib import Path

from translucid import __version__
from translucid.ground.cache import add_to_cache, find_cached
from translucid.ground.errors import UserError
from translucid.interop import kind_of
from translucid.interop.hub import is_on_hub

RUNS = Path("runs")
"""The folder of runs that are given by name."""
_SEED = re.compile(r"seed-[0-9]+")
"""The name of the run folder of a seed, as `train --seeds` writes it."""
KEPT = 4
"""The number of imported models in the cache; the one that was used least recently is removed."""


def seeds_of(run: str | Path) -> list[Path]:
    """Return the runs that `train --seeds` has written into a folder, by number.

    There are none for a run, or for another folder. The folder may be given by its name in `runs`.
    """
    path = Path(run)
    for folder in (path, *([RUNS / path] if len(path.parts) == 1 else ())):
        if not folder.is_dir():
            continue
        if (folder / "config.yaml").exists():
            return []
        runs = [seed for seed in folder.iterdir() if _SEED.fullmatch(seed.name) and (seed / "config.yaml").exists()]
        if runs:
            # As seed-10 is after seed-9.
            return sorted(runs, key=lambda seed: int(seed.name.removeprefix("seed-")))
    return []


def resolve_run(run: str | Path) -> Path:
    """Return the run folder for a path or a name.

    Of a folder that `train --seeds` has written, it is the run with the lowest seed, which is reported.
    A Hugging Face folder is imported first, once, into the user's cache. A path that does not exist is returned
    unchanged, and reported by the function that opens it.

    Args:
        run: a run folder, the name of one in `runs`, or a Hugging Face folder.

    Raises:
        UserError: the folder is of neither kind, it is on the Hub, or the model can't be imported or kept.
    """
    run = Path(run)
    try:
        if (run / "config.yaml").exists():
            return run
        if seeds := seeds_of(run):
            message = f"{run} has {len(seeds)} seeds; this is {seeds[0]}, and only `compare` takes all"
            _log(message if len(seeds) > 1 else f"{run} has one seed: {seeds[0]}")
            return seeds[0]
        if is_on_hub(run):
            what = "is a model on the Hugging Face Hub, which only `import` downloads"
            fix = f"Run `translucid import {run.as_posix()} runs/{run.name.partition('@')[0]}`, and use that run."
            raise UserError(what, file=run.as_posix(), fix=fix)
        if not run.is_dir():
            folder = RUNS / run
            return folder if len(run.parts) == 1 and (folder / "config.yaml").exists() else run
    except OSError:  # such as a sentence by mistake, which is too long for a file name
        return run
    try:
        kind_of(run)
    except UserError as error:
        what = "is neither a run folder, which has config.yaml, nor a Hugging Face folder, which has config.json"
        raise UserError(what, file=run, fix="Give the folder given to `train(out)`, or a model to import.") from error
    fingerprint = _fingerprint(run)
    cached = find_cached("imported", fingerprint)
    if cached:
        return cached
    from translucid.interop.importing import import_model  # not at the top: it loads PyTorch

    _log(f"importing {run}, once: the result is cached")
    try:
        return add_to_cache("imported", fingerprint, partial(import_model, run), KEPT)
    except OSError as error:
        fix = f"Make a run of it: translucid import {run} RUN."
        raise UserError(f"can't be kept in the cache ({error.strerror or error})", file=run, fix=fix) from error


def _log(message: str) -> None:
    from translucid.ground.console import Console  # not at the top: importing Rich draws random numbers

    Console(stderr=True).print(message, soft_wrap=True)


def _fingerprint(folder: Path) -> str:
    """Return a fingerprint that changes with the files of a folder.

    It depends on their sizes and times, since reading gigabytes would take longer than opening the run.
    """
    facts = []
    for file in sorted(folder.iterdir()):
        if file.is_file():
            status = file.stat()
            facts.append([file.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns])
    content = json.dumps([__version__, str(folder.resolve()), facts])
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()
