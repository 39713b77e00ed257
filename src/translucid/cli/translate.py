"""`translucid translate`.

**Examples**

    translucid translate runs/demo "I like soccer"

    translucid translate runs/es --input book.txt --output libro.txt --lines wrapped

    translucid translate runs/es messages.po --output es.po --memory old.tmx --terms terms.tsv

    translucid translate runs/es messages.po --output es.po --memory old.tmx --knn

    translucid translate runs/es docs/ locale/*.po --output es/

    translucid translate runs/es --nbest 5 --format jsonl "Good morning"

    translucid translate runs/m2m --source-language en --target-language es "Good morning"

    translucid translate runs/en-fr --pivot runs/es-en "Buenos días"

    translucid translate runs/es --input huge.txt --output out.txt --workers 8

    translucid translate runs/es --rerank-with mbr:32 --temperature 0.5 "Good morning"

    translucid translate runs/demo "I like soccer" --ablate encoder.1.self.head.2 --ablate decoder.0.cross.head.0
"""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from typer import Argument, Context, Option

from translucid.cli import option
from translucid.cli.arguments import (
    lines_of,
    name_and_number,
    refuse_to_replace,
    refuse_two_inputs,
    refuse_unreadable,
)
from translucid.cli.combinations import CONSTRAINED, DOCUMENT, SAMPLING, refuse_together
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import refuse_without_context, steps_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.engines.noisy_channel import ChannelWeights
    from translucid.jobs.job import Executor, TranslationJob
    from translucid.runs.configuration import Configuration


class Input(NamedTuple):
    """Input."""

    input_file: Annotated[Path | None, Option("--input", help="Lines of text, or a document; - is stdin.")] = None
    lines: Annotated[
        Literal["sentences", "whole", "wrapped"],
        Option(help="Translate sentence by sentence, whole lines, or hard-wrapped paragraphs, which empty lines end."),
    ] = "sentences"
    context: Annotated[
        str | None,
        Option(
            metavar="TEXT|none",
            help="With document context: the text before the first line; none: read each line by itself.",
        ),
    ] = None
    retranslate: Annotated[bool, Option("--retranslate", help="Also translate segments with a translation.")] = False


class Output(NamedTuple):
    """Output."""

    output: Annotated[
        str | None, Option(metavar="FILE|FOLDER/", help="Write to this file, or documents to this folder.")
    ] = None
    overwrite: option.Overwrite = False
    output_format: Annotated[
        Literal["text", "jsonl", "jsonl-tokens"],
        Option(
            "--format",
            help="text; jsonl with scores and warnings (CTranslate2's scores are about 0.001 higher than torch's); "
            "jsonl-tokens also with the probabilities of pieces and words.",
        ),
    ] = "text"
    nbest: option.Nbest = None
    alignments: Annotated[bool, Option("--alignments", help="Add a tab and the word alignment, as 0-0 1-2.")] = False
    formality: option.Formality = None

    @property
    def file(self) -> Path | None:
        """The file to write, or the folder."""
        return Path(self.output) if self.output else None

    @property
    def folder(self) -> Path | None:
        """The folder to write to, if the output is one: it exists, or its name ends with a separator."""
        if self.output and (Path(self.output).is_dir() or self.output.endswith(("/", os.sep))):
            return self.file
        return None


class Length(NamedTuple):
    """Length."""

    max_length: Annotated[
        int | None,
        Option(
            metavar="CHARACTERS", help="The most characters of a translation; what does not fit is reported.", min=1
        ),
    ] = None
    reading_speed: Annotated[
        float | None, Option(help="Subtitles: characters that people read per second.", min=1, max=100)
    ] = None
    line_length: Annotated[int | None, Option(help="Subtitles: the most characters of a line.", min=10, max=1000)] = (
        None
    )


class Models(NamedTuple):
    """Models."""

    pivot: option.Pivot = None
    ensemble: option.Ensemble = None
    adapter: Annotated[str | None, Option(metavar="NAME|FILE|RUN", help="Use an adapter that was trained on RUN.")] = (
        None
    )


def _risk_candidates(ranking: str | None) -> int | None:
    """Return the number of hypotheses of minimum Bayes risk decoding, `mbr:N`; None for a run."""
    name, number = name_and_number(ranking or "")
    return int(number) if name == "mbr" and number else None


def _resolved_ranking(context: Context, ranking: str | None) -> str | None:
    """Resolve the run of a ranking, unless it is minimum Bayes risk."""
    candidates = _risk_candidates(ranking)
    if candidates is not None:
        if not 2 <= candidates <= 1000:
            raise UserError(f"--rerank-with {ranking} chooses among too few or too many", fix="Give mbr:2 to mbr:1000.")
        return ranking
    run = option.resolved(context, Path(ranking) if ranking else None)
    return str(run) if run else None


