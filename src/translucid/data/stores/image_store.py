"""What a model reads of each image of a corpus, on disk: pixels, or what a network has made of them.

One flat array in a folder of `data.stores.chunked`: checksummed, mapped into memory, resumed after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from translucid.data.images.image_files import ImageFiles
from translucid.data.images.pixels import pixels, read_image
from translucid.data.stores.chunked import ChunkedFiles, checksum
from translucid.ground.errors import UserError
from translucid.kernels.machine import cores

FILES = ("images.array",)
CHUNK = 256
"""Images between two lines of the index."""
TOGETHER = 32
"""Images that a network sees at a time."""

Look: TypeAlias = Callable[[NDArray[np.uint8]], NDArray[np.float16]]
"""From pixels [b, height, width, 3] to grids [b, S, F]."""


@dataclass(frozen=True)
class StoredImages:
    """All images of a corpus, opened."""

    array: NDArray[Any]
    """[images, ...], mapped into memory: what is not in use takes none."""
    bad: frozenset[int]
    """Which of them could not be read; there is nothing in their place."""
    fingerprint: str
    """Other images, or another network, give another one."""


class ImageStore:
    """A folder with the images of a corpus, or with the beginning of them."""

    def __init__(self, folder: Path, size: int, look: Look | None = None) -> None:
        """Nothing is read or made yet.

        Args:
            folder: need not exist yet.
            size: of the squares that images are squeezed to, in pixels.
            look: what becomes of the pixels; they are kept as they are if not given.
        """
        self.size, self.look = size, look
        self.kind: np.dtype[Any] = np.dtype(np.float16 if look else np.uint8)
        self.files = ChunkedFiles(folder, FILES, lambda _: [self.kind])

    def open(self, identity: str) -> StoredImages | None:
        """Return the images, or None if there are none of this identity, or not all of them.

        Raises:
            UserError: the file is missing, or does not match its checksum.
        """
        if (found := self.files.open(identity)) is None:
            return None
        (flat,), chunks, totals = found
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
        """Read images, on all cores; go on where an earlier attempt was cut off.

        Args:
            names: of the images, in the order that they are kept in.
            files: where they are.
            identity: of images and network; what was begun under another one is thrown away.
            on_images: called with the number of images done since.
            on_bad: told of an image that can't be read, which is then left out; if not given, that is an error.

        Raises:
            UserError: an image can't be read, or the disk is full.
        """
        done = self.files.begin(identity)
        first = sum(chunk["images"] for chunk in done)
        bad = [place for chunk in done for place in chunk["bad"]]
        shape: list[int] = done[0]["shape"] if done else []
        on_images(first)
        for start in range(first, len(names), CHUNK):
            part = names[start : start + CHUNK]
            gone: list[int] = []
            rows = []
            for batch, broken in self._read(part, files, on_bad):
                gone += [start + i for i in broken]
                rows.append(batch if self.look is None else self.look(batch))
                on_images(len(batch))
            array = np.ascontiguousarray(np.concatenate(rows))
            shape, bad = list(array.shape[1:]), bad + gone
            self.files.append([array.reshape(-1)], {"images": len(part), "bad": gone, "shape": shape})
        self.files.end({"sizes": [len(names)], "shape": shape, "bad": bad})

    def _read(
        self, names: Sequence[str], files: ImageFiles, on_bad: Callable[[UserError], None] | None
    ) -> Iterator[tuple[NDArray[np.uint8], list[int]]]:
        """Yield the pixels of images, a few at a time, with the places in `names` of those that can't be read."""

        def read(name: str) -> NDArray[np.uint8] | UserError:
            try:
                return pixels(read_image(files.read(name), name, size=self.size), self.size)
            except UserError as error:
                if on_bad is None:
                    raise
                return error

        with ThreadPoolExecutor(cores()) as pool:
            found = pool.map(read, names)
            for start in range(0, len(names), TOGETHER):
                batch, broken = [], []
                for i in range(start, min(start + TOGETHER, len(names))):
                    one = next(found)
                    if isinstance(one, UserError):
                        assert on_bad is not None
                        on_bad(one)
                        broken.append(i)
                        one = np.zeros((self.size, self.size, 3), np.uint8)
                    batch.append(one)
                yield np.stack(batch), broken
