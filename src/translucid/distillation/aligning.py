"""The job of linking the words of the student's pairs, by statistics: lines of `0-0 1-2`, source word first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from bitext.pair import Pair
from translucid.data.readers.corpus import read_lines
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.inspection.statistical_alignment import statistical_links
from translucid.jobs.job import AnyJob, AnyWorker, Done, as_lines
from translucid.jobs.windows import Window
from translucid.kernels.devices import same_sums_on_any_threads

SHARED = 20_000
"""The number of pairs that every window learns links from as well, since the last window may be small."""


@dataclass(frozen=True)
class AlignmentJob(AnyJob):
    """All that determines the links of a file of pairs; it can be sent to another process.

    `run` is the file of pairs whose beginning all windows share.
    """

    window: ClassVar[int] = 50_000
    """The number of pairs that are linked together."""

    def worker(self, threads: int | None = None) -> AlignmentWorker:
        """Prepare to link words."""
        return AlignmentWorker(self.run)


class AlignmentWorker(AnyWorker):
    """Links the words of one window after the other."""

    device = "cpu"

    def __init__(self, shared: Path) -> None:
        """Read the pairs that all windows share."""
        same_sums_on_any_threads()
        self.shared = list(map(_pair, islice(read_lines(shared), SHARED)))

    def work(self, window: Window) -> tuple[Window, Done]:
        """Write the links between the words, separated by white space, of each line `source TAB target`."""
        pairs = [_pair(line.decode()) for line in window.lines]
        shared_pairs = [] if pairs[: len(self.shared)] == self.shared else self.shared
        links = statistical_links([*pairs, *shared_pairs], len(pairs))
        return window, Done(as_lines(to_pharaoh(sorted(pair_links.possible)) for pair_links in links))


def _pair(line: str) -> Pair:
    source, target = line.split("\t")
    return Pair(source, target)
