"""Knowledge distillation from teachers, or from the initial model against catastrophic forgetting in fine-tuning.

    distillation_weight   (1 - a) loss + a sum_v -p0(v) log p(v), p0 the distribution of the initial model
                                                        (Khayrallah et al. 2018, W18-2705, section 2.2, equation 4),
                          or of teachers (word-level knowledge distillation, Kim and Rush 2016, arXiv 1606.07947,
                                                        section 3.1)

Word-level distillation needs the probabilities of the teachers at the same positions in each epoch. A few tokens have
nearly all of the probability (Tan et al. 2019, arXiv 1902.10461, keep 8), so with `training.soft_targets` these are
computed once and stored, with probabilities that sum to 1, instead of computing all in each update.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from translucid.api.loaded_run import EnsembleRuns
from translucid.data.batching import Batch, batches
from translucid.data.stores.chunked import ChunkedFiles
from translucid.data.stores.encoded import EncodedCorpus, StoredSoftTargets
from translucid.ground.console import progress_bar
from translucid.kernels.loss import Target
from translucid.models.protocol import SequenceModel
from translucid.runs.run_folder import RunFolder
from translucid.runs.training_options import TrainingOptions
from translucid.training.dataset import DatasetStep, Initialization, TrainingCorpus, sha256
from translucid.training.extras.training_step import TrainingStep
from translucid.training.objective import (
    Loss,
    batch_loss,
    encoded,
    loss_of_log_p,
    loss_of_target,
    non_padding_indices,
)
from translucid.training.weights import Weights

CHUNK = 4096
"""The number of pairs whose soft targets are stored at a time."""

POSITIONS = 256
"""The number of positions whose probabilities are in memory at a time: 10 MB for 10,000 pieces."""


def teachers_of(options: TrainingOptions) -> SequenceModel:
    """Load the mean of `training.teachers`, in evaluation mode, on the CPU.

    Raises:
        UserError: a teacher is damaged, or its vocabulary differs from that of the first one.
    """
    folder = RunFolder(Path(options.teachers[0]))
    return EnsembleRuns.of(folder, folder.configuration(), folder.tokenizer(), options.teachers[1:]).model()


def with_soft_targets(
    pairs: EncodedCorpus, fingerprint: str, start: Initialization, options: TrainingOptions
) -> EncodedCorpus:
    """Return a corpus with its soft targets, which are computed unless the run folder has them.

    Args:
        pairs: the corpus.
        fingerprint: a string that differs for other corpora.
        start: the run folder and the device of the training.
        options: the teachers and the number of tokens.

    Raises:
        UserError: a teacher can't be used, or the disk is full.
    """
    count = min(options.soft_targets, start.tokenizer.target_size)
    digests = [RunFolder(Path(teacher)).model_digest() for teacher in options.teachers]
    identity = sha256(json.dumps([fingerprint, digests, count]))
    files = ChunkedFiles(start.run.soft_targets_folder, ("tokens", "probabilities"), _types)

    def reopen() -> StoredSoftTargets | None:
        store = files.open(identity)
        if store is None:
            return None
        tokens, probabilities = (array.reshape(-1, count) for array in store[0])
        return StoredSoftTargets(tokens, probabilities)

    def make() -> StoredSoftTargets | None:
        if stored := start.reopened(reopen):
            return stored
        device = next(start.model.parameters()).device
        teacher = teachers_of(options).to(device)
        width = 2 if start.tokenizer.target_size <= 1 << 16 else 4
        done = sum(chunk["pairs"] for chunk in files.begin(identity))
        with progress_bar(start.console, "computing the soft targets", len(pairs)) as advance:
            advance(done)
            for first in range(done, len(pairs), CHUNK):
                rows = np.arange(first, min(first + CHUNK, len(pairs)))
                tokens, probabilities = _soft_targets(teacher, pairs, rows, count, options.batch_tokens)
                dtype, _ = _types(width)
                files.append([tokens.astype(dtype).ravel(), probabilities.ravel()], {"pairs": len(rows)})
                advance(len(rows))
        files.end({"sizes": [len(pairs)]})
        return reopen()

    return replace(pairs, soft_targets=start.stored(make, reopen))


def _types(width: int) -> list[np.dtype[Any]]:
    return [np.dtype(f"u{width}"), np.dtype(np.float16)]


@torch.no_grad()
def _soft_targets(
    teacher: SequenceModel, pairs: EncodedCorpus, rows: NDArray[np.int64], count: int, batch_tokens: int
) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
    """Return the tokens and probabilities, each [tokens, K], of consecutive pairs."""
    device = next(teacher.parameters()).device
    first_offset = pairs.target_offsets[rows[0]]
    tokens = np.empty((pairs.target_tokens(rows), count), np.int64)
    probabilities = np.empty(tokens.shape, np.float16)
    lengths = np.maximum(*pairs.lengths_of(rows))
    order = np.argsort(-lengths, kind="stable").tolist()
    for pair_indices in batches(order, lengths.tolist(), batch_tokens):
        # Positions of a batch are in the order of its pairs.
        spans = [np.arange(*pairs.target_offsets[row : row + 2]) - first_offset for row in rows[pair_indices]]
        batch = pairs.batch(rows[pair_indices]).prepared().to(device)
        memory = teacher.encode(batch.source, batch.lengths)
        features = teacher.features(memory, batch.targets_in).flatten(0, 1)
        features = features.index_select(0, non_padding_indices(batch, teacher.pad))
        indices = torch.from_numpy(np.concatenate(spans))
        # The probabilities of a whole batch are hundreds of megabytes; allocating these takes longer than filling them.
        for chunk, chunk_indices in zip(features.split(POSITIONS), indices.split(POSITIONS), strict=True):
            best = teacher.output(chunk).float().softmax(-1).topk(count)
            tokens[chunk_indices] = best.indices.cpu().numpy()
            probabilities[chunk_indices] = best.values.cpu().numpy()
    return tokens, probabilities


class DistillationLoss:
    """A mean of the loss of a batch and the cross-entropy to the distribution of a teacher."""

    def __init__(self, model: SequenceModel, share: float, teacher: SequenceModel | None = None) -> None:
        """Store the model and its teacher.

        Args:
            model: the model that learns.
            share: a.
            teacher: a model with the same vocabulary on the same device; a copy of the current model by default.
        """
        self.model, self.share = model, share
        self.teacher = (teacher or copy.deepcopy(model)).eval().requires_grad_(False)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch; only the objective differs from that of `batch_loss`."""
        with torch.no_grad():
            memory = encoded(self.teacher, batch)
            features = self.teacher.features(memory, batch.targets_in).flatten(0, 1)
            if not batch.packing:
                features = features.index_select(0, non_padding_indices(batch, self.teacher.pad))
            p_teacher = self.teacher.output(features).float().softmax(-1)  # [n, V]

        def loss_of(features: Tensor, output: nn.Linear, target: Target) -> Loss:
            log_p = output(features).float().log_softmax(-1)
            loss = loss_of_log_p(log_p, target)
            distillation = -target.weighted(p_teacher * log_p).sum()
            return loss._replace(smoothed=(1 - self.share) * loss.smoothed + self.share * distillation)

        return batch_loss(self.model, batch, smoothing, loss_of)


