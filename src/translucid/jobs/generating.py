"""The job of generating texts: each line of the input is a prompt, each line of the output continues it."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from translucid.api.generator import Generated, Generator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.jobs.job import AnyJob, AnyWorker, Done, as_lines, rounded_pairs
from translucid.jobs.windows import Window, decoded
from translucid.kernels.devices import same_sums_on_any_threads


@dataclass(frozen=True)
class GenerateJob(AnyJob):
    """The job of continuing prompts."""

    options: DecodingOptions
    _: KW_ONLY
    max_tokens: int | None = None
    columns: int = 1
    """The number of texts that are written for each prompt."""
    top_candidates: int = 0
    """The number of most probable pieces of each step that jsonl has."""

    window: ClassVar[int] = 16

    def worker(self, threads: int | None = None) -> GenerateWorker:
        """Load the run."""
        return GenerateWorker(self)


class GenerateWorker(AnyWorker):
    """Continues one window of prompts after the other."""

    def __init__(self, job: GenerateJob) -> None:
        """Load the run folder.

        Raises:
            UserError: the run is damaged, or its model is no language model.
        """
        # The output is the same, byte for byte, with any number of workers.
        same_sums_on_any_threads()
        self.job = job
        self.generator = Generator.load(job.run, job.device)
        self.device = self.generator.device.type

    def work(self, window: Window) -> tuple[Window, Done]:
        """Continue the lines of a window, also those that are not UTF-8."""
        prompts, bad = decoded(window.lines)
        job, first = self.job, window.before.lines
        texts = self.generator.stream(prompts, job.options, max_tokens=job.max_tokens, first=first)
        return window, Done(as_lines(map(self._line, texts)), bad=bad)

    def _line(self, generated: Generated) -> str:
        job, best = self.job, generated.nbest[0]
        if job.form == "text":
            return "\t".join(generated.alternatives[: job.columns])
        record: dict[str, object] = {
            "prompt": generated.prompt,
            "text": generated.text,
            "log_probability": round(best.log_probability, 6),
            "ended": best.ended,
            "tokens": rounded_pairs(best.written),
        }
        if job.top_candidates:
            record["considered"] = [rounded_pairs(step) for step in generated.considered(job.top_candidates)]
        if job.columns > 1:
            record["alternatives"] = generated.alternatives
            record["log_probabilities"] = [round(text.log_probability, 6) for text in generated.nbest]
        return json.dumps(record, ensure_ascii=False)
