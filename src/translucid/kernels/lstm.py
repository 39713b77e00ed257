"""One LSTM layer over a window with PyTorch's fused kernel, with rounded factors within `rounded_products`.

    i, f, g, o = split(W x_t + U h_{t-1} + b)
    c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g),    h_t = sigmoid(o) * tanh(c_t)

The weights are arguments and need not be parameters, so gradients flow through dropout on the weights. On a CPU, the
kernel is oneDNN's, which multiplies bfloat16 and sums in float32; it also rounds the states between steps
(`kernels/rounding.py`). On a GPU, everything is float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.kernels.dispatch import uses_reference
from translucid.kernels.rounding import factor


def lstm(
    x: Tensor, cells: tuple[Tensor, Tensor], w: Tensor, u: Tensor, b: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return h [B, T, H] for x [B, T, inputs], and the hidden state and cell after the last position, [B, H] each.

    Args:
        x: the inputs [B, T, inputs].
        cells: the hidden state and cell before the first position, [B, H] each.
        w: W [4 H, inputs].
        u: U [4 H, H].
        b: b [4 H].
    """
    if uses_reference("lstm"):
        return reference_lstm(x, cells, w, u, b)
    if x.device.type == "cpu":
        dtype = x.dtype
        h, c = (factor(state[None]) for state in cells)
        outputs, last, cell = _fused(factor(x), h, c, *map(factor, (w, u, b)))
    else:
        dtype = w.dtype
        with torch.autocast(x.device.type, enabled=False):  # autocast would choose float16
            h, c = (state[None].to(dtype) for state in cells)
            outputs, last, cell = _fused(x.to(dtype), h, c, w, u.to(dtype), b)
    return outputs.transpose(0, 1).to(dtype), (last[0].to(dtype), cell[0].to(dtype))


def _fused(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return h [T, B, H] and the states after, [1, B, H] each, for x [B, T, inputs] and states [1, B, H]."""
    weights = w, u, b, torch.zeros_like(b)  # PyTorch has two biases and adds them
    training = torch.is_grad_enabled()  # otherwise cuDNN would store nothing for the backward pass
    return torch.lstm(x.transpose(0, 1).contiguous(), (h, c), weights, True, 1, 0.0, training, False, False)


def reference_lstm(
    x: Tensor, cells: tuple[Tensor, Tensor], w: Tensor, u: Tensor, b: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return the same as `lstm`, from the equations above, step by step."""
    (h, c), outputs = cells, []
    for projected in (x @ w.t() + b).unbind(1):
        i, f, g, o = (projected + h @ u.t()).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, 1), (h, c)
