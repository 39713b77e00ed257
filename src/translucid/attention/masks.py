"""Masks: boolean, True where a query may attend. They broadcast against scores [B, H, T, S]."""

from collections.abc import Collection

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad: int | Collection[int]) -> Tensor:
    """Return [B, 1, 1, S], False where ids [B, S] equal `pad` or, if `pad` is a set of ids, one of them."""
    if isinstance(pad, int):
        return (ids != pad)[:, None, None, :]
    padding_ids = torch.tensor(sorted(pad), device=ids.device)
    return ~torch.isin(ids, padding_ids)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return [T, T], True on and below the diagonal: position t may attend to positions 0..t."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def target_mask(ids: Tensor, pad: int | Collection[int]) -> Tensor:
    """Return [B, 1, T, T] for ids [B, T]: a position may attend neither to padding nor to the future."""
    return padding_mask(ids, pad) & causal_mask(ids.size(1), ids.device)
