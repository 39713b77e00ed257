"""Folders in the user's cache, each written once and atomically.

The key of a folder is a fingerprint of everything that it was made from, so that no folder is ever stale. Each folder
has checksums of its files.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

from bitext.reading import digest
from translucid.ground.atomic import remove_folder, replace_folder
from translucid.ground.errors import UserError

_CHECKSUM_FILE = "sha256.json"


def find_cached(kind: str, key: str) -> Path | None:
    """Return a cached folder, if it is complete and undamaged.

    Args:
        kind: the kind of the folder's content.
        key: the hexadecimal fingerprint of what it was made from.
    """
    cached = _root(kind) / key
    with suppress(OSError, ValueError, UserError):  # the folder is missing or damaged: the caller makes it again
        checksums = json.loads((cached / _CHECKSUM_FILE).read_text())
        if _is_ours(cached.parent) and isinstance(checksums, dict) and _checksums(cached, checksums) == checksums:
            os.utime(cached)  # `add_to_cache` removes the least recently used folders
            return cached
    return None


def add_to_cache(kind: str, key: str, make: Callable[[Path], object], limit: int) -> Path:
    """Make a folder and put it into the cache.

    Args:
        kind: the kind of the folder's content.
        key: the hexadecimal fingerprint of what it is made from.
        make: creates a folder and writes its content.
        limit: the number of folders of this kind to keep, the most recently used ones.

    Raises:
        OSError: the disk is full, there is no home folder, or the cache belongs to somebody else.
        UserError: `make` has failed.
    """
    root = _root(kind)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_ours(root):
        raise PermissionError(f"{root} is somebody else's")
    cached = root / key
    with tempfile.TemporaryDirectory(prefix=".", dir=root) as name:
        temporary = Path(name) / "made"
        make(temporary)
        names = [file.name for file in temporary.iterdir() if file.is_file()]
        (temporary / _CHECKSUM_FILE).write_text(json.dumps(_checksums(temporary, names)))
        try:
            replace_folder(temporary, cached)
        except OSError:
            # Another process may have been quicker: Windows leaves its folder in place while a file of it is open.
            if find_cached(kind, key) is None:
                raise
    folders = root.glob("[!.]*")  # without the temporary folders, whose names begin with a point
    for old in sorted(folders, key=lambda folder: -folder.stat().st_mtime)[limit:]:
        remove_folder(old)
    return cached


def needed_in_cache(setting: str, kind: str, key: str, make: Callable[[Path], object], limit: int) -> Path:
    """Return a cached folder, which is made if necessary, for a setting that does not work without it.

    Raises:
        UserError: the cache can't be written, or `make` has failed.
    """
    try:
        return find_cached(kind, key) or add_to_cache(kind, key, make, limit)
    except OSError as error:
        what = f"{setting} needs a cache, which can't be written ({error.strerror or error})"
        raise UserError(what, fix="Set XDG_CACHE_HOME to a folder that can.") from error


def _root(kind: str) -> Path:
    return user_cache_path("translucid") / kind


def _is_ours(folder: Path) -> bool:
    """Return whether a folder belongs to this user; what somebody else has written must not be loaded."""
    return not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()  # Windows has no `getuid`


def _checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each of these files, without hidden files such as locks."""
    return {name: digest(folder / name) for name in names if name != _CHECKSUM_FILE and not name.startswith(".")}
