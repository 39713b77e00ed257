"""Fine-tuning with `training.adapter_rank`: low-rank differences to frozen matrices (LoRA, `layers/low_rank.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from translucid.ground.errors import UserError
from translucid.layers.low_rank import adapt, differences
from translucid.models.protocol import Model
from translucid.runs.adapters import save_adapter
from translucid.runs.run_folder import RunFolder
from translucid.training.extras.training_step import INITIAL_MODEL, TrainingStep


class Adapters(TrainingStep):
    """Learns low-rank differences, and saves them in a file of their own."""

    @cached_property
    def _initial_model(self) -> dict[str, str]:
        return self.fingerprint_of_initial_model()

    def fingerprints(self) -> Mapping[str, str]:
        """Return that of the model that the differences belong to."""
        return self._initial_model

    def prepare(self, model: Model) -> None:
        """Add a difference to each matrix that is not frozen.

        Raises:
            UserError: all are frozen.
        """
        if not adapt(model, self.options.adapter_rank, self.options.adapter_scale, self.options.adapter_parts):
            fix = "Name fewer parts."
            raise UserError("training.freeze leaves no matrix that training.adapter_rank is for", fix=fix)

    def save_best(self, run: RunFolder, model: Model, facts: dict[str, Any]) -> None:
        """Save the differences."""
        base = self._initial_model[INITIAL_MODEL]
        save_adapter(run, differences(model), self.options.adapter_scale, base, facts)