class Ranking(NamedTuple):
    """Ranking."""

    rerank_with: Annotated[
        str | None,
        Option(
            metavar="RUN|mbr:N",
            callback=_resolved_ranking,
            help="Rank the hypotheses of the beam by a reverse model, weighted as `tune ranking` chose; or choose the "
            "most similar of N hypotheses (minimum Bayes risk).",
        ),
    ] = None

    @property
    def candidates(self) -> int:
        """The number of candidates of minimum Bayes risk decoding; 0 without."""
        return _risk_candidates(self.rerank_with) or 0

    @property
    def reverse(self) -> Path | None:
        """The run of the other direction, if one ranks."""
        return Path(self.rerank_with) if self.rerank_with and not self.candidates else None

    def weights(self, run: Path, configuration: Configuration) -> ChannelWeights:
        """Return the weights that the run keeps for the reverse run, or else the defaults."""
        from translucid.engines.noisy_channel import WEIGHTS
        from translucid.engines.run_files import load_channel_weights
        from translucid.runs.run_folder import RunFolder

        if self.reverse is None:
            return WEIGHTS
        return load_channel_weights(RunFolder(run), configuration.data.languages, RunFolder(self.reverse))


class Memory(NamedTuple):
    """Translation memory."""

    memory: Annotated[
        str | None,
        Option(
            metavar="FILE[:PERCENT]",
            help="Use the translations of a memory or corpus; with :85, for instance, also fuzzy matches from 85 % on.",
        ),
    ] = None
    knn: Annotated[
        bool, Option("--knn", help="Let similar segments of the memory change the probabilities of words (kNN-MT).")
    ] = False

    def parts(self) -> tuple[Path | None, int]:
        """Return the file, and the percentage from which matches are used.

        Raises:
            UserError: the percentage is too low or too high.
        """
        from bitext.memory.match import EXACT

        if self.memory is None:
            return None, EXACT
        file, percent = name_and_number(self.memory, is_path=True)
        if percent is None:
            return Path(file), EXACT
        if not 70 <= int(percent) <= EXACT:
            raise UserError(f"--memory {self.memory}: {percent} % is no match", fix=f"Give {file}:70 to :100.")
        return Path(file), int(percent)


