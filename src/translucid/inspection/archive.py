"""The attention of any number of translations in one NumPy archive."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from translucid.ground.atomic import output
from translucid.inspection.inspected import Inspected


def save_maps(pieces: Iterable[Inspected], file: Path) -> int:
    """Write an `.npz`: for translation i, counted from 0, its pieces, log-probabilities and attention maps.

    `numpy.load(file)` returns them by name: `i/source` [S] and `i/target` [T], pieces of words; `i/log_probs` [T], in
    nats, float32; `i/encoder.0.self` [H, S, S], `i/decoder.1.cross` [H, T, S] and so on, float16. The file appears when
    it is complete; only one translation at a time is in memory.

    Returns:
        The number of translations.

    Raises:
        UserError: the file can't be written.
    """
    count = 0
    # `numpy.savez` would need all arrays in memory at once; an .npz is a zip archive of .npy files.
    with output(file) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for count, inspected in enumerate(pieces, 1):
            arrays = {
                "source": np.array(inspected.source),
                "target": np.array(inspected.target),
                "log_probs": np.array(inspected.log_probs, np.float32),
            }
            for name, weights in inspected.maps.items():
                arrays[name] = weights.half().numpy()
            for name, array in arrays.items():
                with archive.open(f"{count - 1}/{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    return count
