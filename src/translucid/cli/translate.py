"""`translucid translate`.

**Examples**

    translucid translate runs/demo "I like soccer"

    translucid translate runs/es --input book.txt --output libro.txt --wrapped

    translucid translate runs/es messages.po --output es.po --memory old.tmx --terms terms.tsv

    translucid translate runs/es docs/ locale/*.po --output-dir es/

    translucid translate runs/es --nbest 5 --format jsonl "Good morning"

    translucid translate runs/m2m --source-language en --target-language es "Good morning"

    translucid translate runs/en-fr --pivot runs/es-en "Buenos días"

    translucid translate runs/es --input huge.txt --output out.txt --workers 8

    translucid translate runs/demo "I like soccer" --ablate encoder.1.self.head.2 --ablate decoder.0.cross.head.0
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import lines_of, pair_up, refuse_to_replace, refuse_two_inputs, refuse_unreadable
from translucid.cli.combinations import CONSTRAINED, DOCUMENT, refuse_together
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import refuse_without_context, steps_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.engines.noisy_channel import ChannelWeights
    from translucid.jobs.job import Executor, TranslationJob


class Input(NamedTuple):
    """Input."""

    input_file: Annotated[Path | None, Option("--input", help="Lines of text, or a document; - is stdin.")] = None
    split_sentences: Annotated[bool, Option(help="Translate each sentence of a line by itself, or whole lines.")] = True
    wrapped: Annotated[bool, Option("--wrapped", help="Lines are hard-wrapped; empty lines end paragraphs.")] = False
    context: Annotated[str | None, Option(metavar="TEXT", help="The text before the first line, not translated.")] = (
        None
    )
    separate_lines: Annotated[
        bool, Option("--separate-lines", help="Read each line by itself, if the run has document context.")
    ] = False
    retranslate: Annotated[bool, Option("--retranslate", help="Also translate segments with a translation.")] = False


class Output(NamedTuple):
    """Output."""

    output: option.Output = None
    output_dir: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write documents to this folder, under their own names.")
    ] = None
    overwrite: option.Overwrite = False
    output_format: Annotated[
        option.Format,
        Option(
            "--format",
            help="text, or jsonl with scores and warnings; CTranslate2's scores are about 0.001 higher than torch's.",
        ),
    ] = "text"
    nbest: option.Nbest = None
    alignments: Annotated[bool, Option("--alignments", help="Add a tab and the word alignment, as 0-0 1-2.")] = False
    token_scores: Annotated[bool, Option("--token-scores", help="Add probabilities of pieces and words.")] = False


class Models(NamedTuple):
    """Models."""

    pivot: option.Pivot = None
    ensemble: option.Ensemble = None
    adapter: Annotated[str | None, Option(metavar="NAME|FILE|RUN", help="Use an adapter that was trained on RUN.")] = (
        None
    )
    ablate: option.Ablate = None


class Ranking(NamedTuple):
    """Ranking."""

    rerank_with: Annotated[Path | None, option.run("Rank the hypotheses of the beam by a reverse model.")] = None
    reverse_weight: Annotated[float | None, Option(help="The weight of that run's log-probability.", min=0)] = None
    length_weight: Annotated[float | None, Option(help="The weight of each token in that ranking.")] = None
    tune_on: Annotated[list[str] | None, option.files("First choose the two weights by BLEU on these pairs.")] = None
    mbr: Annotated[
        int | None,
        Option(metavar="N", help="Choose the most similar of N hypotheses (minimum Bayes risk).", min=2, max=1000),
    ] = None

    def weights(self) -> ChannelWeights:
        """Return the weights, with defaults for those that are not given."""
        from translucid.engines.noisy_channel import WEIGHTS
        from translucid.runs.settings import without_none

        return WEIGHTS._replace(**without_none({"reverse": self.reverse_weight, "length": self.length_weight}))


class Memory(NamedTuple):
    """Translation memory."""

    memory: Annotated[Path | None, Option(metavar="FILE", help="Use the translations of a memory or corpus.")] = None
    memory_from: Annotated[
        int | None, Option(metavar="PERCENT", help="Use fuzzy matches from PERCENT (100).", min=70, max=100)
    ] = None


class Execution(NamedTuple):
    """Execution."""

    device: option.Device = "auto"
    engine: option.Engine = "auto"
    workers: option.Workers = None
    ray: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Use a Ray cluster for lines of text, not documents: its address, auto (the running one) or local.",
        ),
    ] = None

    def executor(self, job: TranslationJob, file: Path | None) -> AbstractContextManager[Executor]:
        """Return the executor of a job that reads a file, or standard input if there is none."""
        from translucid.jobs.running import executor_of

        if not self.ray:
            return executor_of(job, self.workers)
        from translucid.jobs.cluster import ray_cluster

        # The workers read the file themselves, on their machines.
        if file is None or str(file) == "-":
            raise UserError("a cluster translates a file", fix="Give it with --input.")
        return ray_cluster(job, file, self.ray, self.workers)


@with_examples(__doc__)
def translate(
    run: option.Run,
    texts: Annotated[
        list[str] | None,
        Argument(metavar="[TEXT ... | FILE ...]", help="The texts to translate; or documents, or their folders."),
    ] = None,
    *,
    source: Input,
    output: Output,
    languages: option.Languages,
    search: option.Search,
    sampling: option.Sampling,
    models: Models,
    ranking: Ranking,
    terms: option.Terms,
    memory: Memory,
    execution: Execution,
) -> None:
    """Translate texts, one output line for each input line, or a document.

    Lines end at a line feed; an empty line yields an empty line. Repeat a command with --output that was killed: it
    continues where it stopped and writes the same file. With --ray, each worker is a CPU or GPU of the cluster, and
    must be able to read the run and the input.

    Text without words, such as a web address or a placeholder by itself, is copied. Warnings (unknown characters, an
    unusual length, a missing number ...) are summarized on standard error; jsonl has those of each line.

    --pivot runs/es-en translates with this run first, and its translations with RUN: from Spanish through English into
    French, for instance. With --pivot en, a multilingual RUN does both steps. Options of the search hold for both,
    all others for the second step (docs/multilingual.md).

    A run that was trained with data.context reads with each sentence those before it: of its line, of the lines before
    until a blank one, or of the document before (docs/context.md).

    --ablate is for our own engine, which then considers all target pieces. Confidence and learned alignments, which
    were fitted to the whole model, are not used (docs/interventions.md).

    Documents (PO, XLIFF, HTML, Word, Excel ...: docs/documents.md) are recognized by their name. Only their text
    changes, and segments that have a translation keep it. With --output-dir, several documents and whole folders are
    translated; documents that are there already stay, so an interrupted command can be repeated.
    """
    from translucid.cli.documents import documents_among, planned, translate_documents
    from translucid.jobs.documents import SegmentJob
    from translucid.jobs.job import TranslationJob
    from translucid.jobs.running import run_with_progress

    refuse_two_inputs("a text", texts, source.input_file)
    documents = documents_among(texts, source.input_file)
    refuse_to_replace(output.output, output.overwrite)
    first_step, configuration = steps_of(run, models.pivot, languages)
    options = configuration.decoding_with({**search._asdict(), **sampling.settings(), "nbest": output.nbest})
    settings = {**_settings(source, output, models, ranking, memory, execution), **terms._asdict()}
    settings |= {"configuration": configuration, "first_step": first_step}
    job = TranslationJob(run, options, **settings)
    if documents:
        job = SegmentJob(run, options, **settings)
    first_configuration = first_step.configuration if first_step else configuration
    refuse_without_context(
        first_configuration, run, {"--context": source.context, "--separate-lines": source.separate_lines}
    )
    _refuse_conflicts(
        option.changed_flags(source, output, models, ranking, terms, memory, execution),
        job,
        is_document=bool(documents),
    )
    log = Console(stderr=True)
    plan = planned(documents, output.output, output.output_dir, output.overwrite, log) if documents else []
    if documents and not plan:  # all are translated already
        return
    job = _prepared(job, ranking, log)
    if isinstance(job, SegmentJob):
        translate_documents(job, plan, execution.executor, retranslate=source.retranslate)
        return
    executor = execution.executor(job, source.input_file)
    lines = lines_of(texts, source.input_file)
    bad = run_with_progress(job, lines, output.output, executor, "translating", hidden=bool(texts))
    refuse_unreadable(bad, "; their unreadable bytes were translated as �", source.input_file)


def _refuse_conflicts(flags: dict[str, object], job: TranslationJob, *, is_document: bool) -> None:
    refuse_together(
        {
            **flags,
            CONSTRAINED: job.terms and job.terms_mode == "constrain",
            DOCUMENT: is_document,
            "--beam 1": job.options.beam == 1,
            f"--engine {job.engine}": True,
            "--format jsonl": job.form == "jsonl",
            "--nbest": job.columns > 1,
            "--sample": job.options.sample,
        }
    )


def _settings(
    source: Input, output: Output, models: Models, ranking: Ranking, memory: Memory, execution: Execution
) -> dict[str, Any]:
    """Return the fields of the job that the groups decide."""
    from bitext.memory.match import EXACT

    return {
        "device": execution.device,
        "engine": "torch" if models.ablate and execution.engine == "auto" else execution.engine,
        "split_sentences": source.split_sentences,
        "wrapped": source.wrapped,
        "context": source.context,
        "separate_lines": source.separate_lines,
        "form": output.output_format,
        "columns": output.nbest or 1,
        "alignments": output.alignments,
        "token_scores": output.token_scores,
        "adapter": models.adapter,
        "ablate": tuple(models.ablate or ()),
        "others": tuple(models.ensemble or ()),
        "reverse": ranking.rerank_with,
        "channel_weights": ranking.weights(),
        "risk_candidates": ranking.mbr or 0,
        "memory": memory.memory,
        "memory_from": memory.memory_from or EXACT,
    }


def _prepared(job: TranslationJob, ranking: Ranking, log: Console) -> TranslationJob:
    """Do what has to be done once, before any worker starts: index the memory, choose weights, warn."""
    from translucid.engines.run_files import confidence_note
    from translucid.inspection.ablation import refuse_unknown_heads
    from translucid.jobs.documents import SegmentJob
    from translucid.memory.opening import open_memory
    from translucid.runs.run_folder import RunFolder

    assert job.configuration
    languages = job.configuration.data.languages
    refuse_unknown_heads(job.ablate, job.configuration.model.maps)
    if not job.first_step and (pivot := job.configuration.data.learned_directions.pivot(languages)):
        pair = f"{languages[0]} to {languages[1]}"
        log.print(f"warning: no training pair is from {pair}; --pivot {pivot} is usually better", soft_wrap=True)
    if job.memory:
        # Opening a corpus builds an index, which the workers then only read.
        open_memory(job.memory, job.languages, log).close()
    if ranking.tune_on:
        job = _tuned(job, ranking.tune_on, log)
    # Lines of text have no place for a confidence; documents and jsonl do.
    shows_confidence = job.form == "jsonl" or isinstance(job, SegmentJob)
    if shows_confidence and (note := confidence_note(RunFolder(job.run), languages)):
        log.print(f"warning: {note}", soft_wrap=True)
    return job


def _tuned(job: TranslationJob, files: list[str], log: Console) -> TranslationJob:
    """Choose the weights of the ranking, and print the gain."""
    from translucid.api.translator import Translator
    from translucid.engines.noisy_channel import NoisyChannel, tune_weights
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.run_folder import RunFolder

    assert job.reverse and job.configuration
    translator = Translator.open(RunFolder(job.run), job.configuration, job.device, job.engine, others=job.others)
    translator = translator.ablated(*job.ablate)
    channel = NoisyChannel.load(job.reverse, job.configuration, translator.pipeline, job.device)
    pairs = list(pairs_of(job.configuration.data, *pair_up(files)))
    language = job.configuration.data.languages[1]
    tuned = tune_weights(translator.stages, channel, pairs, job.options, language, log)
    best = tuned.weights
    log.print(
        f"--reverse-weight {best.reverse:g} --length-weight {best.length:g}: "
        f"{tuned.metric} {tuned.score:.2f} on {len(pairs):,} pairs, {tuned.before:.2f} without",
        soft_wrap=True,
    )
    return replace(job, channel_weights=best)
