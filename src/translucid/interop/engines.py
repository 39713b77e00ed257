"""Which engine searches."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from translucid.data.tokenizer import Tokenizer
from translucid.decoding.engine import Engine, TorchEngine
from translucid.errors import UserError
from translucid.models.protocol import SequenceModel
from translucid.models.transformer import Transformer

EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2"]


def choose_engine(name: EngineName, model: SequenceModel, tokenizer: Tokenizer, device: torch.device) -> Engine:
    """Return the engine of that name; `auto` is CTranslate2 for a Transformer on a CPU, else our own.

    There it has been measured to be the faster one (docs/benchmarks.md).

    Raises:
        UserError: CTranslate2 is asked for and can't run the model, or not on that device.
    """
    if name == "ctranslate2" and device.type not in ("cpu", "cuda"):
        raise UserError(f"CTranslate2 does not run on {device.type}", fix="Use --engine torch, or --device cpu.")
    own = TorchEngine(model, torch.tensor(tokenizer.target_word_starts(), device=device), device)
    if name == "torch" or (name == "auto" and (device.type != "cpu" or not isinstance(model, Transformer))):
        return own
    from translucid.interop.ctranslate2 import CTranslate2Engine

    return CTranslate2Engine.of(model, tokenizer, device, own)
