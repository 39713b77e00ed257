"""A caption to be explained, and what happens to it when parts of the image are taken away."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.images.pixels import Picture
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.inspection.attention_result import look_at
from translucid.inspection.explain.case import ForcedCase, InterpolationPath
from translucid.models.protocol import Memory, SequenceModel

GREY = 128
"""Of the image in which nothing is."""
PIXELS = 1 << 20
"""Of perturbed images that the network reads at a time, at most, at least those of one image."""
SUPERPIXELS = 50
"""Asked for; there are about so many."""


class ImageCase(ForcedCase):
    """An image and its caption. Subclasses say what the parts are."""

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, pixels: NDArray[np.uint8], target: str, grid: tuple[int, int]
    ) -> None:
        """Watch the model write a caption.

        Args:
            model: in evaluation mode.
            tokenizer: its own.
            pixels: [height, width, 3].
            target: usually the model's own caption.
            grid: rows and columns of the cells that the model makes of the image.

        Raises:
            UserError: the caption has no words.
        """
        (ids,) = tokenizer.encode_target([target])
        if not ids:
            raise UserError("there are no words to explain", fix="Give a caption with words in it.")
        self.looked = look_at(model, tokenizer, Picture("image", pixels), ids, grid, next(model.parameters()).device)
        super().__init__(model, [*ids, model.eos], self.looked.inspected.target_spans)
        self.pixels, self.grid = pixels, grid

    def way(self) -> InterpolationPath:
        """Begin with a grey image."""
        with torch.no_grad():
            grey, source = (self.embedded(one) for one in (np.full_like(self.pixels, GREY), self.pixels))
        return InterpolationPath(grey, source)

    def embedded(self, pixels: NDArray[np.uint8]) -> Tensor:
        """Return the cells [n, S, D] that the model makes of images [n, height, width, 3], or of one without n."""
        images = torch.from_numpy(np.array(pixels.reshape(-1, *self.pixels.shape))).to(self.device)
        cells: Tensor = self.model.source_embedding(images)
        return cells

    def attention(self) -> Tensor:
        """Return where the model looked, as `AttentionResult.weights` says."""
        return self.by_part(self.looked.weights().float().flatten(1))

    @abstractmethod
    def over(self, importance: Tensor) -> NDArray[np.float32]:
        """Lay what belongs to parts [.., parts] over the image [.., rows, columns]."""


class CellCase(ImageCase):
    """The parts are the cells. One that is left out can't be looked at; what its neighbours have seen of it stays."""

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, pixels: NDArray[np.uint8], target: str, grid: tuple[int, int]
    ) -> None:
        """See `ImageCase`."""
        super().__init__(model, tokenizer, pixels, target, grid)
        self.source_words = [f"{row},{column}" for row in range(grid[0]) for column in range(grid[1])]
        with torch.no_grad():
            self._cells = self.embedded(pixels)

    def without(self, keep: Tensor) -> Memory:
        """Read the cells with some of them masked out."""
        return self.model.read(self._cells.expand(len(keep), -1, -1), keep.to(self.device))

    def by_part(self, shares: Tensor) -> Tensor:
        """Return them as they are: a part is a position."""
        return shares

    def over(self, importance: Tensor) -> NDArray[np.float32]:
        """Put the cells back into rows and columns."""
        return importance.unflatten(-1, self.grid).float().numpy()


class SuperpixelCase(ImageCase):
    """The parts are superpixels: patches of like colour. One that is left out is painted over with its mean colour.

    So LIME explains images (Ribeiro et al. 2016, arXiv 1602.04938, section 3.4). A patch of one colour is left as it is
    by that: what is all of one colour can't be shown to matter.
    """

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, pixels: NDArray[np.uint8], target: str, grid: tuple[int, int]
    ) -> None:
        """See `ImageCase`."""
        super().__init__(model, tokenizer, pixels, target, grid)
        self.regions = superpixels(pixels)
        """[height, width], the number of each pixel's superpixel."""
        count = int(self.regions.max()) + 1
        self.source_words = [str(number) for number in range(count)]
        flat, sizes = self.regions.ravel(), np.bincount(self.regions.ravel())
        colours = pixels.reshape(-1, 3).astype(float)
        means = np.stack([np.bincount(flat, channel) / sizes for channel in colours.T], -1)
        self._flattened = means.round().astype(np.uint8)[self.regions]

    @property
    def together(self) -> int:
        """How many perturbed images are read at a time."""
        return max(1, min(super().together, PIXELS // self.regions.size))

    def without(self, keep: Tensor) -> Memory:
        """Read the image with some superpixels painted over."""
        kept = keep.cpu().numpy()[:, self.regions]  # [n, height, width]
        images = torch.from_numpy(np.where(kept[..., None], self.pixels, self._flattened)).to(self.device)
        return self.model.encode(images)

    def by_part(self, shares: Tensor) -> Tensor:
        """Spread what a cell has over its pixels, and sum over each superpixel."""
        rows, columns = (
            np.arange(side) * cells // side for side, cells in zip(self.regions.shape, self.grid, strict=True)
        )
        cell = torch.from_numpy(rows[:, None] * self.grid[1] + columns).flatten()  # of each pixel
        region = torch.from_numpy(self.regions).flatten()
        spread = (shares.cpu().float() / cell.bincount(minlength=shares.size(-1)))[..., cell]  # [.., pixels]
        parts = spread.new_zeros(*shares.shape[:-1], len(self.source_words))
        return parts.index_add_(-1, region, spread)

    def over(self, importance: Tensor) -> NDArray[np.float32]:
        """Give each pixel what its superpixel has."""
        return importance.float().numpy()[..., self.regions]


def image_case(
    method: str,
    model: SequenceModel,
    tokenizer: Tokenizer,
    pixels: NDArray[np.uint8],
    target: str,
    grid: tuple[int, int],
) -> CellCase | SuperpixelCase:
    """Return the case for a method: LIME explains by superpixels, the others by cells; see `ImageCase`."""
    kind = SuperpixelCase if method == "lime" else CellCase
    return kind(model, tokenizer, pixels, target, grid)


def superpixels(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of the superpixel, from 0, that each pixel is in [height, width].

    By SLIC (Achanta et al. 2012, IEEE TPAMI 34): k-means of colours and places.
    """
    from skimage.segmentation import slic

    labels = slic(pixels, n_segments=SUPERPIXELS, compactness=10, sigma=1, start_label=0, channel_axis=-1)
    numbers: NDArray[np.int64] = np.unique(labels, return_inverse=True)[1]
    return numbers.reshape(labels.shape)
