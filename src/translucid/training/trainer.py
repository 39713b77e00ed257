"""The training loop of every model: gradient accumulation, validation, checkpoints, early stopping."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from torch import Tensor

from translucid.ground.errors import UserError
from translucid.kernels.rounding import bfloat16_is_quick, mixed_precision
from translucid.kernels.transfer import Download
from translucid.layers.low_rank import differences
from translucid.models.protocol import Model, SequenceModel
from translucid.runs.adapters import save_adapter
from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.dataset import GENERAL_PAIRS
from translucid.training.display import Display, Status
from translucid.training.epochs import Epochs, Shared
from translucid.training.interrupt import Interrupt
from translucid.training.objective import sums
from translucid.training.optimizer import Optimizer
from translucid.training.progress import Progress
from translucid.training.random_states import random_states, restore_random_states
from translucid.training.record import Recent, Record
from translucid.training.schedule import learning_rate, self_critical, short_warmup
from translucid.training.self_critical import Reward, SelfCritical
from translucid.training.stay_close import L2SP, DistillationLoss
from translucid.training.stream_loss import carried_by
from translucid.training.validation import GENERAL, Validator
from translucid.training.weights import Weights, under
from translucid.training.workers import Workers

Checkpoint = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors and facts, as a run folder saves them."""
BEGUN = "the model of training.begin_from"
"""What its fingerprint is called in a checkpoint, where it is needed to go on."""
PATIENCE_WITH_NAN = 5
"""Updates in a row without a finite loss, after which the training stops."""


class _Made(NamedTuple):
    """An update, whose figures may still be on their way to the host."""

    step: int
    tokens: int
    """Target tokens of all processes."""
    figures: Download
    """[8] the sums of `Loss.figures`, the first process's clock, the signals sent to all, and the gradient's length."""


