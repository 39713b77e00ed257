"""The preparation of captioned images for the training of a captioner.

Batches hold whole images, so that an image is encoded once for all its captions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.captions.captioner import decode_images
from translucid.captions.image_encoder import ImageEncoder
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import EncodePixels, ImageStore, StoredImages
from translucid.captions.options import CaptioningShape
from translucid.captions.self_critical import CaptionReward, SelfCriticalStep
from translucid.data.batching import Batch, shifted
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import targets_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.data_loader import PairDataLoader
from translucid.training.dataset import (
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.hardware.ddp import Workers
from translucid.training.text import report_too_long
from translucid.training.validation import PairsValidator, evenly

CAPTIONS, IMAGES = "the training captions", "the set of images"
"""The names of their fingerprints in a checkpoint."""


class ImageDataset:
    """The corpora of a captioner: pairs of an image name and a caption, and the images."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Read the captions and find the images.

        Raises:
            UserError: a file or folder of images can't be read.
        """
        self.configuration, self.corpora = configuration, corpora
        data = configuration.data
        shape = configuration.model
        assert isinstance(shape, CaptioningShape)
        self.shape = shape
        # By default, images are next to the files of captions.
        folders = data.images or dict.fromkeys(str(Path(name).parent) for name in data.train)
        self.files = ImageFiles.open(list(map(Path, folders)))
        self.skipped = Skipped()
        self.train = list(corpora.filtered(data.filter, self.skipped))
        self.names = list(dict.fromkeys(pair.source for pair in chain(self.train, corpora.valid)))

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the captions."""
        train = self.train
        report_held_out(self.corpora, "captions", console)
        if not train:
            file = next(iter(self.configuration.data.train), None)
            raise UserError(f"no captions are left ({self.skipped.summary()})", file=file)
        self.files.refuse_missing(self.names)
        captions = (Pair("", pair.target) for pair in train)  # a source has no words
        tokenizer, self.configuration = learn_vocabulary(captions, self.configuration, console)
        return tokenizer

    def training_data(self, start: Initialization) -> TrainingData:
        """Store the images, or their grids if the network is frozen, and encode the captions."""
        data, options, tokenizer = self.configuration.data, self.configuration.training, start.tokenizer
        longest, identity = self.configuration.longest, self._identity(start.model)
        store = ImageStore(start.run.images_folder, self.shape.image_encoder.size, self._grids(start.model))
        stored = start.stored(lambda: self._read(start, store, identity), lambda: store.open(identity))
        indices = {name: index for index, name in enumerate(self.names)}
        train = CaptionedImages.encode(self.train, indices, stored, tokenizer, max_tokens=longest, skipped=self.skipped)
        if not len(train):
            raise UserError(f"no captions are left ({self.skipped.summary()})", fix="Raise data.max_tokens.")
        varied: CaptionedImages | VariedImages = train
        if data.shift or data.mirror:
            varied = VariedImages(train, shift=data.shift, mirror=data.mirror)
        epochs = PairDataLoader(
            varied, [len(train)], batch_tokens=options.batch_tokens, seed=options.seed, workers=start.workers
        )
        valid = [pair for pair in self.corpora.valid if indices[pair.source] not in stored.bad]
        if not valid:
            raise UserError("no image to validate with can be read")
        skipped = Skipped()
        encoded = CaptionedImages.encode(valid, indices, stored, tokenizer, max_tokens=longest, skipped=skipped)
        file = next(iter(data.valid), "the held-out part")
        fit = len(valid) - skipped.reasons["too long"]
        report_too_long("captions", len(valid), fit, longest, file, start.console)
        validator = ImageValidator(
            encoded,
            valid,
            indices,
            tokenizer,
            decoding=self.configuration.decoding,
            batch_tokens=options.batch_tokens,
            images=options.validate_sentences,
            language=data.languages[1],
        )
        fingerprints = {CAPTIONS: sha256(json.dumps(self.train)), IMAGES: identity}
        steps = []
        if options.self_critical:
            steps.append(SelfCriticalStep(self.configuration, CaptionReward(tokenizer, train.captions())))
        validation = valid, options.validate_sentences, "spread evenly", validator.decoding.model_dump(mode="json")
        validated_on = {VALIDATION: sha256(json.dumps(validation))}
        return TrainingData(epochs, validator, fingerprints, self.skipped, validated_on, steps)

    def _grids(self, model: Model) -> EncodePixels | None:
        """Return a function from pixels to the grids of a frozen network, in half precision to halve the store."""
        if not self.shape.image_encoder.frozen:
            return None
        image_encoder = _image_encoder(model)
        return lambda pixels: image_encoder.grids(pixels).astype(np.float16)

    def _read(self, start: Initialization, store: ImageStore, identity: str) -> StoredImages | None:
        """Open the stored images, or read them if the store is missing, damaged, or made from other images."""
        if start.checkpoint_fingerprints is not None:
            start.run.refuse_changes(start.checkpoint_fingerprints, {IMAGES: identity})

        def report(error: UserError) -> None:
            start.console.print(f"{error}", soft_wrap=True)

        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        on_bad = report if self.configuration.data.skip_bad else None
        with progress_bar(start.console, "reading the images", len(self.names)) as advance:
            store.build(self.names, self.files, identity=identity, on_images=advance, on_bad=on_bad)
        return store.open(identity)

    def _identity(self, model: Model) -> str:
        """Return a fingerprint of the stored content: the images, their size, and the network if it is frozen."""
        image_encoder = self.shape.image_encoder
        network, stride = "", 0
        if image_encoder.frozen:
            stride = image_encoder.stride
            digest = hashlib.sha256()
            for name, weight in _image_encoder(model).network.named_parameters():
                digest.update(name.encode())
                digest.update(weight.detach().cpu().numpy().data)
            network = digest.hexdigest()
        return sha256(json.dumps((self.names, self.files.digest(), image_encoder.size, stride, network)))


