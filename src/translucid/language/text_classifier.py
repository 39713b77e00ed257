"""`TextClassifier.load(run).classify(text)`, and the scores of classifiers.

The scores are accuracy, F1, a confusion matrix and calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.api.loaded_model import LoadedModel
from translucid.api.translation import refuse_one_text
from translucid.data.batching import batches, padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.confidence import calibration_error
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.language.classifier import Classifier

WINDOW = 1024
"""The number of texts that are classified together; it bounds the memory of a long job."""
TOKENS = 16384
"""The number of tokens in a batch, padding included."""
LONGEST = 1024
"""The number of tokens of a text that are always read: a classifier that was trained on shorter texts is more accurate
if it reads more of long ones (docs/language-models.md)."""


@dataclass(frozen=True)
class Classified:
    """A text with the probabilities of its labels."""

    text: str
    probabilities: dict[str, float]
    """The probability of each label, in the order of the model."""

    @property
    def label(self) -> str:
        """The most probable label."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def probability(self) -> float:
        """The probability of the most probable label."""
        return self.probabilities[self.label]


class SingleClassifier(LoadedModel):
    """One classifier of an ensemble, with its tokenizer and settings."""

    model: Classifier
    reads = "texts with labels"

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts in the order that the model reads them."""
        longest, backwards = max(self.configuration.longest, LONGEST), self.model.options.language.backwards
        return text_ids(texts, self.tokenizer, max_tokens=longest, backwards=backwards)

    @torch.inference_mode()
    def probabilities(
        self, texts: Sequence[str], on_batch: Callable[[int], None] | None = None
    ) -> NDArray[np.floating]:
        """Return [texts, labels]; `on_batch` is called with the number of texts after each batch."""
        ids = self.ids(texts)
        probabilities = np.zeros((len(texts), len(self.model.options.labels)))
        lengths = list(map(len, ids))
        order = sorted(range(len(texts)), key=lambda index: -lengths[index])
        for rows in batches(order, lengths, TOKENS):
            source = padded(list(map(ids.__getitem__, rows)), SPECIAL.pad).to(self.device)
            # In float64 on the CPU: not every device has it.
            probabilities[rows] = self.model(source).cpu().double().softmax(-1).numpy()
            if on_batch:
                on_batch(len(rows))
        return probabilities


def text_ids(
    texts: Sequence[str], tokenizer: Tokenizer, *, max_tokens: int, backwards: bool = False
) -> list[list[int]]:
    """Encode texts in the form that a language model reads, between a start and an end token.

    A text with more than `max_tokens` keeps its last tokens, because texts tend to conclude at their end.

    Args:
        texts: the texts to encode.
        tokenizer: the tokenizer of the language model.
        max_tokens: the most tokens of a text, both special tokens included.
        backwards: whether to reverse the tokens of each text.
    """
    rows = []
    for ids in tokenizer.encode_target(list(texts)):
        last = ids[-(max_tokens - 2) :]
        if backwards:
            last.reverse()
        rows.append([SPECIAL.start, *last, SPECIAL.end])
    return rows


class TextClassifier:
    """A trained classifier, or several whose probabilities are averaged, such as one of each direction."""

    def __init__(self, members: Sequence[SingleClassifier]) -> None:
        """Use loaded classifiers; `TextClassifier.load` loads them."""
        self.members = list(members)
        self.labels = self.members[0].model.options.labels

    @classmethod
    def load(cls, run: str | Path, *more_runs: str | Path, device: str = "auto") -> TextClassifier:
        """Load run folders.

        Args:
            run: a run folder or name.
            more_runs: others, with the same labels.
            device: auto, cpu, cuda, cuda:1 or mps.

        Raises:
            UserError: this is no run, or a run is damaged, does not classify texts, or has other labels than the first.
        """
        members = [SingleClassifier.load(each, device) for each in (run, *more_runs)]
        for other, member in zip(more_runs, members[1:], strict=True):
            if member.model.options.labels != members[0].model.options.labels:
                raise UserError(f"has other labels than {run}", file=other, fix="Give runs with the same labels.")
        return cls(members)

    def classify(self, text: str) -> Classified:
        """Classify one text.

        Raises:
            TypeError: the argument is not a text.
        """
        if not isinstance(text, str):
            raise TypeError(f"one text is classified, not {type(text).__name__}: several go to `stream`")
        return next(self.stream([text]))

    def stream(self, texts: Iterable[str], on_done: Callable[[int], None] | None = None) -> Iterator[Classified]:
        """Classify any number of texts, in order, with memory that does not grow with their number.

        `on_done`: called with the number of texts after each batch.
        """
        refuse_one_text(texts)
        for window in batched(texts, WINDOW):
            # Each text is reported once, when the last classifier has read it.
            probabilities = [member.probabilities(window) for member in self.members[:-1]]
            probabilities.append(self.members[-1].probabilities(window, on_done))
            for text, row in zip(window, np.mean(probabilities, 0).tolist(), strict=True):
                yield Classified(text, dict(zip(self.labels, row, strict=True)))


class LabelScores(NamedTuple):
    """The scores of one label."""

    precision: float
    recall: float
    f1: float
    texts: int
    """The number of texts that have the label."""


class ClassifierScores(NamedTuple):
    """The scores of one test set."""

    accuracy: float
    macro_f1: float
    """The mean F1 of the labels."""
    calibration_error: float
    """The mean distance between confidence and accuracy (Guo et al. 2017, arXiv 1706.04599, equation 3)."""
    cross_entropy: float
    """The cross-entropy in nats per text."""
    confusion: list[list[int]]
    """The confusion matrix: the number of texts by true and predicted label."""
    labels: dict[str, LabelScores]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**self._asdict(), "labels": {name: scores._asdict() for name, scores in self.labels.items()}}


def classification_scores(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer], names: list[str]
) -> ClassifierScores:
    """Score probabilities [texts, labels] of texts with the labels `truth` [texts], indices into `names`."""
    predicted = probabilities.argmax(1)
    confusion = np.zeros((len(names),) * 2, np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    true_probabilities = probabilities[np.arange(len(truth)), truth]
    entropy = float(-np.log(np.maximum(true_probabilities, 1e-30)).mean())
    labels = {name: _label_scores(confusion, index) for index, name in enumerate(names)}
    error = calibration_error(probabilities.max(1), predicted == truth)
    accuracy = float((predicted == truth).mean())
    return ClassifierScores(accuracy, macro_f1(confusion), error, entropy, confusion.tolist(), labels)


def macro_f1(confusion: NDArray[np.integer]) -> float:
    """Return the mean over labels of F1 = 2 P R / (P + R), 0 without a hit; `confusion`: counts [true, predicted]."""
    return float(np.mean([_label_scores(confusion, label).f1 for label in range(len(confusion))]))


def _label_scores(confusion: NDArray[np.integer], label: int) -> LabelScores:
    hits, predicted, actual = confusion[label, label], confusion[:, label].sum(), confusion[label].sum()
    precision, recall = float(hits / max(predicted, 1)), float(hits / max(actual, 1))
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return LabelScores(precision, recall, f1, int(actual))
