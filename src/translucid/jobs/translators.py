"""The translator of a job, with all that its options add to the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bitext.memory.recall import Recall
from translucid.api.pivot_translator import AnyTranslator, PivotTranslator
from translucid.api.segment_translator import shown_matches
from translucid.api.translator import Translator
from translucid.engines.minimum_risk import MinimumRisk
from translucid.engines.noisy_channel import NoisyChannel
from translucid.engines.stages import Ranking
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.jobs.job import Job


def open_translator(job: Job, recall: Recall | None, threads: int) -> AnyTranslator:
    """Load the run or the runs of a job.

    With a pivot language, terms and a ranking belong to the second step, which the job's own run does.

    Args:
        job: the job.
        recall: its translation memory, if there is one.
        threads: the number of threads to use.

    Raises:
        UserError: a run is damaged, does not fit on the device, or lacks what the job needs.
    """
    translator = Translator.open(
        RunFolder(job.run),
        job.configuration or RunFolder(job.run).configuration(),
        job.device,
        job.engine,
        others=job.others,
        threads=threads,
        adapter=job.adapter,
    )
    if job.ablate:
        translator = translator.ablated(*job.ablate)
    first_translator = None
    if job.first_step:
        first_translator = job.first_step.open(translator, job.device, job.engine, threads)
    elif recall:
        translator = shown_matches(translator, recall)
    if job.terms:
        translator = translator.with_terms(job.terms, inflect=job.inflect_terms, mode=job.terms_mode)
    translator = translator.ranked(_ranking(job, translator))
    return PivotTranslator(first_translator, translator) if first_translator else translator


def _ranking(job: Job, translator: Translator) -> Ranking | None:
    if job.reverse:
        configuration, pipeline = translator.configuration, translator.pipeline
        return NoisyChannel.load(job.reverse, configuration, pipeline, job.device, job.channel_weights)
    return MinimumRisk(translator.pipeline, job.risk_candidates) if job.risk_candidates else None