class Trainer:
    """Updates a model batch by batch, keeps a running average of its weights, and saves the best average."""

    def __init__(
        self,
        model: Model,
        epochs: Epochs,
        validator: Validator,
        run: RunFolder,
        options: TrainingOptions,
        device: torch.device,
        workers: Workers | None = None,
        origin: dict[str, str] | None = None,
        reward: Reward | None = None,
        *,
        validated_on: Mapping[str, str] | None = None,
        begins_ready: bool = True,
    ) -> None:
        """Nothing is read or written yet; `resume` goes back to the last checkpoint, `fit` trains.

        `origin`: fingerprints, by name, of what must be the same when the training is resumed; `reward`: of what the
        model draws itself, for its self-critical share; `validated_on`: see `TrainingData`;
        `begins_ready`: see `Progress`.
        """
        self._has_earlier_best = False
        """Whether the best weights by scores that are not compared any more are kept until the next validation."""
        self.interrupted = 0
        """The number of the signal that has ended `fit`; 0 if none has."""
        self.workers, self.origin, self.validated_on = workers or Workers(), origin or {}, dict(validated_on or {})
        self.weights = _weights(model, options, device, self.workers)
        self.epochs, self.validator, self.run, self.options, self.device = epochs, validator, run, options, device
        self.critical: SelfCritical | None = None
        if reward:
            assert isinstance(self.weights.model, SequenceModel)
            self.critical = SelfCritical(self.weights.model, reward)
        self.progress = Progress(begins_ready=begins_ready)
        self.recent, self.skipped_in_a_row = Recent(), 0
        self._unread: deque[_Made] = deque()
        """The last updates, as far as their figures may still be on their way to the host."""
        self._started, self._interrupt = time.monotonic(), Interrupt()
        self._agreed = [0.0, 0.0]  # what `_clock_and_signal` gave in all processes together, as far as it is read
        self.bfloat16 = options.precision == "bfloat16" or (options.precision == "auto" and bfloat16_is_quick(device))
        self.anchor = L2SP(self.weights.parameters, options.l2_sp) if options.l2_sp else None
        if options.distillation_weight:
            assert isinstance(self.weights.model, SequenceModel)
            self.weights.loss = DistillationLoss(self.weights.model, options.distillation_weight)
        validator.bfloat16 = self.bfloat16 and device.type == "cuda"
        self.optimizer = Optimizer(options, model, self.weights.parameters, bfloat16=self.bfloat16)

    def fit(self, display: Display) -> Progress:
        """Train until a limit is reached, validations stop getting better, or Ctrl-C; everything is saved then.

        Raises:
            UserError: the loss is no longer a finite number.
        """
        record = Record(self.run, self.progress.step) if self.workers.leads else None
        saved, asked, told, updates = self.progress.seconds, 0.0, "", self._updates()
        self._started, self._interrupt, self._agreed = time.monotonic() - saved, Interrupt(), [saved, asked]
        with self._interrupt, display, self.workers.updating():
            if self.options.begin_from and self.validator.compares and self.progress.before is None:
                self._validate(record, display)
                self.progress.before = self.progress.kept
                self.validator.before = self.progress.before
                if not self.progress.begins_ready:
                    self.progress.best_score = None
                self.save()
            while not self.over and not asked:
                rate = learning_rate(self.options, self.progress.step + 1, self._done())
                self._update(next(updates), rate, display)
                self.progress.step += 1
                # All processes go by the clock of the first, and end together when one of them is asked to.
                self.progress.seconds, asked = self._agreed if self.workers.count > 1 else self._clock_and_signal()
                if not told and (told := short_warmup(self.options, self.progress.step, self._done())):
                    display.note(told)
                if record and self.recent.window:  # empty as long as every update was skipped
                    display.status(self._status(rate))
                    if self.progress.step % self.options.log_every == 0:
                        record.write_training(self._status(rate))
                due = self.progress.step % self.options.validate_every == 0
                saves = due or self.over or self.progress.seconds - saved > 60 * self.options.save_minutes
                if saves or asked:
                    self._read(display)
                if due or self.over:
                    self._validate(record, display)
                    self.progress.seconds, _ = self.workers.sum(*self._clock_and_signal())
                if saves:
                    self.save()
                    saved = self.progress.seconds
            if asked:
                self.interrupted = max(self.workers.gather(self._interrupt.asked))
                self.save()
                # Nothing was validated yet, but there shall be something to try.
                if self.progress.best_score is None and not self._has_earlier_best:
                    with self.weights.averaged_model() as model:
                        self._save_best(model, {})
        if record:
            record.close()
        return self.progress

    def _updates(self) -> Iterator[list[Shared]]:
        """Yield the batches of each update, from where the training stands, epoch after epoch."""
        while True:
            self.optimizer.layers.begin(self.progress.epoch)
            batches = self.epochs.batches(self.progress.epoch, self.progress.batch)
            group: list[Shared] = []
            for batch in batches:
                self.progress.batch += 1
                group.append(batch)
                if len(group) == self.options.accumulate:
                    yield group
                    group = []
            if group:  # batches left over at the end of an epoch make a smaller update of their own
                yield group
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0

    def _update(self, batches: list[Shared], rate: float, display: Display) -> None:
        """Make one update, or skip it if the loss or a gradient is not a finite number.

        Raises:
            UserError: that has happened too often in a row.
        """
        tokens = sum(batch.target_tokens for batch in batches)
        loss_of = self.weights.loss
        if self.critical and self_critical(self.options, self._done()):
            loss_of = self.critical
        losses = []
        for batch in batches:
            rows = self.weights.rows(batch.rows)
            if rows is None:
                continue
            with mixed_precision(self.device, wanted=self.bfloat16):
                loss = loss_of(rows, self.options.label_smoothing)
            self.weights.backward(loss.smoothed / tokens, last=batch is batches[-1])
            losses.append(loss)
        self.weights.sum_gradients()
        if self.anchor:
            self.anchor.pull()
        figures = self.workers.sum_tensor(sums(losses, self.device, *self._clock_and_signal()))
        norm = self.weights.clip(self.options.clip_norm)
        finite = figures[0].isfinite() & norm.isfinite()
        made = _Made(self.progress.step + 1, tokens, Download(torch.cat([figures, norm[None].to(figures)])))
        share = sum(batch.rate for batch in batches) / len(batches)
        if self.optimizer.skips_on_device:
            # The host learns one update later if it was skipped; the average takes in weights that have not moved.
            self._unread.append(made)
            self.optimizer.step(rate * share, finite)
            self._average()
            self._read(display, unread=1)
        elif self._take(made, display):
            self.optimizer.step(rate * share)
            self._average()
        else:
            self.optimizer.zero_grad()

    def _read(self, display: Display, *, unread: int = 0) -> None:
        """Take in the figures of the updates made, but for the last few, which may not have reached the host yet."""
        while len(self._unread) > unread:
            self._take(self._unread.popleft(), display)

    def _take(self, made: _Made, display: Display) -> bool:
        """Take in the figures of an update; return whether it was made, as it is if all is finite.

        Raises:
            UserError: updates have been skipped too often in a row.
        """
        entropy, correct, said, reward, drawn, *self._agreed, norm = made.figures.read().tolist()
        if not (math.isfinite(entropy) and math.isfinite(norm)):
            self._skip(made.step, entropy / made.tokens, norm, display)
            return False
        self.skipped_in_a_row = 0
        self.recent.add(entropy, int(correct), int(said), reward / drawn if drawn else None)
        return True

    def _skip(self, step: int, loss: float, norm: float, display: Display) -> None:
        """Count an update that left the weights as they were; one is no reason to stop, several in a row are."""
        self.progress.skipped += 1
        self.skipped_in_a_row += 1
        what = f"the loss is {loss:.3g} at step {step}, gradient norm {norm:.3g}"
        if self.skipped_in_a_row == PATIENCE_WITH_NAN:
            raise UserError(
                f"{what}, for the {PATIENCE_WITH_NAN}th time in a row",
                fix=f"Lower training.learning_rate (now {self.options.learning_rate:g}), lengthen training.warmup, or "
                "set training.precision=float32; the last checkpoint is untouched, and --resume goes on from it.",
            )
        display.note(f"{what}: this update is skipped ({self.progress.skipped} so far)")

    def _average(self) -> None:
        """Take the new weights into the average, which has less memory in the first updates."""
        step = self.progress.step
        self.weights.average(min(self.options.averaging, (1 + step) / (10 + step)) if self.options.averaging else 0.0)

    def _clock_and_signal(self) -> list[float]:
        """Return the seconds of this training, 0 but in the first process, and the signal that this one has got."""
        return [time.monotonic() - self._started if self.workers.leads else 0.0, self._interrupt.asked]

    def _done(self) -> float:
        """The share of the training that is over, by the limit that comes first."""
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
    def over(self) -> bool:
        """Whether a limit is reached, or validations have stopped getting better."""
        stale = self.options.patience is not None and self.progress.stale >= self.options.patience
        return self._done() >= 1 or stale

    def _status(self, rate: float) -> Status:
        p = self.progress
        return Status(
            p.step, p.epoch, self._done(), p.seconds, *self.recent.figures(), rate, p.skipped, self.recent.reward
        )

    def _validate(self, record: Record | None, display: Display) -> None:
        with self.weights.averaged_model() as model:
            found = self.validator.measure(model, self.device, self.workers)
            best = self.validator.is_better(found, self.progress.best_score, self.progress.best_loss)
            self.progress.stale = 0 if best else self.progress.stale + 1
            if best:
                self.progress.best_score, self.progress.best_loss = found.score, found.loss
                self.progress.best_step = self.progress.step
                self.progress.kept = found.measures
                self._save_best(model, found.measures)
        if record:
            record.write_validation(self.progress.step, self.progress.seconds, found)
            display.validation(self.progress.step, found, self.validator.told(found.score), best)
        self.recent.last = time.monotonic()  # validating is no part of the next update

    def _save_best(self, model: Model, facts: dict[str, float]) -> None:
        if self.workers.leads:
            facts = {"step": self.progress.step, **facts}
            self.run.save_model(model, self.validator.tokenizer, facts)
            if self.options.adapter_rank:
                base, scale = self.origin[BEGUN], self.options.adapter_scale
                save_adapter(self.run, differences(model), scale, base, facts)

    def save(self) -> None:
        """Write all that an exact continuation needs, the random states of all processes among it."""
        states = self.workers.gather(self._own_states())
        tensors = self.weights.tensors()
        for index, moments in self.optimizer.moments().items():
            tensors |= {f"optimizer.{index}.{name}": self.weights.whole(tensor) for name, tensor in moments.items()}
        if not self.workers.leads:
            return
        for rank, state in enumerate(states):
            tensors |= {f"process.{rank}.{name}": tensor for name, tensor in state.items()}
        facts = {"place": asdict(self.progress), **self.recent.facts(), "origin": self.origin}
        facts["validated on"] = self.validated_on
        self.run.save_state(tensors, facts)

    def resume(self, state: Checkpoint, say: Callable[[str], None]) -> None:
        """Go back to a checkpoint. Nothing is written.

        Args:
            state: what the run folder has given.
            say: called with a line if the best model so far is damaged, which can't be had back and gives way to the
                next one; or if scores can't be compared with those before.

        Raises:
            UserError: it was made with other text, another tokenizer or other settings, or is none of this run.
        """
        try:
            self._restore(*state)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            fix = "Begin a new run with another --out."
            raise UserError("is not a checkpoint of this run", file=self.run.state_file, fix=fix) from error
        self._check_best(say)
        before = state[1].get("validated on")
        if isinstance(before, dict) and before != self.validated_on:
            self._compare_anew(before, say)

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.run.refuse_changes(facts["origin"], self.origin)
        self.weights.load(tensors, self.run.state_file)
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under("optimizer.", tensors).items():
            index, _, moment = name.partition(".")
            part = self.weights.part(tensor, self.weights.parameters[int(index)])
            moments.setdefault(int(index), {})[moment] = part
        self.optimizer.restore(moments)
        self.progress, self.recent = Progress(**facts["place"]), Recent(facts["recent"], facts.get("rewards", ()))
        self.validator.before = self.progress.before
        self._restore_own_states(under(f"process.{self.workers.rank}.", tensors))
        if stream := self.weights.stream:
            stream.carry(carried_by(self.workers.rank, self.workers.count, tensors), self.device)

    def _check_best(self, say: Callable[[str], None]) -> None:
        if self.progress.best_score is not None:
            try:
                self.run.check_model()
            except UserError as error:
                say(f"{error} The next validation writes another.")
                self.progress.best_score, self.progress.best_step = None, 0

    def _compare_anew(self, before: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Forget the scores of other validation data.

        Raises:
            UserError: what is not to be forgotten is measured on other pairs than before the training.
        """
        progress = self.progress
        if progress.before is not None:  # what the first weights were worth on the new pairs can't be measured any more
            self.run.refuse_changes(*({GENERAL_PAIRS: of.get(GENERAL_PAIRS, "")} for of in (before, self.validated_on)))
            if GENERAL in progress.before:
                progress.before = {GENERAL: progress.before[GENERAL]}
            else:
                progress.before = {}
            self.validator.before = progress.before
        if progress.best_score is None:
            return
        say(
            "what it is validated on has changed: scores are not compared with those before, and the next validation "
            f"replaces the weights of step {progress.best_step:,} in {self.run.model_file.name}"
        )
        self._has_earlier_best = True
        progress.best_score, progress.best_step, progress.stale, progress.kept = None, 0, 0, None

    def _own_states(self) -> dict[str, Tensor]:
        """Return what each process has of its own: random states, and what its rows of a stream carry on."""
        states = random_states(self.device)
        if stream := self.weights.stream:
            states |= {f"carried.{name}": tensor.cpu() for name, tensor in stream.carried().items()}
        return states

    def _restore_own_states(self, states: dict[str, Tensor]) -> None:
        if "cpu" not in states:  # there are more processes now than there were
            torch.manual_seed(hash((self.options.seed, self.workers.rank, self.progress.step)))
        restore_random_states(states, self.device)


def _weights(model: Model, options: TrainingOptions, device: torch.device, workers: Workers) -> Weights:
    if options.sharded and workers.count > 1:
        from translucid.training.sharding import ShardedWeights  # a second to import

        assert isinstance(model, SequenceModel)
        return ShardedWeights(model, device, workers)
    return Weights(model, device, workers, compiles=options.compile)
