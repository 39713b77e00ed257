"""The job of writing on: each line is a prompt; the line that comes of it is a text that goes on from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from translucid import __version__
from translucid.api.generation import Generated, Piece
from translucid.api.generator import Generator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.reading import digest
from translucid.jobs.job import Done
from translucid.jobs.windows import Window
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.runs.run_folder import RunFolder


@dataclass(frozen=True)
class GenerateJob:
    """Everything that decides what comes out for a prompt; it can be sent to another process."""

    run: Path
    options: DecodingOptions
    max_tokens: int | None = None
    device: str = "auto"
    form: Literal["text", "jsonl"] = "text"
    columns: int = 1
    """Texts of each prompt that are written."""
    considered: int = 0
    """Pieces that are told of at each step, in jsonl."""

    wrapped: ClassVar[bool] = False
    window: ClassVar[int] = 16

    def identity(self, device: str) -> dict[str, Any]:
        """Return what must be equal for two jobs to write the same, given the kind of device that each works on."""
        folder = RunFolder(self.run)
        return {
            "the version": __version__,
            "the model": folder.model_digest(),
            "the tokenizer": folder.tokenizer().fingerprint,
            "the configuration": digest(folder.config_file),
            "the device": device,
            "--format": self.form,
            "--max-tokens": self.max_tokens,
            "--top-candidates": self.considered,
            "the window": self.window,
            "the number of columns": self.columns,
            **self.options.model_dump(),
        }

    def on(self, device: str) -> GenerateJob:
        """Return the same on another device."""
        return replace(self, device=device)

    def worker(self, threads: int | None = None) -> GenerateWorker:
        """Load the run."""
        return GenerateWorker(self)


class GenerateWorker:
    """Goes on from one window of prompts after the other."""

    def __init__(self, job: GenerateJob) -> None:
        """Load the run folder.

        Raises:
            UserError: it is damaged, or its model is no language model.
        """
        same_sums_on_any_threads()
        self.job = job
        self.generator = Generator.load(job.run, job.device)
        self.device = self.generator.device.type

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Work on windows in this process, in order."""
        return map(self.work, windows)

    def work(self, window: Window) -> tuple[Window, Done]:
        """Go on from the lines of a window, also those that are not UTF-8; return it, and what came of it."""
        prompts = [line.decode("utf-8", errors="replace") for line in window.lines]
        bad = [(i, "not UTF-8") for i, line in enumerate(window.lines) if prompts[i].encode() != line]
        job, first = self.job, window.before.lines
        found = self.generator.stream(prompts, job.options, max_tokens=job.max_tokens, first=first)
        return window, Done("".join(f"{self._line(one)}\n" for one in found).encode(), bad=bad)

    def _line(self, found: Generated) -> str:
        job, best = self.job, found.nbest[0]
        if job.form == "text":
            return "\t".join(found.alternatives[: job.columns])
        record: dict[str, object] = {
            "prompt": found.prompt,
            "text": found.text,
            "log_probability": round(best.log_probability, 6),
            "ended": best.ended,
            "tokens": _rounded(best.written),
        }
        if job.considered:
            record["considered"] = [_rounded(step) for step in found.considered(job.considered)]
        if job.columns > 1:
            record["alternatives"] = found.alternatives
            record["log_probabilities"] = [round(one.log_probability, 6) for one in found.nbest]
        return json.dumps(record, ensure_ascii=False)


def _rounded(pieces: Iterable[Piece]) -> list[tuple[str, float]]:
    return [(piece.text, round(piece.log_probability, 6)) for piece in pieces]
