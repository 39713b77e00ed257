"""The filter of distilled pairs: by rules, and by the score of a reverse run; each removal is counted by its reason.

The score is the cross-entropy of a source given its translation,

    -log p(x | y) / |x|

|x| is the number of source tokens, end token included. A translation that has lost a part of its source, or belongs to
another one, makes the source improbable (Junczys-Dowmunt 2018, W18-6478, section 3, one direction of it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.data.cleaning.cleaner import Cleaner
from translucid.data.cleaning.rules import SAMPLE, Profile
from translucid.data.filtering import Skipped, reservoir_sample
from translucid.data.readers.corpus import PlacedPair, read_lines
from translucid.decoding.pair_scores import score_pairs
from translucid.distillation.stages import Results
from translucid.engines.noisy_channel import ReverseModel
from translucid.evaluation.quality_checks import repetition_in
from translucid.ground.atomic import output
from translucid.jobs.job import Done, LineFunction, LineJob, as_lines
from translucid.jobs.windows import Window
from translucid.runs.configuration import Configuration

PAIRS, TEXT = "pairs", "text"
"""The two kinds of sentences to translate: the sources of pairs, and text of one language."""
DISTILLED, REFERENCE = "distilled", "reference"
"""The two kinds of pairs of a source: with the hypothesis of the teacher, and with the reference."""
UNITS = {PAIRS: "pair", TEXT: "sentence", DISTILLED: "distilled pair", REFERENCE: "reference pair"}
"""The name of one of each kind."""
REPETITION, SCORE = "repetition", "reverse-score"
"""The reasons that `data.cleaning` does not know."""
EXCLUDED_RULES = ("near-duplicate",)
"""The rule that is not applied: pairs that differ only in punctuation teach a student punctuation."""


Counts: TypeAlias = dict[str, Skipped]
"""The numbers of pairs or sentences that were kept and skipped, by kind."""


def as_json(counts: Counts) -> Results:
    """Return the numbers as plain values."""
    by_kind = {}
    for kind, skipped in counts.items():
        by_kind[kind] = {"kept": skipped.kept, "removed": dict(skipped.reasons.most_common())}
    return by_kind


def summary_of(counts: Results) -> str:
    """Return the numbers of `as_json` as a line, without those of kinds that there are none of."""
    parts = []
    for kind, numbers in counts.items():
        reasons = numbers["left out"] if "left out" in numbers else numbers["removed"]  # of older versions
        skipped = Skipped(UNITS[kind], numbers["kept"], Counter(reasons))
        if skipped.kept or skipped.reasons:
            parts.append(skipped.summary())
    return "; ".join(parts)


def filter_by_rules(
    decoded: Path,
    files: dict[str, Path],
    languages: Languages,
    *,
    references: bool,
    advance: Callable[[int], None],
) -> Counts:
    """Divide decoded lines into distilled pairs and references, and write those that pass the rules.

    Args:
        decoded: lines `source TAB hypothesis TAB reference`, in which references may be empty.
        files: the file to write of each kind; that of references stays empty without them.
        languages: the codes of the languages, if they are known.
        references: whether to include references.
        advance: called with 1 for each pair.
    """
    cleaner = Cleaner(_profile(decoded, languages), EXCLUDED_RULES)
    cleaner.rules[REPETITION] = lambda pair: repetition_in(*pair) or ""
    counts = {DISTILLED: Skipped(), REFERENCE: Skipped()}
    with output(files[DISTILLED]) as distilled, output(files[REFERENCE]) as kept_references:
        streams = {DISTILLED: distilled, REFERENCE: kept_references}
        for judged in cleaner.judge(candidates(decoded, references=references)):
            kind = judged.file
            if judged.rule:
                counts[kind].reasons[judged.rule] += 1
            else:
                counts[kind].kept += 1
                streams[kind].write("\t".join(judged.pair).encode() + b"\n")
            advance(1)
    return counts


def candidates(decoded: Path, *, references: bool) -> Iterator[PlacedPair]:
    """Yield the pairs of decoded lines, each with its kind in place of a file; only references that differ."""
    for number, line in enumerate(read_lines(decoded), 1):
        source, hypothesis, reference = line.split("\t")
        yield PlacedPair(DISTILLED, number, Pair(source, hypothesis))
        if references and reference not in ("", hypothesis):
            yield PlacedPair(REFERENCE, number, Pair(source, reference))


def _profile(decoded: Path, languages: Languages) -> Profile:
    """Return what is usual in the pairs: in references rather than in hypotheses, which may be bad."""
    sample = reservoir_sample(_reference_pairs(decoded), SAMPLE, seed=1)
    return Profile.of(sample, languages)


def _reference_pairs(decoded: Path) -> Iterator[Pair]:
    for line in read_lines(decoded):
        source, hypothesis, reference = line.split("\t")
        yield Pair(source, reference or hypothesis)


def filter_by_scores(pairs: Path, scores: Path, share: float, file: Path, counts: Counts) -> None:
    """Write pairs without the worst `share` of them, by their cross-entropy; the first of equal ones are removed.

    Args:
        pairs: lines `source TAB target`.
        scores: a cross-entropy for each line.
        share: the share to remove, from 0 to 1.
        file: the file to write.
        counts: counts what is removed.
    """
    values = np.array(list(map(float, read_lines(scores))))
    removed = set(np.argsort(-values, kind="stable")[: int(share * len(values))].tolist())
    with output(file) as stream:
        for number, line in enumerate(read_lines(pairs)):
            if number not in removed:
                stream.write(line.encode() + b"\n")
    counts[DISTILLED].kept -= len(removed)
    counts[DISTILLED].reasons[SCORE] += len(removed)


@dataclass(frozen=True)
class ReverseScoreJob(LineJob):
    """The job of scoring pairs by a run of the reverse direction."""

    forward: Configuration | None = None
    """The configuration of the run that translates forwards."""
    window: ClassVar[int] = 4096

    def load(self, threads: int) -> LineFunction:
        """Load the run.

        Raises:
            UserError: the run is damaged, or translates in the direction of the other one.
        """
        assert self.forward
        reverse = ReverseModel.load(self.run, self.forward, self.device)
        return LineFunction(reverse.device.type, partial(self.work, reverse))

    def work(self, reverse: ReverseModel, window: Window) -> Done:
        """Write the cross-entropy of each line `source TAB target`; `inf` if the model can't read it."""
        pairs = []
        for line in window.lines:
            source, target = line.decode().split("\t")
            pairs.append(Pair(target, source))
        lines = []
        for score in score_pairs(reverse.model, reverse.pipeline, pairs, reverse.device):
            if isinstance(score, str):  # the reason why there is none
                lines.append("inf")
            else:
                lines.append(f"{-score.log_probability / len(score.tokens):.6f}")
        return Done(as_lines(lines))
