"""`translucid tune`: the fastest way to translate, how sure translations are, and which words belong together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, pair_up, refuse_to_replace
from translucid.engines import ALLOWED
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.api.alignment_fitting import LearnedAlignment
    from translucid.api.confidence_fitting import Fitted

_GO_WITH = {
    "": {"--train", "--valid", "--shortlists", "--sentences"},
    "--confidence": {"--valid", "--sentences", "--threshold", "--features", "--dropout-passes", "--diagram"},
    "--alignments": {"--train"},
}
"""Options that go with what is asked for."""


def tune(
    run: RunArgument,
    train: Annotated[
        list[str] | None, typer.Option("--train", metavar="FILES", help="The pairs that it was trained on; see below.")
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option("--valid", metavar="FILES", help="Pairs to compare speed and BLEU on.")
    ] = None,
    allow: Annotated[float, typer.Option(help="BLEU that may be lost; chrF where BLEU can't tell.", min=0)] = ALLOWED,
    shortlists: Annotated[
        bool | None, typer.Option("--shortlists", help="Also try two lexical shortlists; see above for what they cost.")
    ] = None,
    pairs: Annotated[
        int, typer.Option(help="With --shortlists: learn from so many training pairs, at most.", min=1)
    ] = 50_000,
    sentences: Annotated[
        int | None, typer.Option(help="Translate this many sentences each time: 1000; 2000 with --confidence.", min=1)
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Instead learn to tell how sure translations are; see below.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(help="With --confidence: chrF from which on a translation is good (40).", min=0)
    ] = None,
    features: Annotated[
        Literal["search", "tokens", "attention", "dropout"] | None,
        typer.Option(help="With --confidence: use these; if not given, the cheapest that do well."),
    ] = None,
    dropout_passes: Annotated[
        int | None, typer.Option(help="With --confidence: also try so many passes with dropout.", min=2, max=1000)
    ] = None,
    diagram: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --confidence: draw its reliability, .png, .svg or .pdf.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --diagram.")] = False,
    alignments: Annotated[
        Path | None, typer.Option(metavar="GOLD", help="Instead learn from these word links; see below.")
    ] = None,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
) -> None:
    """Find the fastest way to translate on this machine, or calibrate confidence and alignments.

    Tries our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with all pieces of
    the vocabulary and, if both languages share one, with those alone that the training text has in the target language.
    The fastest that loses next to no BLEU is what `translate`, `evaluate` and `serve` use from then on. `translucid
    train` does this in the end, if it trains on a CPU. Without --train and --valid the run's own files are read.

    Also measures up to 500 validation sentences, so that sentences of unknown words are warned about. Of an imported
    run, give --train only if these are the pairs that it was trained on, or very much like them: words that they do
    not have count as unknown. With --valid alone it is told from the pieces into which words are split.

    With --shortlists also with those pieces alone that the words of a sentence may become, learned from the attention
    over the training pairs. Each sentence has a list of its own, so that its translation does not depend on others.
    That costs time: a list is kept only where it is faster all the same. Words that it lacks are a warning.

    Of a model of many languages, such pieces hold for the pair of languages that they were learned from; between
    others, all are considered.

    With --confidence, pairs that the run was not trained on are translated, and features of each translation are fitted
    to whether its chrF against the reference reaches --threshold: what the search tells; each token (costs a third more
    time with CTranslate2, nothing with our own search); attention (half more); passes with dropout. From then on
    `translate --format jsonl`, `look`, documents and the server tell the probability that a translation is good.

    With --alignments the run learns which words are translations of each other, from a few hundred pairs
    whose words somebody, or another program, has linked: a .jsonl with source, target and alignment, or lines of
    `0-0 1?2` for the pairs of --train. The model does not change: one more attention is learned on top of it. It is
    kept if it is right more often than the model's own attention on a tenth that is held out; from then on word
    alignments, and the places of a document's tags, are read off it.

    **Examples**

        translucid tune runs/mine

        translucid tune runs/mine --shortlists

        translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.5

        translucid tune runs/mine --confidence --diagram reliability.svg

        translucid tune runs/mine --confidence --valid dev.tsv --threshold 50 --dropout-passes 10

        translucid tune runs/mine --alignments gold.jsonl

        translucid tune runs/mine --alignments links.txt --train pairs.tsv
    """
    from translucid.api.alignment_fitting import fit_alignment
    from translucid.api.confidence_fitting import fit_confidence
    from translucid.api.validation_fitting import fit_validation_scores
    from translucid.engines.tuning import SENTENCES, find_fastest
    from translucid.ground.errors import UserError
    from translucid.inspection import PICTURES, refuse_picture

    console = Console(stderr=True)
    given = {
        "--train": train,
        "--valid": valid,
        "--shortlists": shortlists,
        "--sentences": sentences,
        "--threshold": threshold,
        "--features": features,
        "--dropout-passes": dropout_passes,
        "--diagram": diagram,
    }
    if alignments and confidence:
        raise UserError("--alignments and --confidence are two things to learn", fix="Ask for one after the other.")
    goes = "--alignments" if alignments else "--confidence" if confidence else ""
    if lone := next((name for name, value in given.items() if value is not None and name not in _GO_WITH[goes]), None):
        if goes:
            raise UserError(f"{lone} does not go with {goes}", fix="Leave it out.")
        raise UserError(f"{lone} does not go without --confidence", fix="Add that, or leave this out.")
    if alignments:
        files = pair_up(train or [])
        between = source_language, target_language
        _show_links(fit_alignment(run, links=alignments, pairs=files, languages=between, console=console))
        return
    if confidence:
        refuse_to_replace(diagram, overwrite, PICTURES)
        if diagram:
            refuse_picture(diagram)
        asked = {"threshold": threshold, "sentences": sentences, "kind": features, "passes": dropout_passes}
        found = fit_confidence(
            run,
            console=console,
            valid=pair_up(valid or []),
            source=source_language,
            target=target_language,
            **{name: value for name, value in asked.items() if value is not None},  # type: ignore[arg-type]
        )
        _show_confidence(found, diagram)
        return
    train_files, valid_files = pair_up(train or []), pair_up(valid or [])
    fit_validation_scores(
        run,
        console=console,
        train=train_files,
        valid=valid_files,
        source=source_language,
        target=target_language,
    )
    tried, best = find_fastest(
        run,
        train=train_files,
        valid=valid_files,
        allow=allow,
        shortlists=bool(shortlists),
        pairs=pairs,
        sentences=sentences or SENTENCES,
        source=source_language,
        target=target_language,
        console=console,
    )
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "weights", "considered"):
        table.add_column(column)
    for column in ("sentences/s", best.metric, ""):
        table.add_column(column, justify="right")
    for trial in tried:
        speed, kept = f"{trial.sentences_per_second:,.0f}", "← chosen" if trial is best else ""
        tuned = trial.tuned
        table.add_row(tuned.engine, tuned.quantization, tuned.considered, speed, f"{trial.score:.2f}", kept)
    Console().print(table)


def _show_links(found: LearnedAlignment) -> None:
    """Print how right the alignment layer is, beside the attention."""
    from translucid.inspection.terminal import alignment_table

    console = Console()
    skipped = f"; {found.skipped:,} could not be used" if found.skipped else ""
    console.print(f"learned from {found.pairs:,} pairs, compared on {found.held_out:,} others{skipped}")
    console.print(alignment_table(found.ways, found.chosen))
    if not found.kept:
        console.print("\nnot kept: the attention is right at least as often; give more pairs, or better links")


def _show_confidence(found: Fitted, diagram: Path | None) -> None:
    """Print how well each kind of features does and how far the chosen one can be relied on, and draw that."""
    console, fitted = Console(), found.estimator
    console.print(f"{fitted.pairs:,} translations, {fitted.bad:,} of them with a chrF under {fitted.threshold:g}")
    table = Table(box=None, pad_edge=False)
    table.add_column("features")
    for column in ("time", "cross-entropy", "calibration", "worst fifth", ""):
        table.add_column(column, justify="right")
    for one in fitted.figures:
        kept, cost = "← chosen" if one.kind == fitted.kind else "", f"{found.costs[one.kind]:.2f} x"
        figures = f"{one.cross_entropy:.3f}", f"{one.calibration_error:.3f}", f"{one.lift:.1f} x"
        table.add_row(one.kind, cost, *figures, kept)
    console.print(table)
    console.print("calibration: expected error; worst fifth: times its share of the bad translations\n")
    table = Table(box=None, pad_edge=False)
    for column in ("confidence", "good", "translations"):
        table.add_column(column, justify="right")
    for part in fitted.reliability:
        table.add_row(f"{part.said:.0%}", f"{part.seen:.0%}", f"{part.count:,}")
    console.print(table)
    if diagram:
        from translucid.inspection.plots import draw_reliability, save_figure

        chosen = next(one for one in fitted.figures if one.kind == fitted.kind)
        save_figure(draw_reliability(fitted.reliability, chosen.calibration_error), diagram)
        console.print(f"\nsaved: {diagram}", soft_wrap=True)
