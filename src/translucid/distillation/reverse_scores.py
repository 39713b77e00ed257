"""The job of the reverse run: the cross-entropy of a source given its translation.

    -log p(x | y) / |x|

|x| is the number of source tokens, end token included. A translation that has lost a part of its source, or belongs to
another one, makes the source improbable (Junczys-Dowmunt 2018, W18-6478, section 3, one direction of it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bitext.pair import Pair
from translucid.decoding.pair_scores import score_pairs
from translucid.engines.noisy_channel import ReverseModel
from translucid.jobs.job import AnyJob, AnyWorker, Done, as_lines
from translucid.jobs.windows import Window
from translucid.kernels.devices import same_sums_on_any_threads
from translucid.runs.configuration import Configuration


@dataclass(frozen=True)
class ReverseScoreJob(AnyJob):
    """All that determines the scores; it can be sent to another process."""

    forward: Configuration | None = None
    """The configuration of the run that translates forwards."""
    window: ClassVar[int] = 4096

    def worker(self, threads: int | None = None) -> ReverseScoreWorker:
        """Load the run."""
        return ReverseScoreWorker(self)


class ReverseScoreWorker(AnyWorker):
    """Scores one window after the other."""

    def __init__(self, job: ReverseScoreJob) -> None:
        """Load the run.

        Raises:
            UserError: the run is damaged, or translates in the direction of the other one.
        """
        same_sums_on_any_threads()
        assert job.forward
        self.reverse = ReverseModel.load(job.run, job.forward, job.device)
        self.device = self.reverse.device.type

    def work(self, window: Window) -> tuple[Window, Done]:
        """Write the cross-entropy of each line `source TAB target`; `inf` if the model can't read it."""
        pairs = []
        for line in window.lines:
            source, target = line.decode().split("\t")
            pairs.append(Pair(target, source))
        lines = []
        for score in score_pairs(self.reverse.model, self.reverse.pipeline, pairs, self.reverse.device):
            if isinstance(score, str):  # the reason why there is none
                lines.append("inf")
            else:
                lines.append(f"{-score.log_probability / len(score.tokens):.6f}")
        return window, Done(as_lines(lines))
