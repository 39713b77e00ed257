"""`TextClassifier.load(run).classify(text)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.api.loaded_model import LoadedModel
from translucid.api.translation import refuse_one_text
from translucid.data.batching import batches, padded
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.language.classifier import Classifier
from translucid.language.labeled import text_ids

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
