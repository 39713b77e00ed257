"""Completions of values in the shell, besides files: presets, recipes, settings."""

from __future__ import annotations

from pathlib import Path


def presets(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets with a prefix, and what each is for."""
    from translucid.runs.presets import PRESETS

    return [(name, preset.purpose) for name, preset in PRESETS.items() if name.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Return the recipes, and the configurations in the folder, with a prefix."""
    from translucid.runs.presets import recipes

    # "runs/" has the parent ".", but the files in runs/ are meant.
    folder = Path(f"{incomplete}x").parent
    names = [*recipes(), *sorted(map(str, folder.glob("*.yaml")))]
    return [name for name in names if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Return the keys of `--set` with a prefix."""
    from translucid.runs.keys import keys

    return [f"{key.name}=" for key in keys() if key.name.startswith(incomplete)]
