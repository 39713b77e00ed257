"""The attention of any number of translations in one file that NumPy reads, written one after the other."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from translucid.ground.atomic import output
from translucid.inspection.inspected import Inspected


def save_maps(pieces: Iterable[Inspected], file: Path) -> int:
    """Write an `.npz`: for translation i, counted from 0, its pieces, log-probabilities and attention maps.

    `numpy.load(file)` gives them by name: `i/source` [S] and `i/target` [T], pieces of words; `i/log_probs` [T], in
    nats, float32; `i/encoder.0.self` [H, S, S], `i/decoder.1.cross` [H, T, S] and so on, float16. The file appears when
    it is whole; one translation at a time is in memory.

    Returns:
        How many translations were written.

    Raises:
        UserError: the file can't be written.
    """
    count = 0
    with output(file) as whole, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for count, one in enumerate(pieces, 1):
            arrays = {
                "source": np.array(one.source),
                "target": np.array(one.target),
                "log_probs": np.array(one.log_probs, np.float32),
                **{name: weights.half().numpy() for name, weights in one.maps.items()},
            }
            for name, array in arrays.items():
                with archive.open(f"{count - 1}/{name}.npy", "w") as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
    return count
