"""Length-controlled search against all outputs, counted by hand."""

import math

import pytest
import torch

from translucid.decoding import length_control
from translucid.decoding.constrained_decoding import Constraints, Edges, Form, RequiredPhrase
from translucid.decoding.decoding_options import DecodingOptions, LengthLimit, SearchRequest
from translucid.decoding.length_control import LengthControl, PieceLengths
from translucid.decoding.search import TorchEngine, search

EOS = 3
CHARACTERS = {4: 3, 5: 1, 6: 2}
SPACES = {4: 1, 5: 0, 6: 1}
LENGTHS = PieceLengths(torch.tensor([0, 0, 0, 0, 3, 1, 2]), torch.tensor([0, 0, 0, 0, 1, 0, 1]))
NONE = torch.zeros(7, dtype=torch.bool)


def characters(tokens):
    return sum(CHARACTERS[token] for token in tokens) - (SPACES[tokens[0]] if tokens else 0)


def fitting(model, sentence, outputs, limit):
    """Return those outputs that fit and have no improbable token, by definition."""
    kept = []
    for output in outputs:
        tokens = [*output.tokens, EOS]
        steps = [model.log_probs(sentence, tokens[:t])[token] for t, token in enumerate(tokens)]
        if characters(output.tokens) <= limit and min(steps) >= math.log(length_control.LEAST):
            kept.append(output)
    return kept


@pytest.mark.parametrize(("limit", "cost"), [(0, 0.0), (2, 0.0), (5, 0.7), (30, 0.0)])
def test_a_beam_wide_enough_finds_all_outputs_that_fit(
    limit, cost, table_model, brute_force, source_batch, sentences, monkeypatch
):
    monkeypatch.setattr(length_control, "LEAST", 0.05)
    model = table_model(1)
    sentences = sentences[:3]
    options = DecodingOptions(beam=100, nbest=100, max_length_ratio=0, max_length_extra=3)
    control = LengthControl([LengthLimit(limit, cost)] * len(sentences), LENGTHS)
    results = search(model, source_batch(sentences), options, control=control)
    found = 0
    for sentence, hypotheses in zip(sentences, results, strict=True):
        expected = fitting(model, sentence, brute_force(model, sentence, options), limit)
        assert [h.tokens for h in hypotheses] == [output.tokens for output in expected]
        assert [h.score for h in hypotheses] == pytest.approx([output.score for output in expected], abs=1e-4)
        found += len(expected)
    assert bool(found) == bool(limit)


def test_a_cost_keeps_the_slots_for_short_outputs(table_model, source_batch, sentences, monkeypatch):
    monkeypatch.setattr(length_control, "LEAST", 1e-30)
    options = DecodingOptions(beam=2, length_penalty=0, max_length_ratio=0, max_length_extra=6)

    def mean_length(cost):
        control = LengthControl([LengthLimit(None, cost)] * len(sentences), LENGTHS)
        total = 0
        for seed in range(3):
            for best, *_ in search(table_model(seed), source_batch(sentences), options, control=control):
                total += characters(best.tokens)
        return total

    assert mean_length(2.0) < mean_length(0.5) < mean_length(0.0)


def test_without_limits_and_costs_the_search_finds_what_it_finds_otherwise(
    table_model, source_batch, sentences, monkeypatch
):
    monkeypatch.setattr(length_control, "LEAST", 1e-30)
    options = DecodingOptions(beam=4, nbest=3, max_length_ratio=1, max_length_extra=6)
    control = LengthControl([LengthLimit()] * len(sentences), LENGTHS)
    for seed in range(2):
        source = source_batch(sentences)
        results = search(table_model(seed), source, options, control=control)
        for hypotheses, expected in zip(results, search(table_model(seed), source, options), strict=True):
            assert [h.tokens for h in hypotheses] == [h.tokens for h in expected]
            assert [h.score for h in hypotheses] == pytest.approx([h.score for h in expected])


def test_each_sentence_has_its_own_limit_in_any_batch(table_model, sentences, monkeypatch):
    model, options = table_model(2), DecodingOptions(beam=4, nbest=2, max_length_extra=8)
    limits = [LengthLimit(3 + i, 0.3 * i) for i in range(len(sentences))]
    engine = TorchEngine(model, lengths=lambda: LENGTHS)
    together = engine.decode(SearchRequest(sentences, options, limits=limits))
    monkeypatch.setattr("translucid.decoding.search.BATCH", 12)
    assert engine.decode(SearchRequest(sentences, options, limits=limits)) == together
    for limit, hypotheses in zip(limits, together, strict=True):
        assert all(characters(h.tokens) <= limit.characters for h in hypotheses)


def test_limits_with_phrases_and_an_opening(table_model, source_batch, monkeypatch):
    monkeypatch.setattr(length_control, "LEAST", 1e-30)
    phrase = RequiredPhrase((Form((5, 6)),))
    constraints = Constraints([[phrase]], Edges(NONE, NONE))
    options = DecodingOptions(beam=6, nbest=3, max_length_ratio=0, max_length_extra=8)
    for seed in range(2):
        (hypotheses,) = search(
            table_model(seed),
            source_batch([[4, EOS]]),
            options,
            prefix=[4, 4],
            prefix_length=2,
            constraints=constraints,
            control=LengthControl([LengthLimit(6)], LENGTHS),
        )
        for hypothesis in hypotheses:
            text = hypothesis.tokens[2:]
            assert hypothesis.tokens[:2] == [4, 4] and characters(text) <= 6
        assert any((a, b) == (5, 6) for a, b in zip(hypotheses[0].tokens, hypotheses[0].tokens[1:], strict=False))


def test_limits_need_lengths_and_a_beam_search(table_model, source_batch, sentences):
    limits = [LengthLimit(4)] * len(sentences)
    with pytest.raises(ValueError, match="lengths of pieces"):
        TorchEngine(table_model(0)).decode(SearchRequest(sentences, DecodingOptions(), limits=limits))
    with pytest.raises(ValueError, match="sampling"):
        search(
            table_model(0),
            source_batch(sentences),
            DecodingOptions(sample=True),
            control=LengthControl(limits, LENGTHS),
        )
