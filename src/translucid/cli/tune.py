"""`translucid tune`: the fastest way to translate, calibrated confidence, learned word alignments, a tuned lens.

**Examples**

    translucid tune runs/mine

    translucid tune runs/mine --shortlists

    translucid tune runs/mine --train pairs.tsv --valid dev.tsv --allow 0.5

    translucid tune runs/mine --confidence --diagram reliability.svg

    translucid tune runs/mine --confidence --valid dev.tsv --threshold 50 --dropout-passes 10

    translucid tune runs/mine --alignments

    translucid tune runs/mine --alignments --links links.txt --train pairs.tsv

    translucid tune runs/mine --lens
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Option

from translucid.cli import option
from translucid.cli.arguments import pair_up, refuse_to_save
from translucid.cli.printing import with_examples
from translucid.engines import ALLOWED
from translucid.ground.console import Console, table_of
from translucid.ground.errors import UserError
from translucid.inspection.file_formats import PICTURES

if TYPE_CHECKING:
    from translucid.api.alignment_fitting import LearnedAlignment
    from translucid.api.confidence_fitting import Fitted
    from translucid.api.lens_fitting import FittedLens
    from translucid.engines.tuning import Trial

_OPTIONS_BY_USE = {
    "": {"--train", "--valid", "--shortlists", "--sentences"},
    "--confidence": {"--valid", "--sentences", "--threshold", "--features", "--dropout-passes", "--diagram"},
    "--alignments": {"--train", "--valid", "--links"},
    "--lens": {"--valid", "--sentences"},
}
"""The options that each use of the command accepts, by the option that selects the use."""


class Data(NamedTuple):
    """Data."""

    train: Annotated[list[str] | None, option.files("The training pairs of the run.")] = None
    valid: Annotated[list[str] | None, option.files("Pairs on which speed and BLEU are compared.")] = None
    sentences: Annotated[
        int | None, Option(help="Sentences each time (1000; 2000 for --confidence, 5000 for --lens).", min=1)
    ] = None


class Speed(NamedTuple):
    """Speed."""

    allow: Annotated[float, Option(help="The accepted loss of BLEU; of chrF where BLEU can't tell.", min=0)] = ALLOWED
    shortlists: Annotated[bool, Option("--shortlists", help="Also try two lexical shortlists.")] = False
    pairs: Annotated[int, Option(help="With --shortlists: learn from at most this many pairs.", min=1)] = 50_000


class Confidence(NamedTuple):
    """Confidence."""

    confidence: Annotated[bool, Option("--confidence", help="Instead calibrate confidence.")] = False
    threshold: Annotated[float | None, Option(help="The chrF from which a translation is good (40).", min=0)] = None
    features: Annotated[
        Literal["search", "tokens", "attention", "dropout"] | None,
        Option(help="The features; default: the cheapest good ones."),
    ] = None
    dropout_passes: Annotated[int | None, Option(help="Also try so many dropout passes.", min=2, max=1000)] = None
    diagram: Annotated[Path | None, Option(metavar="FILE", help="Draw a reliability diagram, as .png ...")] = None
    overwrite: option.Overwrite = False


class Alignments(NamedTuple):
    """Word alignments."""

    alignments: Annotated[bool, Option("--alignments", help="Instead learn alignments.")] = False
    links: Annotated[Path | None, Option(metavar="GOLD", help="Learn them from these links between words.")] = None


class Lens(NamedTuple):
    """Lens."""

    lens: Annotated[bool, Option("--lens", help="Instead learn a tuned lens.")] = False


@with_examples(__doc__)
def tune(
    run: option.Run,
    *,
    data: Data,
    speed: Speed,
    confidence: Confidence,
    alignments: Alignments,
    lens: Lens,
    languages: option.Languages,
) -> None:
    """Find the fastest way to translate on this machine, or calibrate confidence, alignments and a lens.

    Measures our own engine and, for a Transformer, CTranslate2 with full and with 8-bit weights, each with the whole
    vocabulary and, if both languages share one, with the target-side pieces of the training text. `translate`,
    `evaluate` and `serve` then use the fastest that loses next to no BLEU. `translucid train` does this on a CPU. The
    run's own files are read if --train and --valid are not given.

    Also measures up to 500 validation sentences, from which warnings about sentences of unknown words are derived. For
    an imported run, give --train only if it was trained on these pairs or similar ones: all other words count as
    unknown. With --valid alone, the pieces into which words are split decide.

    A lexical shortlist (--shortlists) restricts each sentence to the pieces that its words may become, as learned from
    attention on the training pairs. It is kept only if it is faster. Words that it lacks yield a warning.

    --confidence translates pairs that the run was not trained on, and fits features of each translation to whether its
    chrF reaches --threshold. `translate --format jsonl`, `look`, documents and the server then show the probability
    that a translation is good (docs/confidence.md).

    --alignments learns an attention layer for word alignments from links between the words of the training pairs, which
    it makes by statistics, and keeps what agrees best with those of the validation pairs: this layer, or the model's
    attention, read in one of several ways. The model does not change. With --links, it learns from a few hundred pairs
    linked by people: a .jsonl with source, target and alignment, or lines of `0-0 1?2` for the pairs of --train (`?`
    marks a possible link). The layer is then kept if it is right more often than the model's attention on a held-out
    tenth.

    --lens learns an affine map for each decoder layer, after which the layer predicts most nearly what the last one
    does. `look --lens tuned` then shows what each layer predicts. The model does not change.
    """
    _refuse_options(data, speed, confidence, alignments, lens)
    console = Console(stderr=True)
    if alignments.alignments:
        _tune_alignments(run, alignments.links, data, languages, console)
    elif confidence.confidence:
        _tune_confidence(run, data, confidence, languages, console)
    elif lens.lens:
        _tune_lens(run, data, languages, console)
    else:
        _tune_speed(run, data, speed, languages, console)


def _refuse_options(data: Data, speed: Speed, confidence: Confidence, alignments: Alignments, lens: Lens) -> None:
    """Check that the options belong to the requested use.

    Raises:
        UserError: one belongs to another use.
    """
    flags = {"--alignments": alignments.alignments, "--confidence": confidence.confidence, "--lens": lens.lens}
    uses = [name for name, value in flags.items() if value]
    if len(uses) > 1:
        raise UserError(f"{uses[0]} and {uses[1]} are two things to learn", fix="Ask for one after the other.")
    use = "".join(uses)
    # --pairs and --allow, for example, have defaults and are not checked.
    checked_options = set().union(*_OPTIONS_BY_USE.values())
    for name in option.changed_flags(data, speed, confidence, alignments):
        if name not in checked_options or name in _OPTIONS_BY_USE[use]:
            continue
        if use:
            raise UserError(f"{name} does not go with {use}", fix="Leave it out.")
        required_use = next(use_name for use_name, names in _OPTIONS_BY_USE.items() if name in names)
        raise UserError(f"{name} does not go without {required_use}", fix="Add that, or leave this out.")


def _tune_alignments(run: Path, links: Path | None, data: Data, languages: option.Languages, console: Console) -> None:
    from translucid.api.alignment_fitting import fit_alignment

    if links and data.valid:
        raise UserError("--valid does not go with --links", fix="Leave it out; a tenth of the links is held out.")
    train, valid = pair_up(data.train or []), pair_up(data.valid or [])
    _show_links(fit_alignment(run, links=links, pairs=train, valid=valid, languages=languages, console=console), links)


def _tune_confidence(run: Path, data: Data, options: Confidence, languages: option.Languages, console: Console) -> None:
    from translucid.api.confidence_fitting import fit_confidence
    from translucid.runs.settings import without_none

    refuse_to_save(options.diagram, options.overwrite, PICTURES)
    settings = {
        "threshold": options.threshold,
        "sentences": data.sentences,
        "kind": options.features,
        "passes": options.dropout_passes,
    }
    fitted = fit_confidence(
        run,
        console=console,
        valid=pair_up(data.valid or []),
        source=languages.source_language,
        target=languages.target_language,
        **without_none(settings),
    )
    _show_confidence(fitted, options.diagram)


def _tune_lens(run: Path, data: Data, languages: option.Languages, console: Console) -> None:
    from translucid.api.lens_fitting import SENTENCES, fit_lens

    valid, sentences = pair_up(data.valid or []), data.sentences or SENTENCES
    _show_lens(fit_lens(run, valid=valid, sentences=sentences, languages=languages, console=console))


def _tune_speed(run: Path, data: Data, options: Speed, languages: option.Languages, console: Console) -> None:
    from translucid.api.confidence_fitting import fit_validation_scores
    from translucid.engines.tuning import SENTENCES, find_fastest

    source, target = languages
    train, valid = pair_up(data.train or []), pair_up(data.valid or [])
    fit_validation_scores(run, console=console, train=train, valid=valid, source=source, target=target)
    trials, best = find_fastest(
        run,
        train=train,
        valid=valid,
        allow=options.allow,
        shortlists=options.shortlists,
        pairs=options.pairs,
        sentences=data.sentences or SENTENCES,
        source=source,
        target=target,
        console=console,
    )
    _show_trials(trials, best)


def _show_trials(trials: Sequence[Trial], best: Trial) -> None:
    table = table_of("engine", "weights", "considered", figures=("sentences/s", best.metric, ""))
    for trial in trials:
        speed, mark = f"{trial.sentences_per_second:,.0f}", "← chosen" if trial is best else ""
        tuned = trial.tuned
        table.add_row(tuned.engine, tuned.quantization, tuned.considered, speed, f"{trial.score:.2f}", mark)
    Console().print(table)


def _show_links(learned: LearnedAlignment, links: Path | None) -> None:
    """Print the error rates of the alignment layer and of the attention."""
    from translucid.inspection.terminal import alignment_table

    console = Console()
    skipped = f"; {learned.skipped:,} could not be used" if learned.skipped else ""
    console.print(f"learned from {learned.pairs:,} pairs, compared on {learned.held_out:,} others{skipped}")
    console.print(alignment_table(learned.scores, learned.chosen))
    if not links:
        console.print("\nThe error rates are against statistical links, which are wrong at times themselves.")
    if not learned.kept:
        advice = "; give more pairs, or better links" if links else ""
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
