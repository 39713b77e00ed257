"""The pixels of all images of a corpus, or their features from an image encoder, on disk.

They are one flat array of `data.stores.chunked`: memory-mapped, with checksums, and resumed after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from translucid.captions.image_files import ImageFiles
from translucid.captions.pixels import pixels, read_image
from translucid.data.stores.chunked import ChunkedFiles, checksum
from translucid.ground.errors import UserError
from translucid.kernels.machine import cores

FILES = ("images.array",)
CHUNK = 256
"""The number of images of a chunk."""
BATCH_SIZE = 32
"""The number of images that the image encoder reads at a time."""

EncodePixels: TypeAlias = Callable[[NDArray[np.uint8]], NDArray[np.float16]]
"""A function of an image encoder, from pixels [b, height, width, 3] to features [b, S, F]."""


@dataclass(frozen=True)
class StoredImages:
    """All images of a corpus."""

    array: NDArray[Any]
    """The pixels or features [images, ...], memory-mapped: what is not in use takes no memory."""
    bad: frozenset[int]
    """The images that could not be read; their pixels are 0."""
    fingerprint: str
    """A string that differs for other images and other image encoders."""


class ImageStore:
    """A folder with the images of a corpus, complete or not."""

    def __init__(self, folder: Path, size: int, encode: EncodePixels | None = None) -> None:
        """Describe the folder; read and write nothing yet.

        Args:
            folder: the folder, which need not exist.
            size: the side of the squares to which images are resized, in pixels.
            encode: computes the features to store; by default, the pixels are stored.
        """
        self.size, self.encode = size, encode
        self.kind: np.dtype[Any] = np.dtype(np.float16 if encode else np.uint8)
        self.files = ChunkedFiles(folder, FILES, lambda _: [self.kind])

    def open(self, identity: str) -> StoredImages | None:
        """Return the images, or None if the folder is incomplete or of another identity.

        Raises:
            UserError: the file is missing, or does not match its checksum.
        """
        opened = self.files.open(identity)
        if opened is None:
            return None
        (flat,), chunks, totals = opened
        images = sum(totals["sizes"])
        fingerprint = f"{images} images, crc32 {checksum(chunks)}"
        return StoredImages(flat.reshape(images, *totals["shape"]), frozenset(totals["bad"]), fingerprint)

    def build(
        self,
        names: Sequence[str],
        files: ImageFiles,
        *,
        identity: str,
        on_images: Callable[[int], None] = lambda _: None,
        on_bad: Callable[[UserError], None] | None = None,
    ) -> None:
        """Read images on all cores; resume an earlier, incomplete attempt.

        Args:
            names: the names of the images, in the order in which they are stored.
            files: the files of the images.
            identity: the identity of the images and the encoder; chunks of another one are deleted.
            on_images: called with the number of images done since the last call.
            on_bad: called with the error of an image that can't be read, which is then skipped; by default, the error
                is raised.

        Raises:
            UserError: an image can't be read, or the disk is full.
        """
        chunks = self.files.begin(identity)
        image_count = 0
        bad: list[int] = []
        shape: list[int] = []
        for chunk in chunks:
            image_count += chunk["images"]
            bad += chunk["bad"]
            shape = chunk["shape"]
        on_images(image_count)
        for start in range(image_count, len(names), CHUNK):
            chunk_names = names[start : start + CHUNK]
            bad_in_chunk: list[int] = []
            rows = []
            for batch, broken in self._read(chunk_names, files, on_bad):
                bad_in_chunk += [start + i for i in broken]
                rows.append(batch if self.encode is None else self.encode(batch))
                on_images(len(batch))
            array = np.ascontiguousarray(np.concatenate(rows))
            shape = list(array.shape[1:])
            bad += bad_in_chunk
            self.files.append([array.reshape(-1)], {"images": len(chunk_names), "bad": bad_in_chunk, "shape": shape})
        self.files.end({"sizes": [len(names)], "shape": shape, "bad": bad})

    def _read(
        self, names: Sequence[str], files: ImageFiles, on_bad: Callable[[UserError], None] | None
    ) -> Iterator[tuple[NDArray[np.uint8], list[int]]]:
        """Yield the pixels of `BATCH_SIZE` images at a time, and the indices in `names` of those that can't be read."""

        def read(name: str) -> NDArray[np.uint8] | UserError:
            try:
                return pixels(read_image(files.read(name), name, size=self.size), self.size)
            except UserError as error:
                if on_bad is None:
                    raise
                return error  # `on_bad` is called in this thread only, in the order of the images

        with ThreadPoolExecutor(cores()) as pool:
            results = pool.map(read, names)
            for start in range(0, len(names), BATCH_SIZE):
                batch, broken = [], []
                for i in range(start, min(start + BATCH_SIZE, len(names))):
                    image = next(results)
                    if isinstance(image, UserError):
                        assert on_bad is not None
                        on_bad(image)
                        broken.append(i)
                        image = np.zeros((self.size, self.size, 3), np.uint8)
                    batch.append(image)
                yield np.stack(batch), broken
