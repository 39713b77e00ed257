"""Several models that write together, against means of probabilities made by hand in float64."""

import pytest
import torch

from translucid.decoding.decoding_options import DecodingOptions
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


def built(kind, seed):
    torch.manual_seed(seed)
    model = build_model(KINDS[kind], V, V).eval()
    for weights in model.parameters():  # far from even, so that hypotheses differ
        weights.data *= 2
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [DecodingOptions(beam=1), DecodingOptions(beam=4, nbest=3), DecodingOptions(sample=True, nbest=2)],
    ids=["greedy", "beam", "sampling"],
)
def test_a_model_with_itself_writes_what_it_writes_alone(kind, options):
    model = built(kind, 1)
    alone = TorchEngine(model).decode(SENTENCES, options)
    together = TorchEngine(Ensemble([model, model, model])).decode(SENTENCES, options)
    for one, other in zip(alone, together, strict=True):
        assert [found.tokens for found in one] == [found.tokens for found in other]
        assert [found.score for found in one] == pytest.approx([found.score for found in other], abs=1e-5)


def mean_by_hand(models, source, tokens):
    """Return p(next token) [T + 1, V] after each prefix of T tokens: the mean over models of teacher-forced passes."""
    fed = torch.tensor([[2, *tokens]])
    return sum(model(torch.tensor([source]), fed)[0].softmax(-1) for model in models) / len(models)


@torch.inference_mode()
@pytest.mark.parametrize("kinds", [("transformer", "recurrent"), ("plain", "attention-only", "transformer")])
def test_each_step_has_the_mean_of_the_probabilities(kinds):
    models = [built(kind, seed).double() for seed, kind in enumerate(kinds)]
    ensemble = Ensemble(models)
    options = DecodingOptions(beam=1, max_loops=0, max_length_extra=4, max_length_ratio=0)
    found = TorchEngine(ensemble).decode(SENTENCES[:4], options)
    forced = pair_scores(ensemble, [(s, [*f[0].tokens, 3]) for s, f in zip(SENTENCES[:4], found, strict=True)])
    differs = False
    for source, (one,), score in zip(SENTENCES[:4], found, forced, strict=True):
        by_hand = mean_by_hand(models, source, one.tokens)
        for t, (token, p) in enumerate(zip([*one.tokens, 3], by_hand, strict=True)):
            assert p.sum().item() == pytest.approx(1)
            assert one.token_log_probabilities[t] == pytest.approx(p[token].log().item(), abs=1e-6)
            assert score.log_probabilities[t] == pytest.approx(p[token].log().item(), abs=1e-6)
            p[[0, 1, 2, *([3] if t == 0 else [])]] = 0
            if t < 4:
                assert p.argmax() == token
        differs |= one.tokens != TorchEngine(models[0]).decode([source], options)[0][0].tokens
    assert differs  # or the others would not have mattered


@torch.inference_mode()
def test_a_beam_is_reordered_in_all_models():
    models = [built("transformer", 1).double(), built("recurrent", 2).double()]
    options = DecodingOptions(beam=5, nbest=5, max_length_extra=6)
    for source, found in zip(SENTENCES, TorchEngine(Ensemble(models)).decode(SENTENCES, options), strict=True):
        for one in found if len(source) > 1 else []:
            ids = [*one.tokens, 3]
            by_hand = mean_by_hand(models, source, one.tokens)[range(len(ids)), ids].log().tolist()
            assert one.token_log_probabilities == pytest.approx(by_hand, abs=1e-5)


def test_other_vocabularies_are_refused():
    with pytest.raises(ValueError, match="one vocabulary"):
        Ensemble([built("plain", 1), build_model(KINDS["plain"], V + 1, V + 1)])
    with pytest.raises(ValueError, match="one vocabulary"):
        Ensemble([])


def test_the_shortest_limit_holds():
    limited = TransformerOptions(**{**KINDS["transformer"].model_dump(), "positions": "learned", "max_length": 9})
    models = [built("plain", 1), build_model(limited, V, V)]
    assert Ensemble(models).max_length == 9
    assert Ensemble(models[:1]).max_length is None
