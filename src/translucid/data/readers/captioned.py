"""Images with their captions, in batches of whole images: what is made of one serves all its captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.data.batching import Batch, shifted
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

if TYPE_CHECKING:
    from translucid.data.stores.image_store import StoredImages  # which needs Pillow


@dataclass(frozen=True, eq=False)
class CaptionedImages:
    """Images, each with one caption or more. Those of image `i` are the targets first[i] .. first[i + 1] - 1."""

    images: NDArray[Any]
    """What the model reads of all images of the store, [.., ...]."""
    place: NDArray[np.int64]
    """[images], where each is in the store."""
    first: NDArray[np.int64]
    """[images + 1]."""
    target_ids: NDArray[np.int32]
    """All captions, one after the other, end tokens included."""
    target_offsets: NDArray[np.int64]
    """[captions + 1], where each begins."""
    changes: Changes | None = None
    """How pixels are changed, if they are."""

    @classmethod
    def encode(
        cls,
        pairs: Iterable[Pair],
        places: Mapping[str, int],
        stored: StoredImages,
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        skipped: Skipped,
    ) -> Self:
        """Encode captions and put those of an image together.

        Args:
            pairs: names of images and captions.
            places: of the images by name, among those stored.
            stored: them.
            tokenizer: of the captions.
            max_tokens: a caption with more tokens, end token included, is skipped.
            skipped: counts those, as "too long", and those whose image can't be read.
        """
        pairs = list(pairs)
        captions: dict[int, list[list[int]]] = {}
        for pair, ids in zip(pairs, tokenizer.encode_target([pair.target for pair in pairs]), strict=True):
            place = places[pair.source]
            if place in stored.bad:
                skipped.add("of broken images")
            elif len(ids) >= max_tokens:
                skipped.add("too long")
            else:
                captions.setdefault(place, []).append([*ids, SPECIAL.end])
        every = [ids for of_image in captions.values() for ids in of_image]
        return cls(
            stored.array,
            np.array(list(captions), np.int64),
            np.cumsum([0, *map(len, captions.values())], dtype=np.int64),
            np.array([i for ids in every for i in ids], np.int32),
            np.cumsum([0, *map(len, every)], dtype=np.int64),
        )

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.place)

    def captions(self) -> Iterator[list[list[int]]]:
        """Yield of each image the ids of its captions, end tokens included."""
        for first, end in pairwise(self.first):
            bounds = pairwise(self.target_offsets[first : end + 1])
            yield [self.target_ids[begin:after].tolist() for begin, after in bounds]

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for the images `rows` [n] twice what they take of a batch: captions times the longest of them."""
        longest = np.maximum.reduceat(np.diff(self.target_offsets), self.first[:-1])[rows]
        room = longest * (self.first[rows + 1] - self.first[rows])
        return room, room

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of tokens of all captions of the images `rows` [n], end tokens included."""
        ends = self.target_offsets[self.first[rows + 1]] - self.target_offsets[self.first[rows]]
        return int(ends.sum())

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Put the images `rows` [n] into one batch, each with as many captions as any has; some may be all padding."""
        rows = np.asarray(rows, np.int64)
        counts = self.first[rows + 1] - self.first[rows]
        place = np.arange(counts.max())
        there = place < counts[:, None]  # [n, k]
        captions = (self.first[rows][:, None] + place)[there]
        found = shifted(self.target_ids, self.target_offsets, captions)
        targets_in, labels = (torch.full((there.size, side.size(1)), SPECIAL.pad) for side in found)
        for side, real in zip((targets_in, labels), found, strict=True):
            side[torch.from_numpy(there.ravel())] = real
        images = np.ascontiguousarray(self.images[self.place[rows]])
        if self.changes is not None:
            images = self.changes.applied(images, rows)
        return Batch(torch.from_numpy(images), targets_in, labels)


@dataclass(frozen=True, eq=False)
class Changes:
    """What is done to the pixels of each image in one epoch."""

    shift: NDArray[np.int64]
    """[images, 2], pixels down and to the right; what is then missing at a side is as its last row or column."""
    mirror: NDArray[np.bool_]
    """[images], whether left and right change places."""

    def applied(self, images: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return images [n, height, width, 3], the `rows` of the corpus, changed."""
        changed = np.empty_like(images)
        for i, row in enumerate(rows):
            down, right = self.shift[row]
            vertical = np.clip(np.arange(images.shape[1]) - down, 0, images.shape[1] - 1)
            horizontal = np.clip(np.arange(images.shape[2]) - right, 0, images.shape[2] - 1)
            columns = horizontal[::-1] if self.mirror[row] else horizontal
            changed[i] = images[i][vertical[:, None], columns]
        return changed


class VariedImages:
    """Images whose pixels are changed in another way in each epoch, so that a network does not learn them by heart."""

    def __init__(self, images: CaptionedImages, *, shift: int, mirror: bool) -> None:
        """`shift`: pixels, at most, in each direction; `mirror`: half of them have left and right change places."""
        self.images, self.shift, self.mirror = images, shift, mirror

    def draw(self, seed: Sequence[int]) -> CaptionedImages:
        """Return the corpus with changes that `seed` decides."""
        generator, count = np.random.default_rng(np.random.SeedSequence(seed)), len(self.images)
        shift = generator.integers(-self.shift, self.shift, (count, 2), endpoint=True)
        mirror = generator.random(count) < (0.5 if self.mirror else 0.0)
        return replace(self.images, changes=Changes(shift, mirror))
