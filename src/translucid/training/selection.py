"""The selection of the weights that a run keeps: at the end of a training, and after other validation data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from translucid.layers.quantised import quantised_weights
from translucid.models.protocol import Model
from translucid.training.dataset import GENERAL_PAIRS
from translucid.training.display import Display
from translucid.training.record import Record
from translucid.training.validation import GENERAL, Validation

if TYPE_CHECKING:
    from translucid.training.trainer import Trainer

MAX_SENTENCES = 5000
"""The maximum number of sentences that the comparison at the end of a training translates with each of the weights."""


def keep_better(trainer: Trainer, last: Validation, record: Record | None, display: Display) -> None:
    """Compare the best weights so far with the last ones on all validation sentences, and keep the better ones.

    Validations translate some of the sentences, and choose the highest of many scores. So noise decides between
    neighbouring validations, and may prefer weights from before the learning rate has decreased to the last ones.
    Nothing is compared if the last weights are the best so far, or if validations translate all sentences.

    Scores in `Trainer.progress` remain those of the validations, with which later ones are compared.

    Args:
        trainer: a training that has ended; all processes must call this together.
        last: the figures of the last weights, from the validation at the end.
        record: the record of the training, in the first process.
        display: the display of the training.
    """
    progress, best_step = trainer.progress, trainer.progress.best_step
    validator = trainer.validator.with_more_sources(MAX_SENTENCES)
    if validator is None or best_step == progress.step:
        return

    def measure(model: Model) -> Validation:
        with quantised_weights(model, trainer.options.quantised_weights):
            return validator.measure(model, trainer.device, trainer.workers)

    trainer.workers.wait()  # until the first process has written the best weights
    best_model = trainer.run.load_model(trainer.run.configuration(), validator.tokenizer).to(trainer.device)
    best_figures = measure(best_model)
    with trainer.weights.averaged_model() as model:
        last_figures = measure(model)
        if validator.is_better(last_figures, best_figures.score, best_figures.loss):
            trainer.keep(model, last)
    if record:
        record.write_selection(progress, best_step, best_figures, last_figures)
    display.note(
        f"on {len(last_figures.samples):,} validation {validator.unit}, step {best_step:,}: "
        f"{validator.describe(best_figures.score)}, step {progress.step:,}: {validator.describe(last_figures.score)}; "
        f"kept step {progress.best_step:,}"
    )


def forget_scores(trainer: Trainer, checkpoint_fingerprints: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Forget the scores on other validation data.

    Args:
        trainer: a training that is resumed.
        checkpoint_fingerprints: the fingerprints, by name, of the validation data in the checkpoint.
        say: a function for one line to the user.

    Raises:
        UserError: the general text, on which the initial model was measured, has changed.
    """
    progress = trainer.progress
    if progress.before is not None:
        # The guard needs the initial model's score on general text, which can't be measured again.
        checkpoint_digest = checkpoint_fingerprints.get(GENERAL_PAIRS, "")
        digest = trainer.validated_on.get(GENERAL_PAIRS, "")
        trainer.run.refuse_changes({GENERAL_PAIRS: checkpoint_digest}, {GENERAL_PAIRS: digest})
        scores = progress.before
        progress.before = {GENERAL: scores[GENERAL]} if GENERAL in scores else {}
        trainer.validator.initial_measures = progress.before
    if progress.best_score is None:
        return
    say(
        "the validation data has changed: scores are not compared with earlier ones, and the next validation "
        f"replaces the weights of step {progress.best_step:,} in {trainer.run.model_file.name}"
    )
    trainer.has_earlier_best = True
    progress.best_score, progress.best_step, progress.stale, progress.kept = None, 0, 0, None
