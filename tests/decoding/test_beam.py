"""Beam search against brute force, against greedy search, and against the same algorithm in plain Python."""

import math

import pytest
import torch

from translucid.decoding.beam import beam_search, likeliest
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.sampling import greedy_search
from translucid.decoding.search import prepare, search

EOS = 3
V = 7


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_beam_wide_enough_finds_the_best_of_all_outputs(
    alpha, seed, table_model, brute_force, source_batch, sentences
):
    model = table_model(seed)
    options = DecodingOptions(beam=130, nbest=12, length_penalty=alpha, max_length_ratio=0.5, max_length_extra=2)
    results = search(model, source_batch(sentences), options)
    for sentence, hypotheses in zip(sentences, results, strict=True):
        expected = brute_force(model, sentence, options)[:12]
        assert [h.tokens for h in hypotheses] == [output.tokens for output in expected]
        for hypothesis, output in zip(hypotheses, expected, strict=True):
            assert hypothesis.log_probability == pytest.approx(output.log_probability, abs=1e-4)
            assert hypothesis.score == pytest.approx(output.score, abs=1e-4)


def test_a_beam_with_room_for_all_outputs_finds_each_once(table_model, brute_force, source_batch):
    model, source = table_model(2), [4, EOS]
    options = DecodingOptions(beam=130, nbest=130, max_length_ratio=0, max_length_extra=4)
    (hypotheses,) = search(model, source_batch([source]), options)
    assert len(hypotheses) == 3 + 9 + 27 + 81
    assert [h.tokens for h in hypotheses] == [output.tokens for output in brute_force(model, source, options)]


