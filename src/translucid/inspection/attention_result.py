"""Where in an image a captioner looked, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_pass
from translucid.ground.special import SPELLED
from translucid.inspection.inspected import Inspected

if TYPE_CHECKING:
    from translucid.data.images.pixels import Picture
    from translucid.models.protocol import SequenceModel


@dataclass(frozen=True)
class AttentionResult:
    """An image, a caption, and where the model looked when it wrote that."""

    pixels: NDArray[np.uint8]
    """[height, width, 3], as the model saw the image."""
    grid: tuple[int, int]
    """Rows and columns of cells."""
    inspected: Inspected
    """The source is the cells, one row after the other."""

    @cached_property
    def words(self) -> list[str]:
        """The caption's words."""
        return [word for word, _, _ in self.inspected.target_spans[:-1]]

    @cached_property
    def log_probs(self) -> list[float]:
        """The log-probability of each word."""
        return self.inspected.word_log_probs()[:-1]

    @property
    def looks(self) -> bool:
        """Whether the model has attention, without which there is no more to be seen than the words."""
        return bool(self.inspected.layers)

    def ways(self) -> dict[str, tuple[int | None, int | None]]:
        """Return by name what `weights` can be asked for, a layer and a head each: all, those of a layer, each head."""
        heads = {layer: len(self.inspected.maps[f"decoder.{layer}.cross"]) for layer in self.inspected.layers}
        found: dict[str, tuple[int | None, int | None]] = {"all layers and heads": (None, None)}
        if len(heads) > 1:
            found |= {f"layer {layer}, all heads": (layer, None) for layer in heads}
        for layer, count in heads.items():
            found |= {f"layer {layer}, head {head}": (layer, head) for head in range(count) if count > 1}
        return found

    def weights(self, layer: int | None = None, head: int | None = None) -> Tensor:
        """Return where the model looked for each word [words, rows, columns].

        That is where it looked for the word's first piece: with the pieces after it, it only ends the word. Layers and
        heads are averaged unless one is chosen. The weights of a word sum to 1.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        cross = self.inspected.cross(layer, head)
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
    """Let a captioner write a given caption, and watch.

    Args:
        model: in evaluation mode.
        tokenizer: its own.
        picture: what the caption is about.
        ids: of the caption, without the end token.
        grid: rows and columns of cells.
        device: where the model is.
    """
    cells = [f"▁{row},{column}" for row in range(grid[0]) for column in range(grid[1])]
    target = torch.tensor([[*ids, model.eos]], device=device)
    source = torch.from_numpy(picture.source.copy())[None].to(device)
    forced = forced_pass(model, source, target)
    seen = {name: weights[0].cpu() for name, weights in forced.maps.items()}
    pieces = [*tokenizer.target_pieces(ids), SPELLED.end]
    return AttentionResult(picture.pixels, grid, Inspected(cells, pieces, seen, forced.log_probs[0].tolist()))
