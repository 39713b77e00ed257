"""What a shell offers for values, besides files: presets, recipes, settings."""

from __future__ import annotations

from pathlib import Path


def presets(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets that begin so, and what each is for."""
    from translucid.runs.presets import PRESETS

    return [(name, preset.suits) for name, preset in PRESETS.items() if name.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Return the recipes, and the configurations in the folder, that begin so."""
    from translucid.runs.recipes import recipes

    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    files = sorted(str(file) for file in folder.glob("*.yaml")) if folder.is_dir() else []
    return [name for name in (*recipes(), *files) if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Return the keys of `--set` that begin so."""
    from translucid.runs.keys import keys

    return [f"{key.name}=" for key in keys() if key.name.startswith(incomplete)]
