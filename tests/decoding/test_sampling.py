"""Samples follow the model's distribution and do not depend on other sentences in the batch."""

import math
from collections import Counter

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.sampling import draw_tokens
from translucid.decoding.search import search

EOS = 3


def draws(probabilities, n=20_000, **options):
    """Return the relative frequency of each token among samples of a distribution."""
    log_probs = torch.tensor([probabilities]).log().expand(n, -1)
    uniform = torch.rand(n, generator=torch.Generator().manual_seed(0))
    tokens = draw_tokens(log_probs, uniform, DecodingOptions(sample=True, **options))
    return [tokens.eq(token).float().mean().item() for token in range(len(probabilities))]


def test_tokens_come_as_often_as_they_are_likely():
    assert draws([0.1, 0.2, 0.0, 0.4, 0.3]) == pytest.approx([0.1, 0.2, 0, 0.4, 0.3], abs=0.015)


def test_a_forbidden_token_leaves_the_others_in_proportion():
    assert draws([0.1, 0.0, 0.3]) == pytest.approx([0.25, 0, 0.75], abs=0.015)


def test_temperature_sharpens_and_flattens():
    assert draws([0.2, 0.8], temperature=0.5) == pytest.approx([0.04 / 0.68, 0.64 / 0.68], abs=0.015)
    assert draws([0.2, 0.8], temperature=2.0) == pytest.approx([1 / 3, 2 / 3], abs=0.015)
    assert draws([0.49, 0.51], temperature=1e-30) == [0, 1]
    assert draws([0.49, 0.51], temperature=1e-300) == [0, 1]


def test_top_k_draws_from_the_k_likeliest():
    assert draws([0.1, 0.2, 0.3, 0.4], top_k=2) == pytest.approx([0, 0, 3 / 7, 4 / 7], abs=0.015)
    assert draws([0.1, 0.2, 0.3, 0.4], top_k=1) == [0, 0, 0, 1]
    assert draws([0.1, 0.2, 0.3, 0.4], top_k=99) == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.015)


def test_top_p_draws_from_the_fewest_that_have_p_together():
    assert draws([0.1, 0.2, 0.3, 0.4], top_p=0.6) == pytest.approx([0, 0, 3 / 7, 4 / 7], abs=0.015)
    assert draws([0.1, 0.2, 0.3, 0.4], top_p=0.75) == pytest.approx([0, 2 / 9, 3 / 9, 4 / 9], abs=0.015)
    assert draws([0.1, 0.2, 0.3, 0.4], top_p=1e-6) == [0, 0, 0, 1]
    # The sum of the most probable tokens may equal p exactly: they are enough.
    assert draws([0.25, 0.25, 0.25, 0.25], top_p=0.5) == pytest.approx([1 / 2, 1 / 2, 0, 0], abs=0.015)
    assert draws([0.25, 0.25, 0.25, 0.25], top_p=0.75) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.015)
    # After top_k: 3/7 and 4/7 are left, and the second has more than a half alone.
    assert draws([0.1, 0.2, 0.3, 0.4], top_k=2, top_p=0.5) == [0, 0, 0, 1]


def test_the_ends_of_the_random_numbers_draw_possible_tokens():
    log_probs = torch.tensor([0.0, 0.3, 0.7, 0.0]).log().expand(2, -1)
    uniform = torch.tensor([0.0, math.nextafter(1.0, 0.0)])
    assert draw_tokens(log_probs, uniform, DecodingOptions(sample=True)).tolist() == [1, 2]


def test_outputs_come_as_often_as_the_table_says(table_model, brute_force, source_batch):
    model, source, n = table_model(1), [4, EOS], 3000
    options = DecodingOptions(sample=True, max_length_ratio=0, max_length_extra=2)
    results = search(model, source_batch([source] * n), options)
    counts = Counter(tuple(h[0].tokens) for h in results)
    # Start, padding and unknown are never sampled, nor the end first, nor any other token at the limit.
    for output in brute_force(model, source, options):
        p = 1.0
        for t, token in enumerate([*output.tokens, EOS]):
            allowed = [4, 5, 6] if t == 0 else [EOS] if t == 2 else [4, 5, 6, EOS]
            step = [math.exp(x) for x in model.log_probs(source, output.tokens[:t])]
            p *= step[token] / sum(step[alternative] for alternative in allowed)
        assert counts[tuple(output.tokens)] / n == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("options", [{"temperature": 1e-3}, {"top_k": 1}, {"top_p": 1e-6}])
def test_the_cautious_extremes_are_greedy_search(options, table_model, source_batch, sentences):
    model = table_model(6)
    greedy = search(model, source_batch(sentences), DecodingOptions(beam=1))
    assert search(model, source_batch(sentences), DecodingOptions(sample=True, **options)) == greedy


def test_a_sentence_draws_the_same_in_any_batch(table_model, source_batch, sentences):
    model = table_model(7)
    options = DecodingOptions(sample=True, nbest=3, temperature=2.0)
    forward = search(model, source_batch(sentences), options)
    backwards = search(model, source_batch(sentences[::-1]), options, indices=[5, 4, 3, 2, 1, 0])
    assert backwards == forward[::-1]
    for i, sentence in enumerate(sentences):
        assert search(model, source_batch([sentence]), options, indices=[i]) == [forward[i]]


def test_other_seeds_and_other_sentences_draw_otherwise(table_model, source_batch):
    model, source = table_model(7), source_batch([[4, 5, EOS]] * 20)

    def samples(seed):
        return [nbest[0].tokens for nbest in search(model, source, DecodingOptions(sample=True, seed=seed))]

    assert samples(1) == samples(1) != samples(2)
    assert len(set(map(tuple, samples(1)))) > 5


def test_equal_draws_count_once_and_the_best_comes_first(table_model, source_batch, sentences):
    options = DecodingOptions(sample=True, nbest=40, max_length_ratio=0, max_length_extra=2)
    for hypotheses in search(table_model(), source_batch(sentences), options):
        assert 1 < len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses) < 40
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
