"""An image on its way through a captioner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Picture(NamedTuple):
    """An image as a model reads it."""

    name: str
    pixels: NDArray[np.uint8]
    """[size, size, 3]."""
    grid: NDArray[np.float32] | None = None
    """[S, F], what the model's network makes of them, if it has looked already."""

    @property
    def source(self) -> NDArray[Any]:
        """What the model reads: the grid if there is one, so that the network looks at each image once."""
        return self.pixels if self.grid is None else self.grid