def test_the_parts_of_a_hypothesis_agree(table_model, source_batch, sentences):
    model = table_model(3)
    options = DecodingOptions(beam=4, nbest=4, length_penalty=0.7)
    for sentence, hypotheses in zip(sentences, search(model, source_batch(sentences), options), strict=True):
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        for h in hypotheses:
            tokens = [*h.tokens, EOS]
            expected = [model.log_probs(sentence, tokens[:t])[token] for t, token in enumerate(tokens)]
            assert h.token_log_probabilities == pytest.approx(expected, abs=1e-4)
            assert h.log_probability == pytest.approx(sum(expected), abs=1e-4)
            assert h.score == pytest.approx(sum(expected) / ((5 + len(tokens)) / 6) ** 0.7, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_search(seed, table_model, source_batch, sentences):
    problem = prepare(table_model(seed, eos=-1), source_batch(sentences), DecodingOptions())
    assert beam_search(problem, 1, 1).best(1) == greedy_search(problem).best(1)


def test_a_beam_of_one_is_greedy_search_among_equals(table_model, source_batch, sentences):
    model = table_model()
    model.logits = model.logits.round().clamp(-1, 1)
    problem = prepare(model, source_batch(sentences), DecodingOptions())
    assert beam_search(problem, 1, 1).best(1) == greedy_search(problem).best(1)


def plain_beam_search(model, source, options, *, prune):
    """Search like `beam_search`, but one sentence and one hypothesis at a time, with or without pruning."""
    limit = math.floor(options.max_length_ratio * (len(source) - 1)) + options.max_length_extra

    def lp(length):
        return ((5 + length) / 6) ** options.length_penalty

    live, finished, width = [([], 0.0)], [], options.beam

    def bound():
        """Return the log-probability below which no hypothesis can be among the n best."""
        best = sorted((s for _, s in finished), reverse=True)
        return best[options.nbest - 1] * lp(limit + 1) if len(best) >= options.nbest else -math.inf

    while live and width:
        candidates = []
        for tokens, log_p in live:
            step = model.log_probs(source, tokens)
            for token in (EOS,) if len(tokens) == limit else (4, 5, 6, EOS):
                if tokens or token != EOS:
                    candidates.append(([*tokens, token], log_p + step[token]))
        candidates = sorted(candidates, key=lambda c: -c[1])[:width]
        ended = [(tokens[:-1], log_p / lp(len(tokens))) for tokens, log_p in candidates if tokens[-1] == EOS]
        used = sum(log_p >= bound() for tokens, log_p in candidates if tokens[-1] == EOS)
        live = [c for c in candidates if c[0][-1] != EOS]
        finished += ended
        width -= used
        if prune:
            live = [c for c in live if c[1] >= bound()]
    return sorted(finished, key=lambda d: -d[1])[: options.nbest]


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(("beam", "nbest", "alpha"), [(2, 1, 1.0), (3, 2, 0.0), (5, 1, 0.5), (5, 3, 1.0), (8, 2, 2.0)])
def test_pruning_never_changes_the_result(prune, beam, nbest, alpha, table_model, source_batch, sentences):
    options = DecodingOptions(beam=beam, nbest=nbest, length_penalty=alpha, max_length_ratio=1, max_length_extra=6)
    for seed in range(6):
        model = table_model(seed)
        results = search(model, source_batch(sentences), options)
        for sentence, hypotheses in zip(sentences, results, strict=True):
            expected = plain_beam_search(model, sentence, options, prune=prune)
            assert [h.tokens for h in hypotheses] == [tokens for tokens, _ in expected]
            assert [h.score for h in hypotheses] == pytest.approx([s for _, s in expected], abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_no_beam_beats_the_exhaustive_one(alpha, table_model, source_batch, sentences):
    model = table_model(4)
    best = {}
    for beam in (1, 2, 3, 5, 200):
        options = DecodingOptions(beam=beam, length_penalty=alpha, max_length_ratio=0, max_length_extra=4)
        best[beam] = [h[0].score for h in search(model, source_batch(sentences), options)]
    for beam in (1, 2, 3, 5):
        assert all(narrow <= wide + 1e-6 for narrow, wide in zip(best[beam], best[200], strict=True))
    assert sum(best[200]) > sum(best[1])  # here, a wide beam finds better outputs


def test_hypotheses_and_sentences_leave_the_batch(table_model, source_batch, sentences):
    model = table_model(1)
    search(model, source_batch(sentences), DecodingOptions(beam=4))
    rows = model.rows_seen
    assert rows[0] == len(sentences)  # rows are repeated only when hypotheses differ
    assert max(rows) <= 4 * len(sentences)
    assert 0 < rows[-1] < len(sentences)
    assert sum(rows) < 0.5 * 4 * len(sentences) * len(rows)


def test_hopeless_hypotheses_leave_the_batch(table_model, source_batch):
    model = table_model(0)
    model.logits[:] = 0.0
    model.logits[..., 4] = 5.0  # one word, then the end; everything else is improbable
    model.logits[:, :, 4, EOS] = 10.0
    search(model, source_batch([[4, EOS]]), DecodingOptions(beam=3, max_length_ratio=0, max_length_extra=10))
    assert model.rows_seen == [1, 3]


def test_an_end_that_comes_too_late_to_matter_takes_no_slot(table_model, source_batch):
    model = table_model()
    p = torch.full((V, V, V), 1e-9)  # after two tokens, the next: end, 4, 5, 6
    p[0, 2, 3:] = torch.tensor([0.0, 0.8, 0.1, 0.1])
    p[2, 4, 3:] = torch.tensor([0.08, 0.01, 0.9, 0.01])  # "4" ends with 0.064; less probable hypotheses are dropped
    p[2, 5, 3:] = p[2, 6, 3:] = torch.tensor([0.0, 0.4, 0.3, 0.3])
    p[4, 5, 3:] = torch.tensor([0.02, 0.005, 0.005, 0.97])  # "4 5" ends with 0.0144; if that took one of two slots ..
    p[5, 6, 3:] = torch.tensor([0.0, 0.4, 0.6, 0.0])  # .. there would be none for "4 5 6 4" beside "4 5 6 5"
    p[6, 4, 3:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    p[6, 5, 3:] = torch.tensor([0.25, 0.25, 0.25, 0.25])
    model.logits[:] = (p + 1e-9).log()
    options = DecodingOptions(beam=3, length_penalty=0)
    assert search(model, source_batch([[4, EOS]]), options)[0][0].tokens == [4, 5, 6, 4]


def test_of_equal_candidates_the_lower_token_and_the_earlier_hypothesis_come_first(table_model, source_batch):
    model = table_model()
    model.logits[:] = 0.0
    options = DecodingOptions(beam=6, nbest=6, length_penalty=0, max_length_ratio=0, max_length_extra=2)
    (hypotheses,) = search(model, source_batch([[4, EOS]]), options)
    # The beam holds 4, 5, 6; then the end of 4, 4 4, 4 5, 4 6, the end of 5 and 5 4, which makes six.
    assert [h.tokens for h in hypotheses[:2]] == [[4], [5]]
    assert [h.tokens for h in hypotheses[2:]] == [[4, 4], [4, 5], [4, 6], [5, 4]]


def test_likeliest_takes_the_lower_id_of_equal_ones_even_where_the_cut_is():
    log_probs = torch.zeros(2, 500)
    log_probs[1, 300:303] = torch.tensor([3.0, 4.0, 3.0])
    values, ids = likeliest(log_probs, 4)
    assert ids.tolist() == [[0, 1, 2, 3], [301, 300, 302, 0]]
    assert values.tolist() == [[0, 0, 0, 0], [4, 3, 3, 0]]
