"""The job of classifying: each line of the input is a text, each line of the output its label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import ClassVar

from translucid.jobs.job import Done, LineFunction, LineJob, as_lines, rounded_pairs
from translucid.jobs.windows import Window, decoded
from translucid.language.text_classifier import WINDOW, Classified, TextClassifier


@dataclass(frozen=True)
class ClassifyJob(LineJob):
    """The job of classifying texts."""

    others: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with those of `run`."""

    window: ClassVar[int] = WINDOW

    def load(self, threads: int) -> LineFunction:
        """Load the classifier."""
        classifier = TextClassifier.load(self.run, *self.others, device=self.device)
        return LineFunction(classifier.members[0].device.type, partial(self.work, classifier))

    def work(self, classifier: TextClassifier, window: Window) -> Done:
        """Classify the lines of a window; a line that is blank or not UTF-8 has no label."""
        texts, bad = decoded(window.lines)
        unreadable = dict(bad)
        has_label = [bool(text.strip()) and i not in unreadable for i, text in enumerate(texts)]
        labels = classifier.stream(compress(texts, has_label))
        lines = []
        for text, labeled in zip(texts, has_label, strict=True):
            lines.append(self._line(next(labels)) if labeled else self._line_without_label(text))
        return Done(as_lines(lines), bad=bad)

    def _line(self, classified: Classified) -> str:
        if self.form == "text":
            return f"{classified.label}\t{classified.probability:.4f}"
        probabilities = dict(rounded_pairs(classified.probabilities.items()))
        record = {"text": classified.text, "label": classified.label, "probabilities": probabilities}
        return json.dumps(record, ensure_ascii=False)

    def _line_without_label(self, text: str) -> str:
        return "" if self.form == "text" else json.dumps({"text": text, "label": None}, ensure_ascii=False)
