"""Recipes: configurations by name that work well on a corpus."""

from __future__ import annotations

from pathlib import Path

from translucid.ground.errors import UserError, nearest

_PLACES = Path(__file__).resolve().parents[1] / "recipes", Path(__file__).resolve().parents[3] / "recipes"
"""The folder of the recipes in an installed wheel, and in a clone."""


def recipes() -> dict[str, Path]:
    """Return the recipes of this package, by name."""
    files: list[Path] = []
    for place in _PLACES:
        files += sorted(place.glob("*.yaml"))
    return {file.stem: file for file in files}


def recipe(given: Path) -> Path:
    """Return the file of a configuration, from its path or from the name of a recipe.

    Raises:
        UserError: there is no such file and no such recipe.
    """
    known = recipes()
    if given.is_file():
        return given
    if given.name in known and given.parent == Path():  # even if a folder, such as that of its corpus, has this name
        return known[given.name]
    fix = nearest(given.stem, known)
    raise UserError("is neither a file nor a recipe of ours", file=given, fix=fix)
