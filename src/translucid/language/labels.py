"""Texts with labels: as token ids in memory, and their preparation for the training and validation of a classifier."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from bitext.pair import Pair
from translucid.data.batching import Batch, bucketed_batches, padded_rows
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import sources_of
from translucid.data.readers.texts import keep_texts
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.language.classifier import Classifier
from translucid.language.options import ClassifierOptions
from translucid.language.text_classifier import macro_f1, text_ids
from translucid.models.protocol import Model
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
from translucid.training.objective import Loss
from translucid.training.validation import Validation, Validator

TEXTS = "the training texts"
"""The name of their fingerprint in a checkpoint."""


class LabeledDataset:
    """The corpora of a classifier."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Read the texts; if the configuration names no labels, they are those of the training texts.

        Raises:
            UserError: a text has no label or an unknown one, or there is only one label.
        """
        self.corpora, self.skipped = corpora, Skipped()
        self.train = list(keep_texts(chain.from_iterable(corpora.train), self.skipped))
        assert isinstance(configuration.model, ClassifierOptions)
        self._training_labels = {text.target for text in self.train}
        labels = configuration.model.labels or sorted(self._training_labels)
        file = next(iter(configuration.data.train), None)
        _refuse_unknown_labels(self.train, labels, file)
        # Without validation files, the validation texts are held out from the training files.
        _refuse_unknown_labels(corpora.valid, labels, next(iter(configuration.data.valid), file))
        if not labels:
            raise UserError(f"no texts are left ({self.skipped.summary()})", file=file, fix="Check the file.")
        if len(labels) < 2:
            raise UserError(f"all texts have the label {labels[0]!r}", file=file, fix="Give texts of two kinds.")
        model = configuration.model.model_copy(update={"labels": labels})
        self.configuration, self.model = configuration.model_copy(update={"model": model}), model

    def _warn_of_labels(self, console: Console) -> None:
        for first, other in _similar_labels(self.model.labels):
            console.print(f"warning: the labels {first!r} and {other!r} differ in case or spaces alone", soft_wrap=True)
        for label in sorted(set(self.model.labels) - self._training_labels):
            console.print(f"warning: no text to train on has the label {label!r}", soft_wrap=True)

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the training texts."""
        report_held_out(self.corpora, "texts", console)
        texts = (Pair("", text.source) for text in self.train)
        tokenizer, self.configuration = learn_vocabulary(texts, self.configuration, console)
        return tokenizer

    def training_data(self, start: Initialization) -> TrainingData:
        """Encode the texts, which are few enough for the memory."""
        options = self.configuration.training
        self._warn_of_labels(start.console)

        def encoded(texts: Sequence[Pair]) -> LabeledTexts:
            longest, backwards = self.configuration.longest, self.model.language.backwards
            return LabeledTexts.encode(
                texts, self.model.labels, start.tokenizer, max_tokens=longest, backwards=backwards
            )

        train = encoded(self.train)
        epochs = PairDataLoader(
            train, [len(train)], batch_tokens=options.batch_tokens, seed=options.seed, workers=start.workers
        )
        validator = LabelValidator(encoded(self.corpora.valid), start.tokenizer, batch_tokens=options.batch_tokens)
        validated_on = {VALIDATION: sha256(json.dumps(self.corpora.valid))}
        return TrainingData(epochs, validator, {TEXTS: sha256(json.dumps(self.train))}, self.skipped, validated_on)


def _refuse_unknown_labels(texts: Sequence[Pair], labels: Sequence[str], file: str | None) -> None:
    """Check that each text has one of the labels."""
    for text in texts:
        if not text.target:
            raise UserError(f"no label: {text.source[:60]!r}", file=file, fix="Each text needs one.")
        if text.target not in labels:
            label_names = ", ".join(map(repr, labels))[:100]
            what = f"the label {text.target!r} is not among those to train on, {label_names}: {text.source[:60]!r}"
            raise UserError(what, file=file, fix="Each text needs one of them.")


