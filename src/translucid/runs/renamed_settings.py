"""Settings that had another name in earlier versions: run folders that name them still load and resume."""

from __future__ import annotations

from typing import Any

from translucid.runs.settings import Settings

RENAMED = {
    "model.eye": "model.image_encoder",
    "training.stay_like": "training.distillation_weight",
    "training.stay_near": "training.l2_sp",
    "training.may_forget": "training.max_regression",
}
"""Current names by old names; each stays in its group."""


def with_current_names(settings: Settings) -> Settings:
    """Return the settings of a run folder under their current names."""
    current = dict(settings)
    for old, new in RENAMED.items():
        group, old_name = old.split(".")
        values = current.get(group)
        if isinstance(values, dict) and old_name in values:
            values = dict(values)
            values[new.split(".")[1]] = values.pop(old_name)
            current[group] = values
    return current


def with_original_names(fixed: dict[str, Any]) -> dict[str, Any]:
    """Return settings by dotted key under their oldest names, with which the hashes in all checkpoints were made."""
    original = dict(fixed)
    for old, new in RENAMED.items():
        group, new_name = new.split(".")
        if new in original:
            original[old] = original.pop(new)
        values = original.get(group)
        if isinstance(values, dict) and new_name in values:
            values = dict(values)
            values[old.split(".")[1]] = values.pop(new_name)
            original[group] = values
    return original
