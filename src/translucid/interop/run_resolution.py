"""Find the run for a folder, a name or a Hugging Face folder, for all commands and for Python."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Literal

from translucid import __version__
from translucid.ground.cache import find_kept, keep
from translucid.ground.errors import UserError
from translucid.interop.hub import is_on_hub

RUNS = Path("runs")
"""The folder of runs that are given by name."""
KEPT = 4
"""The number of imported models in the cache; the one that was used least recently is removed."""


def resolve_run(given: str | Path) -> Path:
    """Return the run folder for a path or a name.

    A Hugging Face folder is imported first, once, into the user's cache. A path that does not exist is returned
    unchanged, and reported by the function that opens it.

    Args:
        given: a run folder, the name of one in `runs`, or a Hugging Face folder.

    Raises:
        UserError: the folder is of neither kind, it is on the Hub, or the model can't be imported or kept.
    """
    given = Path(given)
    try:
        if (given / "config.yaml").exists():
            return given
        if is_on_hub(given):
            what = "is a model on the Hugging Face Hub, which only `import` downloads"
            fix = f"Run `translucid import {given.as_posix()} runs/{given.name.partition('@')[0]}`, and use that run."
            raise UserError(what, file=given.as_posix(), fix=fix)
        if not given.is_dir():
            named = RUNS / given
            return named if len(given.parts) == 1 and (named / "config.yaml").exists() else given
    except OSError:  # such as a sentence by mistake, which is too long for a file name
        return given
    from translucid.ground.console import Console  # not at the top: importing Rich draws random numbers

    try:
        kind_of(given)
    except UserError as error:
        what = "is neither a run folder, which has config.yaml, nor a Hugging Face folder, which has config.json"
        raise UserError(what, file=given, fix="Give the folder given to train --out, or a model to import.") from error
    made_from = _fingerprint(given)
    kept = find_kept("imported", made_from)
    if kept:
        return kept
    from translucid.interop.importing import import_model  # not at the top: it loads PyTorch

    Console(stderr=True).print(f"importing {given}, once: it is kept for the next time", soft_wrap=True)
    try:
        return keep("imported", made_from, partial(import_model, given), KEPT)
    except OSError as error:
        fix = f"Make a run of it: translucid import {given} RUN."
        raise UserError(f"can't be kept in the cache ({error.strerror or error})", file=given, fix=fix) from error


def kind_of(given: Path) -> Literal["ctranslate2", "huggingface", "marian"]:
    """Recognise the kind of a folder or a file.

    Raises:
        UserError: the kind is unknown.
    """
    if not given.exists():
        raise UserError("is not there", file=given, fix="Give a folder, or an .npz file of Marian.")
    if (given / "model.bin").exists():
        return "ctranslate2"
    if (given / "config.json").exists():
        return "huggingface"
    if given.suffix in (".npz", ".bin") or any([*given.glob("*.npz"), *given.glob("model.*.bin")]):
        return "marian"
    fix = "Hugging Face's have config.json, vocabularies and weights; CTranslate2's model.bin; Marian's are .npz files."
    raise UserError("holds no model that can be imported", file=given, fix=fix)


def _fingerprint(folder: Path) -> str:
    """Return a fingerprint that changes with the files of a folder.

    It depends on their sizes and times, since reading gigabytes would take longer than opening the run.
    """
    facts = []
    for file in sorted(folder.iterdir()):
        if file.is_file():
            seen = file.stat()
            facts.append([file.name, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns])
    content = json.dumps([__version__, str(folder.resolve()), facts])
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()
