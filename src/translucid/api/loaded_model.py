"""The base class of models that do not translate: a model of one run, on one device."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

import torch

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.interop.run_resolution import resolve_run
from translucid.kernels.devices import choose_device, tune_pytorch
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder


class LoadedModel:
    """A trained model, its tokenizer and its settings."""

    reads: ClassVar[str]
    """The kind of input that the model must have; see `Configuration.refuse_other_input`."""

    def __init__(self, model: Model, tokenizer: Tokenizer, configuration: Configuration, device: torch.device) -> None:
        """Use a loaded model; `load` loads one."""
        self.model, self.tokenizer, self.configuration, self.device = model, tokenizer, configuration, device

    @classmethod
    def load(cls, run: str | Path, device: str = "auto") -> Self:
        """Load a run folder.

        Args:
            run: a run folder, a name, or a Hugging Face folder; see `resolve_run`.
            device: auto, cpu, cuda, cuda:1 or mps.

        Raises:
            UserError: this is no run, or it is damaged, or its model is of another kind.
        """
        folder = RunFolder(resolve_run(run))
        return cls.open(folder, folder.configuration(), device)

    @classmethod
    def open(cls, folder: RunFolder, configuration: Configuration, device: str = "auto") -> Self:
        """Load a run folder whose configuration has been read; see `load`."""
        configuration.refuse_other_input(cls.reads, folder.path)
        tokenizer = folder.tokenizer()
        tune_pytorch()
        torch_device = choose_device(device)
        return cls(folder.load_model(configuration, tokenizer).to(torch_device), tokenizer, configuration, torch_device)
