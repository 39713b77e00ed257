"""Which engine searches."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import torch

from translucid.data.tokenizer import Tokenizer
from translucid.decoding.engine import Engine, TorchEngine
from translucid.errors import UserError
from translucid.models.protocol import SequenceModel
from translucid.models.transformer import Transformer

EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2"]


def choose_engine(
    name: EngineName,
    model: SequenceModel,
    tokenizer: Tokenizer,
    device: torch.device,
    run: Path | None = None,
    threads: int | None = None,
) -> Engine:
    """Return the engine of that name; `auto` is CTranslate2 for a Transformer on a CPU, else our own.

    There it has been measured to be the faster one (docs/benchmarks.md), unless `translucid tune` has found otherwise
    for this `run`. What it has found for CTranslate2 holds in any case. `threads`: see `CTranslate2Engine`.

    Raises:
        UserError: CTranslate2 is asked for and can't run the model, or not on that device.
    """
    if name == "ctranslate2" and device.type not in ("cpu", "cuda"):
        raise UserError(f"CTranslate2 does not run on {device.type}", fix="Use --engine torch, or --device cpu.")
    own = TorchEngine.of(model, tokenizer, device)
    if name == "torch" or (name == "auto" and (device.type != "cpu" or not isinstance(model, Transformer))):
        return own
    from translucid.interop.ctranslate2 import CTranslate2Engine
    from translucid.interop.tuning import SHORTLIST, Tuned, load_tuned

    tuned = (load_tuned(run) if run else None) or Tuned()
    if name == "auto" and tuned.engine == "torch":
        return own
    shortlist = run / SHORTLIST if run and tuned.shortlist else None
    return CTranslate2Engine.of(
        model, tokenizer, device, own, quantization=tuned.quantization, shortlist=shortlist, threads=threads
    )
