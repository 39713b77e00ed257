"""The job of classifying: each line of the input is a text, each line of the output its label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import ClassVar

from translucid.api.text_classifier import WINDOW, Classified, TextClassifier
from translucid.jobs.job import AnyJob, AnyWorker, Done, as_lines, rounded_pairs
from translucid.jobs.windows import Window, decoded
from translucid.kernels.devices import same_sums_on_any_threads


@dataclass(frozen=True)
class ClassifyJob(AnyJob):
    """The job of classifying texts."""

    others: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with those of `run`."""

    window: ClassVar[int] = WINDOW

    def worker(self, threads: int | None = None) -> ClassifyWorker:
        """Load the runs."""
        return ClassifyWorker(self)


class ClassifyWorker(AnyWorker):
    """Classifies one window of texts after the other."""

    def __init__(self, job: ClassifyJob) -> None:
        """Load the run folders.

        Raises:
            UserError: a run is damaged, or does not classify texts.
        """
        # The output is the same, byte for byte, with any number of workers.
        same_sums_on_any_threads()
        self.job = job
        self.classifier = TextClassifier.load(job.run, *job.others, device=job.device)
        self.device = self.classifier.members[0].device.type

    def work(self, window: Window) -> tuple[Window, Done]:
        """Classify the lines of a window; a line that is blank or not UTF-8 has no label."""
        texts, bad = decoded(window.lines)
        unreadable = dict(bad)
        has_label = [bool(text.strip()) and i not in unreadable for i, text in enumerate(texts)]
        labels = self.classifier.stream(compress(texts, has_label))
        lines = []
        for text, labeled in zip(texts, has_label, strict=True):
            lines.append(self._line(next(labels)) if labeled else self._line_without_label(text))
        return window, Done(as_lines(lines), bad=bad)

    def _line(self, classified: Classified) -> str:
        if self.job.form == "text":
            return f"{classified.label}\t{classified.probability:.4f}"
        probabilities = dict(rounded_pairs(classified.probabilities.items()))
        record = {"text": classified.text, "label": classified.label, "probabilities": probabilities}
        return json.dumps(record, ensure_ascii=False)

    def _line_without_label(self, text: str) -> str:
        return "" if self.job.form == "text" else json.dumps({"text": text, "label": None}, ensure_ascii=False)
