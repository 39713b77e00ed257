"""The training loop of every model: gradient accumulation, validation, checkpoints, early stopping."""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels.rounding import mixed_precision
from translucid.kernels.upload import Download
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.captured import CapturedUpdate, reason_against
from translucid.training.compile_choice import BATCHES, CompileChoice, choose_compilation, reason_against_compiling
from translucid.training.data_loader import DataLoader, SharedBatch
from translucid.training.dataset import GENERAL_PAIRS
from translucid.training.extras.training_step import TrainingStep
from translucid.training.hardware.ddp import Workers
from translucid.training.hardware.precision import Precision
from translucid.training.objective import CarriedLoss, sums
from translucid.training.optimizer import Optimizer
from translucid.training.profile import UpdateProfile, part
from translucid.training.records.record import Display, Progress, Recent, Record, Status
from translucid.training.schedule import learning_rate, short_warmup
from translucid.training.validation import GENERAL, Validation, Validator
from translucid.training.weights import CompiledLoss, Weights, is_sharded, with_prefix

Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors and facts, as a run folder saves them."""
PATIENCE_WITH_NAN = 5
"""The number of consecutive updates without a finite loss after which the training stops."""


class _Update(NamedTuple):
    """An update whose figures may not have reached the host yet."""

    step: int
    tokens: int
    """Target tokens of all processes."""
    figures: Download
    """[8] the sums of `Loss.figures`, the first process's clock, the signals of all, and the norm of the gradient."""


