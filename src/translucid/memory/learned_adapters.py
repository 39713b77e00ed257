"""The adapters that a server has learned from the corrections in a memory: numbered files beside it."""

from __future__ import annotations

import re
from pathlib import Path

from translucid.ground.errors import UserError

KEPT = 2
"""The number of adapters that are kept: the latest one, and the one that applies again when that is forgotten."""
_NAME = re.compile(r"(?P<memory>.+)\.adapter-(?P<number>[1-9][0-9]{0,5})\.safetensors", re.DOTALL)


def learned_adapters(memory: Path) -> dict[int, Path]:
    """Return the adapters beside a memory by their numbers, the oldest first."""
    adapters = {}
    for file in memory.parent.iterdir():
        match = _NAME.fullmatch(file.name)
        if match and match["memory"] == memory.stem:
            adapters[int(match["number"])] = file
    return dict(sorted(adapters.items()))


def latest_adapter(memory: Path) -> Path | None:
    """Return the adapter that applies, if there is one."""
    return next(reversed(learned_adapters(memory).values()), None)


def number_of(adapter: Path) -> int:
    """Return the number of an adapter."""
    match = _NAME.fullmatch(adapter.name)
    assert match
    return int(match["number"])


def next_adapter(memory: Path) -> Path:
    """Return the file of the next adapter."""
    number = max(learned_adapters(memory), default=0) + 1
    return memory.with_name(f"{memory.stem}.adapter-{number}.safetensors")


def remove_old_adapters(memory: Path) -> None:
    """Remove all adapters but the latest ones."""
    for file in [*learned_adapters(memory).values()][:-KEPT]:
        file.unlink(missing_ok=True)


def forget_latest(memory: Path) -> tuple[Path, Path | None]:
    """Remove the latest adapter of a memory; return its file, and the adapter that applies then, if there is one.

    Raises:
        UserError: there is none, or it can't be removed.
    """
    if not memory.parent.is_dir() or not (latest := latest_adapter(memory)):
        raise UserError("no server has learned from it", file=memory, fix="Name a memory that a server learns from.")
    try:
        latest.unlink()
    except OSError as error:
        raise UserError(f"can't be removed ({error.strerror})", file=latest, fix="Check its permissions.") from error
    return latest, latest_adapter(memory)