def _similar_labels(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of labels that differ only in case and spaces."""
    first_with: dict[str, str] = {}
    pairs = []
    for label in labels:
        first = first_with.setdefault("".join(label.split()).casefold(), label)
        if first != label:
            pairs.append((first, label))
    return pairs


class LabelValidator(Validator):
    """Measures a classifier on labeled texts."""

    def __init__(self, texts: LabeledTexts, tokenizer: Tokenizer, *, batch_tokens: int) -> None:
        """Measure on texts, in batches of at most `batch_tokens` tokens, padding included."""
        self.texts, self.tokenizer, self.batch_tokens = texts, tokenizer, batch_tokens

    @torch.inference_mode()
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return cross-entropy, accuracy and macro F1; the score is the accuracy."""
        workers = workers or Workers()
        assert isinstance(model, Classifier)
        lengths = self.texts.lengths_of(np.arange(len(self.texts)))
        plan = bucketed_batches(*lengths, batch_tokens=self.batch_tokens, seed=0, epoch=0)
        entropy = 0.0
        pairs: list[tuple[int, int]] = []  # the correct and the predicted label of each text
        for rows in workers.share(plan):
            batch = self.texts.batch(rows).to(device)
            logits: Tensor = model(batch.source).float()
            entropy += F.cross_entropy(logits, batch.labels[:, 0], reduction="sum").item()
            pairs += zip(batch.labels[:, 0].tolist(), logits.argmax(-1).tolist(), strict=True)
        (entropy,) = workers.sum(entropy)
        confusion = np.zeros((len(model.options.labels),) * 2, np.int64)
        for correct, predicted in chain.from_iterable(workers.gather(pairs)):
            confusion[correct, predicted] += 1
        mean, accuracy = entropy / len(self.texts), float(np.trace(confusion) / confusion.sum())
        measures = {"label_accuracy": accuracy, "f1": macro_f1(confusion)}
        return Validation(mean, math.exp(min(mean, 700)), accuracy, measures, accuracy, [])

    def describe(self, score: float) -> str:
        """Return the accuracy in words."""
        return f"accuracy {100 * score:.2f} %"


class LabelLoss:
    """The label-smoothed cross-entropy of a batch of texts; one text counts as one token."""

    def __init__(self, model: Classifier) -> None:
        self.model = model

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch."""
        logits, labels = self.model(batch.source).float(), batch.labels[:, 0]
        loss = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
        cross_entropy = loss.detach()
        with torch.no_grad():
            if smoothing:
                cross_entropy = F.cross_entropy(logits, labels, reduction="sum")
            correct = (logits.argmax(-1) == labels).sum()
        return Loss(loss, cross_entropy, correct, len(labels))


@dataclass(frozen=True, eq=False)
class LabeledTexts:
    """Texts with labels. Text `i` is `ids[offsets[i] : offsets[i + 1]]`, start and end token included."""

    ids: NDArray[np.int32]
    """The ids of all texts, one after the other, in the direction in which the model reads."""
    offsets: NDArray[np.int64]
    """The offset of each text in `ids`, [texts + 1]."""
    labels: NDArray[np.int64]
    """The index of each text's label in the list of labels, [texts]."""

    @classmethod
    def encode(
        cls,
        texts: Sequence[Pair],
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        backwards: bool = False,
    ) -> LabeledTexts:
        """Encode texts with `text_ids`, and their labels, which must be among `labels`."""
        encoded = text_ids(sources_of(texts), tokenizer, max_tokens=max_tokens, backwards=backwards)
        ids = np.fromiter(chain.from_iterable(encoded), np.int32)
        offsets = np.cumsum([0, *map(len, encoded)])
        label_indices = {label: index for index, label in enumerate(labels)}
        return cls(ids, offsets, np.array([label_indices[text.target] for text in texts], np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the texts `rows` [n] and of their labels, which are 1."""
        return self.offsets[rows + 1] - self.offsets[rows], np.ones(len(rows), np.int64)

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of labels of the texts `rows` [n]."""
        return len(rows)

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the texts `rows` [B] into one batch, whose labels are indices in the list of labels [B, 1]."""
        indices = np.asarray(rows, np.int64)
        source, _ = padded_rows(self.ids, self.offsets[indices], self.offsets[indices + 1])
        labels = torch.from_numpy(self.labels[indices])[:, None]
        return Batch(torch.from_numpy(source), labels[:, :0], labels)
