"""The job of back-translation: each line of a text becomes a sentence pair, its source written by a model.

Sennrich et al. 2016 (arXiv 1511.06709): a model of the opposite direction translates text of the target language, and
what comes out is the source of a synthetic pair. Its target is a text that a person wrote, so the decoder that learns
from it learns good language, however rough the source is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from translucid.data.filtering import fault
from translucid.data.readers.corpus import Pair
from translucid.jobs.job import Done, Job, Worker, is_utf8
from translucid.jobs.output import PartRecord
from translucid.jobs.windows import Window

_SPOILT = ("repeated", "too short")
"""Doubts about a translation with which it makes no pair."""


@dataclass(frozen=True)
class BackTranslationJob(Job):
    """Everything that decides which pairs come out for a text; it can be sent to another process."""

    def identity(self, device: str) -> dict[str, Any]:
        """See `Job`."""
        return {**super().identity(device), "--format": "synthetic pairs"}

    def worker(self, threads: int | None = None) -> PairWorker:
        """Load the run."""
        return PairWorker(self, threads)


class PairWorker(Worker):
    """Makes pairs of one window after the other."""

    def work(self, window: Window) -> tuple[Window, Done]:
        """Write `translation TAB line` for the lines of a window that make a pair; warnings say why others do not."""
        wanted = self.translator.configuration.data.filter
        bad = [(i, "not UTF-8, or with NUL bytes") for i, line in enumerate(window.lines) if not _readable(line)]
        left: dict[int, str] = {}
        lines: dict[int, str] = {}
        for i in sorted(set(range(len(window.lines))) - {i for i, _ in bad}):
            first = window.before.lines + i == 0
            lines[i] = _cell(window.lines[i].decode().removeprefix("\ufeff" if first else ""))
            if reason := fault(Pair(lines[i], lines[i]), wanted):
                left[i] = reason
                del lines[i]
        found = self.translator.stream(
            list(lines.values()), self.job.options, split=self.job.split_sentences, first=window.before.lines
        )
        written = []
        for (i, target), translation in zip(lines.items(), found, strict=True):
            pair = Pair(_cell(translation.text), target)
            if reason := fault(pair, wanted) or _spoilt(translation.warnings):
                left[i] = reason
            else:
                written.append("\t".join(pair) + "\n")
        return window, Done("".join(written).encode(), sorted(left.items()), bad)


def pairs_made(record: PartRecord) -> str:
    """Say how many pairs came of a text, and why lines were left out."""
    left = record.warned.lines + record.bad
    pairs = f"{record.place.lines - left:,} synthetic pairs"
    if not left:
        return pairs
    reasons = {kind: count for kind, (count, _) in record.warned.kinds.items()}
    if record.bad:
        reasons["unreadable"] = record.bad
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(reasons.items(), key=lambda item: -item[1]))
    return f"{pairs}; left out {left:,} of {record.place.lines:,} lines: {counts}"


def _readable(line: bytes) -> bool:
    return is_utf8(line) and b"\0" not in line


def _cell(text: str) -> str:
    """Return a text as it can stand between two tabs."""
    return text.replace("\t", " ").strip()


def _spoilt(doubts: Iterable[str]) -> str | None:
    kinds = (doubt.partition(":")[0] for doubt in doubts)
    return next((kind for kind in kinds if kind in _SPOILT), None)
