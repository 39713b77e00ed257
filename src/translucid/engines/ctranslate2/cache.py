"""Converted models, kept for the next time in the user's own cache.

Opening one needs no PyTorch, which takes longer to load than most texts take to translate. They are not kept in the run
folder, which may come from a stranger; each is found by the fingerprint of all that it was made from, so that none is
ever stale, and has checksums of its files.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path

from translucid.ground.errors import UserError
from translucid.ground.reading import digest

KEPT = 8
"""Models that stay, those used last."""
_SUMS = "sha256.json"

Opened = TypeVar("Opened")


def open_converted(made_from: str, convert: Callable[[Path], None], opened: Callable[[Path], Opened]) -> Opened:
    """Open the converted model that was made from something with this fingerprint, or convert it and open that.

    Args:
        made_from: hexadecimal.
        convert: writes a converted model into a folder.
        opened: opens the model in a folder, which is not needed any more afterwards.

    Raises:
        UserError: it can't be converted; `convert` has said so.
    """
    root = user_cache_path("translucid") / "ctranslate2"
    kept = root / made_from
    with suppress(OSError, ValueError, RuntimeError, UserError):  # missing, or damaged: it is made again
        if _ours(root) and _sums(kept) == json.loads((kept / _SUMS).read_text()):
            os.utime(kept)
            return opened(kept)
    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        made = Path(name) / "model"
        convert(made)
        with suppress(OSError):  # no room, no home: then it is not kept
            _keep(made, kept)
        return opened(made)


def _keep(made: Path, kept: Path) -> None:
    """Copy a model into the cache, whole or not at all."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _ours(kept.parent):
        return
    with tempfile.TemporaryDirectory(prefix=".", dir=kept.parent) as name:
        half = Path(name) / "model"
        shutil.copytree(made, half)
        (half / _SUMS).write_text(json.dumps(_sums(half)))
        shutil.rmtree(kept, ignore_errors=True)
        half.rename(kept)
    models = [folder for folder in kept.parent.iterdir() if not folder.name.startswith(".")]
    for old in sorted(models, key=lambda folder: -folder.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _ours(folder: Path) -> bool:
    """Whether a folder belongs to this user: nobody else has put anything there."""
    return not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()


def _sums(folder: Path) -> dict[str, str]:
    """Return a SHA-256 of each file of a model."""
    return {file.name: digest(file) for file in folder.iterdir() if file.name != _SUMS}
