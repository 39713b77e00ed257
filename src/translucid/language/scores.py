"""Scores of language models on texts, independent of the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import RenderableType
from rich.text import Text
from torch import Tensor

from translucid.data.batching import Batch
from translucid.data.stores.store import EncodedTexts, Size
from translucid.ground.console import table_of
from translucid.language.model import LanguageModel
from translucid.language.options import LanguageShape
from translucid.language.stream import stream_of

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
