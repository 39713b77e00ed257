"""Learning a dictionary: the transcoders of all feed-forward sublayers of a translator, at once.

A transcoder begins with the neurons of its sublayer, and learns in two phases. With x and y, the input and the output
of sublayer l, and v_l, the variance of its output:

    sum_l ( |y - t_l(x)|^2 / v_l + 1/16 |e - e'|^2 / |e|^2 )      first on the states of the original model alone,
                                            + c KL(p || p')       then also what counts in the end

e is what the transcoder leaves unexplained, and e' what its dead features, which have not been active for many tokens,
explain of it (Gao et al. 2024, arXiv 2406.04093, appendix A.2): they learn what is missing, and come back to life. p is
the distribution of the next target token, and p' that of the model in which the transcoders replace all sublayers at
once.

States are computed in batches when they are needed, and not stored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from translucid.api.translator import Translator
from translucid.circuits.dictionary import Dictionary, DictionaryConfiguration, sublayers_of
from translucid.circuits.replacement import read_states, with_sublayers
from translucid.circuits.transcoder import Transcoder, top_k
from translucid.data.batching import bucketed_batches, padded
from translucid.data.readers.corpus import read_lines
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.models.protocol import SequenceModel
from translucid.runs.corpus_files import pairs_of
from translucid.runs.run_folder import CIRCUITS, RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors
from translucid.training.trainer import Interrupt

EXPANSION, ACTIVE, UPDATES = 8, 32, 600
"""The defaults: F / D, k and the number of updates."""
RATE = 1e-3
"""Adam's learning rate, which decreases linearly to 0."""
JOINT = 0.6
"""The share of the updates that belongs to the second phase."""
DIVERGENCE = 2.0
"""c, the weight of the divergence in nats."""
DEAD_AFTER = 20_000
"""The number of tokens without activity after which a feature is dead."""
AUXILIARY = 1 / 16
"""The weight of what dead features leave unexplained."""
LARGEST_LOGITS = 1 << 24
"""The largest number of logits that are compared in an update."""
SAVE_EVERY = 60.0
"""Seconds between checkpoints."""
Ids = tuple[list[int], list[int]]


@dataclass(frozen=True)
class FeatureOptions:
    """How to learn a dictionary."""

    expansion: int = EXPANSION
    """F / D, the number of features of a sublayer for each dimension of its input."""
    active: int = ACTIVE
    """k, the largest number of active features at a position."""
    updates: int = UPDATES
    seed: int = 1
    batch_tokens: int = 1024
    """The number of source or target tokens of a batch, padding included."""


def learn_features(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    options: FeatureOptions | None = None,
    *,
    console: Console,
    text: Sequence[str] = (),
    resume: bool = False,
) -> Dictionary:
    """Learn the dictionary of a translator; an interruption leaves a checkpoint in `RUN/circuits/state`.

    The same seed gives bit-identical dictionaries on the same machine, also with an interruption.

    Args:
        translator: the translator, with the weights of its run and the PyTorch engine.
        pairs: sources and their translations; those that are too long for the model are left out.
        options: how to learn.
        console: shows the progress.
        text: the names of the files of the pairs, for the configuration of the dictionary.
        resume: whether to continue from the checkpoint; a complete dictionary is returned as it is.

    Raises:
        UserError: the model has no feed-forward sublayers or other weights than its run, there are no pairs, or the
            checkpoint is missing or belongs to another dictionary.
        Interrupted: by Ctrl-C or SIGTERM, after the checkpoint has been saved.
    """
    options = options or FeatureOptions()
    loaded = translator.loaded
    sublayers_of(translator.model)
    if not loaded.as_trained:
        what = "features are learned from the run's own weights"
        raise UserError(what, fix="Load it without adapter and without interventions.")
    ids = translator.pipeline.short_pairs(pairs)
    if not ids:
        raise UserError("there are no pairs to learn features from", fix="Give some that the model can read.")
    configuration = DictionaryConfiguration(
        loaded.folder.model_digest(),
        options.expansion,
        options.active,
        options.updates,
        options.seed,
        tuple(text),
        len(ids),
    )
    learner = Learner(translator.model, ids, options, translator.device)
    checkpoint = Checkpoint(loaded.folder, {**asdict(options), "model": configuration.model, "pairs": len(ids)})
    if resume:
        if not checkpoint.file.exists() and (complete := complete_dictionary(loaded.folder, configuration)):
            return complete
        learner.load_state(*checkpoint.load())
    saved = time.monotonic()
    with progress_bar(console, "learning features", options.updates) as advance, Interrupt() as interrupt:
        advance(learner.update)
        for _ in learner.learn():
            advance(1)
            if interrupt.signal_number or time.monotonic() - saved > SAVE_EVERY:
                checkpoint.save(*learner.state())
                saved = time.monotonic()
            if interrupt.signal_number:
                raise Interrupted(interrupt.signal_number)
    dictionary = Dictionary(learner.finished(), configuration)
    dictionary.save(loaded.folder)
    checkpoint.remove()
    return dictionary


