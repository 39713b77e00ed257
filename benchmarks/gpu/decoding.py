"""Target tokens per second of batched search: ours, and `generate` of MarianMTModel."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.gpu.shapes import corpus_of, marian, model_of
from benchmarks.gpu.training import finish
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import Precision, TorchEngine
from translucid.runs.configuration import Configuration

LENGTH = 24
"""The length of every output: with untrained weights, all engines then do the same work."""
BEAMS = 1, 5

Search = Callable[[list[list[int]], int], int]
"""Translates sentences with a beam, and returns the number of output tokens."""


def sentences_of(configuration: Configuration, count: int) -> list[list[int]]:
    """Return synthetic sources."""
    corpus = corpus_of(configuration.data.tokenizer.vocabulary, count)
    return [ids.tolist() for ids in torch.tensor(corpus.source_ids).tensor_split(corpus.source_offsets[1:-1].tolist())]


def ours(
    configuration: Configuration, device: torch.device, precision: Precision = "float32", *, captured: bool = False
) -> Search:
    """Return our own search, which chooses its batch size."""
    engine = TorchEngine(model_of(configuration).to(device).eval()).fast(precision, captured=captured)

    def search(sentences: list[list[int]], beam: int) -> int:
        options = DecodingOptions(
            beam=beam, min_length=LENGTH, max_length_ratio=0, max_length_extra=LENGTH, max_loops=0
        )
        outputs = engine.decode(SearchRequest(sentences, options))
        return sum(len(hypotheses[0].tokens) for hypotheses in outputs)

    return search


def theirs(configuration: Configuration, device: torch.device, dtype: torch.dtype, rows: int) -> Search:
    """Return `generate` over batches of sentences of similar length."""
    model = marian(configuration).to(device, dtype).eval()

    def search(sentences: list[list[int]], beam: int) -> int:
        tokens, ordered = 0, sorted(sentences, key=len)
        for first in range(0, len(ordered), rows):
            some = [torch.tensor(ids) for ids in ordered[first : first + rows]]
            source = nn.utils.rnn.pad_sequence(some, batch_first=True).to(device)
            with torch.inference_mode():
                outputs = model.generate(
                    input_ids=source,
                    attention_mask=(source != 0).long(),
                    num_beams=beam,
                    do_sample=False,
                    min_new_tokens=LENGTH,
                    max_new_tokens=LENGTH,
                )
            tokens += outputs.size(0) * LENGTH
        return tokens

    return search


def speed(search: Search, sentences: list[list[int]], beam: int, device: torch.device) -> float:
    """Return target tokens per second, after a warm-up with the same sentences, which captures graphs."""
    search(sentences, beam)
    finish(device)
    started = time.perf_counter()
    tokens = search(sentences, beam)
    finish(device)
    return tokens / (time.perf_counter() - started)
