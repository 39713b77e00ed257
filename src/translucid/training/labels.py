"""Texts with labels made ready to be learned from by a classifier."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from translucid.data.batching import plan_epoch
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import Pair
from translucid.data.readers.labelled import LabelledTexts
from translucid.data.readers.texts import keep_texts
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.classification import macro_f1
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.models.classifier import Classifier
from translucid.models.classifier_options import ClassifierOptions
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import VALIDATION, Initialization, TrainingData, learn_vocabulary, sha256
from translucid.training.epochs import PairEpochs
from translucid.training.text import counted
from translucid.training.validation import Validation, Validator
from translucid.training.workers import Workers

TEXTS = "the training texts"
"""What their fingerprint is called in a checkpoint."""


class LabelledDataset:
    """The corpora of a classifier."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Read the texts; the labels are those to train on if the configuration names none.

        Raises:
            UserError: a text has no label, or one that is not among them, or there is one only.
        """
        self.corpora, self.skipped = corpora, Skipped()
        self.train = list(keep_texts(chain.from_iterable(corpora.train), self.skipped))
        assert isinstance(configuration.model, ClassifierOptions)
        labels = configuration.model.labels or sorted({text.target for text in self.train})
        where, validation = (next(iter(files), None) for files in (configuration.data.train, configuration.data.valid))
        for file, texts in ((where, self.train), (validation or where, corpora.valid)):
            _refuse_strange_labels(texts, labels, file)
        if not labels:
            raise UserError(f"no texts are left ({self.skipped.summary()})", file=where, fix="Check the file.")
        if len(labels) < 2:
            raise UserError(f"all texts have the label {labels[0]!r}", file=where, fix="Give texts of two kinds.")
        model = configuration.model.model_copy(update={"labels": labels})
        self.configuration, self.model = configuration.model_copy(update={"model": model}), model

    def _warn_of_labels(self, console: Console) -> None:
        for one, other in _alike(self.model.labels):
            console.print(f"warning: the labels {one!r} and {other!r} differ in case or spaces alone", soft_wrap=True)
        for label in sorted(set(self.model.labels) - {text.target for text in self.train}):
            console.print(f"warning: no text to train on has the label {label!r}", soft_wrap=True)

    def learn(self, console: Console) -> Tokenizer:
        """See `Dataset`."""
        if self.corpora.held_out:
            console.print(f"no validation files: {len(self.corpora.valid):,} training texts are held out")
        with counting(console, "learning the vocabulary", None) as advance:
            texts = (Pair("", text.source) for text in counted(self.train, advance))
            tokenizer, self.configuration = learn_vocabulary(texts, self.configuration, console)
            return tokenizer

    def lessons(self, at: Initialization) -> TrainingData:
        """See `Dataset`."""
        options = self.configuration.training
        self._warn_of_labels(at.console)

        def encoded(texts: Sequence[Pair]) -> LabelledTexts:
            longest, backwards = self.configuration.longest, self.model.language.backwards
            return LabelledTexts.encode(texts, self.model.labels, at.tokenizer, max_tokens=longest, backwards=backwards)

        train = encoded(self.train)
        epochs = PairEpochs(
            train, [len(train)], batch_tokens=options.batch_tokens, seed=options.seed, workers=at.workers
        )
        validator = LabelValidator(encoded(self.corpora.valid), at.tokenizer, batch_tokens=options.batch_tokens)
        validated_on = {VALIDATION: sha256(json.dumps(self.corpora.valid))}
        return TrainingData(epochs, validator, {TEXTS: sha256(json.dumps(self.train))}, self.skipped, validated_on)


def _refuse_strange_labels(texts: Sequence[Pair], labels: Sequence[str], file: str | None) -> None:
    for text in texts:
        if not text.target:
            raise UserError(f"no label: {text.source[:60]!r}", file=file, fix="Each text needs one.")
        if text.target not in labels:
            known = ", ".join(map(repr, labels))[:100]
            what = f"the label {text.target!r} is not among those to train on, {known}: {text.source[:60]!r}"
            raise UserError(what, file=file, fix="Each text needs one of them.")


def _alike(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return labels that differ in nothing but case and spaces, each with the one before it."""
    first: dict[str, str] = {}
    alike = []
    for label in labels:
        before = first.setdefault("".join(label.split()).casefold(), label)
        if before != label:
            alike.append((before, label))
    return alike


class LabelValidator(Validator):
    """Measures a classifier on texts with labels."""

    def __init__(self, texts: LabelledTexts, tokenizer: Tokenizer, *, batch_tokens: int) -> None:
        """`batch_tokens`: see `plan_epoch`."""
        self.texts, self.tokenizer, self.batch_tokens = texts, tokenizer, batch_tokens

    @torch.inference_mode()
    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """See `Validator`."""
        workers = workers or Workers()
        assert isinstance(model, Classifier)
        plan = plan_epoch(
            *self.texts.lengths_of(np.arange(len(self.texts))), batch_tokens=self.batch_tokens, seed=0, epoch=0
        )
        entropy, pairs = 0.0, []
        for rows in workers.share(plan):
            batch = self.texts.batch(rows).to(device)
            logits: Tensor = model(batch.source).float()
            entropy += F.cross_entropy(logits, batch.labels[:, 0], reduction="sum").item()
            pairs += [*zip(batch.labels[:, 0].tolist(), logits.argmax(-1).tolist(), strict=True)]
        (entropy,) = workers.sum(entropy)
        confusion = np.zeros((len(model.options.labels),) * 2, np.int64)
        for label, found in chain.from_iterable(workers.gather(pairs)):
            confusion[label, found] += 1
        mean, accuracy = entropy / len(self.texts), float(np.trace(confusion) / confusion.sum())
        measures = {"label_accuracy": accuracy, "f1": macro_f1(confusion)}
        return Validation(mean, math.exp(min(mean, 700)), accuracy, measures, accuracy, [])

    def told(self, score: float) -> str:
        """See `Validator`."""
        return f"accuracy {100 * score:.2f} %"
