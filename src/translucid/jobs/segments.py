"""The job of translating segments, each a text with tags in a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar

from bitext.documents.document import NearMatch, Segment, Target
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.protected_spans import PlaceholderSyntax, with_patterns
from translucid.api.segment_translator import SegmentTranslator
from translucid.jobs.job import Done, Job, Worker, as_lines
from translucid.jobs.windows import Window
from translucid.runs.run_folder import ALIGNMENT, CONFIDENCE


@dataclass(frozen=True)
class SegmentJob(Job):
    """All that determines the output for segments; it can be sent to another process."""

    near_matches: bool = False
    """Whether fuzzy matches of the memory are added to the segments."""

    window: ClassVar[int] = 256
    """The number of segments that are translated together, of which an interrupted job keeps a multiple."""

    def files_beside_run(self) -> dict[str, Any]:
        """Return the fingerprints of the results that every segment needs, too."""
        return {
            **super().files_beside_run(),
            "the confidence": self.fitted_fingerprint(CONFIDENCE),
            "the alignment layer": self.fitted_fingerprint(ALIGNMENT),
        }

    def worker(self, threads: int | None = None) -> SegmentWorker:
        """Load the run."""
        return SegmentWorker(self, threads)


class SegmentWorker(Worker):
    """Translates one window of segments after the other."""

    job: SegmentJob

    def work(self, window: Window) -> tuple[Window, Done]:
        """Translate lines that `marked_line` wrote to lines that `target_of` reads."""
        translator = SegmentTranslator(
            self.translator, self.job.options, self.recall, near_matches=self.job.near_matches
        )
        records = list(map(json.loads, window.lines))
        contexts = None
        if self.translator.context:
            contexts = [record["before"] for record in records]
        translated = translator.stream(map(_marked, records), before=contexts)
        lines, warnings = [], []
        for i, (record, target) in enumerate(zip(records, translated, strict=True)):
            # Some formats, such as XLIFF, limit the length of a translation.
            fitted = target.within(record["longest"])
            record_fields = {"marked": _record(fitted.marked), "origin": fitted.origin, "confidence": fitted.confidence}
            lines.append(json.dumps({**record_fields, "doubts": fitted.doubts, "matches": fitted.matches}))
            for doubt in fitted.doubts:
                warnings.append((i, doubt))
        return window, Done(as_lines(lines), warnings)


def marked_lines(segments: Iterable[Segment], before: Iterable[Sequence[str]] = repeat(())) -> bytes:
    """Return segments as lines of JSON, each with the texts `before` it in the document."""
    lines = []
    for segment, texts in zip(segments, before, strict=False):
        lines.append(json.dumps({**_record(segment.source), "longest": segment.longest, "before": texts}))
    return as_lines(lines)


def target_of(line: bytes) -> Target:
    """Read a line that a `SegmentWorker` wrote."""
    record = json.loads(line)
    marked, matches, doubts = record.pop("marked"), record.pop("matches"), record.pop("doubts")
    matches = tuple(NearMatch(*match) for match in matches)
    return Target(_marked(marked), **record, doubts=tuple(doubts), matches=matches)


def _record(marked: TaggedText) -> dict[str, Any]:
    marks = [(m.offset, m.raw, m.side.value, m.pair) for m in marked.marks]
    return {"text": marked.text, "marks": marks, "syntax": with_patterns(marked.syntax, ()).value}


def _marked(record: dict[str, Any]) -> TaggedText:
    marks = (Mark(position, raw, Side(side), pair) for position, raw, side, pair in record["marks"])
    return TaggedText(record["text"], tuple(marks), PlaceholderSyntax(record["syntax"]))