class Trainer:
    """Updates a model batch by batch, keeps the EMA of its weights (exponential moving average), and saves the best."""

    def __init__(
        self,
        model: Model,
        epochs: DataLoader,
        validator: Validator,
        run: RunFolder,
        options: TrainingOptions,
        device: torch.device,
        precision: Precision,
        workers: Workers | None = None,
        origin: dict[str, str] | None = None,
        *,
        steps: Sequence[TrainingStep] = (),
        validated_on: Mapping[str, str] | None = None,
        begins_ready: bool = True,
    ) -> None:
        """Prepare a training without reading or writing; `resume` restores a checkpoint, `fit` trains.

        `origin`: fingerprints, by name, of everything that must not change when the training is resumed; `steps`: the
        extras of the training; `validated_on`: fingerprints, by name, of the validation data; `begins_ready`: whether
        the initial weights may be the best ones.
        """
        self.has_earlier_best = False
        """Whether the best model so far was selected by scores of other validation data, until the next validation."""
        self.interrupted = 0
        """The number of the signal that has ended `fit`; 0 if none has."""
        self.workers, self.origin, self.validated_on = workers or Workers(), origin or {}, dict(validated_on or {})
        self.weights = create_weights(model, options, device, self.workers)
        self.epochs, self.validator, self.run, self.options, self.device = epochs, validator, run, options, device
        self.progress, self.precision = Progress(begins_ready=begins_ready), precision
        self.recent, self.skipped_in_a_row = Recent(), 0
        self._unread: deque[_Update] = deque()
        """The last updates, whose figures may not have reached the host yet."""
        self._started, self._interrupt = time.monotonic(), Interrupt()
        self._shared_clock_and_signal = [0.0, 0.0]
        """The sums over all processes of `_clock_and_signal`, from the last update whose figures have been read."""
        self.steps = steps
        for step in steps:
            step.begin(self.weights)
        validator.bfloat16 = precision.bfloat16 and device.type == "cuda"
        self.optimizer = Optimizer(options, model, self.weights.parameters, bfloat16=precision.bfloat16)
        self.uncaptured = reason_against(options, device, self.workers) if options.captured else ""
        """Why updates are not captured although `training.captured` asks for it."""
        self.compiled: bool | None = None
        """The choice of `training.compile=auto`, once it is made."""
        self.profile: UpdateProfile | None = None
        """What profiles the first updates of `fit`, if anything does."""
        self._captured: CapturedUpdate | None = None
        if options.captured and not self.uncaptured:
            self._captured = CapturedUpdate(self.weights, self.optimizer, options, bfloat16=precision.bfloat16)

    def fit(self, display: Display) -> Progress:
        """Train until a limit is reached, validations stop improving, or Ctrl-C; then save everything.

        Raises:
            UserError: the loss is no longer a finite number.
        """
        record = Record(self.run, self.options, self.progress.step, display.note) if self.workers.leads else None
        last_save, stop, warning = self.progress.seconds, 0.0, ""
        updates = self._updates()
        self._started, self._interrupt = time.monotonic() - last_save, Interrupt()
        self._shared_clock_and_signal = [last_save, stop]
        with self._interrupt, display.bar, self.workers.updating():
            if self.options.compile == "auto" and self.compiled is None:
                self._choose_compilation(record, display)
            if self.options.begin_from and self.validator.compares and self.progress.before is None:
                self._measure_initial_model(record, display)
            while not self.finished and not stop:
                rate = learning_rate(self.options, self.progress.step + 1, self._done())
                with self.profile.update() if self.profile else nullcontext():
                    with part("data"):
                        batches = next(updates)
                    self._update(batches, rate, display)
                self.progress.step += 1
                # All processes use the clock of the first, and end together if one of them is interrupted.
                clock_and_signal = self._shared_clock_and_signal if self.workers.count > 1 else self._clock_and_signal()
                self.progress.seconds, stop = clock_and_signal
                if not warning and (warning := short_warmup(self.options, self.progress.step, self._done())):
                    display.note(warning)
                if record and self.recent.window:  # empty as long as every update was skipped
                    display.status(self._status(rate))
                    if self.progress.step % self.options.log_every == 0:
                        record.write_training(self._status(rate))
                validation_due = self.progress.step % self.options.validate_every == 0
                save_interval = 60 * self.options.save_minutes
                saves = validation_due or self.finished or self.progress.seconds - last_save > save_interval
                if saves or stop:
                    self._read_figures(display)
                if validation_due or self.finished:
                    validation = self._validate(record, display)
                    self._shared_clock_and_signal = self.workers.sum(*self._clock_and_signal())
                    self.progress.seconds = self._shared_clock_and_signal[0]
                    # Before the checkpoint, so that a training that is killed here compares when it is resumed.
                    if self.finished:
                        keep_better(self, validation, record, display)
                if saves:
                    self.save()
                    last_save = self.progress.seconds
            if stop:
                self.interrupted = max(self.workers.gather(self._interrupt.signal_number))
                self.save()
                # Before the first validation, save the current average, so that users have a model to try.
                if self.progress.best_score is None and not self.has_earlier_best:
                    with self.weights.ema_model() as model:
                        self._save_best(model, {})
        if self.profile:
            self.profile.finish()
        if record:
            record.close()
        return self.progress

    def _choose_compilation(self, record: Record | None, display: Display) -> None:
        """Decide whether the training is compiled; a checkpoint contains the choice."""
        loss = self.weights.loss
        if reason := reason_against_compiling(self.options, self.weights.model):
            choice = CompileChoice(False, f"it {reason}")
        elif not isinstance(loss, CompiledLoss):
            choice = CompileChoice(False, "another loss is in its place")
        else:
            batches = self.epochs.batches(self.progress.epoch, self.progress.batch)
            rows = filter(None, (self.weights.rows(batch.rows) for batch in islice(batches, BATCHES)))
            bfloat16 = self.precision.bfloat16
            with self._computing(self.weights.model):
                choice = choose_compilation(self.weights, loss, [*rows], self.options, bfloat16=bfloat16)
            loss.enabled = choice.compiled
        self.compiled = choice.compiled
        display.note(str(choice))
        if record:
            record.write_choice(self.progress.step, "compile", choice.compiled, choice.reason)

    def _measure_initial_model(self, record: Record | None, display: Display) -> None:
        """Validate the model that fine-tuning starts from, for a comparison at the end."""
        self._validate(record, display)
        self.progress.before = self.validator.initial_measures = self.progress.kept
        if not self.progress.begins_ready:
            self.progress.best_score = None
        self.save()

    def _updates(self) -> Iterator[list[SharedBatch]]:
        """Yield the batches of each update, from the current progress on, epoch after epoch."""
        while True:
            for step in self.steps:
                step.begin_epoch(self.progress.epoch)
            batches = self.epochs.batches(self.progress.epoch, self.progress.batch)
            group: list[SharedBatch] = []
            for batch in batches:
                self.progress.batch += 1
                group.append(batch)
                if len(group) == self.options.accumulate:
                    yield group
                    group = []
            if group:  # the remaining batches of an epoch make a smaller update
                yield group
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0

    def _update(self, batches: list[SharedBatch], rate: float, display: Display) -> None:
        """Make one update, or skip it if the loss or a gradient is not a finite number.

        Raises:
            UserError: too many consecutive updates were skipped.
        """
        tokens = sum(batch.target_tokens for batch in batches)
        for step in self.steps:
            step.begin_update(self._done())
        rate *= sum(batch.rate for batch in batches) / len(batches)
        if self._captured and batches[0].rows:
            with part("captured"), self._counted(tokens):
                figures = self._captured(batches[0].rows, rate)
            self._unread.append(_Update(self.progress.step + 1, tokens, Download(figures)))
            self._update_ema()
            self._read_figures(display, unread=1)
            return
        losses = []
        with self._computing(self.weights.model), self._counted(tokens):
            for batch in batches:
                with part("data"):
                    rows = self.weights.rows(batch.rows)
                if rows is None:
                    continue
                with part("forward"), mixed_precision(self.device, enabled=self.precision.bfloat16):
                    loss = self.weights.loss(rows, self.options.label_smoothing)
                with part("backward"):
                    self.weights.backward(loss.smoothed / tokens, last=batch is batches[-1])
                losses.append(loss)
        with part("backward"):
            self.weights.sum_gradients()
        for step in self.steps:
            step.change_gradients()
        figures = self.workers.sum_tensor(sums(losses, self.device, *self._clock_and_signal()))
        with part("optimizer"):
            norm = self.weights.clip_grad_norm(self.options.clip_norm)
        finite = figures[0].isfinite() & norm.isfinite()
        update = _Update(self.progress.step + 1, tokens, Download(torch.cat([figures, norm[None].to(figures)])))
        if self.optimizer.skips_on_device:
            # The host reads one update later whether this one was skipped; the average then repeats the old weights.
            self._unread.append(update)
            with part("optimizer"):
                self.optimizer.step(rate, finite)
            self._update_ema()
            self._read_figures(display, unread=1)
        elif self._record_update(update, display):
            with part("optimizer"):
                self.optimizer.step(rate)
            self._update_ema()
        else:
            self.optimizer.zero_grad()

    def _counted(self, tokens: int) -> AbstractContextManager[None]:
        if self.profile is None:
            return nullcontext()
        return self.profile.counted(tokens, compiled=isinstance(self.weights.loss, CompiledLoss))

    @contextmanager
    def _computing(self, model: Model) -> Iterator[None]:
        """Let a model compute as all steps want it."""
        with ExitStack() as stack:
            for step in self.steps:
                stack.enter_context(step.computing(model))
            yield

    def measure(self, model: Model, validator: Validator | None = None) -> Validation:
        """Return the figures of a validation; all processes must call this together."""
        with self._computing(model):
            return (validator or self.validator).measure(model, self.device, self.workers)

    def _read_figures(self, display: Display, *, unread: int = 0) -> None:
        """Record the figures of updates, except for the last `unread`, which may not have reached the host yet."""
        while len(self._unread) > unread:
            self._record_update(self._unread.popleft(), display)

    def _record_update(self, update: _Update, display: Display) -> bool:
        """Record the figures of an update; return whether they are finite, without which the update is skipped.

        Raises:
            UserError: too many consecutive updates were skipped.
        """
        entropy, correct, tokens, reward, samples, *self._shared_clock_and_signal, norm = update.figures.read().tolist()
        if not (math.isfinite(entropy) and math.isfinite(norm)):
            self._skip(update.step, entropy / update.tokens, norm, display)
            return False
        self.skipped_in_a_row = 0
        self.recent.add(entropy, int(correct), int(tokens), reward / samples if samples else None)
        return True

    def _skip(self, step: int, loss: float, norm: float, display: Display) -> None:
        """Count a skipped update; only several in a row are a reason to stop."""
        self.progress.skipped += 1
        self.skipped_in_a_row += 1
        what = f"the loss is {loss:.3g} at step {step}, gradient norm {norm:.3g}"
        if self.skipped_in_a_row == PATIENCE_WITH_NAN:
            raise UserError(
                f"{what}, for the {PATIENCE_WITH_NAN}th time in a row",
                fix=f"Lower training.learning_rate (now {self.options.learning_rate:g}), lengthen training.warmup, "
                "or set training.precision=float32; the last checkpoint is untouched, "
                "and `resume=True` continues from it.",
            )
        display.note(f"{what}: this update is skipped ({self.progress.skipped} so far)")

    def _update_ema(self) -> None:
        """Update the EMA of the weights.

        Its decay is lower in the first updates, so that it soon forgets the initial weights.
        """
        step = self.progress.step
        self.weights.update_ema(min(self.options.averaging, (1 + step) / (10 + step)))

    def _clock_and_signal(self) -> list[float]:
        """Return the time of this training, 0 except in the first process, and the number of this process's signal."""
        return [time.monotonic() - self._started if self.workers.leads else 0.0, self._interrupt.signal_number]

    def _done(self) -> float:
        """Return the share of the training that is over, by the limit that will be reached first."""
        o, progress = self.options, self.progress
        shares = [0.0]
        if o.max_steps:
            shares.append(progress.step / o.max_steps)
        if o.max_epochs:
            shares.append((progress.epoch + self.epochs.done(progress.epoch, progress.batch)) / o.max_epochs)
        if o.max_minutes:
            shares.append(progress.seconds / 60 / o.max_minutes)
        return min(max(shares), 1.0)

    @property
    def finished(self) -> bool:
        """Whether a limit is reached, or validations have stopped improving."""
        stale = self.options.patience is not None and self.progress.stale >= self.options.patience
        return self._done() >= 1 or stale

    def _status(self, rate: float) -> Status:
        p, recent = self.progress, self.recent
        figures = p.step, p.epoch, self._done(), p.seconds, *recent.figures(), rate, p.skipped, recent.reward
        loss = self.weights.loss
        return Status(*figures, loss.seconds if isinstance(loss, CompiledLoss) and loss.enabled else None)

    def _validate(self, record: Record | None, display: Display) -> Validation:
        with self.weights.ema_model() as model:
            validation = self.measure(model)
            best = self.validator.is_better(validation, self.progress.best_score, self.progress.best_loss)
            self.progress.stale = 0 if best else self.progress.stale + 1
            if best:
                self.keep(model, validation)
        if record:
            record.write_validation(self.progress.step, self.progress.seconds, validation)
            display.validation(self.progress.step, validation, self.validator.describe(validation.score), best)
        self.recent.last_update = time.monotonic()  # the speed of the next update excludes the validation
        return validation

    def keep(self, model: Model, validation: Validation) -> None:
        """Save the averaged weights as the best ones, with the figures of their validation."""
        self.progress.best_score, self.progress.best_loss = validation.score, validation.loss
        self.progress.best_step, self.progress.kept = self.progress.step, validation.measures
        self._save_best(model, validation.measures)

    def _save_best(self, model: Model, facts: dict[str, float]) -> None:
        if self.workers.leads:
            facts = {"step": self.progress.step, **facts}
            self.run.save_model(model, self.validator.tokenizer, facts)
            for step in self.steps:
                step.save_best(self.run, model, facts)

    def save(self) -> None:
        """Write a checkpoint with everything for an exact continuation, such as the random states of all processes."""
        states = self.workers.gather(self._process_states())
        tensors = self.weights.tensors()
        for index, moments in self.optimizer.moments().items():
            for name, tensor in moments.items():
                tensors[f"optimizer.{index}.{name}"] = self.weights.full_tensor(tensor)
        if not self.workers.leads:
            return
        for rank, state in enumerate(states):
            tensors |= {f"process.{rank}.{name}": tensor for name, tensor in state.items()}
        facts: dict[str, Any] = {"place": asdict(self.progress), **self.recent.facts(), "origin": self.origin}
        facts |= {"validated on": self.validated_on, "precision": self.precision.name}
        if self.compiled is not None:
            facts["compiled"] = self.compiled
        self.run.save_state(tensors, facts)

    def resume(self, state: Checkpoint, say: Callable[[str], None]) -> None:
        """Restore a checkpoint; nothing is written.

        Args:
            state: the checkpoint.
            say: a function for one line to the user if the best model so far is damaged and will be replaced, or if
                the validation data has changed.

        Raises:
            UserError: the checkpoint belongs to other text, another tokenizer, other settings, or another run.
        """
        try:
            self._restore(*state)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            fix = "Begin a new run with another `out`."
            raise UserError("is not a checkpoint of this run", file=self.run.state_file, fix=fix) from error
        self._check_best(say)
        checkpoint_validation = state[1].get("validated on")
        if isinstance(checkpoint_validation, dict) and checkpoint_validation != self.validated_on:
            forget_scores(self, checkpoint_validation, say)

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.run.refuse_changes(facts["origin"], self.origin)
        self.weights.load(tensors, self.run.state_file)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in with_prefix("optimizer.", tensors).items():
            index, _, moment = name.partition(".")
            shard = self.weights.shard(tensor, self.weights.parameters[int(index)])
            moments.setdefault(int(index), {})[moment] = shard
        self.optimizer.restore(moments)
        self.progress, self.recent = Progress(**facts["place"]), Recent(facts["recent"], facts.get("rewards", ()))
        self.validator.initial_measures = self.progress.before
        if self.options.compile == "auto":
            self.compiled = facts.get("compiled")
            if isinstance(self.weights.loss, CompiledLoss):
                self.weights.loss.enabled = bool(self.compiled)
        self._restore_process_states(with_prefix(f"process.{self.workers.rank}.", tensors))
        if isinstance(self.weights.loss, CarriedLoss):
            self.weights.loss.restore(self.workers.rank, self.workers.count, tensors, self.device)

    def _check_best(self, say: Callable[[str], None]) -> None:
        if self.progress.best_score is not None:
            try:
                self.run.check_model()
            except UserError as error:
                say(f"{error} The next validation writes another.")
                self.progress.best_score, self.progress.best_step = None, 0

    def _process_states(self) -> dict[str, Tensor]:
        """Return the states that differ between processes: random states, and the state of a carried loss."""
        states = random_states(self.device)
        if isinstance(self.weights.loss, CarriedLoss):
            states |= {f"carried.{name}": tensor.cpu() for name, tensor in self.weights.loss.state_tensors().items()}
        return states

    def _restore_process_states(self, states: dict[str, Tensor]) -> None:
        if "cpu" not in states:  # the checkpoint has fewer processes, so this one starts with a new seed
            torch.manual_seed(hash((self.options.seed, self.workers.rank, self.progress.step)))
        restore_random_states(states, self.device)


