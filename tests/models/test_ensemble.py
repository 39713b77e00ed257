"""Ensembles of models against means of probabilities computed by hand in float64."""

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.pair_scores import pair_scores
from translucid.decoding.search import TorchEngine
from translucid.models.build import build_model
from translucid.models.ensemble import Ensemble
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

V = 13
KINDS = {
    "transformer": TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2),
    "recurrent": RecurrentOptions(width=12, attention="luong-general", input_feeding=True),
    "plain": RecurrentOptions(width=8, attention="none", cell="gru"),
    "attention-only": AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=2),
}
SENTENCES = [[4, 5, 6, 3], [7, 3], [8, 9, 10, 11, 12, 3], [4, 4, 3], [3]]


def build(kind, seed):
    torch.manual_seed(seed)
    model = build_model(KINDS[kind], V, V).eval()
    for weights in model.parameters():  # sharpen the distributions so that hypotheses differ
        weights.data *= 2
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [DecodingOptions(beam=1), DecodingOptions(beam=4, nbest=3), DecodingOptions(sample=True, nbest=2)],
    ids=["greedy", "beam", "sampling"],
)
def test_a_model_with_itself_writes_what_it_writes_alone(kind, options):
    model = build(kind, 1)
    single = TorchEngine(model).decode(SearchRequest(SENTENCES, options))
    ensemble = TorchEngine(Ensemble([model, model, model])).decode(SearchRequest(SENTENCES, options))
    for expected, actual in zip(single, ensemble, strict=True):
        assert [hypothesis.tokens for hypothesis in expected] == [hypothesis.tokens for hypothesis in actual]
        assert [hypothesis.score for hypothesis in expected] == pytest.approx(
            [hypothesis.score for hypothesis in actual], abs=1e-5
        )


def mean_by_hand(models, source, tokens):
    """Return p(next token) [T + 1, V] after each prefix of T tokens: the mean over models of teacher-forced passes."""
    decoder_input = torch.tensor([[2, *tokens]])
    return sum(model(torch.tensor([source]), decoder_input)[0].softmax(-1) for model in models) / len(models)


@torch.inference_mode()
@pytest.mark.parametrize("kinds", [("transformer", "recurrent"), ("plain", "attention-only", "transformer")])
def test_each_step_has_the_mean_of_the_probabilities(kinds):
    models = [build(kind, seed).double() for seed, kind in enumerate(kinds)]
    ensemble = Ensemble(models)
    options = DecodingOptions(beam=1, max_loops=0, max_length_extra=4, max_length_ratio=0)
    hypotheses = TorchEngine(ensemble).decode(SearchRequest(SENTENCES[:4], options))
    forced = pair_scores(
        ensemble, [(s, [*nbest[0].tokens, 3]) for s, nbest in zip(SENTENCES[:4], hypotheses, strict=True)]
    )
    differs = False
    for source, (hypothesis,), score in zip(SENTENCES[:4], hypotheses, forced, strict=True):
        expected = mean_by_hand(models, source, hypothesis.tokens)
        for t, (token, p) in enumerate(zip([*hypothesis.tokens, 3], expected, strict=True)):
            assert p.sum().item() == pytest.approx(1)
            assert hypothesis.token_log_probabilities[t] == pytest.approx(p[token].log().item(), abs=1e-6)
            assert score.log_probabilities[t] == pytest.approx(p[token].log().item(), abs=1e-6)
            p[[0, 1, 2, *([3] if t == 0 else [])]] = 0
            if t < 4:
                assert p.argmax() == token
        differs |= hypothesis.tokens != TorchEngine(models[0]).decode(SearchRequest([source], options))[0][0].tokens
    assert differs  # the other models must change a translation


@torch.inference_mode()
def test_a_beam_is_reordered_in_all_models():
    models = [build("transformer", 1).double(), build("recurrent", 2).double()]
    options = DecodingOptions(beam=5, nbest=5, max_length_extra=6)
    for source, hypotheses in zip(
        SENTENCES, TorchEngine(Ensemble(models)).decode(SearchRequest(SENTENCES, options)), strict=True
    ):
        for hypothesis in hypotheses if len(source) > 1 else []:
            ids = [*hypothesis.tokens, 3]
            expected = mean_by_hand(models, source, hypothesis.tokens)[range(len(ids)), ids].log().tolist()
            assert hypothesis.token_log_probabilities == pytest.approx(expected, abs=1e-5)


def test_other_vocabularies_are_refused():
    with pytest.raises(ValueError, match="same target vocabulary"):
        Ensemble([build("plain", 1), build_model(KINDS["plain"], V + 1, V + 1)])
    with pytest.raises(ValueError, match="same target vocabulary"):
        Ensemble([])


def test_the_shortest_limit_holds():
    limited = TransformerOptions(**{**KINDS["transformer"].model_dump(), "positions": "learned", "max_length": 9})
    models = [build("plain", 1), build_model(limited, V, V)]
    assert Ensemble(models).max_length == 9
    assert Ensemble(models[:1]).max_length is None
