"""The attention of a captioner over an image, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_pass
from translucid.ground.special import SPELLED
from translucid.inspection.inspected import Inspected, title_of

if TYPE_CHECKING:
    from translucid.data.images.pixels import Picture
    from translucid.models.protocol import SequenceModel


def cell_names(grid: tuple[int, int]) -> list[str]:
    """Return the names of the cells of a grid, `row,column`, row by row."""
    rows, columns = map(range, grid)
    return [f"{row},{column}" for row, column in product(rows, columns)]


@dataclass(frozen=True)
class AttentionResult:
    """An image, a caption, and the attention of the model that wrote the caption."""

    pixels: NDArray[np.uint8]
    """[height, width, 3], the image as the model reads it."""
    grid: tuple[int, int]
    """Rows and columns of cells."""
    inspected: Inspected
    """The attention; its source are the cells, row by row."""

    @cached_property
    def words(self) -> list[str]:
        """The caption's words."""
        return self.inspected.target_words[:-1]

    @cached_property
    def log_probs(self) -> list[float]:
        """The log-probability of each word."""
        return self.inspected.word_log_probs()[:-1]

    @property
    def looks(self) -> bool:
        """Whether the model has attention; without it there are only the words and their probabilities."""
        return bool(self.inspected.layers)

    def ways(self) -> dict[str, tuple[int | None, int | None]]:
        """Return the choices of layer and head for `weights` by name: all, those of a layer, each head."""
        heads = {layer: self.inspected.heads[f"decoder.{layer}.cross"] for layer in self.inspected.layers}
        choices: dict[str, tuple[int | None, int | None]] = {"all layers and heads": (None, None)}
        if len(heads) > 1:
            for layer in heads:
                choices[title_of(layer, None)] = layer, None
        for layer, count in heads.items():
            if count > 1:  # a single head is the average already
                for head in range(count):
                    choices[title_of(layer, head)] = layer, head
        return choices

    def weights(self, layer: int | None = None, head: int | None = None) -> Tensor:
        """Return the attention over the image for each word [words, rows, columns].

        A word has the attention of its first piece, because later pieces only complete the word. Layers and heads are
        averaged unless one is chosen. The weights of a word sum to 1.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        cross = self.inspected.cross(layer, head)  # [T, S]
        first = [start for _, start, _ in self.inspected.target_spans[:-1]]
        return cross[first].unflatten(1, self.grid)


def look_at(
    model: SequenceModel,
    tokenizer: Tokenizer,
    picture: Picture,
    ids: Sequence[int],
    grid: tuple[int, int],
    device: torch.device | str = "cpu",
) -> AttentionResult:
    """Decode an existing caption with a captioner (forced decoding), and return its attention.

    Args:
        model: the captioner, in evaluation mode.
        tokenizer: the tokenizer of the model.
        picture: the image.
        ids: the ids of the caption, without the end token.
        grid: rows and columns of cells.
        device: the device of the model.
    """
    cells = [f"▁{name}" for name in cell_names(grid)]  # each a word by itself
    target = torch.tensor([[*ids, model.eos]], device=device)
    source = torch.from_numpy(picture.source.copy())[None].to(device)
    forced = forced_pass(model, source, target)
    maps = {name: weights[0].cpu() for name, weights in forced.maps.items()}
    pieces = [*tokenizer.target_pieces(ids), SPELLED.end]
    return AttentionResult(picture.pixels, grid, Inspected(cells, pieces, maps, forced.log_probs[0].tolist()))
