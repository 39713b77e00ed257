"""The preparation of captioned images for the training of a captioner.

Self-critical training rewards a sampled caption by its similarity to captions of the same image that people wrote.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from pathlib import Path

import numpy as np

from bitext.pair import Pair
from translucid.captions.caption_scores import LONGEST, Cider, grams, papers_tokens
from translucid.captions.captioned import CaptionedImages, VariedImages
from translucid.captions.captioner import decode_images
from translucid.captions.image_encoder import ImageEncoder
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import EncodePixels, ImageStore, StoredImages
from translucid.captions.options import CaptioningShape
from translucid.captions.self_critical import Ids, SelfCriticalStep
from translucid.data.filtering import Skipped
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
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


PRECISION = 2.0
"""The weight of the n-gram precision."""


class CaptionReward:
    """r(c) = CIDEr-D(c) + w · precision(c), from 0 to 10 + w, over the words of the evaluation and the end token.

    The reward compares words, as the evaluation does, rather than tokens. Without the end token, a caption that stops
    after `in front of a` would lose nothing. CIDEr-D rewards rare words, and those that a model has learned for its
    training images are often wrong for other images. The precision rewards correct words.
    """

    def __init__(
        self, tokenizer: Tokenizer, references: Iterable[Sequence[Ids]], *, precision: float = PRECISION
    ) -> None:
        """Count the document frequencies of n-grams in the training captions.

        Args:
            tokenizer: the tokenizer of the captions.
            references: the captions of each training image.
            precision: w.
        """
        self.tokenizer, self.precision = tokenizer, precision
        self.cider = Cider(map(self.words_of_all, references))

    def __call__(self, captions: Sequence[Ids], references: Sequence[Ids]) -> list[float]:
        """Return the reward of each caption of an image, given the references of the image."""
        caption_words, reference_words = self.words_of_all(captions), self.words_of_all(references)
        scores = zip(
            self.cider(caption_words, reference_words), precisions(caption_words, reference_words), strict=True
        )
        return [cider + self.precision * precision for cider, precision in scores]

    def words_of_all(self, captions: Sequence[Ids]) -> list[list[str]]:
        """Return the words of each caption."""
        return list(map(self.words, captions))

    def words(self, ids: Ids) -> list[str]:
        """Return the words of a caption, and the end token if the caption has one."""
        words = papers_tokens(self.tokenizer.decode(ids))
        if ids and ids[-1] == SPECIAL.end:
            words.append(SPELLINGS.end)
        return words


def precisions(captions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> list[float]:
    """Return BP · (p_1 + p_2 + p_3 + p_4) / 4, from 0 to 1, for each caption of an image.

    p_n is the clipped n-gram precision and BP the brevity penalty of BLEU (Papineni et al. 2002). BLEU takes the
    geometric mean of p_n, which is 0 for most single captions, because their p_4 is.
    """
    # The union of counters takes the maximum count of each n-gram in any reference: the limit of clipping.
    limits = reduce(or_, map(grams, references))
    lengths = list(map(len, references))

    def precision(words: Sequence[str]) -> float:
        matches = [0] * LONGEST
        for gram, count in (grams(words) & limits).items():
            matches[len(gram) - 1] += count
        # A caption has len(words) - n + 1 n-grams.
        shares = (hits / max(len(words) - n + 1, 1) for n, hits in enumerate(matches, 1))
        reference_length = min(lengths, key=lambda length: (abs(length - len(words)), length))
        return min(1.0, math.exp(1 - reference_length / max(len(words), 1))) * sum(shares) / LONGEST

    return list(map(precision, captions))
