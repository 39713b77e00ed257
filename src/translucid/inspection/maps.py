"""Attention maps of a translation, by one teacher-forced pass."""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.errors import UserError
from translucid.models.protocol import Maps, SequenceModel


@torch.inference_mode()
def attention_maps(model: SequenceModel, source: Tensor, target: Tensor) -> Maps:
    """Return every attention map by name, [B, H, T, S] each.

    Row t of `decoder.*.cross` is where the model looked when it *predicted* target token t: it was then fed token t-1.

    Args:
        model: in evaluation mode.
        source: ids [B, S], end token included.
        target: ids [B, T], end token included.
    """
    maps: Maps = {}
    start = torch.full_like(target[:, :1], model.bos)
    memory = model.encode(source, maps)
    model.features(memory, torch.cat([start, target[:, :-1]], dim=1), maps)
    return maps


def cross_attention_average(maps: Maps, layer: int | None = None) -> Tensor:
    """Return the cross-attention [T, S] of the first sentence, averaged over heads and over all layers or one.

    Raises:
        KeyError: the model has no such layer.
        UserError: the model has no attention at all.
    """
    cross = {name: weights for name, weights in maps.items() if name.endswith(".cross")}
    if not cross:
        raise UserError(
            "this model has no attention to look at", fix="Train one that has, such as --model rnn-luong-general."
        )
    layers = list(cross.values()) if layer is None else [cross[f"decoder.{layer}.cross"]]
    return torch.stack([weights[0].float().mean(0) for weights in layers]).mean(0)