def complete_dictionary(run: RunFolder, configuration: DictionaryConfiguration) -> Dictionary | None:
    """Return the dictionary of a run if it was learned in this way: only its figures are still to be measured."""
    try:
        dictionary = Dictionary.load(run)
    except UserError:
        return None
    return dictionary if dictionary.configuration == configuration else None


def has_sources(file: str) -> bool:
    """Return whether a file of a text has sources only."""
    return bool(re.search(r"\.txt(\.\w+)?$", file)) and "{" not in file


def text_pairs(translator: Translator, files: Sequence[str], *, console: Console) -> list[tuple[str, str]]:
    """Read the pairs of files; the lines of a `.txt` are sources, which are translated first, by greedy search.

    Raises:
        UserError: a file or a line can't be read, or has other languages.
    """
    pairs: list[tuple[str, str]] = []
    for file in files:
        if not has_sources(file):
            pairs += [(pair.source, pair.target) for pair in pairs_of(translator.configuration.data, file)]
            continue
        sources = [line for line in read_lines(Path(file)) if line.strip()]
        folder, configuration = translator.loaded.folder, translator.configuration
        fast = Translator.open(folder, configuration, translator.loaded.device)
        options = configuration.decoding_with({"beam": 1})
        with progress_bar(console, "translating the text", len(sources)) as advance:
            for translation in fast.stream(sources, options, on_done=advance):
                pairs.append((translation.source, translation.text))
    return pairs


