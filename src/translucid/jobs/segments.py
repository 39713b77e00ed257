"""The job of translating segments, each a text with marks in a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from translucid.api.segment_translator import SegmentTranslator
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.document import NearMatch, Segment, Target
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.engines.alignment_file import alignment_mark
from translucid.engines.confidence_file import confidence_mark
from translucid.jobs.job import Done, Job, Worker
from translucid.jobs.windows import Window

SEGMENTS = 256
"""That are translated together; what is kept of an interrupted job is a multiple of it."""


@dataclass(frozen=True)
class SegmentJob(Job):
    """Everything that decides what comes out for segments; it can be sent to another process."""

    near_matches: bool = False
    """Whether those of the memory are looked for."""

    def identity(self, device: str) -> dict[str, Any]:
        """See `Job`."""
        kind = "segments with near matches" if self.near_matches else "segments"
        own = {"--format": kind, "the confidence": confidence_mark(self.run)}
        own["the alignment layer"] = alignment_mark(self.run)
        return {**super().identity(device), **own}

    @property
    def window(self) -> int:
        """See `AnyJob`."""
        return SEGMENTS

    def worker(self, threads: int | None = None) -> SegmentWorker:
        """Load the run."""
        return SegmentWorker(self, threads)


class SegmentWorker(Worker):
    """Translates one window of segments after the other."""

    job: SegmentJob

    def work(self, window: Window) -> tuple[Window, Done]:
        """Translate lines that `marked_line` wrote to lines that `target_of` reads."""
        segments = SegmentTranslator(self.translator, self.job.options, self.recall, near_matches=self.job.near_matches)
        records = list(map(json.loads, window.lines))
        translated = segments.stream(map(_marked, records))
        found = [target.within(record["longest"]) for record, target in zip(records, translated, strict=True)]
        warnings = [(i, doubt) for i, target in enumerate(found) for doubt in target.doubts]
        return window, Done("".join(map(_target_line, found)).encode(), warnings)


def marked_lines(segments: Iterable[Segment]) -> bytes:
    """Return segments as lines of JSON."""
    return "".join(json.dumps({**_record(one.source), "longest": one.longest}) + "\n" for one in segments).encode()


def target_of(line: bytes) -> Target:
    """Read a line that a `SegmentWorker` wrote."""
    record = json.loads(line)
    matches = tuple(NearMatch(*match) for match in record.pop("matches"))
    return Target(_marked(record.pop("marked")), **{**record, "doubts": tuple(record["doubts"])}, matches=matches)


def _target_line(target: Target) -> str:
    told = {"origin": target.origin, "confidence": target.confidence, "doubts": target.doubts}
    return json.dumps({"marked": _record(target.marked), **told, "matches": target.matches}) + "\n"


def _record(marked: TaggedText) -> dict[str, Any]:
    marks = [(m.at, m.raw, m.side.value, m.pair) for m in marked.marks]
    return {"text": marked.text, "marks": marks, "syntax": marked.syntax.value}


def _marked(record: dict[str, Any]) -> TaggedText:
    marks = (Mark(at, raw, Side(side), pair) for at, raw, side, pair in record["marks"])
    return TaggedText(record["text"], tuple(marks), PlaceholderSyntax(record["syntax"]))
