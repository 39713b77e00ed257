"""Running text as a stream of windows, and the scores of language models on it, independent of the vocabulary.

The text is cut into B rows of equal length. Each window begins where the previous one ended, so that a model can carry
its state from one window to the next (truncated backpropagation through time).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text
from torch import Tensor

from translucid.data.batching import Batch
from translucid.data.stores.store import EncodedTexts, Size
from translucid.ground.console import table_of
from translucid.ground.special import SPECIAL
from translucid.language.model import LanguageModel
from translucid.language.options import LanguageShape

ROWS = 32
"""The number of rows in which texts are read."""
CHUNK = 1024
"""The number of tokens whose logits are in memory at a time."""
LARGEST = 700.0
"""The largest exponent of e that is no overflow."""


@dataclass(frozen=True)
class TextScores:
    """The scores of some texts."""

    nats: float
    """The negative log-probability of all tokens."""
    correct: int
    """The number of tokens that the model ranks first, given those before."""
    tokens: int
    """The number of tokens, including an end token for each text."""
    size: Size
    seconds: float = 0.0

    @property
    def perplexity(self) -> float:
        """The perplexity per token, exp(nats / tokens); it compares models with the same vocabulary."""
        return math.exp(min(self.nats / max(self.tokens, 1), LARGEST))

    @property
    def perplexity_word(self) -> float:
        """The perplexity per word, exp(nats / words)."""
        return math.exp(min(self.nats / self.size.words, LARGEST))

    @property
    def bits_per_character(self) -> float:
        """The bits per character, nats / characters / log 2."""
        return self.nats / self.size.characters / math.log(2)

    @property
    def accuracy(self) -> float:
        """The share of tokens that the model ranks first."""
        return self.correct / max(self.tokens, 1)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "perplexity_word": self.perplexity_word,
            "perplexity": self.perplexity,
            "bits_per_character": self.bits_per_character,
            "token_accuracy": self.accuracy,
            "tokens": self.tokens,
            **self.size._asdict(),
            "seconds": round(self.seconds, 3),
        }

    def render(self) -> Iterator[RenderableType]:
        """Yield a table and a text for people."""
        table = table_of("metric", "score", "how", overflow="fold")
        any_vocabulary = "compares models of any vocabulary"
        for name, value, description in (
            ("perplexity a word", f"{self.perplexity_word:,.2f}", any_vocabulary),
            ("bits a character", f"{self.bits_per_character:.3f}", any_vocabulary),
            ("perplexity a token", f"{self.perplexity:,.2f}", "compares models of one vocabulary"),
            ("tokens right", f"{100 * self.accuracy:.1f}%", "ranked first, given those before"),
        ):
            table.add_row(name, Text(value, "bold"), Text(description, "dim"))
        yield table
        size, rate = self.size, self.tokens / max(self.seconds, 1e-9)
        summary = f"{size.texts:,} texts, {size.words:,} words, {size.characters:,} characters, {self.tokens:,} tokens"
        yield Text(f"{summary}, ends of texts included; {rate:,.0f} tokens/s")


@torch.inference_mode()
def score_texts(model: LanguageModel[Any], texts: EncodedTexts, window: int, device: torch.device) -> list[TextScores]:
    """Score texts, which are read one after the other in several rows, each window with its left context.

    A bidirectional model has scores for each direction.

    Args:
        model: the model in evaluation mode.
        texts: the encoded texts.
        window: the number of tokens of a row that are read at a time, if the model keeps a state.
        device: the device of the model.
    """
    count = directions(model)
    stream = stream_of(count)(texts, ROWS, stride(model, window))
    windows = stream.equal_windows()
    batches = (stream.batch(windows, number).to(device) for number in range(len(windows.ends)))
    # Of each direction: negative log-probability, tokens ranked first, tokens.
    sums = [[0.0, 0, 0] for _ in range(count)]
    for features, labels in readings(model, batches):
        by_direction = [(features, labels)]
        if count == 2:  # features [B, 2, T, D], labels [B, 2, T]
            by_direction = list(zip(features.unbind(1), labels.unbind(1), strict=True))
        for total, (inputs, targets) in zip(sums, by_direction, strict=True):
            real = targets != model.pad
            for input_chunk, target_chunk in zip(inputs[real].split(CHUNK), targets[real].split(CHUNK), strict=True):
                logits = model.output(input_chunk).float()
                # The sum over millions of tokens needs float64, which Apple GPUs lack.
                total[0] += float(F.cross_entropy(logits, target_chunk, reduction="none").cpu().double().sum())
                total[1] += int((logits.argmax(-1) == target_chunk).sum())
                total[2] += len(target_chunk)
    return [TextScores(nats, int(correct), int(tokens), texts.size) for nats, correct, tokens in sums]


def directions(model: LanguageModel[Any]) -> int:
    """Return the number of directions in which a model reads."""
    assert isinstance(model.options, LanguageShape)
    return model.options.directions


def mean_scores(scores_by_direction: Sequence[TextScores]) -> TextScores:
    """Return the mean of the scores of each direction."""
    count = len(scores_by_direction)
    nats, correct, tokens, seconds = 0.0, 0, 0, 0.0
    for scores in scores_by_direction:
        nats += scores.nats
        correct += scores.correct
        tokens += scores.tokens
        seconds += scores.seconds
    return TextScores(nats / count, correct // count, tokens // count, scores_by_direction[0].size, seconds)


def stride(model: LanguageModel[Any], window: int) -> int:
    """Return how many tokens of a row are read at a time: half of the model's context, if that is limited."""
    return window if model.context is None else max(1, model.context // 2)


def readings(model: LanguageModel[Any], windows: Iterable[Batch]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield features [B, .., T, D] and labels [B, .., T] of consecutive windows of `stride` tokens.

    A model without a state reads each window together with the one before.
    """
    state, previous = None, None
    for window in windows:
        ids = window.targets_in
        if state is None or model.context is not None:
            state = model.begin(len(ids), ids.device)
        inputs = ids if previous is None else torch.cat([previous, ids], -1)
        reading, state = model.read_on(inputs, state)
        # The features of the previous window have already been yielded.
        yield reading.features[..., -ids.size(-1) :, :], window.labels
        previous = None if model.context is None else ids


MIN_LENGTH = 5
"""The fewest tokens of a window."""
SPREAD = 5.0
"""The standard deviation of the length of a window."""
HALF_SHARE = 0.05
"""The share of windows that are half as long."""


class Windows(NamedTuple):
    """The windows of one pass over a text; window i is the columns ends[i] - lengths[i] .. ends[i] - 1."""

    start: int
    """The offset in the text at which the first row begins; the last row continues at the beginning of the text."""
    columns: int
    """The number of tokens of a row."""
    ends: NDArray[np.int64]
    """The column after each window, [windows]."""
    lengths: NDArray[np.int64]
    """The number of tokens of each window, [windows]."""


class Stream:
    """A text in B rows."""

    def __init__(self, texts: EncodedTexts, rows: int, window: int, *, backwards: bool = False) -> None:
        """Cut a text into rows; one with fewer than 2 B tokens gets fewer rows.

        Args:
            texts: the text, of any length.
            rows: B.
            window: the average number of tokens of a window.
            backwards: whether to read from the last token to the first; start and end tokens are then exchanged.
        """
        self.texts, self.window, self.backwards = texts, window, backwards
        self.rows = max(1, min(rows, len(texts.ids) // 2))

    def equal_windows(self) -> Windows:
        """Return windows of equal length from the beginning of the text; the last one may be shorter."""
        columns = -(-len(self.texts.ids) // self.rows)
        ends = np.append(np.arange(self.window, columns, self.window), columns)
        return Windows(0, columns, ends, np.diff(ends, prepend=0))

    def random_windows(self, seed: int, epoch: int) -> Windows:
        """Return windows of random lengths (Merity et al. 2018, arXiv 1708.02182, section 5), from a random offset.

        A length is normally distributed around `window`, or sometimes around half of it, so that a window does not
        always end at the same tokens. The result depends on nothing but the arguments.
        """
        generator = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
        start = int(generator.integers(len(self.texts.ids)))
        columns = -(-len(self.texts.ids) // self.rows)
        count = 2 * (columns // self.window) + 10  # more than a row needs, as the mean length is close to `window`
        mean_lengths = np.where(generator.random(count) < HALF_SHARE, self.window / 2, self.window)
        lengths = np.maximum(generator.normal(mean_lengths, SPREAD).astype(np.int64), min(MIN_LENGTH, self.window))
        ends = np.cumsum(lengths)
        ends = np.append(ends[ends < columns], columns)
        return Windows(start, columns, ends, np.diff(ends, prepend=0))

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows: its tokens are the input, the tokens after them are the labels.

        So each token is a label once: the first token of a row at the end of the row before it, the first token of all
        at the end of the last row. Start tokens, and positions after the end of the text, are not labels.
        """
        count = len(self.texts.ids)
        end, length = windows.ends[number], windows.lengths[number]
        starts = windows.start + windows.columns * np.arange(self.rows)
        positions = starts[:, None] + np.arange(end - length, end + 1)  # [B, length + 1]
        inside = positions <= windows.start + count
        tokens = np.where(inside, self._tokens_at(positions % count), SPECIAL.pad).astype(np.int64)
        labels = np.where(tokens[:, 1:] == SPECIAL.start, SPECIAL.pad, tokens[:, 1:])
        return Batch(empty_source(len(tokens)), torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(labels))

    def _tokens_at(self, positions: NDArray[np.int64]) -> NDArray[np.integer]:
        ids = self.texts.ids
        if not self.backwards:
            return ids[positions]
        tokens = ids[-1 - positions]
        swapped = np.where(tokens == SPECIAL.start, SPECIAL.end, tokens)
        return np.where(tokens == SPECIAL.end, SPECIAL.start, swapped)


class BidirectionalStream(Stream):
    """A text in B rows, each together with a row of the same text in reverse, for bidirectional models.

    Both directions carry their state from window to window.
    """

    def __init__(self, texts: EncodedTexts, rows: int, window: int) -> None:
        """Cut a text into rows for both directions; the arguments are those of `Stream`."""
        super().__init__(texts, rows, window)
        self.mirror = Stream(texts, rows, window, backwards=True)

    def batch(self, windows: Windows, number: int) -> Batch:
        """Return window `number` of all rows and directions [B, 2, T]."""
        forward, backward = super().batch(windows, number), self.mirror.batch(windows, number)
        targets_in = torch.stack([forward.targets_in, backward.targets_in], 1)
        labels = torch.stack([forward.labels, backward.labels], 1)
        return Batch(forward.source, targets_in, labels)


def stream_of(directions: int) -> type[Stream]:
    """Return the class of stream for a model with one direction or two."""
    return BidirectionalStream if directions == 2 else Stream


def empty_source(rows: int) -> Tensor:
    """Return placeholders [B, 1] for the sources, which a language model does not have."""
    return torch.full((rows, 1), SPECIAL.end)
