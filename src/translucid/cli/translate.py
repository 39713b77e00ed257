"""`translucid translate`."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli.arguments import (
    EngineOption,
    Format,
    InflectTermsOption,
    RunArgument,
    SourceOption,
    TargetOption,
    TermsModeOption,
    TermsOption,
    WithOption,
    input_bytes,
    pair_up,
    refuse_to_replace,
    resolved,
    text_bytes,
)
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.engines.noisy_channel import ChannelWeights
    from translucid.jobs.job import Executor, Job


def translate(
    run: RunArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT ... | FILE]", help="What to translate: texts, or a document.")
    ] = None,
    others: WithOption = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="One text a line, or a document; - is standard input.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    retranslate: Annotated[
        bool, typer.Option("--retranslate", help="Translate also what has a translation in the document already.")
    ] = False,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Translations for each text, tab-separated in text format.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Higher favours longer translations.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No run of this many pieces comes twice.")] = None,
    max_length_ratio: Annotated[float | None, typer.Option(help="Output tokens for each input token, at most.")] = None,
    rerank_with: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", callback=resolved, help="Rank what the beam finds by a run of the other direction, too."
        ),
    ] = None,
    reverse_weight: Annotated[float | None, typer.Option(help="Of that run's log-probability.", min=0)] = None,
    length_weight: Annotated[float | None, typer.Option(help="Of each token, in that ranking.")] = None,
    tune_on: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="Sentence pairs on which the two weights are chosen first, by BLEU."),
    ] = None,
    mbr: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of the N best, or of N draws with --sample, take the one most like the others (chrF).",
            min=2,
            max=1000,
        ),
    ] = None,
    terms: TermsOption = None,
    inflect_terms: InflectTermsOption = False,
    terms_mode: TermsModeOption = "auto",
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; below 1 is more careful.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the K likeliest pieces.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the likeliest pieces of this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    adapter: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE|RUN", help="What a fine-tuning of RUN has learned with training.adapter_rank."),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A translation memory, or a corpus such as a .tmx: what is in it is used."),
    ] = None,
    memory_from: Annotated[
        int | None,
        typer.Option(metavar="PERCENT", help="Use what matches so far of it, too; 100 if not given.", min=70, max=100),
    ] = None,
    split_sentences: Annotated[
        bool,
        typer.Option(
            help="Translate each sentence of a line by itself; without, as for test sets, each line as it is."
        ),
    ] = True,
    wrapped: Annotated[
        bool, typer.Option("--wrapped", help="The lines are hard-wrapped: a paragraph ends at an empty line.")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add word alignments from attention, as 0-0 1-2, after a tab.")
    ] = False,
    token_scores: Annotated[
        bool,
        typer.Option(
            "--token-scores",
            help="In jsonl, add each piece with its log-probability, and each word with its probability.",
        ),
    ] = False,
    output_format: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text, or jsonl with scores and warnings; scores of CTranslate2 are about 0.001 above --engine torch.",
        ),
    ] = Format.text,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that share the work; 1 if not given.", min=1)] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Work on a Ray cluster: its address, auto for the one that is running, local for one of this machine.",
        ),
    ] = None,
) -> None:
    """Translate: one output line for each input line, in order, always.

    Lines end at a line feed and nowhere else; an empty line gives an empty line. With --output, a job that was
    killed goes on where it stopped when the same command is given again with the same input, and comes to the same
    file. With --ray, each worker is a CPU or GPU of the cluster, all of them without --workers, and sees the run and
    the input there.

    A line of several sentences is translated sentence by sentence; what has nothing to translate, such as a web
    address or a placeholder by itself, stays as it is. What looks wrong (unknown characters, a length that does not
    fit, a number that is lost ...) is summed up in a line on standard error, and told of each line in jsonl.

    A document (PO, XLIFF, subtitles, HTML, Word ...: docs/documents.md) is told by its name. Its text is
    translated, every other byte stays; translations that it has already stay, too. A killed job goes on likewise.

    **Examples**

        translucid translate runs/demo "I like soccer"

        translucid translate runs/es --input book.txt --output libro.txt --wrapped

        translucid translate runs/es messages.po --output es.po

        cat lines.txt | translucid translate runs/es --beam 1 > out.txt

        translucid translate runs/es --nbest 5 --format jsonl "Good morning"

        translucid translate runs/m2m --source-language en --target-language es "Good morning"

        translucid translate runs/es --adapter runs/my-lora "Save the page"

        translucid translate runs/es --input huge.txt --output out.txt --workers 8

        translucid translate runs/es --input huge.txt --output out.txt --ray auto

        translucid translate runs/es --ensemble runs/es-2 --ensemble runs/es-3 "Good morning"

        translucid translate runs/es --beam 20 --rerank-with runs/es-en --tune-on dev.tsv --input in.txt

        translucid translate runs/es --mbr 16 --input in.txt

        translucid translate runs/es --memory old.tmx --format jsonl "Save the page"

        translucid translate runs/es --terms terms.tsv --inflect-terms --input in.txt
    """
    from translucid.cli.documents import document_among, shows_near_matches, translate_file
    from translucid.engines.combinations import CONSTRAINED, DOCUMENT, refuse_together
    from translucid.engines.confidence_file import confidence_note
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.job import Job
    from translucid.jobs.output import output_to
    from translucid.jobs.running import run as run_job
    from translucid.jobs.segments import SegmentJob
    from translucid.memory.match import EXACT
    from translucid.memory.opening import open_memory
    from translucid.runs.run_folder import RunFolder

    if texts and input_file:
        raise UserError("both a text and --input were given", fix="Give one of them.")
    document = document_among(texts, input_file)
    refuse_to_replace(output, overwrite)
    given = {
        "beam": beam,
        "nbest": nbest,
        "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "max_length_ratio": max_length_ratio,
        "sample": sample or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    configuration = RunFolder(run).configuration().between(source_language, target_language)
    options = configuration.searching(given)
    refuse_together(
        {
            CONSTRAINED: terms and terms_mode == "constrain",
            DOCUMENT: document,
            "--adapter": adapter,
            "--alignments": alignments,
            "--beam 1": options.beam == 1,
            "--engine ctranslate2": engine == "ctranslate2",
            "--format jsonl": output_format is Format.jsonl,
            "--inflect-terms": inflect_terms,
            "--length-weight": length_weight is not None,
            "--mbr": mbr,
            "--memory": memory,
            "--memory-from": memory_from,
            "--nbest": (nbest or 1) > 1,
            "--no-split-sentences": not split_sentences,
            "--ray": ray,
            "--rerank-with": rerank_with,
            "--retranslate": retranslate,
            "--reverse-weight": reverse_weight is not None,
            "--sample": options.sample,
            "--terms": terms,
            "--terms-mode": terms_mode != "auto",
            "--token-scores": token_scores,
            "--tune-on": tune_on,
            "--ensemble": others,
            "--wrapped": wrapped,
        }
    )
    job = (partial(SegmentJob, near_matches=shows_near_matches(document)) if document else Job)(
        run,
        options,
        device,
        engine,
        split_sentences=split_sentences,
        wrapped=wrapped,
        form=output_format.value,
        columns=nbest or 1,
        alignments=alignments,
        token_scores=token_scores,
        adapter=adapter,
        configuration=configuration,
        others=tuple(others or ()),
        reverse=rerank_with,
        channel_weights=_weights(reverse_weight, length_weight),
        risk_candidates=mbr or 0,
        memory=memory,
        memory_from=memory_from or EXACT,
        terms=terms,
        inflect_terms=inflect_terms,
        terms_mode=terms_mode,
    )
    console = Console(stderr=True)
    if memory:
        open_memory(memory, configuration.data.languages, console).close()  # its index, before the workers begin
    if tune_on:
        job = _tuned(job, tune_on, console)
    if (document or output_format is Format.jsonl) and (
        note := confidence_note(RunFolder(run), configuration.data.languages)
    ):
        console.print(f"warning: {note}", soft_wrap=True)
    if isinstance(job, SegmentJob):
        assert document
        translate_file(job, document, output, _executor(job, document, workers, ray), again=retranslate)
        return
    with ExitStack() as stack:
        text = stack.enter_context(text_bytes(texts) if texts else input_bytes(input_file))
        advance = stack.enter_context(counting(console, "translating", None, hidden=bool(texts)))
        bad = run_job(
            job,
            text,
            output_to(output),
            _executor(job, input_file, workers, ray),
            say=lambda line: console.print(line, soft_wrap=True),
            advance=advance,
        )
    if bad:
        raise UserError(
            f"{bad} lines are not UTF-8; their unreadable bytes were translated as �",
            file=input_file or "standard input",
            fix="Convert the file first, as with iconv -f latin1 -t utf-8.",
        )


def _weights(reverse: float | None, length: float | None) -> ChannelWeights:
    from translucid.engines.noisy_channel import ChannelWeights

    given = {"reverse": reverse, "length": length}
    return ChannelWeights(**{name: value for name, value in given.items() if value is not None})


def _tuned(job: Job, files: list[str], console: Console) -> Job:
    """Choose the weights of the ranking, and say what they bring."""
    from dataclasses import replace

    from translucid.api.translator import Translator
    from translucid.engines.noisy_channel import NoisyChannel
    from translucid.jobs.rank_tuning import tune_weights
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.run_folder import RunFolder

    assert job.reverse and job.configuration
    t = Translator.open(RunFolder(job.run), job.configuration, job.device, job.engine, others=job.others)
    channel = NoisyChannel.load(job.reverse, job.configuration, t.pipeline, job.device)
    pairs = list(pairs_of(job.configuration.data, *pair_up(files)))
    tuned = tune_weights(t, channel, pairs, job.options, console)
    best = tuned.weights
    console.print(
        f"--reverse-weight {best.reverse:g} --length-weight {best.length:g}: "
        f"{tuned.metric} {tuned.score:.2f} on {len(pairs):,} pairs, {tuned.before:.2f} without",
        soft_wrap=True,
    )
    return replace(job, channel_weights=best)


def _executor(job: Job, file: Path | None, workers: int | None, ray: str | None) -> AbstractContextManager[Executor]:
    if ray:
        from translucid.ground.errors import UserError
        from translucid.jobs.cluster import ray_cluster

        if file is None or str(file) == "-":
            raise UserError("a cluster translates a file", fix="Give it with --input.")
        return ray_cluster(job, file, ray, workers)
    if workers and workers > 1:
        from translucid.jobs.processes import processes

        return processes(job, workers)
    from translucid.jobs.job import alone

    return alone(job)
