"""The result of patching: the share of the difference between two runs that each layer carries at each word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from translucid.inspection.inspected import plain, rounded


@dataclass(frozen=True)
class PatchedStates:
    """The share that each layer's states at each word carry, for one kind of states."""

    kind: str
    """Encoder states, cross-attention outputs or decoder states."""
    points: list[str]
    """The points, from the first layer to the last: the rows."""
    words: list[str]
    """The words of OTHER, or those that the decoder reads: the columns."""
    clean_words: list[str]
    """The words of CLEAN whose states replace theirs."""
    carried: Tensor
    """[points, words], float64."""

    @property
    def layers(self) -> list[str]:
        """Short names of the rows."""
        return [_layer_name(point) for point in self.points]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; shares are rounded to four decimals."""
        return {
            "kind": self.kind,
            "points": self.points,
            "layers": self.layers,
            "words": self.words,
            "clean_words": self.clean_words,
            "carried": plain(self.carried, 4),
        }


def _layer_name(point: str) -> str:
    layer = point.split(".")[1]
    if layer.isdecimal():
        return f"layer {layer}"
    return "embeddings" if layer == "input" else layer


@dataclass(frozen=True)
class Patching:
    """Which states carry the difference between two runs."""

    clean: str
    other: str
    words: tuple[str, str]
    """The target words a and b."""
    prefix: str
    """The text of the target prefix, after which the model chooses between them."""
    log_odds: tuple[float, float]
    """log p(a) - log p(b) for CLEAN and for OTHER, in nats."""
    parts: list[PatchedStates]
    """The shares by kind of states."""
    notes: list[str]
    """What does not apply to the model."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as files and the server contain them."""
        return {
            "clean": self.clean,
            "other": self.other,
            "words": list(self.words),
            "prefix": self.prefix,
            "log_odds": dict(zip(("clean", "other"), rounded(self.log_odds, 4), strict=True)),
            "parts": [part.to_json() for part in self.parts],
            "notes": self.notes,
        }

    def _repr_html_(self) -> str:
        """Show itself in a notebook: a table for each kind of states."""
        from translucid.inspection.patching.views import html_tables

        return html_tables(self)
