"""The caption of the figures that a command saves."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from translucid.inspection.rendering.file_formats import PICTURES


def caption_of(runs: Path | Sequence[Path] | None, arguments: Sequence[str] | None) -> str:
    """Return the runs with the version that trained each, and the command with these arguments.

    It names neither the folders of the machine nor its user.
    """
    from translucid.runs.run_folder import RunFolder

    origins = []
    for run in [runs] if isinstance(runs, Path) else runs or []:
        commit = re.sub("^([0-9a-f]{10})[0-9a-f]+", r"\1", RunFolder(run).commit() or "")
        origins.append(f"{run.name}, Translucid {commit}" if commit else run.name)
    words = [_without_folder(argument) for argument in arguments or [] if argument != "--overwrite"]
    command = shlex.join(["translucid", *words]).replace("'\"'\"'", r"'\''")  # as the page writes quotes
    return "\n".join([*filter(None, ["; ".join(origins)]), command])


def _without_folder(argument: str) -> str:
    """Return the name of a file, if its absolute path was given."""
    path = Path(argument)
    is_file = path.is_absolute() and (path.exists() or path.suffix.lower() in PICTURES)
    return path.name if is_file else argument
