"""The cases that explain captions, with cells or superpixels of the image as parts, and their records for web pages."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.captions.pixels import Picture
from translucid.captions.saliency_overlay import SaliencyOverlay, caption_attention, cell_names
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.hypothesis import percent
from translucid.ground.errors import UserError
from translucid.inspection.explain import (
    Contrast,
    Explanation,
    ForcedCase,
    InterpolationPath,
    explain,
    faithfulness,
    part_count,
    random_faithfulness,
)
from translucid.inspection.inspected import rounded
from translucid.models.protocol import Memory, SequenceModel

GREY = 128
"""The RGB values of the uninformative image, from which integrated gradients begin."""
PIXELS = 1 << 20
"""The maximum number of pixels of perturbed images in a batch; every batch has at least one image."""
SUPERPIXELS = 50
"""The number of superpixels that SLIC is asked for; it returns about as many."""
SHARE = 0.1
"""The share of an image's parts, the most important ones, that faithfulness leaves out or keeps alone."""
FINEST = 48
"""The maximum number of rows, and of columns, of importance that a page receives."""


class ImageCase(ForcedCase):
    """An image and its caption. Subclasses define the parts."""

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, pixels: NDArray[np.uint8], target: str, grid: tuple[int, int]
    ) -> None:
        """Decode a caption (forced decoding).

        Args:
            model: the captioner, in evaluation mode.
            tokenizer: the tokenizer of the model.
            pixels: [height, width, 3].
            target: the caption, usually the model's own.
            grid: rows and columns of the cells into which the model divides the image.

        Raises:
            UserError: the caption has no words.
        """
        (ids,) = tokenizer.encode_target([target])
        if not ids:
            raise UserError("there are no words to explain", fix="Give a caption with words in it.")
        self.attention_result = caption_attention(
            model, tokenizer, Picture("image", pixels), ids, grid, next(model.parameters()).device
        )
        super().__init__(model, tokenizer, [*ids, model.eos], self.attention_result.inspected.target_spans)
        self.pixels, self.grid = pixels, grid
        with torch.no_grad():
            self._divide()

    @abstractmethod
    def _divide(self) -> None:
        """Divide the image into parts."""

    def interpolation_path(self) -> InterpolationPath:
        """Begin with a gray image."""
        gray = np.full_like(self.pixels, GREY)
        with torch.no_grad():
            return InterpolationPath(self.embedded(gray), self.embedded(self.pixels))

    def embedded(self, pixels: NDArray[np.uint8]) -> Tensor:
        """Return the embedded cells [n, S, D] of images [n, height, width, 3], or of one image [height, width, 3]."""
        images = torch.from_numpy(np.array(pixels.reshape(-1, *self.pixels.shape))).to(self.device)
        return self.model.source_embedding(images)

    def attention(self) -> Tensor:
        """Return the attention of each word's first piece, summed over the parts."""
        return self.by_part(self.attention_result.weights().float().flatten(1))

    @abstractmethod
    def saliency_map(self, importance: Tensor) -> NDArray[np.float32]:
        """Arrange values of parts [.., parts] as they lie in the image [.., rows, columns]."""


