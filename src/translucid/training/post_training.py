"""What is done when a training is over.

What it has gained is shown, the fastest way to translate with it is found, and its validation sentences are measured.
"""

from __future__ import annotations

from translucid.api.validation_fitting import fit_validation_scores
from translucid.engines.tuned import FILE
from translucid.engines.tuning import find_fastest
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.training.trainer import Trainer
from translucid.training.validation import GENERAL

NAMES = {"bleu": "BLEU", "chrf": "chrF"}
"""Of what weights are chosen by, as it is called among the figures of a validation."""


def show_gain(trainer: Trainer, console: Console) -> None:
    """Show what a fine-tuning has gained and lost: the weights that it began with beside those that are kept."""
    progress = trainer.progress
    if progress.before is None or progress.kept is None or not trainer.workers.leads:
        return
    measured = progress.before.keys() & progress.kept.keys()
    metric = "chrf" if "chrf" in measured else "bleu"
    if measured:
        console.print(f"{NAMES[metric] + ' of greedy search':<36}{'before':>8}{'after':>8}")
    for name, where in {metric: "on what was learned (--valid)", GENERAL: "on the rest (--valid-general)"}.items():
        if name in measured:
            before, after = progress.before[name], progress.kept[name]
            console.print(f"{where:<36}{before:>8.1f}{after:>8.1f}{after - before:>+8.1f}")
    if not progress.best_step:
        more = "; give --mix more, or lower training.learning_rate" if GENERAL in progress.kept else ""
        console.print(f"no weights were better than those that it began with, which are kept{more}", soft_wrap=True)


def tune_trained(trainer: Trainer, console: Console) -> None:
    """Find the fastest way to translate, on a CPU, if the model has learned something and nobody has chosen a way.

    Whatever is in the way of that, the training is done.
    """
    run = trainer.run.path
    trained_here = trainer.over and trainer.workers.leads and trainer.device.type == "cpu"
    score = trainer.progress.best_score
    if not trained_here or not score or trainer.validator.comparable(score) <= 0 or (run / FILE).exists():
        return
    try:
        tried, best = find_fastest(run, console=console)
    except (UserError, OSError) as error:
        console.print(f"not tuned: {error}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print(f"not tuned; translucid tune {run} does it later", soft_wrap=True)
        raise
    else:
        instead = "" if best is tried[0] else f", not {tried[0]}"
        console.print(f"the run is translated by {best}{instead}", soft_wrap=True)


def measure_trained(trainer: Trainer, console: Console) -> None:
    """Measure the validation sentences, to warn of sentences that the model can't know, if it has learned something.

    Whatever is in the way of that, the training is done.
    """
    score = trainer.progress.best_score
    if not (trainer.over and trainer.workers.leads) or not score or trainer.validator.comparable(score) <= 0:
        return
    try:
        fit_validation_scores(trainer.run.path, console=console, device=str(trainer.device))
    except (UserError, OSError) as error:
        console.print(f"validation sentences were not measured: {error}", soft_wrap=True)
    except KeyboardInterrupt:
        console.print(f"not measured; translucid tune {trainer.run.path} does it later", soft_wrap=True)
        raise
