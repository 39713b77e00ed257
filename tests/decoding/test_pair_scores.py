"""Log-probabilities of targets by each kind of translator, against the full softmax in float64."""

import math

import pytest
import torch

from translucid.decoding.pair_scores import PairScore, pair_scores
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

V = 17
OPTIONS = [
    TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2),
    RecurrentOptions(width=16, attention="none"),
    RecurrentOptions(width=16, attention="bahdanau"),
    RecurrentOptions(width=16, attention="luong-general", input_feeding=True),
    AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=2),
]
PAIRS = [([4, 5, 3], [9, 3]), ([6, 3], [4, 4, 5, 16, 3]), ([7, 8, 9, 10, 11, 3], [3]), ([4, 5, 3], [9, 3])]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: f"{options.kind} {getattr(options, 'attention', '')}")
def test_scores_equal_the_softmax_in_float64(options):
    model = build_model(options, V, V).eval()
    scores = pair_scores(model, PAIRS, batch_tokens=12)
    float64_model = model.double()
    for (source, target), score in zip(PAIRS, scores, strict=True):
        logits = float64_model(torch.tensor([source]), torch.tensor([[2, *target[:-1]]]))[0].detach()
        expected = [math.log(logits[t].exp()[token] / logits[t].exp().sum()) for t, token in enumerate(target)]
        assert score.tokens == target
        assert score.log_probabilities == pytest.approx(expected, abs=1e-5)


def test_a_perplexity_by_hand():
    score = PairScore([5, 6, 3], [math.log(1 / 2), math.log(1 / 4), 0.0])
    assert score.log_probability == pytest.approx(math.log(1 / 8))
    assert score.perplexity == pytest.approx(2)
