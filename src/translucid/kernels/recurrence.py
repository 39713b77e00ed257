"""A linear recurrence over time, h_t = a_t h_{t-1} + b_t, for each channel separately.

    h_0 = b_0,    g_t = dL/dh_t + a_{t+1} g_{t+1},    da_t = g_t h_{t-1},    db_t = g_t

The backward pass is a recurrence too, from the last position to the first. On a CPU, one operation per position costs
little compared with the products around it, and nothing is computed twice. On a GPU, where starting an operation takes
longer than computing it, doubling needs log2(T) rounds instead of T (Hillis and Steele 1986, "Data parallel
algorithms"). Neither divides by products of a, which become 0 in long sequences.

In a packed row, a is 0 at the first position of each sentence. So h begins anew, and doubling ends at the length of the
longest sentence.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.packing import Sentences


def linear_recurrence(a: Tensor, b: Tensor, sentences: Sentences | None = None) -> Tensor:
    """Return h [N, T, D] for factors a and summands b, both [N, T, D]; a_0 is not used.

    `sentences`: those of a packed row [1, T, D], each of which has its own recurrence.
    """
    longest = b.size(1)
    if sentences is not None:
        a, longest = a.masked_fill(sentences.position.eq(0)[:, None], 0), sentences.shape[1]
    if torch.compiler.is_compiling():
        return _doubling_scan(a, b, longest)  # the graph of a loop over positions would be T times as long
    if uses_reference("recurrence"):
        return reference_recurrence(a, b)
    return _Recurrence.apply(a, b, longest)  # type: ignore[no-untyped-call]


def reference_recurrence(a: Tensor, b: Tensor) -> Tensor:
    """Return the same as `linear_recurrence`, from the equation, step by step."""
    h = b[:, 0]
    states = [h]
    for a_t, b_t in zip(a.unbind(1)[1:], b.unbind(1)[1:], strict=True):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states, 1)


class _Recurrence(torch.autograd.Function):
    """The equations above."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, longest: int) -> Tensor:
        h = _scan(a, b, longest)
        ctx.save_for_backward(a, h)
        ctx.longest = longest
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor, Tensor, None]:
        a, h = ctx.saved_tensors
        # From the last position to the first, a_{t+1} belongs to g_t, as a_t belongs to h_t in the forward pass.
        g = _scan(a.roll(-1, 1).flip(1), dh.flip(1), ctx.longest).flip(1)
        da = torch.zeros_like(a)
        torch.mul(g[:, 1:], h[:, :-1], out=da[:, 1:])
        return da, g, None


def _scan(a: Tensor, b: Tensor, longest: int) -> Tensor:
    if b.device.type == "cpu" and longest == b.size(1):
        return _sequential_scan(a, b)
    return _doubling_scan(a, b, longest)


def _sequential_scan(a: Tensor, b: Tensor) -> Tensor:
    """Compute one position after the other."""
    states = torch.empty_like(b)
    states[:, 0] = h = b[:, 0]
    for a_t, b_t, state in zip(a.unbind(1)[1:], b.unbind(1)[1:], states.unbind(1)[1:], strict=True):
        h = torch.addcmul(b_t, a_t, h, out=state)
    return states


def _doubling_scan(a: Tensor, b: Tensor, longest: int) -> Tensor:
    """Compute h_t from its last 1, 2, 4, .. summands: h_t = b_t + a_t h_{t-n}, a_t = the product of the last n.

    `longest`: the largest number of summands that are not multiplied by 0.
    """
    n = 1
    while n < longest:
        b = torch.cat([b[:, :n], torch.addcmul(b[:, n:], a[:, n:], b[:, :-n])], 1)
        a = torch.cat([a[:, :n], a[:, n:] * a[:, :-n]], 1)
        n *= 2
    return b
