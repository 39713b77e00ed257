"""The training of a language model on running text: its corpora, its epochs, its loss and its validation.

The windows of an epoch depend on nothing but the seed and its number. The loss carries the state of the model from each
window to the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from bitext.pair import Pair
from translucid.data.batching import Batch
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import sources_of
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.store import EncodedTexts, StoredTexts, TextStore
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console, progress_bar
from translucid.language.model import CarriedState, LanguageModel
from translucid.language.options import LanguageShape
from translucid.language.scores import Stream, TextScores, Windows, directions, mean_scores, score_texts, stream_of
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.data_loader import SharedBatch, prefetched
from translucid.training.dataset import (
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import Loss, non_padding_indices, smoothed_loss
from translucid.training.validation import Validation, Validator

DIRECTIONS = ("forwards", "backwards")
TEXT = "the training text"
"""The name of its fingerprint in a checkpoint."""


class RunningTextDataset:
    """The corpora of a language model."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        self.configuration, self.corpora = configuration, corpora
        assert isinstance(configuration.model, LanguageShape)
        self.backwards, self.directions = configuration.model.backwards, configuration.model.directions

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the texts that are not too long."""
        report_held_out(self.corpora, "texts", console)
        texts = keep_texts(chain.from_iterable(self.corpora.train), Skipped("text"))
        pairs = (Pair("", text.source) for text in texts)  # on the target side, as a language model generates text
        # The tag is for translators that use this vocabulary for their sources.
        tokenizer, self.configuration = learn_vocabulary(pairs, self.configuration, console, tagged=True)
        return tokenizer

    def training_data(self, start: Initialization) -> TrainingData:
        """Encode the texts as a stream in rows."""
        options = self.configuration.training
        identity = sha256(json.dumps((self.corpora.digest, start.tokenizer.fingerprint, self.backwards)))
        if start.checkpoint_fingerprints is not None:
            start.run.refuse_changes(start.checkpoint_fingerprints, {TEXT: identity})
        store = TextStore(start.run.texts_folder)
        stored = start.stored(lambda: self._encoded(start, store, identity), lambda: store.open(identity))
        rows = max(1, options.batch_tokens // options.window // self.directions)
        stream = stream_of(self.directions)(stored.texts, rows, options.window)
        epochs = StreamDataLoader(stream, seed=options.seed, workers=start.workers)
        valid = sources_of(self.corpora.valid)
        encoded = EncodedTexts.encode(valid, start.tokenizer, backwards=self.backwards)
        validator = StreamValidator(encoded, start.tokenizer, window=options.window)
        return TrainingData(
            epochs, validator, {TEXT: identity}, stored.skipped, {VALIDATION: sha256(json.dumps(valid))}
        )

    def _encoded(self, start: Initialization, store: TextStore, identity: str) -> StoredTexts | None:
        """Open the encoded text, or encode it if the store is missing, damaged, or made from other files."""
        corpora = self.corpora
        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        bad_lines = corpora.writing_bad_lines(start.run.bad_lines_file)
        with bad_lines, progress_bar(start.console, "encoding the text", None) as advance:
            store.build(
                corpora.train,
                start.tokenizer,
                identity=identity,
                backwards=self.backwards,
                on_texts=advance,
                bad=corpora.bad,
            )
        return store.open(identity)


class StreamDataLoader:
    """Running text in rows, divided into other windows each epoch. Each process always has the same rows."""

    def __init__(self, stream: Stream, *, seed: int, workers: Workers | None = None) -> None:
        """Store the settings; `seed` determines the windows."""
        self.stream, self.seed, self.workers = stream, seed, workers or Workers()
        self._last_windows: tuple[int, Windows] | None = None
        """The last epoch and its windows."""

    def size(self, epoch: int) -> int:
        """Return the number of windows of an epoch."""
        return len(self._windows(epoch).ends)

    def done(self, epoch: int, batch: int) -> float:
        """Return the share of an epoch's tokens before window `batch`."""
        windows = self._windows(epoch)
        return float(windows.ends[batch - 1] / windows.columns) if batch else 0.0

    def batches(self, epoch: int, first: int = 0) -> Iterator[SharedBatch]:
        """Yield the windows of an epoch from window `first` on, prepared in the background."""
        windows = self._windows(epoch)
        yield from prefetched(partial(self._window, windows), range(first, len(windows.ends)))

    def _window(self, windows: Windows, number: int) -> SharedBatch:
        batch = self.stream.batch(windows, number)
        labels = int(batch.labels.ne(0).sum())  # 0 is padding
        rows = None
        if self.workers.rank < self.stream.rows:
            rows = batch.rows(slice(self.workers.rank, None, self.workers.count)).prepared()
        # The gradient of a shorter window is a mean over fewer tokens, so its step is smaller (Merity et al. 2018,
        # section 5).
        rate = min(1.0, float(windows.lengths[number]) / self.stream.window)
        return SharedBatch(rows, max(labels, 1), rate)

    def _windows(self, epoch: int) -> Windows:
        if self._last_windows is None or self._last_windows[0] != epoch:
            self._last_windows = epoch, self.stream.random_windows(self.seed, epoch)
        return self._last_windows[1]


