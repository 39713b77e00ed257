"""Search for any number of sentences or images in batches, and return the results in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.batching import batches, padded
from translucid.decoding.constraints import Constraints
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis
from translucid.decoding.search import search
from translucid.decoding.shortlist import Narrowed, Shortlist
from translucid.kernels.transfer import upload
from translucid.models.protocol import SequenceModel

BATCH = 8192
"""The number of source tokens in a batch, times the hypotheses for each sentence."""
BATCH_ON_GPU = 32768
"""The same on a GPU, where a step takes hardly longer for many rows than for few."""
BATCH_WITH_SHORTLIST = 16384
"""The same with shortlists by source words, where a hypothesis takes less memory."""
ROWS = 256
"""The number of images in a batch, times the hypotheses for each."""


def decode_sentences(
    model: SequenceModel,
    sentences: Sequence[list[int]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    shortlist: Shortlist | None = None,
    batch_tokens: int | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Sequence[int] | None = None,
    opening: Sequence[int] = (),
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Find outputs for sentences of any length. An empty sentence gives the empty output without a search.

    Args:
        model: any sequence model; it is in evaluation mode during the search.
        sentences: source ids, each with the end token at its end, none longer than `model.max_length`.
        options: how to search.
        word_starts: [V] boolean, True where a piece begins a word; see `search`.
        shortlist: lists the candidates of each sentence, which share its probability; all pieces without one.
        batch_tokens: the number of source tokens in a batch, padding included, times the hypotheses for each sentence;
            by default, a fast one. Every batch has at least one sentence.
        on_batch: called after each batch with its number of sentences.
        numbers: the number of each sentence; sampling depends on it and on the seed only. 0, 1, … by default.
        opening: ids that every output begins with and that cost nothing, such as a language token.
        constraints: the phrases that outputs must contain; with them, all pieces are candidates.

    Returns:
        The hypotheses of each sentence, the best first, as `search` returns them.

    Raises:
        ValueError: a sentence does not end in the end token.
        UserError: the model's log-probabilities are not finite.
    """
    for i, sentence in enumerate(sentences):
        if not sentence or sentence[-1] != model.eos:
            raise ValueError(f"sentence {i} does not end in the end token {model.eos}: {sentence[-3:]}")
    results = [[empty_hypothesis()] for _ in sentences]
    lengths = list(map(len, sentences))
    order = [i for i, length in enumerate(lengths) if length > 1]
    order.sort(key=lambda i: -lengths[i])  # sentences of similar length need little padding
    if on_batch and len(order) < len(sentences):
        on_batch(len(sentences) - len(order))
    with _evaluating(model) as device:
        searcher = _BatchSearch(model, options, word_starts, shortlist, opening, device)
        tokens = batch_tokens or _tokens_on(device, shortlist)
        for batch in batches(order, lengths, tokens // options.rows):
            batch_numbers = batch if numbers is None else [numbers[i] for i in batch]
            ids = [sentences[i] for i in batch]
            found = searcher.search(ids, batch_numbers, constraints and constraints.of(batch))
            for i, hypotheses in zip(batch, found, strict=True):
                results[i] = hypotheses
            if on_batch:
                on_batch(len(batch))
    return results


@dataclass(frozen=True)
class _BatchSearch:
    """A search for the outputs of a batch of sentences; arguments as those of `decode_sentences`."""

    model: SequenceModel
    options: DecodingOptions
    word_starts: Tensor | None
    shortlist: Shortlist | None
    opening: Sequence[int]
    device: torch.device

    def search(
        self, ids: Sequence[list[int]], numbers: Sequence[int], constraints: Constraints | None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of the sentences with these ids and numbers."""
        source = upload(padded(ids, self.model.pad), self.device)
        if self.shortlist and not constraints:
            return self._among_candidates(self.shortlist, ids, source, numbers)
        return search(
            self.model,
            source,
            self.options,
            self.word_starts,
            numbers,
            prefix=self.opening,
            prefix_length=len(self.opening),
            constraints=constraints,
            lengths=list(map(len, ids)),
        )

    def _among_candidates(
        self, shortlist: Shortlist, ids: Sequence[list[int]], source: Tensor, numbers: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Search with an output layer that has only the candidates of the batch; its tokens are places among them."""
        listed, each = shortlist.of_batch(ids, self.opening)  # [n], [B, n]
        places = torch.from_numpy(listed)
        prefix = np.searchsorted(listed, self.opening).tolist()
        found = search(
            Narrowed(self.model, upload(places, self.device)),
            source,
            self.options,
            None if self.word_starts is None else self.word_starts[places.to(self.word_starts.device)],
            numbers,
            prefix=prefix,
            prefix_length=len(prefix),
            candidates=None if each is None else upload(torch.from_numpy(each), self.device),
            lengths=list(map(len, ids)),
        )
        return [_with_ids(nbest, listed) for nbest in found]


def decode_images(
    model: SequenceModel,
    images: Iterable[NDArray[Any]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Iterable[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find captions for images: pixels [height, width, 3] uint8, or the grids [S, F] of an image encoder.

    Other arguments and results are those of `decode_sentences`.
    """
    results: list[list[Hypothesis]] = []
    remaining = iter(images)
    remaining_numbers = count() if numbers is None else iter(numbers)
    with _evaluating(model) as device:
        while batch := list(islice(remaining, max(1, ROWS // options.rows))):
            source = upload(torch.from_numpy(np.stack(batch)), device)
            results += search(model, source, options, word_starts, list(islice(remaining_numbers, len(batch))))
            if on_batch:
                on_batch(len(batch))
    return results


def _tokens_on(device: torch.device, shortlist: Shortlist | None) -> int:
    """Return a fast number of source tokens in a batch, times hypotheses, on a device."""
    if device.type == "cuda":
        return BATCH_ON_GPU
    return BATCH_WITH_SHORTLIST if shortlist and shortlist.by_source else BATCH


@contextmanager
def _evaluating(model: SequenceModel) -> Iterator[torch.device]:
    """Keep a model in evaluation mode within the block, and yield its device."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        yield next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    finally:
        if was_training:
            model.train()


def _with_ids(nbest: Sequence[Hypothesis], pieces: NDArray[np.int64]) -> list[Hypothesis]:
    """Replace the tokens of hypotheses, which are places among `pieces`, by the ids of these pieces."""
    return [replace(hypothesis, tokens=pieces[hypothesis.tokens].tolist()) for hypothesis in nbest]
