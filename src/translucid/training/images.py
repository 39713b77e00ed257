"""Images with captions made ready to be learned from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from translucid.data.filtering import Skipped
from translucid.data.images.image_files import ImageFiles
from translucid.data.readers.captioned import CaptionedImages, VariedImages
from translucid.data.readers.corpus import Pair
from translucid.data.stores.image_store import ImageStore, Look, StoredImages
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.models.captioner.image_encoder import ImageEncoder
from translucid.models.captioner_options import CaptioningShape
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.caption_reward import CaptionReward
from translucid.training.dataset import VALIDATION, Initialization, TrainingData, learn_vocabulary, sha256
from translucid.training.epochs import PairEpochs
from translucid.training.text import counted, tell_of_too_long
from translucid.training.validation import ImageValidator

CAPTIONS, IMAGES = "the training captions", "the set of images"
"""What their fingerprints are called in a checkpoint."""


class ImageDataset:
    """The corpora of a captioner: pairs of an image's name and a caption, and the images."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Find the images.

        Raises:
            UserError: a file or folder of images can't be read.
        """
        self.configuration, self.corpora = configuration, corpora
        data = configuration.data
        shape = configuration.model
        assert isinstance(shape, CaptioningShape)
        self.shape = shape
        self.files = ImageFiles.open([Path(name) for name in data.images or _beside(data.train)])
        self.skipped = Skipped()
        self.train = list(corpora.kept(data.filter, self.skipped))
        self.names = list(dict.fromkeys(pair.source for pair in chain(self.train, corpora.valid)))

    def learn(self, console: Console) -> Tokenizer:
        """See `Dataset`."""
        data, train = self.configuration.data, self.train
        if self.corpora.held_out:
            console.print(f"no validation files: {len(self.corpora.valid):,} training captions are held out")
        if not train:
            where = data.train[0] if data.train else None
            raise UserError(f"no captions are left ({self.skipped.summary()})", file=where)
        self.files.refuse_missing(self.names)
        with counting(console, "learning the vocabulary", None) as advance:
            # There are no words on the source's side.
            captions = (Pair("", pair.target) for pair in counted(train, advance))
            tokenizer, self.configuration = learn_vocabulary(captions, self.configuration, console)
            return tokenizer

    def lessons(self, at: Initialization) -> TrainingData:
        """See `Dataset`."""
        data, options, tokenizer = self.configuration.data, self.configuration.training, at.tokenizer
        image_encoder, identity = self.shape.image_encoder, self._identity(at.model)
        store = ImageStore(
            at.run.images_folder, image_encoder.size, _looking(_eye(at.model)) if image_encoder.frozen else None
        )
        stored = at.stored(lambda: self._read(at, store, identity), lambda: store.open(identity))
        places = {name: place for place, name in enumerate(self.names)}

        def captioned(pairs: list[Pair], skipped: Skipped) -> CaptionedImages:
            longest = self.configuration.longest
            return CaptionedImages.encode(pairs, places, stored, tokenizer, max_tokens=longest, skipped=skipped)

        train = captioned(self.train, self.skipped)
        if not len(train):
            raise UserError(f"no captions are left ({self.skipped.summary()})", fix="Raise data.max_tokens.")
        varied = VariedImages(train, shift=data.shift, mirror=data.mirror) if data.shift or data.mirror else train
        epochs = PairEpochs(
            varied, [len(train)], batch_tokens=options.batch_tokens, seed=options.seed, workers=at.workers
        )
        valid = [pair for pair in self.corpora.valid if places[pair.source] not in stored.bad]
        if not valid:
            raise UserError("no image to validate with can be read")
        measured, too_long = captioned(valid, skipped := Skipped()), skipped.reasons["too long"]
        file = next(iter(data.valid), "the held-out part")
        tell_of_too_long("captions", len(valid), len(valid) - too_long, self.configuration.longest, file, at.console)
        validator = ImageValidator(
            measured,
            valid,
            places,
            tokenizer,
            decoding=self.configuration.decoding,
            batch_tokens=options.batch_tokens,
            images=options.validate_sentences,
            language=data.languages[1],
        )
        fingerprints = {CAPTIONS: sha256(json.dumps(self.train)), IMAGES: identity}
        reward = CaptionReward(tokenizer, train.captions()) if options.self_critical else None
        valid_by = valid, options.validate_sentences, validator.decoding.model_dump(mode="json")
        validated_on = {VALIDATION: sha256(json.dumps(valid_by))}
        return TrainingData(epochs, validator, fingerprints, self.skipped, validated_on, reward)

    def _read(self, at: Initialization, store: ImageStore, identity: str) -> StoredImages | None:
        """Open the stored images; those that are damaged on disk, or others than those there, are read again."""
        if at.before is not None:
            at.run.refuse_changes(at.before, {IMAGES: identity})
        try:
            if stored := store.open(identity):
                return stored
        except UserError as error:
            at.console.print(f"{error}", soft_wrap=True)
        skip_bad = self.configuration.data.skip_bad
        with counting(at.console, "reading the images", len(self.names)) as advance:
            store.build(
                self.names,
                self.files,
                identity=identity,
                on_images=advance,
                on_bad=(lambda error: at.console.print(f"{error}", soft_wrap=True)) if skip_bad else None,
            )
        return store.open(identity)

    def _identity(self, model: Model) -> str:
        """Return what the stored images are made of: the images, their size, and the network if it is frozen."""
        image_encoder, network = self.shape.image_encoder, ""
        if image_encoder.frozen:
            digest = hashlib.sha256()
            for name, weight in _eye(model).network.named_parameters():
                digest.update(name.encode())
                digest.update(weight.detach().cpu().numpy().data)
            network = digest.hexdigest()
        parts = (
            self.names,
            self.files.digest(),
            image_encoder.size,
            image_encoder.stride if image_encoder.frozen else 0,
            network,
        )
        return sha256(json.dumps(parts))


def _eye(model: Model) -> ImageEncoder:
    image_encoder = getattr(model, "source_embedding", None)
    assert isinstance(image_encoder, ImageEncoder)
    return image_encoder


def _looking(image_encoder: ImageEncoder) -> Look:
    """Return what a frozen network makes of pixels, in half the memory."""
    return lambda pixels: image_encoder.grids(pixels).astype(np.float16)


def _beside(train: Sequence[str]) -> list[str]:
    """Return the folders that the captions are in, where their images are looked for."""
    return list(dict.fromkeys(str(Path(name).parent) for name in train))
