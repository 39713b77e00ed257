"""Images with their captions, in batches of whole images, so that an image is encoded once for all its captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.batching import Batch, shifted
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import targets_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

if TYPE_CHECKING:
    from translucid.captions.image_store import StoredImages  # which needs Pillow


@dataclass(frozen=True, eq=False)
class CaptionedImages:
    """Images with one or more captions each.

    The captions of image `i` are the targets `caption_offsets[i]` .. `caption_offsets[i + 1] - 1`.
    """

    images: NDArray[Any]
    """The pixels or features of all images of the store, [stored images, ...]."""
    store_indices: NDArray[np.int64]
    """The index of each image in the store, [images]."""
    caption_offsets: NDArray[np.int64]
    """The index of the first caption of each image, [images + 1]."""
    target_ids: NDArray[np.int32]
    """The ids of all captions, one after the other, end tokens included."""
    target_offsets: NDArray[np.int64]
    """The offset of each caption in `target_ids`, [captions + 1]."""
    augmentation: Augmentation | None = None
    """The augmentation of the pixels, if any."""

    @classmethod
    def encode(
        cls,
        pairs: Iterable[Pair],
        store_indices: Mapping[str, int],
        stored: StoredImages,
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        skipped: Skipped,
    ) -> Self:
        """Encode captions, and group them by image.

        Args:
            pairs: pairs of an image's name and a caption.
            store_indices: the index of each image in the store, by name.
            stored: the stored images.
            tokenizer: the tokenizer of the captions.
            max_tokens: a caption with more tokens, end token included, is skipped.
            skipped: counts captions that are "too long", or whose image can't be read.
        """
        pairs = list(pairs)
        captions: dict[int, list[list[int]]] = {}
        for pair, ids in zip(pairs, tokenizer.encode_target(targets_of(pairs)), strict=True):
            store_index = store_indices[pair.source]
            if store_index in stored.bad:
                skipped.add("of broken images")
            elif len(ids) >= max_tokens:
                skipped.add("too long")
            else:
                captions.setdefault(store_index, []).append([*ids, SPECIAL.end])
        all_captions = list(chain.from_iterable(captions.values()))
        return cls(
            stored.array,
            np.array(list(captions), np.int64),
            np.cumsum([0, *map(len, captions.values())], dtype=np.int64),
            np.array(list(chain.from_iterable(all_captions)), np.int32),
            np.cumsum([0, *map(len, all_captions)], dtype=np.int64),
        )

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.store_indices)

    def captions(self) -> Iterator[list[list[int]]]:
        """Yield for each image the ids of its captions, end tokens included."""
        for start, end in pairwise(self.caption_offsets):
            bounds = pairwise(self.target_offsets[start : end + 1])
            yield [self.target_ids[caption_start:caption_end].tolist() for caption_start, caption_end in bounds]

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tokens that the images `rows` [n] take up in a batch, once for the source and once for the target.

        They are the number of captions times the length of the longest caption.
        """
        longest = np.maximum.reduceat(np.diff(self.target_offsets), self.caption_offsets[:-1])[rows]
        tokens = longest * (self.caption_offsets[rows + 1] - self.caption_offsets[rows])
        return tokens, tokens

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of tokens of all captions of the images `rows` [n], end tokens included."""
        ends = self.target_offsets[self.caption_offsets[rows + 1]] - self.target_offsets[self.caption_offsets[rows]]
        return int(ends.sum())

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Put the images `rows` [n] into one batch.

        All have the same number of captions k in it; the additional captions of some images are padding.
        """
        rows = np.asarray(rows, np.int64)
        counts = self.caption_offsets[rows + 1] - self.caption_offsets[rows]
        caption_numbers = np.arange(counts.max())
        exists = caption_numbers < counts[:, None]  # [n, k]
        captions = (self.caption_offsets[rows][:, None] + caption_numbers)[exists]
        caption_inputs, caption_labels = shifted(self.target_ids, self.target_offsets, captions)
        targets_in = torch.full((exists.size, caption_inputs.size(1)), SPECIAL.pad)  # [n k, T]
        labels = torch.full_like(targets_in, SPECIAL.pad)
        target_rows = torch.from_numpy(exists.ravel())
        targets_in[target_rows] = caption_inputs
        labels[target_rows] = caption_labels
        images = np.ascontiguousarray(self.images[self.store_indices[rows]])
        if self.augmentation is not None:
            images = self.augmentation.apply(images, rows)
        return Batch(torch.from_numpy(images), targets_in, labels)


@dataclass(frozen=True, eq=False)
class Augmentation:
    """The augmentation of each image in one epoch."""

    shift: NDArray[np.int64]
    """The shift of each image in pixels, down and to the right, [images, 2]. Border pixels fill the gap."""
    mirror: NDArray[np.bool_]
    """Whether each image is mirrored, [images]."""

    def apply(self, images: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the augmented images [n, height, width, 3]; they are the `rows` of the corpus."""
        changed = np.empty_like(images)
        for i, row in enumerate(rows):
            down, right = self.shift[row]
            vertical = np.clip(np.arange(images.shape[1]) - down, 0, images.shape[1] - 1)
            horizontal = np.clip(np.arange(images.shape[2]) - right, 0, images.shape[2] - 1)
            if self.mirror[row]:
                horizontal = horizontal[::-1]
            changed[i] = images[i][vertical[:, None], horizontal]
        return changed


class VariedImages:
    """Images that are augmented anew in each epoch, so that a network does not memorize them."""

    def __init__(self, images: CaptionedImages, *, shift: int, mirror: bool) -> None:
        """Prepare shifts of at most `shift` pixels in each direction; with `mirror`, mirror half of the images too."""
        self.images, self.shift, self.mirror = images, shift, mirror

    def draw(self, seed: Sequence[int]) -> CaptionedImages:
        """Return the corpus with an augmentation that `seed` determines."""
        generator, count = np.random.default_rng(np.random.SeedSequence(seed)), len(self.images)
        shift = generator.integers(-self.shift, self.shift, (count, 2), endpoint=True)
        mirror = generator.random(count) < (0.5 if self.mirror else 0.0)
        return replace(self.images, augmentation=Augmentation(shift, mirror))
