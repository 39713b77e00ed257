"""Folders that are made once and kept in the user's own cache, whole or not at all.

Each is found by the fingerprint of all that it was made from, so that none is ever stale, and has checksums of its
files.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

from translucid.ground.errors import UserError
from translucid.ground.paths import remove_folder, replace_folder
from translucid.ground.reading import digest

_SUMS = "sha256.json"


def find_kept(kind: str, made_from: str) -> Path | None:
    """Return a folder that was kept, if it is whole; of several, those found last stay longest.

    Args:
        kind: of what is kept.
        made_from: a fingerprint, hexadecimal.
    """
    kept = _root(kind) / made_from
    with suppress(OSError, ValueError, UserError):  # missing, or damaged: it is made again
        sums = json.loads((kept / _SUMS).read_text())
        if _ours(kept.parent) and isinstance(sums, dict) and _sums(kept, sums) == sums:
            os.utime(kept)
            return kept
    return None


def keep(kind: str, made_from: str, make: Callable[[Path], object], most: int) -> Path:
    """Make a folder and keep it.

    Args:
        kind: of what is kept.
        made_from: a fingerprint, hexadecimal.
        make: writes a folder that is not there yet.
        most: folders of this kind that stay.

    Raises:
        OSError: there is no room, no home, or the cache is somebody else's.
        UserError: `make` has said why.
    """
    root = _root(kind)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _ours(root):
        raise PermissionError(f"{root} is somebody else's")
    kept = root / made_from
    with tempfile.TemporaryDirectory(prefix=".", dir=root) as name:
        half = Path(name) / "made"
        make(half)
        (half / _SUMS).write_text(json.dumps(_sums(half, [file.name for file in half.iterdir() if file.is_file()])))
        try:
            replace_folder(half, kept)
        except OSError:
            # Another process may have been quicker: Windows leaves its folder in place while a file of it is open.
            if find_kept(kind, made_from) is None:
                raise
    there = [folder for folder in root.iterdir() if not folder.name.startswith(".")]
    for old in sorted(there, key=lambda folder: -folder.stat().st_mtime)[most:]:
        remove_folder(old)
    return kept


def _root(kind: str) -> Path:
    return user_cache_path("translucid") / kind


def _ours(folder: Path) -> bool:
    """Whether a folder belongs to this user: nobody else has put anything there."""
    return not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()


def _sums(folder: Path, names: list[str] | dict[str, str]) -> dict[str, str]:
    """Return a SHA-256 of each of some files, locks and the like left out."""
    return {name: digest(folder / name) for name in names if name != _SUMS and not name.startswith(".")}
