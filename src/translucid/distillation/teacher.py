"""The job of the teacher: it translates sentences, and one hypothesis of each is chosen for the student.

The hypothesis nearest to the reference is

    argmax  sim(y, reference)   over the hypotheses y of the n-best list of the teacher

(Kim and Rush 2016, arXiv 1606.07947, section 3.3, sequence-level interpolation). They use a smoothed BLEU of the
sentence as the similarity; the chrF of the sentence, used here, needs no smoothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bitext.readers.lines import one_space
from translucid.distillation.request import Choice, Request
from translucid.evaluation.metrics import pairwise_chrf
from translucid.jobs.job import Done, TranslationJob, TranslationModels, as_lines
from translucid.jobs.windows import Window


@dataclass(frozen=True)
class TeacherJob(TranslationJob):
    """The job of writing hypotheses."""

    choose: Choice = "best"
    window: ClassVar[int] = 1024
    """The number of sentences that are translated together; an interrupted job keeps a multiple of it."""

    def work(self, models: TranslationModels, window: Window) -> Done:
        """Write `source TAB hypothesis TAB reference` for lines `source TAB reference`; a reference may be empty."""
        cells = [line.decode().split("\t") for line in window.lines]
        sources = [source for source, _ in cells]
        # The sentences have been split before, and real pairs are translated as they are.
        translations = models.translator.stream(sources, self.options, split=False, first=window.before.lines)
        lines = []
        for (source, reference), translation in zip(cells, translations, strict=True):
            hypothesis = translation.text
            if reference and self.choose == "nearest":
                hypothesis = nearest(translation.alternatives, reference)
            lines.append("\t".join((source, one_space(hypothesis), reference)))
        return Done(as_lines(lines))


def teacher_job(request: Request) -> TeacherJob:
    """Return the job of the teachers of a request.

    Raises:
        UserError: an option of the search has a wrong value.
    """
    changes: dict[str, Any] = dict(request.search)
    configuration = request.configuration
    beam = changes.get("beam") or configuration.decoding.beam
    if request.choose == "nearest":
        changes |= {"nbest": request.candidates, "beam": max(beam, request.candidates)}
    if request.choose == "sample":
        changes |= {"sample": True}
    return TeacherJob(
        request.teachers[0],
        configuration.decoding_with(changes),
        others=request.teachers[1:],
        device=request.device,
        engine=request.engine,
        split_sentences=False,
        configuration=configuration,
        risk_candidates=request.candidates if request.choose == "mbr" else 0,
        choose=request.choose,
    )


def nearest(hypotheses: Sequence[str], reference: str) -> str:
    """Return the hypothesis with the greatest sentence chrF against a reference, the first of equal ones."""
    scores = pairwise_chrf([*hypotheses, reference])[:-1, -1]
    return hypotheses[int(scores.argmax())]