class Checkpoint:
    """The state of an interrupted learning in the run folder."""

    def __init__(self, run: RunFolder, identity: Mapping[str, Any]) -> None:
        """`identity`: what must be the same when the learning continues."""
        self.identity = dict(identity)
        self.file = run.path / CIRCUITS / "state" / "checkpoint.safetensors"

    def save(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Write the state atomically."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        save_tensors(self.file, tensors, {**facts, "identity": self.identity})

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Read the state.

        Raises:
            UserError: there is none, it is damaged, or it is that of another dictionary.
        """
        if not self.file.exists():
            raise UserError("there is nothing to resume", file=self.file.parent, fix="Leave `resume=True` out.")
        tensors, facts = load_tensors(self.file)
        if facts.get("identity") != self.identity:
            what = "is the state of a dictionary with other options, other text or another model"
            raise UserError(what, file=self.file, fix="Give the same ones, or leave `resume=True` out.")
        return tensors, facts

    def remove(self) -> None:
        """Remove the state, after the dictionary is complete."""
        if self.file.exists():
            self.file.unlink()
            self.file.parent.rmdir()


class Learner:
    """Transcoders and their optimizer."""

    def __init__(
        self, model: SequenceModel, pairs: Sequence[Ids], options: FeatureOptions, device: torch.device | str
    ) -> None:
        """Begin with the neurons of the model's sublayers; `pairs` are ids, end tokens included."""
        self.model, self.pairs, self.options, self.device = model, pairs, options, device
        self.update = 0
        sublayers = sublayers_of(model)
        self.transcoders: dict[str, Transcoder] = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            for name, sublayer in sublayers.items():
                width = sublayer.inner.in_features
                features = options.expansion * width
                if not options.active <= features:
                    raise UserError(f"there are only {features} features", fix="Give a smaller `active`.")
                self.transcoders[name] = Transcoder.of_neurons(sublayer, features, options.active).to(device)
        self.replaced = with_sublayers(model, self.transcoders)
        parameters = [parameter for transcoder in self.transcoders.values() for parameter in transcoder.parameters()]
        self.optimizer = torch.optim.Adam(parameters, RATE)
        self.idle = {name: torch.zeros(t.width, device=device) for name, t in self.transcoders.items()}
        """The number of tokens since each feature was active [F], by sublayer."""
        self.variances = self._variances()

    def _batches(self, epoch: int) -> list[Any]:
        source = np.array([len(source) for source, _ in self.pairs])
        target = np.array([len(target) for _, target in self.pairs])
        options = self.options
        return bucketed_batches(source, target, batch_tokens=options.batch_tokens, seed=options.seed, epoch=epoch)

    def _all_batches(self, first: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the sources [B, S] and targets [B, T] of each update from one on, epoch after epoch."""
        epoch = 0
        while True:
            batches = self._batches(epoch)
            for batch in batches[first:]:
                sources, targets = zip(*[self.pairs[i] for i in batch], strict=True)
                yield padded(sources, self.model.pad).to(self.device), padded(targets, self.model.pad).to(self.device)
            first = max(0, first - len(batches))
            epoch += 1

    @torch.no_grad()
    def _variances(self) -> dict[str, float]:
        """Return the variance of each sublayer's output over a few batches, summed over its dimensions."""
        rows: dict[str, list[Tensor]] = {name: [] for name in self.transcoders}
        for source, target in islice(self._all_batches(0), 8):
            for name, output in read_states(self.model, self.transcoders, source, target).outputs.items():
                rows[name].append(output)
        return {name: torch.cat(parts).var(0).sum().item() for name, parts in rows.items()}

    def learn(self) -> Iterator[None]:
        """Make the remaining updates; yields after each."""
        batches = self._all_batches(self.update)
        updates = self.options.updates
        while self.update < updates:
            source, target = next(batches)
            loss = self.loss(source, target, joint=self.update >= (1 - JOINT) * updates)
            parameters = self.optimizer.param_groups[0]["params"]
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.grad = gradient
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            self.optimizer.param_groups[0]["lr"] = RATE * (1 - self.update / updates)
            self.optimizer.step()
            for transcoder in self.transcoders.values():
                transcoder.normalize()
            self.update += 1
            yield

    def loss(self, source: Tensor, target: Tensor, *, joint: bool) -> Tensor:
        """Return the loss of a batch; `joint`: whether it is that of the second phase."""
        with torch.no_grad():
            states = read_states(self.model, self.transcoders, source, target)
        loss = torch.zeros((), device=self.device)
        for name, transcoder in self.transcoders.items():
            x, y = states.inputs[name], states.outputs[name]
            pre_activations = transcoder.pre_activations(x)
            f = top_k(pre_activations, transcoder.k)
            error = y - transcoder.decode(f)
            loss = loss + error.pow(2).sum() / len(y) / self.variances[name]
            idle = self.idle[name]
            idle.add_(len(x)).masked_fill_((f > 0).any(0), 0)
            dead = idle > DEAD_AFTER
            loss = loss + AUXILIARY * revival_loss(transcoder, pre_activations, error.detach(), dead)
        if joint:
            loss = loss + DIVERGENCE * self.divergence(source, target, states.features)
        return loss

    def divergence(self, source: Tensor, target: Tensor, features: Tensor) -> Tensor:
        """Return KL(p || p') in nats, the mean over target tokens, or some if the vocabulary is large."""
        replaced = read_states(self.replaced, (), source, target).features
        step = -(-len(features) * self.model.output.out_features // LARGEST_LOGITS)
        with torch.no_grad():
            expected = self.model.output(features[::step]).log_softmax(-1)
        log_probs = self.model.output(replaced[::step]).log_softmax(-1)
        return torch.nn.functional.kl_div(log_probs, expected, reduction="batchmean", log_target=True)

    def finished(self) -> dict[str, Transcoder]:
        """Return the transcoders, on the CPU, without gradients."""
        return {name: transcoder.cpu().requires_grad_(False) for name, transcoder in self.transcoders.items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that an exact continuation needs."""
        tensors = {f"idle.{name}": idle for name, idle in self.idle.items()}
        for name, transcoder in self.transcoders.items():
            for key, parameter in transcoder.named_parameters():
                tensors[f"{name}.{key}"] = parameter
                for moment, value in self.optimizer.state.get(parameter, {}).items():
                    tensors[f"{name}.{key}.{moment}"] = torch.as_tensor(value)
        return tensors, {"update": self.update}

    def load_state(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.update = facts["update"]
        for name, transcoder in self.transcoders.items():
            self.idle[name].copy_(tensors[f"idle.{name}"])
            for key, parameter in transcoder.named_parameters():
                parameter.data.copy_(tensors[f"{name}.{key}"])
                moments = {}
                for moment in ("step", "exp_avg", "exp_avg_sq"):
                    if f"{name}.{key}.{moment}" in tensors:
                        value = tensors[f"{name}.{key}.{moment}"]
                        moments[moment] = value if moment == "step" else value.to(self.device)
                self.optimizer.state[parameter] = moments


def revival_loss(transcoder: Transcoder, pre_activations: Tensor, error: Tensor, dead: Tensor) -> Tensor:
    """Return how much of an error [n, D] the dead features leave unexplained, relative to it; 0 without any.

    Args:
        transcoder: the transcoder.
        pre_activations: those of all features [n, F].
        error: what the active features leave.
        dead: whether a feature is dead [F].
    """
    count = min(int(dead.sum()), transcoder.decoder_weight.size(1) // 2)
    if count == 0:
        return error.new_zeros(())
    f = top_k(pre_activations.masked_fill(~dead, -torch.inf), count)
    return (error - f @ transcoder.decoder_weight).pow(2).sum() / error.pow(2).sum().clamp(min=1e-9)
