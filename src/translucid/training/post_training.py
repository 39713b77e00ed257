"""The steps after a training: show the gain of fine-tuning, find the fastest engine, and measure the validation set.

The last step also chooses how word alignments are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from bitext.languages import Languages
from translucid.api.fitting.alignment_fitting import choose_alignment
from translucid.api.fitting.confidence_fitting import fit_validation_scores
from translucid.engines.tuned import FILE
from translucid.engines.tuning import find_fastest
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.training.trainer import Trainer
from translucid.training.validation import GENERAL

NAMES = {"bleu": "BLEU", "chrf": "chrF"}
"""The metrics that select the best weights, by their names in a validation."""


def show_gain(trainer: Trainer, console: Console) -> None:
    """Show the gain and the loss of a fine-tuning: the scores of the initial weights and of the best ones."""
    progress = trainer.progress
    if progress.before is None or progress.kept is None or not trainer.workers.leads:
        return
    measures = progress.before.keys() & progress.kept.keys()
    metric = "chrf" if "chrf" in measures else "bleu"
    if measures:
        console.print(f"{NAMES[metric] + ' of greedy search':<36}{'before':>8}{'after':>8}")
    for name, label in {metric: "on what was learned (`valid`)", GENERAL: "on the rest (`valid_general`)"}.items():
        rows = {name: label} if name in measures else {}
        for measure in sorted(measures):
            if measure.startswith(f"{name}."):
                rows[measure] = f"  {measure.removeprefix(f'{name}.')}"
        for measure, row in rows.items():
            before, after = progress.before[measure], progress.kept[measure]
            console.print(f"{row:<36}{before:>8.1f}{after:>8.1f}{after - before:>+8.1f}")
    if not progress.best_step:
        advice = "; give `mix` more, or lower training.learning_rate" if GENERAL in progress.kept else ""
        console.print(f"no weights were better than those that it began with, which are kept{advice}", soft_wrap=True)


def trained_directions(trainer: Trainer) -> Sequence[Languages]:
    """Return the directions of a multilingual run with validation pairs.

    Another run needs no choice of languages, and has None for both.
    """
    data = trainer.run.configuration().data
    if not data.is_multilingual:
        return [(None, None)]
    return [direction for direction in data.corpus_directions if data.between(*direction).validation_files]


def _has_learned(trainer: Trainer) -> bool:
    """Whether this process writes the run, the training has ended, and its best weights translate anything at all."""
    score = trainer.progress.best_score
    if not score or not trainer.finished or not trainer.workers.leads:
        return False
    return trainer.validator.comparable(score) > 0


def tune_trained(trainer: Trainer, console: Console) -> None:
    """Find the fastest engine on a CPU, if the model has learned something and the run has no `tuned.json` yet.

    Errors are only reported, because the training itself has succeeded.
    """
    run = trainer.run.path
    if not _has_learned(trainer) or trainer.device.type != "cpu" or (run / FILE).exists():
        return
    source, target = trained_directions(trainer)[0]
    try:
        engines, best = find_fastest(run, console=console, source=source, target=target)
    except (UserError, OSError) as error:
        console.print(f"not tuned: {error}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print(f"not tuned; translucid tune speed {run} does it later", soft_wrap=True)
        raise
    else:
        instead = "" if best is engines[0] else f", not {engines[0]}"
        console.print(f"the run is translated by {best}{instead}", soft_wrap=True)


def measure_trained(trainer: Trainer, console: Console) -> None:
    """Measure the validation sentences, for warnings of unknown words and for word alignments.

    This is done if the model has learned something. Errors are only reported, because the training itself has
    succeeded.
    """
    if not _has_learned(trainer):
        return
    try:
        directions = trained_directions(trainer)
        for source, target in directions:
            fit_validation_scores(
                trainer.run.path, console=console, device=str(trainer.device), source=source, target=target
            )
        # A run has one reading of alignments, for all directions.
        choose_alignment(trainer.run.path, languages=directions[0], console=console, device=str(trainer.device))
    except (UserError, OSError) as error:
        console.print(f"validation sentences were not measured: {error}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print(f"not measured; translucid tune speed {trainer.run.path} does it later", soft_wrap=True)
        raise
