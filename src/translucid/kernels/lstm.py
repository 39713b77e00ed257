"""One LSTM layer over a window, by PyTorch's fused kernel; its large products of rounded factors where that is wanted.

    i, f, g, o = split(W x_t + U h_{t-1} + b)
    c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g),    h_t = sigmoid(o) * tanh(c_t)

The weights are arguments and need not be parameters, so what is done to them before, such as dropping some, has its
gradient. On a CPU the kernel is oneDNN's, which takes factors of bfloat16 and sums in float32; what is carried from
step to step is then rounded as well. See `kernels/rounding.py`. On a GPU all is float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.kernels.dispatch import is_plain
from translucid.kernels.rounding import factor


def lstm(
    x: Tensor, cells: tuple[Tensor, Tensor], w: Tensor, u: Tensor, b: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return h [B, T, H] of x [B, T, inputs], and hidden state and cell after it, [B, H] each.

    Args:
        x: what is read.
        cells: hidden state and cell before, [B, H] each.
        w: W [4 H, inputs].
        u: U [4 H, H].
        b: [4 H].
    """
    if is_plain("lstm"):
        return plain_lstm(x, cells, w, u, b)
    if x.device.type == "cpu":
        kind = x.dtype
        h, c = (factor(part[None]) for part in cells)
        outputs, last, cell = _fused(factor(x), h, c, *map(factor, (w, u, b)))
    else:  # autocast would take float16
        kind = w.dtype
        with torch.autocast(x.device.type, enabled=False):
            h, c = (part[None].to(kind) for part in cells)
            outputs, last, cell = _fused(x.to(kind), h, c, w, u.to(kind), b)
    return outputs.transpose(0, 1).to(kind), (last[0].to(kind), cell[0].to(kind))


def _fused(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return h [T, B, H], and hidden state and cell after it [1, B, H], of x [B, T, inputs] and states [1, B, H]."""
    # Both biases of PyTorch's are added up; the second one is zero.
    weights = w, u, b, torch.zeros_like(b)
    training = torch.is_grad_enabled()  # without it cuDNN keeps nothing for a backward pass
    return torch.lstm(x.transpose(0, 1).contiguous(), (h, c), weights, True, 1, 0.0, training, False, False)


def plain_lstm(
    x: Tensor, cells: tuple[Tensor, Tensor], w: Tensor, u: Tensor, b: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The equations above, step by step."""
    (h, c), outputs = cells, []
    for own in (x @ w.t() + b).unbind(1):
        i, f, g, o = (own + h @ u.t()).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, 1), (h, c)
