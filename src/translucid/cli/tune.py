"""`translucid tune`: fits speed, confidence, word alignments, a lens or a ranking to a run, which keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.run_kinds import configuration_of
from translucid.engines import ALLOWED
from translucid.ground.console import Console, table_of
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import PICTURES

if TYPE_CHECKING:
    from translucid.api.fitting.alignment_fitting import LearnedAlignment
    from translucid.api.fitting.confidence_fitting import Fitted
    from translucid.api.fitting.lens_fitting import FittedLens
    from translucid.engines.tuning import Trial

app = typer.Typer(
    no_args_is_help=True,
    help="Fit speed, confidence, word alignments, a lens or a ranking to a run, which keeps the result.",
)

Valid = Annotated[list[str] | None, option.files("Pairs to use in place of the run's validation pairs.")]
Gold = Annotated[Path, Argument(metavar="LINKS", help="Links between words: .jsonl, or lines of `0-0 1?2`.")]
LinkedPairs = Annotated[list[str] | None, option.files("The pairs that lines of links are for.")]


class Trials(NamedTuple):
    """Trials."""

    train: Annotated[list[str] | None, option.files("The training pairs of the run.")] = None
    valid: Annotated[list[str] | None, option.files("Pairs on which speed and BLEU are compared.")] = None
    sentences: Annotated[int | None, Option(help="Translate this many sentences each time (1000).", min=1)] = None
    allow: Annotated[float, Option(help="The accepted loss of BLEU; of chrF where BLEU can't tell.", min=0)] = ALLOWED


@app.command()
def speed(
    run: option.Run,
    *,
    trials: Trials,
    device: option.Device = "cpu",
    languages: option.Languages,
) -> None:
    """Find the fastest way to translate on this machine.

    Measures our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with the whole
    vocabulary and, if both languages share one, with the target-side pieces of the training text. `translate`,
    `evaluate` and `serve` then use the fastest that loses next to no BLEU. `translucid train` does this on a CPU. The
    run's own files are read if --train and --valid are not given.

    With --device cuda, measures our own engine on the GPU: with weights in float32, bfloat16 and float16, each with and
    without captured steps. Commands on a CUDA GPU then use the fastest.

    Also measures up to 500 validation sentences, from which warnings about sentences of unknown words are derived. For
    an imported run, give --train only if it was trained on these pairs or similar ones: all other words count as
    unknown. With --valid alone, the pieces into which words are split decide.

    **Examples**

        translucid tune speed runs/mine

        translucid tune speed runs/mine --train pairs.tsv --valid dev.tsv --allow 0.5

        translucid tune speed runs/mine --device cuda
    """
    _tune_speed(run, trials, languages, device=device)


@app.command()
def shortlists(
    run: option.Run,
    *,
    trials: Trials,
    pairs: Annotated[int, Option(help="Learn from at most this many pairs.", min=1)] = 50_000,
    languages: option.Languages,
) -> None:
    """Find the fastest way to translate as `tune speed` does, and also try two lexical shortlists.

    A lexical shortlist restricts each sentence to the pieces that its words may become, as learned from attention on
    the training pairs. It is kept only if it is faster, and slower neither for greedy search nor for single sentences.
    Words that it lacks yield a warning.

    **Examples**

        translucid tune shortlists runs/mine

        translucid tune shortlists runs/mine --pairs 20000 --allow 0.3
    """
    _tune_speed(run, trials, languages, shortlist_pairs=pairs)


@app.command()
def confidence(
    run: option.Run,
    *,
    valid: Valid = None,
    sentences: Annotated[int | None, Option(help="Translate this many sentences (2000).", min=1)] = None,
    threshold: Annotated[float | None, Option(help="The chrF from which a translation is good (40).", min=0)] = None,
    features: Annotated[
        Literal["search", "tokens", "attention", "dropout"] | None,
        Option(help="The features; default: the cheapest good ones."),
    ] = None,
    dropout_passes: Annotated[int | None, Option(help="Also try so many dropout passes.", min=2, max=1000)] = None,
    diagram: Annotated[Path | None, option.to_save("Draw a reliability diagram, as .png ...", *PICTURES)] = None,
    overwrite: option.Overwrite = False,
    languages: option.Languages,
) -> None:
    """Calibrate the confidence of translations.

    Translates pairs that the run was not trained on, and fits features of each translation to whether its chrF reaches
    --threshold. `translate --format jsonl`, `look`, documents and the server then show the probability that a
    translation is good (docs/confidence.md).

    **Examples**

        translucid tune confidence runs/mine --diagram reliability.svg

        translucid tune confidence runs/mine --valid dev.tsv --threshold 50 --dropout-passes 10
    """
    from translucid.api.fitting.confidence_fitting import fit_confidence
    from translucid.runs.settings import without_none

    settings = {"threshold": threshold, "sentences": sentences, "kind": features, "passes": dropout_passes}
    fitted = fit_confidence(
        run,
        console=Console(stderr=True),
        valid=pair_up(valid or []),
        source=languages.source_language,
        target=languages.target_language,
        **without_none(settings),
    )
    _show_confidence(fitted, diagram)


@app.command()
def alignments(
    run: option.Run,
    *,
    train: Annotated[list[str] | None, option.files("Pairs to learn from in place of the run's own.")] = None,
    valid: Valid = None,
    languages: option.Languages,
) -> None:
    """Learn an attention layer for word alignments from statistical links between the words of the training pairs.

    Keeps what agrees best with the links of the validation pairs: this layer, or the model's attention, read in one of
    several ways. The model does not change. `live` then reads the best one that it can use, and EDAtt's --alpha for
    each --lag is chosen on the validation pairs (docs/live.md).

    **Examples**

        translucid tune alignments runs/mine

        translucid tune alignments runs/opus-mt --train pairs.tsv --valid dev.tsv
    """
    from translucid.api.fitting.alignment_fitting import fit_alignment

    console = Console(stderr=True)
    learned = fit_alignment(
        run, pairs=pair_up(train or []), valid=pair_up(valid or []), languages=languages, console=console
    )
    _show_links(learned, "The error rates are against statistical links, which are wrong at times themselves.", "")


@app.command()
def links(
    run: option.Run,
    gold: Gold,
    *,
    train: LinkedPairs = None,
    languages: option.Languages,
) -> None:
    """Learn an attention layer for word alignments from a few hundred pairs that were linked by people.

    LINKS is a .jsonl with source, target and alignment, or has a line of `0-0 1?2` for each pair of --train (`?` marks
    a possible link). The layer is kept if it is right more often than the model's attention on a held-out tenth. The
    model does not change.

    **Examples**

        translucid tune links runs/mine links.jsonl

        translucid tune links runs/mine links.txt --train pairs.tsv
    """
    from translucid.api.fitting.alignment_fitting import fit_alignment

    console = Console(stderr=True)
    learned = fit_alignment(run, links=gold, pairs=pair_up(train or []), languages=languages, console=console)
    _show_links(learned, "", "; give more pairs, or better links")


@app.command()
def reading(
    run: option.Run,
    gold: Gold,
    *,
    pairs: LinkedPairs = None,
    languages: option.Languages,
) -> None:
    """Choose by links of people how the model's attention is read as word alignments, without learning a layer.

    Each layer and the average of all are tried, shifted or not, and read from one side or both. `evaluate --gold`
    shows the same scores and changes nothing.

    **Examples**

        translucid tune reading runs/mine links.jsonl

        translucid tune reading runs/mine links.txt --pairs pairs.tsv
    """
    from translucid.api.fitting.alignment_fitting import fit_reading
    from translucid.inspection.rendering.terminal import alignment_table

    scores = fit_reading(run, gold, pairs=pair_up(pairs or []), languages=languages)
    Console().print(alignment_table(scores, next(iter(scores))))


@app.command()
def lens(
    run: option.Run,
    *,
    valid: Valid = None,
    sentences: Annotated[int | None, Option(help="Learn from this many pairs (5000).", min=1)] = None,
    languages: option.Languages,
) -> None:
    """Learn a tuned lens: an affine map for each decoder layer, after which it predicts most nearly what the last does.

    `look --lens tuned` then shows what each layer predicts. The model does not change.

    **Examples**

        translucid tune lens runs/mine
    """
    from translucid.api.fitting.lens_fitting import SENTENCES, fit_lens

    pairs, console = pair_up(valid or []), Console(stderr=True)
    _show_lens(fit_lens(run, valid=pairs, sentences=sentences or SENTENCES, languages=languages, console=console))


@app.command()
def ranking(
    run: option.Run,
    *,
    reverse: Annotated[Path, option.run("The run of the other direction.")],
    pairs: Annotated[list[str] | None, option.files("Pairs on which the weights are chosen by BLEU.")] = None,
    reverse_weight: Annotated[float | None, Option(help="Set the weight of its log-probability.", min=0)] = None,
    length_weight: Annotated[float | None, Option(help="Set the weight of each token.")] = None,
    beam: option.Beam = None,
    ensemble: option.Ensemble = None,
    device: option.Device = "auto",
    engine: option.Engine = "auto",
    languages: option.Languages,
) -> None:
    """Choose the two weights with which `translate --rerank-with` ranks hypotheses by a run of the other direction.

    The run keeps them for this reverse run. On --pairs, 56 combinations are tried; a weight that you set is not
    varied. Without pairs, a weight that is not set has its default, 0.75.

    **Examples**

        translucid tune ranking runs/es --reverse runs/es-en --pairs dev.tsv --beam 10

        translucid tune ranking runs/es --reverse runs/es-en --reverse-weight 0.5 --length-weight 1
    """
    from translucid.api.fitting.ranking_fitting import fit_ranking

    if not pairs and reverse_weight is None and length_weight is None:
        fix = "Give --pairs FILES, or --reverse-weight and --length-weight."
        raise UserError("there is nothing to choose the weights by", fix=fix)
    configuration = configuration_of(run, "text").between(*languages)
    fitted = fit_ranking(
        run,
        reverse,
        configuration,
        pairs=pair_up(pairs or []),
        reverse_weight=reverse_weight,
        length_weight=length_weight,
        options=configuration.decoding_with({"beam": beam}),
        others=ensemble or (),
        device=device,
        engine=engine,
        console=Console(stderr=True),
    )
    weights = fitted.weights
    gain = ""
    if fitted.metric:
        gain = f": {fitted.metric} {fitted.score:.2f} on {fitted.pairs:,} pairs, {fitted.before:.2f} without"
    line = f"--reverse-weight {weights.reverse:g} --length-weight {weights.length:g}{gain}"
    Console().print(line, soft_wrap=True)


def _tune_speed(
    run: Path, trials: Trials, languages: option.Languages, shortlist_pairs: int = 0, device: str = "cpu"
) -> None:
    """Find the fastest way, also with shortlists if they may be learned from some pairs, and print all."""
    from translucid.api.fitting.confidence_fitting import fit_validation_scores
    from translucid.engines.tuning import PAIRS, SENTENCES, find_fastest

    source, target = languages
    console = Console(stderr=True)
    train, valid = pair_up(trials.train or []), pair_up(trials.valid or [])
    fit_validation_scores(run, console=console, train=train, valid=valid, source=source, target=target)
    _show_trials(
        *find_fastest(
            run,
            train=train,
            valid=valid,
            allow=trials.allow,
            shortlists=shortlist_pairs > 0,
            pairs=shortlist_pairs or PAIRS,
            sentences=trials.sentences or SENTENCES,
            source=source,
            target=target,
            console=console,
            device=device,
        )
    )


def _show_trials(trials: Sequence[Trial], best: Trial) -> None:
    uses = ("sentences/s", "greedy", "alone") if best.greedy else ("sentences/s",)
    table = table_of("engine", "weights", "considered", figures=(*uses, best.metric, ""))
    for trial in trials:
        speeds = [f"{speed:,.0f}" for speed, _ in zip(trial.speeds, uses, strict=False)]
        tuned, mark = trial.tuned, "← chosen" if trial is best else ""
        table.add_row(
            tuned.engine, str(tuned.gpu or tuned.quantization), tuned.considered, *speeds, f"{trial.score:.2f}", mark
        )
    Console().print(table)


def _show_links(learned: LearnedAlignment, remark: str, advice: str) -> None:
    """Print the error rates of the alignment layer and of the attention, a remark, and advice if neither is better."""
    from translucid.inspection.rendering.terminal import alignment_table

    console = Console()
    skipped = f"; {learned.skipped:,} could not be used" if learned.skipped else ""
    console.print(f"learned from {learned.pairs:,} pairs, compared on {learned.held_out:,} others{skipped}")
    console.print(alignment_table(learned.scores, learned.chosen))
    if remark:
        console.print(f"\n{remark}")
    if not learned.kept:
        console.print(f"\nnot kept: the attention is right at least as often{advice}")


def _show_lens(fitted: FittedLens) -> None:
    """Print how far each layer is from the last one, with the logit lens and with the tuned lens."""
    console = Console()
    console.print(f"learned from {fitted.pairs:,} pairs, compared on {fitted.held_out:,} others")
    table = table_of("layer", figures=("logit lens", "tuned lens"))
    for layer, before, after in zip(fitted.layers, fitted.before, fitted.after, strict=True):
        table.add_row(layer, f"{before:.3f}", f"{after:.3f}")
    console.print(table)
    console.print("KL divergence from the last layer, nats a piece")


def _show_confidence(fit: Fitted, diagram: Path | None) -> None:
    """Print quality and cost of each kind of features, and the reliability of the chosen one; draw the latter."""
    console, estimator = Console(), fit.estimator
    console.print(
        f"{estimator.pairs:,} translations, {estimator.bad:,} of them with a chrF under {estimator.threshold:g}"
    )
    table = table_of("features", figures=("time", "cross-entropy", "calibration", "worst fifth", ""))
    for figures in estimator.figures:
        cost, mark = f"{fit.costs[figures.kind]:.2f} x", "← chosen" if figures.kind == estimator.kind else ""
        quality = f"{figures.cross_entropy:.3f}", f"{figures.calibration_error:.3f}", f"{figures.lift:.1f} x"
        table.add_row(figures.kind, cost, *quality, mark)
    console.print(table)
    console.print("calibration: expected error; worst fifth: times its share of the bad translations\n")
    table = table_of(figures=("confidence", "good", "translations"))
    for reliability_bin in estimator.reliability:
        table.add_row(
            f"{reliability_bin.mean_confidence:.0%}", f"{reliability_bin.share_good:.0%}", f"{reliability_bin.count:,}"
        )
    console.print(table)
    if diagram:
        from translucid.inspection.plots import draw_reliability, save_figure

        chosen_figures = next(figures for figures in estimator.figures if figures.kind == estimator.kind)
        save_figure(draw_reliability(estimator.reliability, chosen_figures.calibration_error), diagram)
        console.print(f"\nsaved: {diagram}", soft_wrap=True)
