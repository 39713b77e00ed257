"""Convolutional networks that turn an image into a grid of features."""

from __future__ import annotations

from torch import nn

from translucid.models.captioner_options import ImageEncoderOptions


def image_network(image_encoder: ImageEncoderOptions) -> tuple[nn.Module, int]:
    """Return a network from pixels [B, 3, height, width] uint8 to [B, F, rows, columns], and F.

    Its weights are fresh; `load_learned` replaces them with pre-trained ones.

    Raises:
        UserError: the package of the network is missing, or it has no such network or grid.
    """
    if image_encoder.network == "small":
        from translucid.models.networks.small import SmallNetwork

        small = SmallNetwork(image_encoder.channels, image_encoder.stride)
        return small, small.width
    if image_encoder.network == "efficientnet-lite0":
        from translucid.models.networks.efficientnet import EfficientNetLite0

        lite = EfficientNetLite0(image_encoder.stride)
        return lite, lite.width
    from translucid.models.networks.timm_network import TimmNetwork

    other = TimmNetwork(image_encoder.network.removeprefix("timm:"), image_encoder.stride)
    return other, other.width


def load_learned(network: nn.Module) -> None:
    """Load the pre-trained weights of a network that has some.

    Raises:
        UserError: the weights are not available.
    """
    load = getattr(network, "load_learned", None)  # `SmallNetwork` has no pre-trained weights
    if load:
        load()
