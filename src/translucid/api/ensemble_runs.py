"""Runs whose probabilities are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.models.protocol import SequenceModel


@dataclass(frozen=True)
class EnsembleRuns:
    """A run and others with the same vocabulary."""

    runs: Sequence[tuple[RunFolder, Configuration]]
    tokenizer: Tokenizer

    @classmethod
    def of(
        cls, run: RunFolder, configuration: Configuration, tokenizer: Tokenizer, others: Iterable[str | Path]
    ) -> EnsembleRuns:
        """Read the settings of the others.

        Raises:
            UserError: another run has another vocabulary or direction, or is no translator.
        """
        runs = [(run, configuration)]
        for folder in map(RunFolder, map(Path, others)):
            member_configuration = folder.configuration()
            member_configuration.refuse_other_input("text", folder.path)
            # Probabilities are averaged token by token, so equal ids must mean equal pieces.
            if folder.tokenizer().fingerprint != tokenizer.fingerprint:
                fix = "Train it with train --init-from, which keeps the vocabulary, or on the same pairs and settings."
                raise UserError(f"has another vocabulary than {run.path}", file=folder.path, fix=fix)
            if member_configuration.data.reverse != configuration.data.reverse:
                fix = "translate --rerank-with ranks translations by it."
                raise UserError(f"translates the other way round than {run.path}", file=folder.path, fix=fix)
            runs.append((folder, member_configuration))
        return cls(runs, tokenizer)

    @property
    def longest(self) -> int:
        """The largest number of source tokens, end token included, that all models accept in one piece."""
        return min(configuration.longest for _, configuration in self.runs)

    def model(self) -> SequenceModel:
        """Load the model, or the ensemble of all models, in evaluation mode, on the CPU.

        Raises:
            UserError: a run is damaged.
        """
        from translucid.models.ensemble import Ensemble

        models = []
        for folder, configuration in self.runs:
            models.append(folder.load_sequence_model(configuration, self.tokenizer))
        return Ensemble(models) if len(models) > 1 else models[0]
