"""The job of classifying: each line is a text; the line that comes of it is its label."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from translucid import __version__
from translucid.api.text_classifier import WINDOW, Classified, TextClassifier
from translucid.ground.reading import digest
from translucid.jobs.job import Done, is_utf8
from translucid.jobs.windows import Window
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.runs.run_folder import RunFolder


@dataclass(frozen=True)
class ClassifyJob:
    """Everything that decides what comes out for a text; it can be sent to another process."""

    run: Path
    others: tuple[Path, ...] = ()
    """Runs whose probabilities are averaged with those of `run`."""
    device: str = "auto"
    form: Literal["text", "jsonl"] = "text"

    wrapped: ClassVar[bool] = False
    window: ClassVar[int] = WINDOW

    def identity(self, device: str) -> dict[str, Any]:
        """Return what must be equal for two jobs to write the same, given the kind of device that each works on."""
        folders = [RunFolder(run) for run in (self.run, *self.others)]
        return {
            "the version": __version__,
            "the models": [folder.model_digest() for folder in folders],
            "the tokenizers": [folder.tokenizer().fingerprint for folder in folders],
            "the configurations": [digest(folder.config_file) for folder in folders],
            "the device": device,
            "--format": self.form,
            "the window": self.window,
        }

    def on(self, device: str) -> ClassifyJob:
        """Return the same on another device."""
        return replace(self, device=device)

    def worker(self, threads: int | None = None) -> ClassifyWorker:
        """Load the runs."""
        return ClassifyWorker(self)


class ClassifyWorker:
    """Classifies one window of texts after the other."""

    def __init__(self, job: ClassifyJob) -> None:
        """Load the run folders.

        Raises:
            UserError: one is damaged, or does not classify texts.
        """
        same_sums_on_any_threads()
        self.job = job
        self.classifier = TextClassifier.load(job.run, *job.others, device=job.device)
        self.device = self.classifier.judges[0].device.type

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Work on windows in this process, in order."""
        return map(self.work, windows)

    def work(self, window: Window) -> tuple[Window, Done]:
        """Classify the lines of a window; one that is blank or not UTF-8 has no label."""
        texts = [line.decode("utf-8", errors="replace") for line in window.lines]
        bad = [(i, "not UTF-8") for i, line in enumerate(window.lines) if not is_utf8(line)]
        unread = {i for i, _ in bad}
        good = [i for i, text in enumerate(texts) if text.strip() and i not in unread]
        found = dict(zip(good, self.classifier.stream(texts[i] for i in good), strict=True))
        lines = (self._line(text, found.get(i)) for i, text in enumerate(texts))
        return window, Done("".join(f"{line}\n" for line in lines).encode(), bad=bad)

    def _line(self, text: str, found: Classified | None) -> str:
        if self.job.form == "text":
            return f"{found.label}\t{found.probability:.4f}" if found else ""
        record: dict[str, object] = {"text": text, "label": found.label if found else None}
        if found:
            record["probabilities"] = {name: round(value, 6) for name, value in found.probabilities.items()}
        return json.dumps(record, ensure_ascii=False)
