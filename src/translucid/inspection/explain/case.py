"""What is to be explained, and what happens to it when parts of the source are taken away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from translucid.data.batching import padded
from translucid.data.text_pipeline import TextPipeline
from translucid.decoding.maps import forced_log_probs
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.forced_decoding import forced_decoding
from translucid.models.protocol import Memory, SequenceModel

BATCH = 128
"""Perturbed sources that are read at a time, at most."""
TOKENS = 512
"""Target tokens, at most, that are predicted at a time, at least those of one source."""


class Perturbed(Protocol):
    """Something whose source has parts that can be left out; all that erasure, LIME and faithfulness ask for."""

    source_words: list[str]
    """Names of the parts: words of a text, cells or superpixels of an image."""
    target_words: list[str]

    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of each target word [n, target words] when only some parts are left.

        Args:
            keep: [n, parts] boolean.
        """
        ...


class InterpolationPath(NamedTuple):
    """The way from a source in which nothing is to the source itself, for integrated gradients."""

    baseline: Tensor
    """[1, S, D], embedded."""
    source: Tensor
    """[1, S, D], embedded."""


class ForcedCase(ABC):
    """A source, a target, and the model that is asked how likely it finds the target's words."""

    source_words: list[str]

    def __init__(self, model: SequenceModel, target_ids: list[int], spans: Sequence[tuple[str, int, int]]) -> None:
        """`model`: in evaluation mode; `target_ids` end with the end token, and so do their words."""
        self.model, self.device, self.target_ids = model, next(model.parameters()).device, target_ids
        *spans, _ = spans
        self.target_words, self.target_spans = [span[0] for span in spans], [span[1:] for span in spans]

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """See `Perturbed`; each target word is scored with those before it as they are (forced decoding)."""
        found = []
        for rows in keep.split(self.together):
            between_steps()
            memory = self.without(rows)
            target = torch.tensor([self.target_ids], device=self.device).expand(len(rows), -1)
            found.append(self.by_word(forced_log_probs(self.model, memory, target)).cpu())
        return torch.cat(found)

    @property
    def together(self) -> int:
        """How many perturbed sources are read at a time."""
        return max(1, min(BATCH, TOKENS // len(self.target_ids)))

    def by_word(self, log_probs: Tensor) -> Tensor:
        """Sum log-probabilities of pieces [n, T] to those of target words [n, target words]."""
        return torch.stack([log_probs[:, first:after].sum(1) for first, after in self.target_spans], 1)

    @abstractmethod
    def without(self, keep: Tensor) -> Memory:
        """Return what the decoder reads when only some parts are left, those of `keep` [n, parts]."""

    @abstractmethod
    def way(self) -> InterpolationPath:
        """Return where integrated gradients begin and end."""

    def along(self, embedded: Tensor, first: int, after: int) -> Tensor:
        """Return the log-probability [n] of the target tokens `first` to before `after`, given embedded sources.

        What comes later has no part in it. embedded: [n, S, D].
        """
        everywhere = torch.ones(embedded.shape[:2], dtype=torch.bool, device=self.device)
        target = torch.tensor([self.target_ids[:after]], device=self.device).expand(len(embedded), -1)
        return forced_log_probs(self.model, self.model.read(embedded, everywhere), target)[:, first:].sum(1)

    @abstractmethod
    def by_part(self, shares: Tensor) -> Tensor:
        """Sum what belongs to source positions [.., S] to parts [.., parts]."""

    @abstractmethod
    def attention(self) -> Tensor:
        """Return where the model looked [target words, parts], averaged over layers and heads.

        Raises:
            UserError: the model has no attention.
        """


class Case(ForcedCase):
    """A translation; its parts are the source's words. What says in which language they are always stays there."""

    def __init__(self, model: SequenceModel, pipeline: TextPipeline, source: str, target: str) -> None:
        """`model`: in evaluation mode; `pipeline`: its own; `target`: usually the model's own translation.

        Raises:
            UserError: one of the texts has no words.
        """
        tokenizer = pipeline.tokenizer
        ((self.source_ids, target_ids, masked),) = pipeline.pairs([(source, target)])
        self.before = len(tokenizer.source_opening)
        if len(self.source_ids) == self.before + 1 or len(target_ids) == len(tokenizer.target_opening) + 1:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        device = next(model.parameters()).device
        (self.inspected,) = forced_decoding(model, tokenizer, [(self.source_ids, target_ids)], device, masked=[masked])
        super().__init__(model, target_ids, self.inspected.target_spans)
        *spans, _ = self.inspected.source_spans
        self.source_words, self.source_spans = [span[0] for span in spans], [span[1:] for span in spans]

    def without(self, keep: Tensor) -> Memory:
        """Read the source with words left out, pieces and all."""
        sources = [
            [
                *self.source_ids[: self.before],
                *(
                    i
                    for kept, (first, after) in zip(row, self.source_spans, strict=True)
                    if kept
                    for i in self.source_ids[first:after]
                ),
                self.source_ids[-1],
            ]
            for row in keep.tolist()
        ]
        return self.model.encode(padded(sources, self.model.pad).to(self.device))

    def way(self) -> InterpolationPath:
        """Begin with unknown words, no word in particular."""
        source = torch.tensor([self.source_ids], device=self.device)
        unknown = torch.full_like(source, SPECIAL.unknown)
        unknown[:, -1] = source[:, -1]
        unknown[:, : self.before] = source[:, : self.before]
        with torch.no_grad():
            return InterpolationPath(self.model.source_embedding(unknown), self.model.source_embedding(source))

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum pieces to words; what is none is left out."""
        return torch.stack([shares[..., first:after].sum(-1) for first, after in self.source_spans], -1)

    def attention(self) -> Tensor:
        """Return the cross-attention between words; what is none is left out."""
        return self.inspected.words().between_words
