"""The label of a text as a case to explain: the probability without some words, and after each word."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.data.batching import padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.explain import Contrast, Explained, InterpolationPath
from translucid.inspection.words import kept_ids, span_ranges, span_words, sum_ranges, word_spans
from translucid.language.classifier import Classifier

LABEL_TOKENS = 16384
"""The maximum number of tokens in a batch of perturbed texts; every batch has at least one text."""


class LabelCase(Explained):
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
        if len(ids) < 3:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        self.model, self.device = model, next(model.parameters()).device
        self._set_label(label)
        self.backwards = model.options.language.backwards
        self._order = -1 if self.backwards else 1
        self.ids = list(ids[1:-1])[:: self._order]  # in the order of the text
        spans = word_spans(tokenizer.target_pieces(self.ids, text))
        self.source_words, self.source_spans = span_words(spans), span_ranges(spans)

    def _set_label(self, label: str) -> None:
        labels = self.model.options.labels
        if label not in labels:
            raise UserError(f"there is no label {label!r}", fix=f"Labels are {', '.join(labels)}.")
        self.label = labels.index(label)
        self.target_words, self.target_spans = [label], [(0, 1)]

    def with_label(self, label: str) -> Self:
        """Return the case of another label of the same text.

        Raises:
            UserError: there is no such label.
        """
        case = copy.copy(self)
        case._set_label(label)
        return case

    def _model_input(self, ids: list[int]) -> list[int]:
        """Return ids of the text as the model reads them."""
        return [SPECIAL.start, *ids[:: self._order], SPECIAL.end]

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of the label [n, 1] when only the words of `keep` [n, words] are left."""
        batches = []
        for rows in keep.split(max(1, LABEL_TOKENS // (len(self.ids) + 2))):
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

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the label's log-probability [n] for embedded texts [n, S, D]; the label is the only target word."""
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        return self.model.classify(embedded, mask).float().log_softmax(-1)[:, self.label]

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
        raise UserError("a classifier has no attention", fix='Use `method="erasure"`.')

    @torch.no_grad()
    def unfolding(self) -> Tensor:
        """Return the label's probability [words] after each word, as if the text ended there, in the order of the text.

        A model that reads backwards has read the words from the last one to this one.
        """
        ids = torch.tensor([self._model_input(self.ids)], device=self.device)
        probabilities = self.model.prefix_probabilities(ids)[0, :, self.label]  # [S], the start token comes first
        positions = [end for _, end in self.source_spans]
        if self.backwards:
            positions = [len(self.ids) - start for start, _ in self.source_spans]
        return probabilities[torch.tensor(positions, device=self.device)].cpu()


def contrast_labels(case: LabelCase, instead_of: str) -> Contrast:
    """Contrast the label of a text with another label.

    Raises:
        UserError: there is no other label of this name.
    """
    if instead_of == case.target_words[0]:
        raise UserError(f"{instead_of!r} is the label itself", fix="Choose another label to contrast it with.")
    return Contrast(case, case.with_label(instead_of))
