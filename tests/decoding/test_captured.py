"""Searches in tensors of fixed shapes find what the other searches find, for every option of a Transformer."""

import pytest
import torch

from tests.devices.emulated import Emulation
from tests.training.test_packed import END, OPTIONS, VOCABULARY, built
from translucid.decoding import captured
from translucid.decoding.captured import CapturedSearch, rounded_up
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine, search
from translucid.ground.errors import UserError

LENGTHS = [4, 9, 1, 5, 6, 2, 3, 12, 7, 1, 8]
WORD_STARTS = torch.arange(VOCABULARY) % 2 == 0


@pytest.fixture(autouse=True)
def small_shapes(monkeypatch):
    """Searches change their shape often: with fewer sentences and with more positions."""
    monkeypatch.setattr(captured, "EVERY", 4)
    monkeypatch.setattr(captured, "LENGTH", 4)
    monkeypatch.setattr(captured, "FEW_ROWS", 2)


def sentences(lengths=LENGTHS):
    generator = torch.Generator().manual_seed(3)
    return [[*torch.randint(4, VOCABULARY, (n,), generator=generator).tolist(), END] for n in lengths]


def model_that_ends(*settings):
    """Return a model in float64 whose outputs end after few or many tokens, or at their limit."""
    model = built(*settings).eval()
    with torch.no_grad():
        model.output.bias[END] += 0.3
    return model


def outputs(model, options, is_captured, device="cpu", batches=1, opening=()):
    engine = TorchEngine(model, WORD_STARTS, torch.device(device), opening=list(opening))
    engine.captured = CapturedSearch(model) if is_captured else None
    for _ in range(batches):
        results = engine.decode(SearchRequest(sentences(), options))
    return results


def assert_same(results, expected):
    assert [[h.tokens for h in nbest] for nbest in results] == [[h.tokens for h in nbest] for nbest in expected]
    for nbest, expected_nbest in zip(results, expected, strict=True):
        for hypothesis, same in zip(nbest, expected_nbest, strict=True):
            assert hypothesis.log_probability == pytest.approx(same.log_probability, abs=2e-6)
            assert hypothesis.score == pytest.approx(same.score, abs=2e-6)
            assert hypothesis.token_log_probabilities == pytest.approx(same.token_log_probabilities, abs=2e-6)


GREEDY, BEAM = {"beam": 1, "max_loops": 2}, {"beam": 5, "nbest": 3, "min_length": 3}


@pytest.mark.parametrize(("name", "settings"), [(next(iter(OPTIONS)), GREEDY), *((name, BEAM) for name in OPTIONS)])
def test_a_captured_search_finds_the_same(name, settings):
    model, options = model_that_ends(*OPTIONS[name]), DecodingOptions(**settings)
    expected = outputs(model, options, False)
    assert len({len(nbest[0].tokens) for nbest in expected}) > 2
    # The second batch of the same shape finds nothing of the first one in its memory.
    assert_same(outputs(model, options, True, batches=2), expected)


@pytest.mark.parametrize("beam", [4])
def test_it_does_so_on_an_emulated_gpu(beam):
    """With language tokens at the beginning, which the rules do not know: one is forbidden, and repeated."""
    options, opening = DecodingOptions(beam=beam, max_loops=2, min_length=2), [0, 6, 6, 6, 6]
    expected = outputs(model_that_ends(), options, False, opening=opening)
    assert all(hypothesis.tokens[:5] == opening for nbest in expected for hypothesis in nbest)
    with Emulation("cuda") as emulation:
        model = model_that_ends().to(emulation.device)
        results = outputs(model, options, True, emulation.device, opening=opening)
        assert emulation.kernels["graph"] > 9
    assert_same(results, expected)


def test_half_precision_searches_on_both_devices():
    options = DecodingOptions(beam=3)
    model = model_that_ends().float()
    expected = TorchEngine(model).fast("bfloat16", captured=False)
    assert str(expected) == "torch, bfloat16, all pieces"
    results = expected.decode(SearchRequest(sentences([4, 2]), options))
    with Emulation("cuda") as emulation:
        engine = TorchEngine(model.to(emulation.device)).fast("bfloat16", captured=True)
        outputs = engine.decode(SearchRequest(sentences([4, 2]), options))
        assert engine.forced([([5, END], [6, END])])[0][0] != 0
    for nbest, expected_nbest in zip(outputs, results, strict=True):
        assert nbest[0].score == pytest.approx(expected_nbest[0].score, abs=0.05)


def test_searches_of_several_languages_share_their_memory():
    """Language tokens of one length are different tensors of one step; another length needs another step."""
    model, options = model_that_ends(), DecodingOptions(beam=2)
    engine = TorchEngine(model, WORD_STARTS)
    engine.captured = CapturedSearch(model)
    for opening in ([6], [9], [6, 9], []):
        engine.opening = opening
        expected = outputs(model, options, False, opening=opening)
        assert_same(engine.decode(SearchRequest(sentences(), options)), expected)
    assert len({length for _, length, _ in engine.captured._steps}) == 3


def test_other_searches_are_left_to_the_other_code():
    """Samples, n-grams, a beginning of the output that has a probability: with each, the steps are not captured."""
    model = model_that_ends()
    engine, ids = TorchEngine(model, WORD_STARTS), sentences([3, 2])
    for settings in ({"sample": True}, {"no_repeat_ngram": 2}):
        options = DecodingOptions(beam=2, max_length_ratio=0, **settings)
        engine.captured = None
        expected = engine.decode(SearchRequest(ids, options))
        engine.captured = CapturedSearch(model)
        assert engine.decode(SearchRequest(ids, options)) == expected and not engine.captured._steps
    found, source = CapturedSearch(model), torch.tensor(ids[:1])
    both = [search(model, source, DecodingOptions(), prefix=[6], captured=captured) for captured in (None, found)]
    assert both[0] == both[1] and not found._steps


def test_a_model_without_numbers_is_refused():
    model = model_that_ends()
    with torch.no_grad():
        model.output.bias.fill_(torch.nan)
    with Emulation("cuda") as emulation, pytest.raises(UserError, match="not numbers"):
        outputs(model.to(emulation.device), DecodingOptions(), True, emulation.device)


def test_old_shapes_are_forgotten(monkeypatch):
    monkeypatch.setattr(captured, "KEPT_BYTES", 0)
    model = model_that_ends()
    engine = TorchEngine(model, WORD_STARTS)
    engine.captured = CapturedSearch(model)
    engine.decode(SearchRequest(sentences(), DecodingOptions(beam=2)))
    assert len(engine.captured._steps) == 2


def test_sizes_are_rounded_up():
    assert [rounded_up(n) for n in (1, 2, 3, 4, 5, 6, 7, 9, 13, 17)] == [1, 2, 3, 4, 6, 6, 8, 12, 16, 24]
    assert [rounded_up(n, 16) for n in (1, 16, 17, 33, 48, 49)] == [16, 16, 32, 48, 48, 64]