class SoftTargetLoss:
    """The same mean, with the most probable tokens of teachers that the batch contains."""

    def __init__(self, model: SequenceModel, share: float) -> None:
        self.model, self.share = model, share

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch."""

        def loss_of(features: Tensor, output: nn.Linear, target: Target) -> Loss:
            return loss_of_target(features, output, target._replace(soft=batch.soft_targets, share=self.share))

        return batch_loss(self.model, batch, smoothing, loss_of)


class Distillation(TrainingStep):
    """Adds the cross-entropy to the distribution of teachers or of the initial model."""

    needs_initial_weights = True

    def fingerprints(self) -> Mapping[str, str]:
        """Return those of the initial model and of the teachers."""
        digests = " ".join(RunFolder(Path(run)).model_digest() for run in self.options.teachers)
        teachers = {"the models of training.teachers": digests} if digests else {}
        return self.fingerprint_of_initial_model() | teachers

    def begin(self, weights: Weights) -> None:
        """Replace the loss.

        Raises:
            UserError: a teacher is damaged, or its vocabulary differs from that of the first one.
        """
        options = self.options
        assert isinstance(weights.model, SequenceModel)
        if options.soft_targets:
            weights.loss = SoftTargetLoss(weights.model, options.distillation_weight)
        else:
            teacher = teachers_of(options).to(weights.device) if options.teachers else None
            weights.loss = DistillationLoss(weights.model, options.distillation_weight, teacher)


class SoftTargets(DatasetStep):
    """Adds the soft targets of the teachers to the encoded pairs."""

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Compute the soft targets, unless the run folder has them.

        Raises:
            UserError: a teacher can't be used, or the disk is full.
        """
        stored = corpus.stored
        corpus.pairs = with_soft_targets(stored.pairs, stored.fingerprint, start, self.configuration.training)
