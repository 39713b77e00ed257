"""How well a language model foretells texts, in figures that do not depend on its vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor

from translucid.data.batching import Batch
from translucid.data.stores.text_store import EncodedTexts, Size
from translucid.data.stream import stream_of
from translucid.models.language.model import LanguageModel
from translucid.models.language_options import LanguageShape

ROWS = 32
"""Rows that texts are read in."""
TOGETHER = 1024
"""Tokens whose logits are held at a time."""
LARGEST = 700.0
"""Of what e is raised to."""


@dataclass(frozen=True)
class TextScores:
    """Figures of some texts: -log p in nats, of all that is asked for."""

    nats: float
    correct: int
    """Tokens that the model ranks first, given those before."""
    tokens: int
    """Of its vocabulary, an end token for each text among them."""
    size: Size
    seconds: float = 0.0

    @property
    def perplexity(self) -> float:
        """A token: exp(nats / tokens); it compares models of one vocabulary."""
        return math.exp(min(self.nats / max(self.tokens, 1), LARGEST))

    @property
    def perplexity_word(self) -> float:
        """exp(nats / words)."""
        return math.exp(min(self.nats / self.size.words, LARGEST))

    @property
    def bits_per_character(self) -> float:
        """nats / characters / log 2."""
        return self.nats / self.size.characters / math.log(2)

    @property
    def accuracy(self) -> float:
        """Share of the tokens that are ranked first."""
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
        """Yield what a person wants to see."""
        table = Table(box=None, pad_edge=False)
        for column in ("metric", "score", "how"):
            table.add_column(column, overflow="fold")
        of_all = "compares models of any vocabulary"
        for name, value, how in (
            ("perplexity a word", f"{self.perplexity_word:,.2f}", of_all),
            ("bits a character", f"{self.bits_per_character:.3f}", of_all),
            ("perplexity a token", f"{self.perplexity:,.2f}", "compares models of one vocabulary"),
            ("tokens right", f"{100 * self.accuracy:.1f}%", "ranked first, given those before"),
        ):
            table.add_row(name, Text(value, "bold"), Text(how, "dim"))
        yield table
        size, rate = self.size, self.tokens / max(self.seconds, 1e-9)
        counted = f"{size.texts:,} texts, {size.words:,} words, {size.characters:,} characters, {self.tokens:,} tokens"
        yield Text(f"{counted}, ends of texts included; {rate:,.0f} tokens/s")


@torch.inference_mode()
def measured(model: LanguageModel[Any], texts: EncodedTexts, window: int, device: torch.device) -> list[TextScores]:
    """Read texts one after the other, in some rows, each window with what stands before it in its row.

    Of a model of two directions, the figures of each.

    Args:
        model: in evaluation mode.
        texts: encoded.
        window: tokens of a row at a time, if the model carries all that it has read on to the next ones.
        device: where the model is.
    """
    count = directions(model)
    stream = stream_of(count)(texts, ROWS, stride(model, window))
    windows = stream.straight()
    batches = (stream.batch(windows, number).to(device) for number in range(len(windows.ends)))
    sums = [[0.0, 0, 0] for _ in range(count)]
    for features, labels in readings(model, batches):
        ways = [(features, labels)]
        if count == 2:
            ways = [*zip(features.unbind(1), labels.unbind(1), strict=True)]
        for one, (own, wanted) in zip(sums, ways, strict=True):
            real = wanted != model.pad
            for part, asked in zip(own[real].split(TOGETHER), wanted[real].split(TOGETHER), strict=True):
                logits = model.output(part).float()
                one[0] += float(F.cross_entropy(logits, asked, reduction="none").cpu().double().sum())
                one[1] += int((logits.argmax(-1) == asked).sum())
                one[2] += len(asked)
    return [TextScores(nats, int(correct), int(tokens), texts.size) for nats, correct, tokens in sums]


def directions(model: LanguageModel[Any]) -> int:
    """Return in how many directions a model reads."""
    assert isinstance(model.options, LanguageShape)
    return model.options.directions


def together(ways: Sequence[TextScores]) -> TextScores:
    """Return the mean of the figures of each direction."""
    count, seconds = len(ways), sum(one.seconds for one in ways)
    nats, correct, tokens = (sum(getattr(one, name) for one in ways) for name in ("nats", "correct", "tokens"))
    return TextScores(nats / count, correct // count, tokens // count, ways[0].size, seconds)


def stride(model: LanguageModel[Any], window: int) -> int:
    """Return how many tokens of a row are read at a time: half of what the model can look back over, if that ends."""
    return window if model.context is None else max(1, model.context // 2)


def readings(model: LanguageModel[Any], windows: Iterable[Batch]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield features [B, .., T, D] and labels [B, .., T] of windows that follow each other, each of `stride` tokens.

    A model that does not carry a state on reads the window before once more with each.
    """
    state, before = None, None
    for window in windows:
        ids = window.targets_in
        if state is None or model.context is not None:
            state = model.begin(len(ids), ids.device)
        seen = ids if before is None else torch.cat([before, ids], -1)
        reading, state = model.read_on(seen, state)
        yield reading.features[..., -ids.size(-1) :, :], window.labels
        before = None if model.context is None else ids
