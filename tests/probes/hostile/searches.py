"""Any ids and decoding options on random models of every kind: the search ends, and its results obey the options."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from hypothesis import strategies as st

from tests.probes.hostile.generating import each
from tests.probes.hostile.tally import Tally
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest, length_limit
from translucid.decoding.search import TorchEngine
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import checked

V = 13
# Floats below are not subnormal: `tune_cpu` takes those as 0, and Hypothesis then refuses to draw them.
SHAPES: list[Any] = [
    TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1),
    TransformerOptions(
        width=8,
        heads=1,
        feed_forward=8,
        encoder_layers=1,
        decoder_layers=2,
        norm="post",
        positions="learned",
        max_length=12,
    ),
    RecurrentOptions(width=8, attention="luong-general", window=2, input_feeding=True),
    RecurrentOptions(width=8, attention="bahdanau", cell="gru"),
    RecurrentOptions(width=8, attention="none"),
    AttentionOnlyOptions(width=8, encoder_layers=1, decoder_layers=1),
]
sometimes = st.floats(allow_subnormal=False) | st.integers() | st.none() | st.text(max_size=3)
options = st.fixed_dictionaries(
    {},
    optional={
        "beam": st.integers(1, 40),
        "nbest": st.integers(1, 5),
        "length_penalty": st.floats(0, 5, allow_subnormal=False),
        "min_length": st.integers(0, 40),
        "max_length_ratio": st.floats(0, 3, allow_subnormal=False),
        "max_length_extra": st.integers(1, 12),
        "no_repeat_ngram": st.integers(0, 6) | st.just(100),
        "max_loops": st.integers(0, 5) | st.just(1000),
        "sample": st.booleans(),
        "seed": st.integers(0, 2**63 - 1),
    },
)
sampling = st.fixed_dictionaries(
    {"sample": st.just(True), "max_length_extra": st.integers(1, 12)},
    optional={
        "nbest": st.integers(1, 9),
        "temperature": st.floats(0, 100, exclude_min=True, allow_subnormal=False),
        "top_k": st.integers(0, 20) | st.just(1_000_000),
        "top_p": st.floats(0, 1, exclude_min=True, allow_subnormal=False),
        "no_repeat_ngram": st.integers(0, 3),
    },
)
wrong = st.dictionaries(st.sampled_from(sorted(DecodingOptions.model_fields)), sometimes, min_size=1, max_size=2)
sentence = st.lists(st.integers(1, V - 1), max_size=10)
cases = st.tuples(
    st.integers(0, len(SHAPES) - 1),
    st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    st.lists(sentence, max_size=4),
    options | sampling | st.builds(lambda first, second: {**first, **second}, options, wrong),
)


@cache
def model(number: int, sharpness: float) -> SequenceModel:
    """Return an untrained model; `sharpness` scales its logits, and 0 makes all tokens equally likely."""
    with torch.random.fork_rng():
        torch.manual_seed(number)
        built = build_model(SHAPES[number], V, V).eval()
    for parameter in built.output.parameters():
        parameter.data = parameter.data * sharpness
    return built


def fuzz(count: int, seed: int) -> Tally:
    """Search `count` times."""
    tally = Tally("searches")
    each(cases, count, seed, lambda case: tally.attempt(case, lambda: _search(*case), seconds=60))
    return tally


def _search(number: int, sharpness: float, sentences: list[list[int]], settings: dict[str, Any]) -> None:
    decoding = checked(DecodingOptions, settings)
    if decoding.beam * (decoding.max_length_extra + 10 * decoding.max_length_ratio) > 20_000:
        return  # valid, but slow
    network = model(number, sharpness)
    starts = torch.arange(V) % 2 == 0
    sources = [[*ids, network.eos] for ids in sentences]
    results = TorchEngine(network, starts).decode(SearchRequest(sources, decoding))
    assert len(results) == len(sources)
    limits = [length_limit(len(ids) - 1, decoding, network.max_length) for ids in sources]
    for ids, nbest, limit in zip(sources, results, limits, strict=True):
        assert 1 <= len(nbest) <= max(1, decoding.nbest)
        assert [h.score for h in nbest] == sorted((h.score for h in nbest), reverse=True)
        assert len({tuple(h.tokens) for h in nbest}) == len(nbest)
        for hypothesis in nbest:
            assert math.isfinite(hypothesis.score) and math.isfinite(hypothesis.log_probability)
            assert hypothesis.log_probability <= 1e-3
            assert len(hypothesis.tokens) <= limit, (len(hypothesis.tokens), limit)
            assert all(4 <= token < V for token in hypothesis.tokens), hypothesis.tokens
            assert len(ids) > 1 or not hypothesis.tokens
