"""The cases to explain: a source, a target and a model, and its probabilities without some parts of the source."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.data.batching import padded
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.maps import forced_log_probs
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.words import ids_without, span_ranges, span_words, sum_ranges
from translucid.models.protocol import Memory, SequenceModel

BATCH = 128
"""The maximum number of perturbed sources in a batch."""
TOKENS = 512
"""The maximum number of target tokens in a batch; every batch has at least one source."""


class InterpolationPath(NamedTuple):
    """The straight path of integrated gradients, from an uninformative source to the source itself."""

    baseline: Tensor
    """[1, S, D], embedded."""
    source: Tensor
    """[1, S, D], embedded."""


class Explained(Protocol):
    """A source, a target and a model: a case that all methods can explain."""

    source_words: list[str]
    """The names of the parts: words of a text, or what else a source has."""
    context: int = 0
    """The number of leading parts that are words of previous sentences."""
    target_words: list[str]
    """The words whose probabilities are explained, without the end token."""
    target_spans: list[tuple[int, int]]
    """The first token of each target word, and the token after its last."""

    def log_probs(self, keep: Tensor) -> Tensor:
        """Return the log-probability of each target word [n, target words] when only some parts are left.

        Args:
            keep: [n, parts] boolean, the parts that are left.
        """

    def probabilities(self, keep: Tensor) -> Tensor:
        """Return the probabilities [n, target words] that LIME fits, for the same masks as `log_probs`."""
        return self.log_probs(keep).exp()

    def interpolation_path(self) -> InterpolationPath:
        """Return the path of integrated gradients."""

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-probability [n] of the target tokens from `start` to before `end` for embedded sources."""

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum values of source positions [.., S] over each part [.., parts]."""

    def attention(self) -> Tensor:
        """Return the attention [target words, parts], averaged over layers and heads.

        Raises:
            UserError: the model has no attention.
        """


class ForcedCase(Explained):
    """A source, a target, and the model whose probabilities of the target's words are explained."""

    def __init__(
        self, model: SequenceModel, tokenizer: Tokenizer, target_ids: list[int], spans: Sequence[tuple[str, int, int]]
    ) -> None:
        """Store the target, whose ids and words both end with the end token; the model is in evaluation mode."""
        self.model, self.tokenizer, self.target_ids = model, tokenizer, target_ids
        self.device = next(model.parameters()).device
        self.target_words, self.target_spans = span_words(spans[:-1]), span_ranges(spans[:-1])

    def with_last_word(self, prefix: list[int], word: str, ids: list[int]) -> Self:
        """Return the case of the same source whose target is a prefix and a word; only the word is explained."""
        case = copy.copy(self)
        case.target_ids = [*prefix, *ids]
        case.target_words, case.target_spans = [word], [(len(prefix), len(case.target_ids))]
        return case

    @torch.no_grad()
    def log_probs(self, keep: Tensor) -> Tensor:
        """Score each target word by forced decoding, given the target words before it."""
        batches = []
        for rows in keep.split(self.batch_size):
            between_steps()
            memory = self.perturbed_memory(rows)
            target = torch.tensor([self.target_ids], device=self.device).expand(len(rows), -1)
            batches.append(self.by_word(forced_log_probs(self.model, memory, target)).cpu())
        return torch.cat(batches)

    @property
    def batch_size(self) -> int:
        """The number of perturbed sources in a batch."""
        return max(1, min(BATCH, TOKENS // len(self.target_ids)))

    def by_word(self, log_probs: Tensor) -> Tensor:
        """Sum log-probabilities of pieces [n, T] to those of target words [n, target words]."""
        return sum_ranges(log_probs, self.target_spans)

    def source_mask(self, embedded: Tensor) -> Tensor:
        """Return the mask [n, S] of embedded sources [n, S, D]: every position exists."""
        return torch.ones(embedded.shape[:2], dtype=torch.bool, device=self.device)

    @abstractmethod
    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Return the memory that the decoder reads when only the parts of `keep` [n, parts] are left."""

    def embedded_log_probs(self, embedded: Tensor, start: int, end: int) -> Tensor:
        """Return the log-probability [n] of the target tokens from `start` to before `end`.

        The sources are embedded, [n, S, D]. Later target tokens are not decoded, because they have no influence.
        """
        mask = self.source_mask(embedded)
        target = torch.tensor([self.target_ids[:end]], device=self.device).expand(len(embedded), -1)
        return forced_log_probs(self.model, self.model.read(embedded, mask), target)[:, start:].sum(1)


class Case(ForcedCase):
    """A translation whose parts are the source's words. Language tokens are not parts and are never left out."""

    def __init__(
        self,
        model: SequenceModel,
        pipeline: TextPipeline,
        source: str,
        target: str,
        before: Sequence[Sequence[int]] = (),
    ) -> None:
        """Encode a text and its translation, usually the model's own.

        Args:
            model: the model, in evaluation mode.
            pipeline: the text pipeline of the model.
            source: the text.
            target: its translation.
            before: the sentences before it, for a model with document context (`Piece.before`). Their words are the
                first parts.

        Raises:
            UserError: one of the texts has no words.
        """
        tokenizer = pipeline.tokenizer
        (pair,) = pipeline.pairs([(source, target)])
        pair = pair._replace(context=pipeline.joined(before, len(pair.source)))
        # A text without words has its opening and the end token only.
        empty = len(tokenizer.source_opening) + 1, len(tokenizer.target_opening) + 1
        if len(pair.source) == empty[0] or len(pair.target) == empty[1]:
            raise UserError("there are no words to explain", fix="Give a text with words in it.")
        device = next(model.parameters()).device
        (self.inspected,) = forced_decoding(model, tokenizer, [pair], device, with_context=True)
        super().__init__(model, tokenizer, pair.target, self.inspected.target_spans)
        self.source_ids, self.context = [*pair.context, *pair.source], len(self.inspected.context_spans)
        spans = [*self.inspected.context_spans, *self.inspected.source_spans[:-1]]
        self.source_words, self.source_spans = span_words(spans), span_ranges(spans)

    def perturbed_memory(self, keep: Tensor) -> Memory:
        """Encode the source without the pieces of the words that are left out."""
        sources = []
        for row in keep.tolist():
            sources.append(ids_without(self.source_ids, self.source_spans, row))
        return self.model.encode(padded(sources, self.model.pad).to(self.device))

    def source_mask(self, embedded: Tensor) -> Tensor:
        """Return the model's mask of the source for each embedded one."""
        source = torch.tensor([self.source_ids], device=self.device)
        return self.model.source_mask(source).expand(len(embedded), -1)

    def interpolation_path(self) -> InterpolationPath:
        """Begin with unknown tokens, which stand for no word in particular."""
        source = torch.tensor([self.source_ids], device=self.device)
        unknown = source.clone()
        for start, end in self.source_spans:
            unknown[:, start:end] = SPECIAL.unknown
        with torch.no_grad():
            return InterpolationPath(self.model.source_embedding(unknown), self.model.source_embedding(source))

    def by_part(self, shares: Tensor) -> Tensor:
        """Sum pieces to words, without language tokens, separators and the end token."""
        return sum_ranges(shares, self.source_spans)

    def attention(self) -> Tensor:
        """Return the cross-attention between words, without language tokens, separators and end tokens."""
        weights = self.inspected.cross()  # [target tokens, source tokens]
        rows = [weights[start:end].mean(0) for start, end in self.target_spans]
        return self.by_part(torch.stack(rows))
