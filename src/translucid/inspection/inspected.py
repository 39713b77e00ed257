"""One payload for everything that is seen of one translation, whatever the model; it can be saved and loaded."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from translucid.decoding.maps import chosen_maps, rollout
from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLED
from translucid.inspection.words import WordMap, parted, word_map, word_spans
from translucid.models.protocol import Maps


@dataclass(frozen=True)
class Inspected:
    """Where a model looked when it wrote a target for a source, and how sure it was. The end tokens come last."""

    source: list[str]
    """Pieces of words."""
    target: list[str]
    maps: Maps
    """Attention weights by name, [H, T, S] each."""
    log_probs: list[float]
    """Of each target piece, given those before, in nats."""
    opening: tuple[int, int] = (0, 0)
    """So many of the first pieces of the source and of the target are no words, such as that of a language."""
    links: Tensor | None = field(default=None, compare=False)
    """[T, S], which source pieces each target piece belongs to by the run's alignment layer, if it has one."""
    run: str = field(default="", compare=False)
    """The run folder of the model, if it has one, for the lines of code that a page shows."""
    unknown: tuple[int, ...] = ()
    """Positions of the source pieces that the model does not know."""

    @property
    def heads(self) -> dict[str, int]:
        """How many heads each map has."""
        return {name: len(weights) for name, weights in self.maps.items()}

    def _repr_html_(self) -> str:
        """Show itself in a notebook: where the model looked for each word, or the words if it has no attention."""
        from translucid.inspection.html import notebook_view

        if self.layers:
            return notebook_view([self])
        return f"<p>{escape(' '.join(word for word, _, _ in self.target_spans[:-1]))}</p>"

    @property
    def source_spans(self) -> list[tuple[str, int, int]]:
        """The words of the source, see `word_spans`, the end token last; without what stands before the first."""
        return word_spans(self.source, self.opening[0])[self.opening[0] :]

    @property
    def unknown_words(self) -> list[int]:
        """The positions of the source words, those of `words`, that have a piece which the model does not know."""
        spans = word_spans(self.source, self.opening[0])
        return [i for i, (_, first, after) in enumerate(spans) if any(first <= at < after for at in self.unknown)]

    @property
    def target_spans(self) -> list[tuple[str, int, int]]:
        """The words of the target likewise."""
        return word_spans(self.target, self.opening[1])[self.opening[1] :]

    @property
    def text_words(self) -> tuple[list[str], list[str]]:
        """The words of both texts, by white space: a word of `source_spans` may be several, as `{{ a b }}` is."""
        source = [word for word, _, _ in self.source_spans[:-1]]
        target = [word for word, _, _ in self.target_spans[:-1]]
        return parted(source), parted(target)

    @cached_property
    def layers(self) -> list[int]:
        """The decoder layers that look at the source."""
        return sorted(int(name.split(".")[1]) for name in self.maps if name.endswith(".cross"))

    def cross(self, layer: int | None = None, head: int | None = None, *, shift: bool = False) -> Tensor:
        """Return the cross-attention [T, S] of a layer and a head, or averaged over all of those not chosen.

        Args:
            layer: of the decoder, from 0.
            head: from 0.
            shift: read a piece's row at the step at which it is the decoder's *input*, one later than the step that
                predicts it (SHIFT-ATT, Chen et al. 2020, arXiv 2004.14837, section 3.2). The last keeps its own.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        chosen = chosen_maps(self.heads, "cross", layer, head)
        maps = torch.stack([self.maps[name].float() for name in chosen])  # [layers, H, T, S]
        weights = (maps if head is None else maps[:, head : head + 1]).mean((0, 1))
        return torch.cat([weights[1:], weights[-1:]]) if shift else weights

    def rollout(self) -> Tensor:
        """Return what has flowed from each source piece to each target piece through all layers [T, S]."""
        return rollout(self.maps)

    def words(self, weights: Tensor | None = None) -> WordMap:
        """Merge weights [T, S] between pieces, the average of all cross-attention if not given, to words.

        What stands before the source's words is looked at as they are, and has a column; what stands before the
        target's is no choice of the model's, and has no row.
        """
        source, target = self.opening
        weights = self.cross() if weights is None else weights
        return word_map(self.source, self.target[target:], weights[target:], (source, 0))

    def word_map(self, name: str, head: int | None = None) -> WordMap:
        """Return a map between words, of one head or averaged over all: who looks down, what is looked at across.

        A decoder's self-attention looks at what it has been fed: the start token, then all words but the last. As in
        `words`, what stands before the target's words has no row.
        """
        side, _, what = name.split(".")
        source, target = self.opening
        weights = self.maps[name].float()
        weights = weights.mean(0) if head is None else weights[head]
        if side == "encoder":
            return word_map(self.source, self.source, weights, (source, source))
        across, before = self.source, source
        if what == "self":
            across, before = [SPELLED.start, *self.target[:-1]], target + 1
        return word_map(across, self.target[target:], weights[target:], (before, 0))

    def word_maps(self, name: str) -> list[WordMap]:
        """Return `word_map` of each head."""
        return [self.word_map(name, head) for head in range(len(self.maps[name]))]

    def word_log_probs(self) -> list[float]:
        """Return the log-probability of each target word: the sum over its pieces."""
        return [sum(self.log_probs[first:after]) for _, first, after in self.target_spans]

    def word_probabilities(self) -> list[tuple[str, float]]:
        """Return the target words without the end token, each with its probability."""
        spans = zip(self.target_spans, self.word_log_probs(), strict=True)
        return [(word, math.exp(log_prob)) for (word, _, _), log_prob in spans][:-1]

    def to_json(self) -> dict[str, Any]:
        """Return plain values: pieces, words, weights rounded to five decimals, log-probabilities."""
        return {
            "source": self.source,
            "target": self.target,
            "opening": list(self.opening),
            "unknown": list(self.unknown),
            "source_words": [word for word, _, _ in self.source_spans],
            "target_words": [word for word, _, _ in self.target_spans],
            "log_probs": [round(value, 5) for value in self.log_probs],
            "attention": {name: _rounded(weights) for name, weights in self.maps.items()},
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Inspected:
        """Make it again from what `to_json` returned."""
        maps = {name: torch.tensor(weights) for name, weights in record["attention"].items()}
        before_source, before_target = record.get("opening", (0, 0))
        opening = int(before_source), int(before_target)
        unknown = tuple(map(int, record.get("unknown", ())))
        return cls(record["source"], record["target"], maps, record["log_probs"], opening, unknown=unknown)

    def save(self, file: Path) -> None:
        """Write it as JSON."""
        write_output(file, json.dumps(self.to_json(), ensure_ascii=False).encode())

    @classmethod
    def load(cls, file: Path) -> Inspected:
        """Read what `save` wrote.

        Raises:
            UserError: it is something else.
        """
        try:
            return cls.from_json(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                "holds no saved attention", file=file, fix="Give a file that was saved as .json."
            ) from error


def _rounded(weights: Tensor) -> Any:
    return (weights.cpu().double() * 1e5).round().div(1e5).tolist()