class StreamValidator(Validator):
    """Measures a language model on consecutive texts, without resetting its state between them."""

    def __init__(self, texts: EncodedTexts, tokenizer: Tokenizer, *, window: int) -> None:
        """Measure on texts, `window` tokens of a row at a time."""
        self.texts, self.tokenizer, self.window = texts, tokenizer, window

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Measure in the first process, because the state of a stream cannot be distributed."""
        workers = workers or Workers()
        assert isinstance(model, LanguageModel)
        size = self.texts.size
        scores = [TextScores(0, 0, 0, size)] * directions(model)
        if workers.leads:
            scores = score_texts(model, self.texts, self.window, device)
        for number, score in enumerate(scores):
            nats, correct, tokens = workers.sum(score.nats, score.correct, score.tokens)
            scores[number] = TextScores(nats, int(correct), int(tokens), size)
        mean = mean_scores(scores)
        measures = {"perplexity_word": mean.perplexity_word, "bits_per_character": mean.bits_per_character}
        if len(scores) == 2:
            for name, score in zip(DIRECTIONS, scores, strict=True):
                measures[f"perplexity_word_{name}"] = score.perplexity_word
        loss = mean.nats / max(mean.tokens, 1)
        return Validation(loss, mean.perplexity, mean.accuracy, measures, -mean.perplexity_word, [])

    def describe(self, score: float) -> str:
        """Return the score as perplexity, of which it is the negative."""
        return f"perplexity {-score:.2f} a word"


class StreamLoss:
    """The loss of each window, given the state after the window before it.

    Gradients stop at the beginning of a window (truncated backpropagation through time).
    """

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model = model
        self.state: CarriedState | None = None

    def __call__(self, window: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of the next window, regularization included."""
        model, ids = self.model, window.targets_in
        if self.state is None:
            self.state = model.begin(len(ids), ids.device)
        reading, next_state = model.read_on(ids, self.state)
        indices = non_padding_indices(window, model.pad)
        labels, features = window.labels.flatten()[indices], reading.features.flatten(0, -2).index_select(0, indices)
        loss = smoothed_loss(features, model.output, labels, smoothing)
        self.state = None
        if model.carries_state:
            # NaN would stay in the state forever, so the next window then starts from zeros.
            finite = loss.cross_entropy.isfinite()
            self.state = next_state.of(tuple(torch.where(finite, part, 0) for part in next_state.tensors()))
        regularization = model.regularization(reading) if model.training else None
        if regularization is not None:  # a mean over tokens, unlike the loss, which is a sum
            return loss._replace(smoothed=loss.smoothed + loss.tokens * regularization)
        return loss

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name."""
        return {str(index): part for index, part in enumerate(self.state.tensors())} if self.state else {}

    def restore(self, rank: int, count: int, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the state of process `rank` of `count` from the tensors of a checkpoint."""
        rows = state_of_process(rank, count, tensors)
        if rows:
            parts = tuple(rows[str(index)].to(device) for index in range(len(rows)))
            self.state = type(self.model.begin(1, device)).of(parts)


def state_of_process(rank: int, count: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state of process `rank` of `count` from a checkpoint of any number of processes.

    With n processes, process r has the rows r, r + n, r + 2 n, ..

    Args:
        rank: the rank of the process, from 0.
        count: the current number of processes.
        tensors: the tensors of the checkpoint by name, among them `process.{rank}.carried.{name}`.
    """
    ranks = set[int]()
    parts_by_name: dict[str, dict[int, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("process."):
            _, digits, kind, *state_name = name.split(".", 3)
            ranks.add(int(digits))
            if kind == "carried":
                parts_by_name.setdefault(state_name[0], {})[int(digits)] = tensor
    rows: dict[str, Tensor] = {}
    for name, parts in parts_by_name.items():
        example = next(iter(parts.values()))
        all_rows = example.new_empty(sum(map(len, parts.values())), *example.shape[1:])
        # A process without rows has no part, but counts: the number of processes determines the rows of the others.
        for part_rank, part in parts.items():
            all_rows[part_rank :: len(ranks)] = part
        rows[name] = all_rows[rank::count]
        if not len(rows[name]):  # fewer rows than processes
            return {}
    return rows
