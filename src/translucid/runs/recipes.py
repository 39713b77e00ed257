"""Recipes: configurations that are known to work on a corpus, by name."""

from __future__ import annotations

from pathlib import Path

from translucid.ground.errors import UserError, nearest

_PLACES = Path(__file__).resolve().parents[1] / "recipes", Path(__file__).resolve().parents[3] / "recipes"
"""In an installed wheel, and in a clone."""


def recipes() -> dict[str, Path]:
    """Return the recipes that come with us, by name."""
    return {file.stem: file for place in _PLACES for file in sorted(place.glob("*.yaml"))}


def recipe(given: Path) -> Path:
    """Return the file of a configuration that was given by path or by the name of a recipe.

    Raises:
        UserError: there is no such file and no such recipe.
    """
    known = recipes()
    if given.is_file():
        return given
    if given.name in known and given.parent == Path():  # also where a folder, as of its corpus, has the same name
        return known[given.name]
    fix = nearest(given.stem, known)
    raise UserError("is neither a file nor a recipe of ours", file=given, fix=fix)
