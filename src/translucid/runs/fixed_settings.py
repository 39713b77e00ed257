"""The settings that can't change when a run is resumed."""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from translucid.models.language_options import LanguageShape
from translucid.runs.settings import with_original_names

if TYPE_CHECKING:
    from translucid.runs.configuration import Configuration

_FIXED = (
    "model", "data.tokenizer", "data.filter", "data.max_tokens", "data.subword_dropout", "data.weights",
    "data.temperature", "data.mirror", "data.shift", "training.seed", "training.batch_tokens", "training.accumulate",
    "training.optimizer", "training.begin_from", "training.layer_decay", "training.unfreeze",
)  # fmt: skip
"""Keys that can't change in a resumed run: its weights, its tokens or its place in the data would become invalid."""
_FIXED_LATER = (
    "data.reverse", "data.both_directions", "data.mix", "data.terms", "data.placeholders", "training.init_encoder",
    "training.init_decoder", "training.elmo", "training.freeze", "training.l2_sp", "training.distillation_weight",
    "training.adapter_rank", "training.teachers", "training.soft_targets", "training.guided_alignment",
    "training.guided_layer", "data.context",
)  # fmt: skip
"""More such keys. They are compared only if they are set, because older checkpoints lack them."""
FIXED_SETTINGS = "a setting that can not change (model, data, seed)"
"""The name of their fingerprint in a checkpoint."""


def fixed_settings(configuration: Configuration) -> str:
    """Return the settings that a resumed run can't change, as text."""
    return json.dumps(with_original_names(fixed_values(configuration)), sort_keys=True)


def fixed_values(configuration: Configuration) -> dict[str, Any]:
    """Return these settings by their keys."""
    settings = configuration.model_dump(mode="json")
    # Without the names of the files, which may be moved; a digest of their content is compared elsewhere.
    settings["data"]["mix"] = list(settings["data"]["mix"].values())

    def value(key: str) -> Any:
        return reduce(getitem, key.split("."), settings)

    keys = list(_FIXED)
    if isinstance(configuration.model, LanguageShape):
        keys.append("training.window")
    keys += filter(value, _FIXED_LATER)
    if configuration.training.adapter_rank:
        keys += ["training.adapter_scale", "training.adapter_parts"]
    return {key: value(key) for key in keys}
