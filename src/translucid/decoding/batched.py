"""Any number of sentences or images through `search`, in batches, results in the order given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
"""Source tokens in a batch, times hypotheses for each sentence."""
BATCH_ON_GPU = 32768
"""The same on a GPU, where a step takes hardly longer for many rows than for few."""
BATCH_WITH_SHORTLIST = 16384
"""The same with the lists of words, where a hypothesis takes less memory."""
ROWS = 256
"""Images in a batch, times hypotheses for each."""


def decode_sentences(
    model: SequenceModel,
    sentences: Sequence[list[int]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    shortlist: Shortlist | None = None,
    batch_tokens: int | None = None,
    device: torch.device | str | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Sequence[int] | None = None,
    opening: Sequence[int] = (),
    constraints: Constraints | None = None,
) -> list[list[Hypothesis]]:
    """Find outputs for sentences of any lengths. An empty one gives the empty output without asking the model.

    Args:
        model: any; it is put into evaluation mode meanwhile.
        sentences: source ids, each ending in the end token, none longer than `model.max_length`.
        options: how to search.
        word_starts: [V] boolean, True where a piece begins a word; see `search`.
        shortlist: only pieces that it has for a sentence are considered for that sentence; probabilities are shared
            out among them alone.
        batch_tokens: source tokens in a batch, padding included, times hypotheses for each sentence. At least one
            sentence is in every batch. If not given, what is fast.
        device: where the model is; that of its parameters if not given.
        on_batch: called after each batch with the number of sentences done in it.
        numbers: of the sentences; sampling draws the same for the same number and seed. 0, 1, .. if not given.
        opening: ids that every output begins with and that cost nothing, such as that of the target language.
        constraints: what each output has to have; with them, all pieces are considered.

    Returns:
        What `search` returns for each sentence, in the order given.

    Raises:
        ValueError: a sentence does not end in the end token.
        UserError: the model's output is not a number.
    """
    for i, sentence in enumerate(sentences):
        if not sentence or sentence[-1] != model.eos:
            raise ValueError(f"sentence {i} does not end in the end token {model.eos}: {sentence[-3:]}")
    results = [[empty_hypothesis()] for _ in sentences]
    order = sorted((i for i, sentence in enumerate(sentences) if len(sentence) > 1), key=lambda i: -len(sentences[i]))
    if on_batch and len(order) < len(sentences):
        on_batch(len(sentences) - len(order))
    rows = options.nbest if options.sample else options.beam
    with _evaluating(model) as place:
        tokens = batch_tokens or _tokens_on(place, shortlist)
        for batch in batches(order, [len(sentence) for sentence in sentences], tokens // rows):
            own = batch if numbers is None else [numbers[i] for i in batch]
            ids = [sentences[i] for i in batch]
            source, lengths = upload(padded(ids, model.pad), device or place), [len(sentence) for sentence in ids]
            if shortlist and not constraints:
                listed, each = shortlist.of_batch(ids, opening)
                pieces = upload(torch.from_numpy(listed), device or place)
                starts = None if word_starts is None else word_starts[torch.from_numpy(listed).to(word_starts.device)]
                narrowed, first = Narrowed(model, pieces), np.searchsorted(listed, opening).tolist()
                candidates = None if each is None else upload(torch.from_numpy(each), device or place)
                found = search(
                    narrowed,
                    source,
                    options,
                    starts,
                    own,
                    prefix=first,
                    told=len(first),
                    candidates=candidates,
                    lengths=lengths,
                )
                found = [_with_ids(nbest, listed) for nbest in found]
            else:
                found = search(
                    model,
                    source,
                    options,
                    word_starts,
                    own,
                    prefix=opening,
                    told=len(opening),
                    constraints=constraints and constraints.of(batch),
                    lengths=lengths,
                )
            for i, hypotheses in zip(batch, found, strict=True):
                results[i] = hypotheses
            if on_batch:
                on_batch(len(batch))
    return results


def decode_images(
    model: SequenceModel,
    images: Iterable[NDArray[Any]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    device: torch.device | str | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Iterable[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find captions for images: pixels [height, width, 3] uint8, or the grids [S, F] that a network has made of them.

    Other arguments and results are those of `decode_sentences`.
    """
    results: list[list[Hypothesis]] = []
    rows = options.nbest if options.sample else options.beam
    coming, own = iter(images), count() if numbers is None else iter(numbers)
    with _evaluating(model) as place:
        while batch := list(islice(coming, max(1, ROWS // rows))):
            source = upload(torch.from_numpy(np.stack(batch)), device or place)
            results += search(model, source, options, word_starts, list(islice(own, len(batch))))
            if on_batch:
                on_batch(len(batch))
    return results


def _tokens_on(place: torch.device, shortlist: Shortlist | None) -> int:
    """Return how many source tokens of a batch, times hypotheses, are fast there."""
    if place.type == "cuda":
        return BATCH_ON_GPU
    return BATCH_WITH_SHORTLIST if shortlist and shortlist.by_source else BATCH


@contextmanager
def _evaluating(model: SequenceModel) -> Iterator[torch.device]:
    """Put a model into evaluation mode meanwhile, and say where it is."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        yield next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    finally:
        if was_training:
            model.train()


def _with_ids(nbest: Sequence[Hypothesis], pieces: NDArray[np.int64]) -> list[Hypothesis]:
    """Return hypotheses whose tokens are places among `pieces` with the ids of these."""
    return [replace(hypothesis, tokens=pieces[hypothesis.tokens].tolist()) for hypothesis in nbest]
