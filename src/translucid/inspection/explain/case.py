"""One translation to be explained, and what happens to it when source words are taken away."""

from __future__ import annotations

import torch
from torch import Tensor

from translucid.data.batching import padded
from translucid.data.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.stopping import between_steps
from translucid.inspection.inspected import Inspected
from translucid.inspection.maps import forced_log_probs
from translucid.inspection.watching import watch
from translucid.inspection.words import word_spans
from translucid.models.protocol import SequenceModel

BATCH = 128
"""Perturbed sources that are read at a time, at most."""
TOKENS = 512
"""Target tokens, at most, that are predicted at a time, at least those of one source."""


class Case:
    """A source, a target, and the model that is asked how likely it finds the target's words."""

    def __init__(self, model: SequenceModel, tokenizer: Tokenizer, source: str, target: str) -> None:
        """`model`: in evaluation mode; `tokenizer`: its own; `target`: usually the model's own translation.

        Raises:
            UserError: one of the texts has no words.
        """
        self.model, self.device = model, next(model.parameters()).device
        end = model.eos
        self.source_ids = [*tokenizer.encode_source([source])[0], end]
        self.target_ids = [*tokenizer.encode_target([target])[0], end]
        if len(self.source_ids) == 1 or len(self.target_ids) == 1:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        self.inspected: Inspected = watch(model, tokenizer, [(self.source_ids, self.target_ids)], self.device)[0]
        *source_spans, _ = word_spans(self.inspected.source)
        *target_spans, _ = word_spans(self.inspected.target)
        self.source_words, self.target_words = ([span[0] for span in spans] for spans in (source_spans, target_spans))
        self.source_spans, self.target_spans = ([span[1:] for span in spans] for spans in (source_spans, target_spans))

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of each target word [n, target words] when only some source words are left.

        Each target word is scored with the target words before it as they are (forced decoding).

        Args:
            keep: [n, source words] boolean; a word that is not kept is left out, pieces and all.
        """
        found = []
        for rows in keep.split(max(1, min(BATCH, TOKENS // len(self.target_ids)))):
            between_steps()
            sources = [self._without(row.tolist()) for row in rows]
            ids = padded(sources, self.model.pad).to(self.device)
            target = torch.tensor([self.target_ids], device=self.device).expand(len(ids), -1)
            found.append(self.by_word(forced_log_probs(self.model, self.model.encode(ids), target)).cpu())
        return torch.cat(found)

    def by_word(self, log_probs: Tensor) -> Tensor:
        """Sum log-probabilities of pieces [n, T] to those of target words [n, target words]."""
        return torch.stack([log_probs[:, first:after].sum(1) for first, after in self.target_spans], 1)

    def _without(self, keep: list[bool]) -> list[int]:
        ids = [
            self.source_ids[first:after] for kept, (first, after) in zip(keep, self.source_spans, strict=True) if kept
        ]
        return [*(i for word in ids for i in word), self.source_ids[-1]]
