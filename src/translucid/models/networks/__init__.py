"""Convolutional networks that turn an image into a grid of features."""

from __future__ import annotations

from torch import nn

from translucid.models.captioner_options import ImageEncoderOptions


class ImageNetwork(nn.Module):
    """A network from pixels [B, 3, height, width] uint8 to a grid [B, F, rows, columns]."""

    width: int
    """F, the number of features of a cell."""

    def load_learned(self) -> None:
        """Load pre-trained weights, if the network has some.

        Raises:
            UserError: the weights are not available.
        """


def image_network(options: ImageEncoderOptions) -> ImageNetwork:
    """Return a network with fresh weights; `load_learned` replaces them with pre-trained ones.

    Raises:
        UserError: the package of the network is missing, or it has no such network or grid.
    """
    if options.network == "small":
        from translucid.models.networks.small import SmallNetwork

        return SmallNetwork(options.channels, options.stride)
    if options.network == "efficientnet-lite0":
        from translucid.models.networks.efficientnet import EfficientNetLite0

        return EfficientNetLite0(options.stride)
    from translucid.models.networks.timm_network import TimmNetwork

    return TimmNetwork(options.network.removeprefix("timm:"), options.stride)
