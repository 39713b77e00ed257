"""The caption of an image, with the attention of each word on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from translucid.data.images.pixels import Picture
from translucid.decoding.hypothesis import Hypothesis, NBest

if TYPE_CHECKING:
    from translucid.api.captioner import Captioner
    from translucid.inspection.saliency_overlay import AttentionResult
    from translucid.models.protocol import Maps


class AlternativeCaption(NamedTuple):
    """One caption of an image."""

    text: str
    hypothesis: Hypothesis

    @property
    def score(self) -> float:
        """The log-probability after the length penalty."""
        return self.hypothesis.score


@dataclass(frozen=True)
class Caption(NBest):
    """The caption of one image."""

    picture: Picture = field(repr=False)
    nbest: list[AlternativeCaption]
    """The captions, the best first, at least one."""
    _captioner: Captioner = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the image."""
        return self.picture.name

    @cached_property
    def looked(self) -> AttentionResult:
        """The attention of each word of the best caption, computed on demand by forced decoding."""
        return self._captioner.look(self.picture, self.nbest[0].hypothesis.tokens)

    @property
    def attention(self) -> Maps:
        """Attention weights by name, [1, H, T, S] each; S cells, one row after the other."""
        return {name: weights[None] for name, weights in self.looked.inspected.maps.items()}

    def _repr_html_(self) -> str:
        """Show the caption and the attention of each word in a notebook."""
        if not self.looked.has_attention:
            return f"<p><b>{escape(self.text)}</b></p>"
        from translucid.inspection.saliency_overlay import panels

        return f"<p><b>{escape(self.text)}</b></p>{panels(self.looked)}"