class Execution(NamedTuple):
    """Execution."""

    device: option.Device = "auto"
    engine: option.Engine = "auto"
    workers: Annotated[
        str | None,
        Option(
            metavar="N|[N@]ray[:ADDRESS]",
            help="Worker processes; 1 if not given. Or, for lines of text, workers of a Ray cluster: ray (the running "
            "one), ray:local, ray:HOST:PORT, 4@ray for 4 of its workers.",
        ),
    ] = None

    def parts(self) -> tuple[int | None, str | None]:
        """Return the number of workers, and the address of a Ray cluster; None for what is not given.

        Raises:
            UserError: the value is neither a number nor a cluster.
        """
        if self.workers is None:
            return None, None
        match = re.fullmatch(r"(?:([1-9]\d{0,4})@)?(ray)(?::(.+))?|([1-9]\d{0,4})", self.workers, re.ASCII)
        if not match:
            fix = "Give a number, such as 4, or ray, ray:local or 4@ray:local."
            raise UserError(f"--workers {self.workers!r} names no workers", fix=fix)
        of_cluster, is_cluster, address, processes = match.groups()
        count = processes or of_cluster
        return int(count) if count else None, address or "auto" if is_cluster else None

    def executor(self, job: TranslationJob, file: Path | None) -> AbstractContextManager[Executor]:
        """Return the executor of a job that reads a file, or standard input if there is none."""
        from translucid.jobs.running import executor_of

        count, address = self.parts()
        if address is None:
            return executor_of(job, count)
        from translucid.jobs.cluster import ray_cluster

        # The workers read the file themselves, on their machines.
        if file is None or str(file) == "-":
            raise UserError("a cluster translates a file", fix="Give it with --input.")
        return ray_cluster(job, file, address, count)


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
    length: Length,
    models: Models,
    interventions: option.Interventions,
    ranking: Ranking,
    terms: option.Terms,
    memory: Memory,
    execution: Execution,
) -> None:
    """Translate texts, one output line for each input line, or a document.

    Lines end at a line feed; an empty line yields an empty line. Repeat a command with --output that was killed: it
    continues where it stopped and writes the same file. With --workers ray, each worker is a CPU or GPU of the cluster,
    and must be able to read the run and the input.

    Text without words, such as a web address or a placeholder by itself, is copied. Warnings (unknown characters, an
    unusual length, a missing number ...) are summarized on standard error; jsonl has those of each line.

    --pivot runs/es-en translates with this run first, and its translations with RUN: from Spanish through English into
    French, for instance. With --pivot en, a multilingual RUN does both steps. Options of the search hold for both,
    all others for the second step (docs/multilingual.md).

    A run that was trained with data.context reads with each sentence those before it: of its line, of the lines before
    until a blank one, or of the document before (docs/context.md).

    --ablate and --feature are for our own engine, which then considers all target pieces. Confidence and learned
    alignments, which were fitted to the unchanged model, are not used (docs/interventions.md, docs/circuits.md).

    Documents (PO, XLIFF, HTML, Word, Excel ...: docs/documents.md) are recognized by their name. Only their text
    changes, and segments that have a translation keep it. With --output FOLDER/, several documents and whole folders
    are translated; documents that are there already stay, so an interrupted command can be repeated.
    """
    from translucid.cli.documents import documents_among, planned, translate_documents
    from translucid.jobs.documents import SegmentJob
    from translucid.jobs.job import TranslationJob
    from translucid.jobs.running import run_with_progress

    refuse_two_inputs("a text", texts, source.input_file)
    documents = documents_among(texts, source.input_file)
    if output.folder is None:
        refuse_to_replace(output.file, output.overwrite)
    elif not documents:
        raise UserError(
            "is a folder, not a file", file=output.output, fix="Name a file; only documents go to a folder."
        )
    first_step, configuration = steps_of(run, models.pivot, languages)
    options = configuration.decoding_with({**search._asdict(), **sampling.settings(), "nbest": output.nbest})
    memory_file, percent = memory.parts()
    settings: dict[str, Any] = {
        "device": execution.device,
        "engine": "torch" if interventions.values and execution.engine == "auto" else execution.engine,
        "split_sentences": source.lines != "whole",
        "wrapped": source.lines == "wrapped",
        "context": None if source.context == "none" else source.context,
        "separate_lines": source.context == "none",
        "form": output.output_format.partition("-")[0],
        "columns": output.nbest or 1,
        "alignments": output.alignments,
        "formality": output.formality,
        "token_scores": output.output_format == "jsonl-tokens",
        "adapter": models.adapter,
        "interventions": interventions.values,
        "others": tuple(models.ensemble or ()),
        "reverse": ranking.reverse,
        "risk_candidates": ranking.candidates,
        "terms": terms.terms,
        "inflect_terms": terms.inflect,
        "terms_mode": terms.mode,
        "domain": terms.domain,
        "memory": memory_file,
        "memory_from": percent,
        "knn": memory.knn,
        "max_length": length.max_length,
        "configuration": configuration,
        "first_step": first_step,
        "channel_weights": ranking.weights(run, configuration),
    }
    job = TranslationJob(run, options, **settings)
    if documents:
        job = SegmentJob(run, options, **settings, line_length=length.line_length, reading_speed=length.reading_speed)
    first_configuration = first_step.configuration if first_step else configuration
    refuse_without_context(first_configuration, run, {"--context": source.context})
    _, cluster = execution.parts()
    refuse_together(
        {
            **option.changed_flags(source, output, length, models, interventions, terms, memory),
            CONSTRAINED: job.terms and job.terms_mode == "constrain",
            DOCUMENT: documents,
            "--beam 1": job.options.beam == 1,
            f"--engine {job.engine}": True,
            "--format jsonl": job.form == "jsonl",
            "--lines wrapped": job.wrapped,
            "--nbest": job.columns > 1,
            "--rerank-with": job.reverse,
            SAMPLING: job.options.sample,
            "--workers ray": cluster,
        }
    )
    log = Console(stderr=True)
    plan = planned(documents, output.file, output.folder, output.overwrite, log) if documents else []
    if documents and not plan:  # all are translated already
        return
    _prepare(job, log)
    if isinstance(job, SegmentJob):
        translate_documents(job, plan, execution.executor, retranslate=source.retranslate)
        return
    executor = execution.executor(job, source.input_file)
    lines = lines_of(texts, source.input_file)
    bad = run_with_progress(job, lines, output.file, executor, "translating", hidden=bool(texts))
    refuse_unreadable(bad, "; their unreadable bytes were translated as �", source.input_file)


def _prepare(job: TranslationJob, log: Console) -> None:
    """Do what has to be done once, before any worker starts: index the memory, warn."""
    from translucid.engines.run_files import confidence_note
    from translucid.inspection.intervention import interventions_of
    from translucid.jobs.documents import SegmentJob
    from translucid.memory.opening import open_memory
    from translucid.runs.run_folder import RunFolder

    assert job.configuration
    languages = job.configuration.data.languages
    for intervention in interventions_of(job.run, job.interventions):
        intervention.check(job.configuration.model)
    if not job.first_step and (pivot := job.configuration.data.learned_directions.pivot(languages)):
        pair = f"{languages[0]} to {languages[1]}"
        log.print(f"warning: no training pair is from {pair}; --pivot {pivot} is usually better", soft_wrap=True)
    if job.memory:
        # Opening a corpus builds an index, which the workers then only read.
        open_memory(job.memory, job.languages, log).close()
    # Lines of text have no place for a confidence; documents and jsonl do.
    shows_confidence = job.form == "jsonl" or isinstance(job, SegmentJob)
    if shows_confidence and (note := confidence_note(RunFolder(job.run), languages)):
        log.print(f"warning: {note}", soft_wrap=True)
