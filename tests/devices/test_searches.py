"""Searches on an emulated GPU give the results of the CPU and wait for the GPU once a step."""

import pytest
import torch

from tests.devices.emulated import Emulation
from tests.devices.shrunk import SENTENCES, SHORT, VOCABULARY, build_case
from translucid.decoding.beam import likeliest
from translucid.decoding.constrained_decoding import Constraints, Edges, Form, RequiredPhrase
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.rows import indices_by_kind
from translucid.decoding.search import TorchEngine, continuations
from translucid.ground.errors import UserError

NONE = torch.zeros(VOCABULARY, dtype=torch.bool)
CONSTRAINTS = Constraints([[RequiredPhrase((Form((9, 7)), Form((8,), instead=(5,))), 2)], []], Edges(NONE, NONE))


def test_a_constrained_search_is_the_same_on_a_gpu_with_one_wait_a_step(steps):
    options = DecodingOptions(beam=4, nbest=2, **SHORT)
    expected = TorchEngine(build_case("tiny").model.eval()).decode(
        SearchRequest(SENTENCES, options), constraints=CONSTRAINTS
    )
    steps.clear()
    with Emulation("cuda") as emulation:
        model = build_case("tiny").model.to(emulation.device).eval()
        emulation.forget()
        results = TorchEngine(model).decode(SearchRequest(SENTENCES, options), constraints=CONSTRAINTS)
        waits = sum(emulation.synchronizations.values())
    for nbest, expected_nbest in zip(results, expected, strict=True):
        assert [h.tokens for h in nbest] == [h.tokens for h in expected_nbest]
        assert [h.score for h in nbest] == pytest.approx([h.score for h in expected_nbest])
    assert waits <= len(steps) + 3


def test_continuations_are_the_same_on_a_gpu():
    """One continuation is the prefix itself, as the end token is the likeliest."""
    model, options = build_case("tiny").model.eval(), DecodingOptions(beam=2, **SHORT)
    with torch.no_grad():
        model.output.bias[model.eos] = 20
    expected = continuations(model, torch.tensor(SENTENCES[:1]), [9], 2, options)
    with Emulation("cuda") as emulation:
        model.to(emulation.device)
        hypotheses = continuations(model, torch.tensor(SENTENCES[:1], device=emulation.device), [9], 2, options)
    assert [hypothesis.tokens for hypothesis in hypotheses] == [hypothesis.tokens for hypothesis in expected]
    assert hypotheses[0].tokens == [9] and len(hypotheses) == 2


def test_loops_are_forbidden_on_a_gpu_as_on_the_cpu():
    """The model repeats a token until the rule forbids it; the word starts are a CPU tensor."""
    model, limits = build_case("tiny").model.eval(), {"max_length_ratio": 0, "max_length_extra": 5}
    options = DecodingOptions(beam=2, max_loops=2, **limits)
    with torch.no_grad():
        model.output.bias[9] = 20
    expected = TorchEngine(model, ~NONE).decode(SearchRequest(SENTENCES, options))
    assert all(best.tokens[:2] == [9, 9] and best.tokens[2] != 9 for best, *_ in expected)
    with Emulation("cuda") as emulation:
        results = TorchEngine(model.to(emulation.device), ~NONE).decode(SearchRequest(SENTENCES, options))
    assert [best.tokens for best, *_ in results] == [best.tokens for best, *_ in expected]


def test_of_equal_tokens_a_gpu_takes_the_lower_id_as_well():
    log_probs = torch.zeros(4, 500)
    log_probs[1, 300:303] = torch.tensor([3.0, 4.0, 3.0])
    log_probs[2, 7:] = -torch.inf
    log_probs[3] = torch.randint(4, (500,), generator=torch.Generator().manual_seed(1))
    expected = likeliest(log_probs.clone(), 6)
    with Emulation("cuda") as emulation:
        values, ids = likeliest(log_probs.to(emulation.device), 6)
        assert (values.tolist(), ids.tolist()) == (expected[0].tolist(), expected[1].tolist())


def test_places_are_parted_alike_on_both_devices():
    kind = torch.tensor([2, 0, 3, 1, 0, 2, 3])
    flag = torch.tensor(True)
    expected = [[1, 4], [3], [0, 5]]
    places, flags = indices_by_kind(kind, 3, flag)
    assert ([part.tolist() for part in places], flags) == (expected, [True])
    with Emulation("cuda") as emulation:
        places, flags = indices_by_kind(kind.to(emulation.device), 3, flag.to(emulation.device))
        assert ([part.tolist() for part in places], flags) == (expected, [True])


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_without_numbers_is_refused_on_a_gpu(beam):
    model = build_case("tiny").model
    with torch.no_grad():
        model.output.bias.fill_(torch.nan)
    with Emulation("cuda") as emulation, pytest.raises(UserError, match="not numbers"):
        TorchEngine(model.to(emulation.device)).decode(SearchRequest(SENTENCES, DecodingOptions(beam=beam)))


def test_a_gpu_gets_larger_batches(monkeypatch):
    monkeypatch.setattr("translucid.decoding.search.BATCH", 20)
    monkeypatch.setattr("translucid.decoding.search.BATCH_ON_GPU", 40)
    sentences, options = [[5, 6, 7, 8, 3]] * 10, DecodingOptions(beam=1)

    def sizes(device):
        batch_sizes = []
        TorchEngine(build_case("tiny").model.to(device)).decode(
            SearchRequest(sentences, options, on_batch=batch_sizes.append)
        )
        return batch_sizes

    assert sizes("cpu") == [4, 4, 2]
    with Emulation("cuda") as emulation:
        assert sizes(emulation.device) == [8, 2]
