"""A classifier's label to be explained by the words of its text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.explain.case import InterpolationPath
from translucid.inspection.words import word_spans
from translucid.models.classifier import Classifier

TOKENS = 16384
"""Of texts with words left out that are read at a time."""


class LabelCase:
    """A text, a label, and the classifier that is asked how likely it is; the parts are the text's words."""

    def __init__(
        self, model: Classifier, tokenizer: Tokenizer, ids: Sequence[int], label: str, text: str | None = None
    ) -> None:
        """Begin with a text as the model reads it.

        Args:
            model: in evaluation mode.
            tokenizer: its own.
            ids: of the text, start and end token included.
            label: to be explained.
            text: that the ids encode, so that characters unknown to the model are shown as they are.

        Raises:
            UserError: there are no words, or there is no such label.
        """
        labels = model.options.labels
        if label not in labels:
            raise UserError(f"there is no label {label!r}", fix=f"Labels are {', '.join(labels)}.")
        if len(ids) < 3:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        self.model, self.device, self.label = model, next(model.parameters()).device, labels.index(label)
        self.backwards = model.options.language.backwards
        self.ids = list(ids[1:-1])[:: -1 if self.backwards else 1]
        spans = word_spans(tokenizer.target_pieces(self.ids, text))
        self.source_words, self.source_spans = [span[0] for span in spans], [span[1:] for span in spans]
        self.target_words, self.target_spans = [label], [(0, 1)]

    def _read(self, inner: list[int]) -> list[int]:
        return [SPECIAL.start, *inner[:: -1 if self.backwards else 1], SPECIAL.end]

    def _left(self, row: list[bool]) -> list[int]:
        kept = (span for keep, span in zip(row, self.source_spans, strict=True) if keep)
        return [i for first, after in kept for i in self.ids[first:after]]

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """See `Perturbed`."""
        found = []
        for rows in keep.split(max(1, TOKENS // (len(self.ids) + 2))):
            between_steps()
            texts = [self._read(self._left(row)) for row in rows.tolist()]
            logits = self.model(padded(texts, SPECIAL.pad).to(self.device))
            found.append(logits.float().log_softmax(-1)[:, self.label, None].cpu())
        return torch.cat(found)

    def way(self) -> InterpolationPath:
        """Begin with unknown words, no word in particular."""
        source = torch.tensor([self._read(self.ids)], device=self.device)
        unknown = torch.full_like(source, SPECIAL.unknown)
        unknown[:, 0], unknown[:, -1] = source[:, 0], source[:, -1]
        with torch.no_grad():
            return InterpolationPath(self.model.language.embedding(unknown), self.model.language.embedding(source))

    def along(self, embedded: Tensor, first: int, after: int) -> Tensor:
        """Return the label's log-probability [n] for embedded texts [n, S, D]."""
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        return self.model.judge(embedded, mask).float().log_softmax(-1)[:, self.label]

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum pieces to words; start and end token are left out."""
        inner = shares[..., 1:-1]
        inner = inner.flip(-1) if self.backwards else inner
        return torch.stack([inner[..., first:after].sum(-1) for first, after in self.source_spans], -1)

    def attention(self) -> Tensor:
        """Refuse.

        Raises:
            UserError: always.
        """
        raise UserError("a classifier has no attention", fix="Use --method erasure.")

    @torch.no_grad()
    def unfolding(self) -> Tensor:
        """Return the label's probability [words] after each word that is read, as if the text ended there.

        In the order of the text; a model that reads backwards has seen the words from there to the end.
        """
        read = torch.tensor([self._read(self.ids)], device=self.device)
        probabilities = self.model.after_each(read)[0, :, self.label]
        count = len(self.ids)
        places = [count - first if self.backwards else after for first, after in self.source_spans]
        return probabilities[torch.tensor(places, device=self.device)].cpu()