class CellCase(ImageCase):
    """A case whose parts are the cells.

    A cell that is left out is masked, so that nothing attends to it. But the image encoder has already mixed its
    content into the neighboring cells.
    """

    def _divide(self) -> None:
        """Embed the cells once for all perturbations."""
        self.source_words, self._cells = cell_names(self.grid), self.embedded(self.pixels)

    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Read the embedded cells with some of them masked."""
        return self.model.read(self._cells.expand(len(keep), -1, -1), keep.to(self.device))

    def by_part(self, shares: Tensor) -> Tensor:
        """Return the values unchanged: each source position is a part."""
        return shares

    def saliency_map(self, importance: Tensor) -> NDArray[np.float32]:
        """Arrange the cells in rows and columns."""
        return importance.unflatten(-1, self.grid).float().numpy()


class SuperpixelCase(ImageCase):
    """A case whose parts are superpixels: patches of similar color.

    A superpixel that is left out is painted with its mean color, as LIME explains images (Ribeiro et al. 2016, arXiv
    1602.04938, section 3.4). This does not change a patch of uniform color, whose importance is therefore always 0.
    """

    def _divide(self) -> None:
        """Divide the image into superpixels, and paint each with its mean color."""
        self.regions = superpixels(self.pixels)
        """[height, width], the number of each pixel's superpixel."""
        self.source_words = list(map(str, range(int(self.regions.max()) + 1)))
        flat = self.regions.ravel()
        sizes = np.bincount(flat)
        channels = self.pixels.reshape(-1, 3).astype(float).T  # [3, pixels]
        means = np.stack([np.bincount(flat, channel) / sizes for channel in channels], -1)  # [superpixels, 3]
        self._painted = means.round().astype(np.uint8)[self.regions]  # [height, width, 3]

    @property
    def batch_size(self) -> int:
        """The number of perturbed images in a batch."""
        return max(1, min(super().batch_size, PIXELS // self.regions.size))

    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Encode the image with some superpixels painted over."""
        visible = keep.numpy()[:, self.regions]  # [n, height, width]
        images = torch.from_numpy(np.where(visible[..., None], self.pixels, self._painted)).to(self.device)
        return self.model.encode(images)

    def by_part(self, shares: Tensor) -> Tensor:
        """Distribute the value of a cell evenly over its pixels, and sum over each superpixel."""
        height, width = self.regions.shape
        rows = np.arange(height) * self.grid[0] // height
        columns = np.arange(width) * self.grid[1] // width
        cell = torch.from_numpy(rows[:, None] * self.grid[1] + columns).flatten()  # [pixels]
        region = torch.from_numpy(self.regions).flatten()  # [pixels]
        pixel_values = (shares.cpu().float() / cell.bincount(minlength=shares.size(-1)))[..., cell]  # [.., pixels]
        parts = pixel_values.new_zeros(*shares.shape[:-1], len(self.source_words))
        return parts.index_add_(-1, region, pixel_values)

    def saliency_map(self, importance: Tensor) -> NDArray[np.float32]:
        """Return for each pixel the value of its superpixel."""
        return importance.float().numpy()[..., self.regions]


def image_case(
    method: str,
    model: SequenceModel,
    tokenizer: Tokenizer,
    pixels: NDArray[np.uint8],
    target: str,
    grid: tuple[int, int],
) -> CellCase | SuperpixelCase:
    """Return the case for a method: LIME explains by superpixels, the other methods by cells."""
    kind = SuperpixelCase if method == "lime" else CellCase
    return kind(model, tokenizer, pixels, target, grid)


def superpixels(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number, from 0, of the superpixel of each pixel [height, width].

    The method is SLIC (Achanta et al. 2012, IEEE TPAMI 34): k-means clustering of colors and positions.
    """
    from skimage.segmentation import slic

    labels = slic(pixels, n_segments=SUPERPIXELS, compactness=10, sigma=1, start_label=0, channel_axis=-1)
    # Numbers without gaps: each superpixel must have pixels, or its mean color would be undefined.
    numbers: NDArray[np.int64] = np.unique(labels, return_inverse=True)[1]
    return numbers.reshape(labels.shape)


def overlay_of(case: ImageCase, explanation: Explanation, contrasted: Contrast | None = None) -> SaliencyOverlay:
    """Return the parts of the image that support each word; its notes are its probability and LIME's fit.

    Args:
        case: the image.
        explanation: the explanation of its caption.
        contrasted: what is explained instead of the caption; its note is its log-odds.
    """
    notes, verb = [percent(math.exp(value)) for value in case.attention_result.log_probs], "depends on"
    if contrasted:
        notes = [f"{contrasted.log_odds:+.2f} nats"]
        verb = f"instead of {contrasted.other.target_words[0]} depends on"
    if explanation.fit:
        for i, fit in enumerate(explanation.fit):
            notes[i] += f", R² {fit:.2f}"
    support = case.saliency_map(explanation.importance.clamp(min=0))
    return SaliencyOverlay(case.pixels, explanation.target, notes, support, verb)


def part_positions(case: ImageCase) -> dict[str, Any]:
    """Return the positions of the parts: rows and columns of cells, or the number of each pixel's superpixel."""
    if isinstance(case, SuperpixelCase):
        return {"regions": case.regions.tolist()}
    return {"grid": list(case.grid)}


def saliency_record(case: ImageCase, method: str, contrasted: Contrast | None = None) -> dict[str, Any]:
    """Return an explanation of a caption for a page: importance [words][rows][columns], and its faithfulness.

    Args:
        case: the image and its caption.
        method: one of the methods.
        contrasted: explain this contrast of one of the words instead.
    """
    explained = contrasted or case
    explanation = explain(explained, method, samples=200)
    k = part_count(SHARE, len(explanation.source))
    importance = case.saliency_map(explanation.importance)
    # Take the value in the middle of each block of pixels, so that superpixels need not be sent pixel by pixel.
    row_step, column_step = -(-importance.shape[1] // FINEST), -(-importance.shape[2] // FINEST)
    row: dict[str, Any] = {
        "method": method,
        "target": explanation.target,
        "importance": importance[:, row_step // 2 :: row_step, column_step // 2 :: column_step].round(4).tolist(),
        "share": SHARE,
        "fit": rounded(explanation.fit, 3),
        "faithfulness": faithfulness(explained, explanation, k)._asdict(),
        "random": random_faithfulness(explained, k)._asdict(),
    }
    if contrasted:
        row["contrast"] = contrasted.to_json()
    return row
