"""Search for captions of any number of images in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.search import device_of, evaluating, search
from translucid.kernels.transfer import upload
from translucid.models.protocol import SequenceModel

ROWS = 256
"""The number of images in a batch, times the hypotheses for each."""


def decode_images(
    model: SequenceModel,
    images: Iterable[NDArray[Any]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Iterable[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find captions for images: pixels [height, width, 3] uint8, or the grids [S, F] of an image encoder.

    Other arguments and results are those of `TorchEngine`.
    """
    results: list[list[Hypothesis]] = []
    remaining = iter(images)
    remaining_numbers = count() if numbers is None else iter(numbers)
    with evaluating(model):
        while batch := list(islice(remaining, max(1, ROWS // options.rows))):
            source = upload(torch.from_numpy(np.stack(batch)), device_of(model))
            results += search(model, source, options, word_starts, list(islice(remaining_numbers, len(batch))))
            if on_batch:
                on_batch(len(batch))
    return results
