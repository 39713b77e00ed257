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

MOST = 5000
"""The number of sentences that the comparison at the end of a training translates at most, with each of the weights."""


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
    progress, earlier = trainer.progress, trainer.progress.best_step
    thorough = trainer.validator.with_more_sources(MOST)
    if thorough is None or earlier == progress.step:
        return

    def measured(model: Model) -> Validation:
        with quantised_weights(model, trainer.options.quantised_weights):
            return thorough.measure(model, trainer.device, trainer.workers)

    trainer.workers.wait()  # until the first process has written the best weights
    best = trainer.run.load_model(trainer.run.configuration(), thorough.tokenizer).to(trainer.device)
    of_best = measured(best)
    with trainer.weights.averaged_model() as model:
        of_last = measured(model)
        if thorough.is_better(of_last, of_best.score, of_best.loss):
            trainer.keep(model, last)
    if record:
        record.write_selection(progress, earlier, of_best, of_last)
    display.note(
        f"on {len(of_last.samples):,} validation {thorough.unit}, step {earlier:,}: "
        f"{thorough.describe(of_best.score)}, step {progress.step:,}: {thorough.describe(of_last.score)}; "
        f"kept step {progress.best_step:,}"
    )


def forget_scores(trainer: Trainer, before: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Forget the scores on other validation data.

    Args:
        trainer: a training that is resumed.
        before: the fingerprints of the validation data before, by name.
        say: a function for one line to the user.

    Raises:
        UserError: the general text, on which the initial model was measured, has changed.
    """
    progress = trainer.progress
    if progress.before is not None:
        # The guard needs the initial model's score on general text, which can't be measured again.
        old, new = before.get(GENERAL_PAIRS, ""), trainer.validated_on.get(GENERAL_PAIRS, "")
        trainer.run.refuse_changes({GENERAL_PAIRS: old}, {GENERAL_PAIRS: new})
        scores = progress.before
        progress.before = {GENERAL: scores[GENERAL]} if GENERAL in scores else {}
        trainer.validator.before = progress.before
    if progress.best_score is None:
        return
    say(
        "the validation data has changed: scores are not compared with earlier ones, and the next validation "
        f"replaces the weights of step {progress.best_step:,} in {trainer.run.model_file.name}"
    )
    trainer.has_earlier_best = True
    progress.best_score, progress.best_step, progress.stale, progress.kept = None, 0, 0, None
