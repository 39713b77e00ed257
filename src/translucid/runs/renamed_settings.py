"""Maps former names of settings to current ones, so that existing run folders load and resume."""

from __future__ import annotations

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
    for old, new in RENAMED.items():
        settings = _renamed(settings, old, new)
    return settings


def with_original_names(settings: Settings) -> Settings:
    """Return settings, also those by dotted key, under their former names: hashes in checkpoints are of these."""
    for old, new in RENAMED.items():
        settings = _renamed(settings, new, old)
    return settings


def _renamed(settings: Settings, before: str, after: str) -> Settings:
    """Return settings with another name for one of them, be it in its group or by its dotted key."""
    changed = dict(settings)
    if before in changed:
        changed[after] = changed.pop(before)
    group, name = before.split(".")
    values = changed.get(group)
    if isinstance(values, dict) and name in values:
        values = dict(values)
        values[after.split(".")[1]] = values.pop(name)
        changed[group] = values
    return changed
