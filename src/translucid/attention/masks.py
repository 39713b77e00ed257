"""Masks: boolean, True where a query may look. They broadcast against scores [B, H, T, S]."""

from collections.abc import Collection

import torch
from torch import Tensor

from translucid.kernels.attention import SharedMask, with_causal


def padding_mask(ids: Tensor, pad: int | Collection[int]) -> Tensor:
    """Return [B, 1, 1, S], False at the positions of ids [B, S] that hold `pad`, one id or a set of ids."""
    if isinstance(pad, int):
        return (ids != pad)[:, None, None, :]
    return ~torch.isin(ids, torch.tensor(sorted(pad), device=ids.device))[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return [T, T], True on and below the diagonal: position t sees positions 0..t."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def whole_mask(mask: Tensor | SharedMask | None, query: Tensor, causal: bool) -> Tensor | None:
    """Return one mask of what queries [.., T, d] are given: a mask, the causal mask, both of them or neither."""
    if causal:
        return with_causal(query, mask)
    return mask.allowed if isinstance(mask, SharedMask) else mask


def target_mask(ids: Tensor, pad: int | Collection[int]) -> Tensor:
    """Return [B, 1, T, T] for ids [B, T]: neither padding nor the future may be looked at."""
    return padding_mask(ids, pad) & causal_mask(ids.size(1), ids.device)
