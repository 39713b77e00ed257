"""The jobs of classifying texts and of generating them: each line of the input is a text or a prompt."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import ClassVar

from translucid.decoding.decoding_options import DecodingOptions
from translucid.jobs.job import Done, LineFunction, LineJob, as_lines, rounded_pairs
from translucid.jobs.windows import Window, decoded
from translucid.language.generator import Generated, Generator
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


@dataclass(frozen=True)
class GenerateJob(LineJob):
    """The job of continuing prompts."""

    options: DecodingOptions
    _: KW_ONLY
    max_tokens: int | None = None
    columns: int = 1
    """The number of texts that are written for each prompt."""
    top_candidates: int = 0
    """The number of most probable pieces of each step that jsonl has."""

    window: ClassVar[int] = 16

    def load(self, threads: int) -> LineFunction:
        """Load the language model."""
        generator = Generator.load(self.run, self.device)
        return LineFunction(generator.device.type, partial(self.work, generator))

    def work(self, generator: Generator, window: Window) -> Done:
        """Continue the lines of a window, also those that are not UTF-8."""
        prompts, bad = decoded(window.lines)
        first = window.before.lines
        texts = generator.stream(prompts, self.options, max_tokens=self.max_tokens, first=first)
        return Done(as_lines(map(self._line, texts)), bad=bad)

    def _line(self, generated: Generated) -> str:
        best = generated.nbest[0]
        if self.form == "text":
            return "\t".join(generated.alternatives[: self.columns])
        record: dict[str, object] = {
            "prompt": generated.prompt,
            "text": generated.text,
            "log_probability": round(best.log_probability, 6),
            "ended": best.ended,
            "tokens": rounded_pairs(best.written),
        }
        if self.top_candidates:
            record["considered"] = [rounded_pairs(step) for step in generated.considered(self.top_candidates)]
        if self.columns > 1:
            record["alternatives"] = generated.alternatives
            record["log_probabilities"] = [round(text.log_probability, 6) for text in generated.nbest]
        return json.dumps(record, ensure_ascii=False)
