"""The case that explains a classifier's label by the words of its text."""

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
from translucid.inspection.words import kept_ids, span_ranges, span_words, sum_ranges, word_spans
from translucid.models.classifier import Classifier

TOKENS = 16384
"""The most tokens in a batch of perturbed texts; every batch has at least one text."""


class LabelCase:
    """A text, a label, and the classifier whose probability of the label is explained; the parts are words."""

    def __init__(
        self, model: Classifier, tokenizer: Tokenizer, ids: Sequence[int], label: str, text: str | None = None
    ) -> None:
        """Split a text into words.

        Args:
            model: the classifier, in evaluation mode.
            tokenizer: the tokenizer of the model.
            ids: the ids of the text in the order in which the model reads them, start and end token included.
            label: the label to explain.
            text: the text of the ids, from which unknown pieces are shown as they are.

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
        self._order = -1 if self.backwards else 1
        self.ids = list(ids[1:-1])[:: self._order]  # in the order of the text
        spans = word_spans(tokenizer.target_pieces(self.ids, text))
        self.source_words, self.source_spans = span_words(spans), span_ranges(spans)
        self.target_words, self.target_spans = [label], [(0, 1)]

    def _model_input(self, ids: list[int]) -> list[int]:
        """Return ids of the text as the model reads them."""
        return [SPECIAL.start, *ids[:: self._order], SPECIAL.end]

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of the label [n, 1] when only the words of `keep` [n, words] are left."""
        batches = []
        for rows in keep.split(max(1, TOKENS // (len(self.ids) + 2))):
            between_steps()
            texts = [self._model_input(kept_ids(self.ids, self.source_spans, row)) for row in rows.tolist()]
            logits = self.model(padded(texts, SPECIAL.pad).to(self.device))
            batches.append(logits.float().log_softmax(-1)[:, self.label, None].cpu())
        return torch.cat(batches)

    def interpolation_path(self) -> InterpolationPath:
        """Begin with unknown tokens, which stand for no word in particular."""
        source = torch.tensor([self._model_input(self.ids)], device=self.device)
        unknown = torch.full_like(source, SPECIAL.unknown)
        unknown[:, 0], unknown[:, -1] = source[:, 0], source[:, -1]
        with torch.no_grad():
            return InterpolationPath(self.model.language.embedding(unknown), self.model.language.embedding(source))

    def along(self, embedded: Tensor, first: int, after: int) -> Tensor:
        """Return the label's log-probability [n] for embedded texts [n, S, D]; the label is the only target word."""
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        return self.model.judge(embedded, mask).float().log_softmax(-1)[:, self.label]

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum pieces to words, without the start and the end token."""
        pieces = shares[..., 1:-1]
        if self.backwards:
            pieces = pieces.flip(-1)
        return sum_ranges(pieces, self.source_spans)

    def attention(self) -> Tensor:
        """Refuse: the models are language models with a classification layer, without cross-attention.

        Raises:
            UserError: always.
        """
        raise UserError("a classifier has no attention", fix="Use --method erasure.")

    @torch.no_grad()
    def unfolding(self) -> Tensor:
        """Return the label's probability [words] after each word, as if the text ended there, in the order of the text.

        A model that reads backwards has then read the words from there to the end.
        """
        read = torch.tensor([self._model_input(self.ids)], device=self.device)
        probabilities = self.model.after_each(read)[0, :, self.label]  # [S], the start token comes first
        places = [after for _, after in self.source_spans]
        if self.backwards:
            places = [len(self.ids) - first for first, _ in self.source_spans]
        return probabilities[torch.tensor(places, device=self.device)].cpu()
