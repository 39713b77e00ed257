"""The files of the tabs *Features* and *Graph* of the server's page, which need no PyTorch."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from translucid.runs.run_folder import CIRCUITS

PAGE = Path(str(files("translucid.circuits") / "page"))
"""The JavaScript modules and style sheets."""


def tab_files() -> dict[str, str]:
    """Return the texts of the files by their names."""
    return {file.name: file.read_text(encoding="utf-8") for file in PAGE.iterdir() if file.suffix in (".js", ".css")}


def has_dictionary(run: Path) -> bool:
    """Return whether a run folder has a dictionary of features."""
    return (run / CIRCUITS / "dictionary.safetensors").exists()