MAX_SENTENCES = 5000
"""The maximum number of sentences that the comparison at the end of a training translates with each of the weights."""


def keep_better(trainer: Trainer, last: Validation, record: Record | None, display: Display) -> None:
    """Compare the best weights so far with the last ones on all validation sentences, and keep the better ones.

    Validations translate some of the sentences, and choose the highest of many scores. So noise decides between
    neighboring validations, and may prefer weights from before the learning rate has decreased to the last ones.
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
    trainer.workers.wait()  # until the first process has written the best weights
    best_model = trainer.run.load_model(trainer.run.configuration(), validator.tokenizer).to(trainer.device)
    best_figures = trainer.measure(best_model, validator)
    with trainer.weights.ema_model() as model:
        last_figures = trainer.measure(model, validator)
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


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Return the states by name: that of the CPU, and that of the device if it is a GPU."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore the states that `random_states` returned; a generator without a state there stays unchanged."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    elif device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


class Interrupt:
    """A context in which the first Ctrl-C or SIGTERM only requests the end, and a second one ends at once."""

    def __init__(self) -> None:
        self.signal_number = 0
        """The number of the signal that asked for the end; 0 if none has."""
        self.previous_handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.previous_handlers[number] = signal.signal(number, self._request_end)
            except ValueError:  # not the main thread, the only one that may set handlers; the caller handles signals
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.previous_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _request_end(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number:
            raise Interrupted(number)
        self.signal_number = number


def create_weights(model: Model, options: TrainingOptions, device: torch.device, workers: Workers) -> Weights:
    """Return the weights of a model, distributed over the processes if the options ask for it."""
    if is_sharded(options, workers):
        from translucid.training.hardware.sharding import ShardedWeights  # imported here because it takes a second

        assert isinstance(model, SequenceModel)
        return ShardedWeights(model, device, workers)
    compiles: bool | None = None
    if options.compile != "auto":
        compiles = options.compile
    elif reason_against_compiling(options, model):
        compiles = False
    return Weights(model, device, workers, compiles=compiles)
