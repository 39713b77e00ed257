"""The former names of settings, so that existing run folders load and resume."""

from __future__ import annotations

from translucid.runs.settings import Settings

RENAMED = {
    "model.eye": "model.image_encoder",
    "training.stay_like": "training.distillation_weight",
    "training.stay_near": "training.l2_sp",
    "training.may_forget": "training.max_regression",
}
"""The current name of each former name, in the same group."""


def with_current_names(settings: Settings) -> Settings:
    """Return the settings of a run folder under their current names."""
    for old, new in RENAMED.items():
        settings = _renamed(settings, old, new)
    return settings


def with_original_names(settings: Settings) -> Settings:
    """Return settings under their former names, also by dotted key, because checkpoints contain hashes of those."""
    for old, new in RENAMED.items():
        settings = _renamed(settings, new, old)
    return settings


def _renamed(settings: Settings, before: str, after: str) -> Settings:
    """Return settings with one of them renamed, whether it is in its group or has a dotted key."""
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