class ImageValidator(PairsValidator):
    """Measures a captioner on images, each with one caption or more."""

    corpus: CaptionedImages
    unit = "images"

    def __init__(
        self,
        corpus: CaptionedImages,
        pairs: Sequence[Pair],
        indices: Mapping[str, int],
        tokenizer: Tokenizer,
        *,
        decoding: DecodingOptions,
        batch_tokens: int,
        images: int,
        language: str | None = None,
    ) -> None:
        """Measure on images that are encoded already.

        Args:
            corpus: the encoded pairs, for the loss.
            pairs: image names and captions, for BLEU.
            indices: the index of each image in `corpus.images` by name.
            tokenizer: the tokenizer of the captions.
            decoding: the decoding options, for the maximum length of a caption.
            batch_tokens: the maximum number of tokens in a batch, padding included.
            images: the number of images to caption for BLEU.
            language: the language code of the captions, if it is known.
        """
        super().__init__(tokenizer, batch_tokens=batch_tokens)
        self.language = language
        self.corpus, self.indices = corpus, indices
        self.captions: dict[str, list[str]] = {}
        for pair in pairs:
            self.captions.setdefault(pair.source, []).append(pair.target)
        self.total = len(self.captions)
        self.decoding = decoding.model_copy(update={"beam": 1, "nbest": 1, "sample": False})
        self.choose(images)

    def choose(self, count: int) -> None:
        """Choose the images that are captioned: `count` of them, spread evenly."""
        names = list(self.captions)
        self.sources = [names[i] for i in evenly(self.total, count)]
        self.references = [self.captions[name] for name in self.sources]

    def greedy(self, model: SequenceModel, workers: Workers) -> list[list[int]]:
        """Caption this process's share of the images."""
        images = (self.corpus.images[self.indices[name]] for name in workers.share(self.sources))
        hypotheses = decode_images(model, images, self.decoding)
        return [best[0].tokens for best in hypotheses]


def _image_encoder(model: Model) -> ImageEncoder:
    image_encoder = getattr(model, "source_embedding", None)
    assert isinstance(image_encoder, ImageEncoder)
    return image_encoder


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
