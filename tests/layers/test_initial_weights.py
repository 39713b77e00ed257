"""The size of every initial weight against the formulas of the papers; training tolerates wrong ones but gets worse."""

import math

import pytest
import torch

from translucid.captions.options import CaptionerOptions
from translucid.language.lstm import LSTMLayer, Mix, ProjectedLSTM
from translucid.language.options import BiLSTMLanguageOptions
from translucid.layers.characters import Characters, Highway
from translucid.layers.embedding import output_projection, token_embedding
from translucid.layers.feed_forward import FeedForward
from translucid.layers.low_rank import LowRank
from translucid.layers.positions import LearnedPositions
from translucid.layers.ssru import SSRU
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
PIECES = [*SPECIAL, *(f"piece{i}" for i in range(36))]
SCENE = {"image_encoder": {"size": 64, "channels": 8, "stride": 16}, "width": 32, "hidden": 24}


def xavier(weight):
    """Glorot and Bengio 2010, equation 16: uniform within sqrt(6 / (inputs + outputs)), whose square is a third."""
    return math.sqrt(2 / sum(weight.shape))


def torch_default(weight):
    """PyTorch's recurrent layers: uniform within 1 / sqrt(H)."""
    return math.sqrt(1 / 3 / weight.shape[-1])


LAYERS = {
    "feed-forward": (
        lambda: FeedForward(40, 90),
        {"inner.weight": xavier, "inner.bias": 0, "outer.weight": xavier, "outer.bias": 0},
    ),
    "SSRU": (lambda: SSRU(60), {"projection.weight": math.sqrt(1 / 60), "forget_bias": 0}),
    "highway": (
        lambda: Highway(50),
        {"change.weight": xavier, "change.bias": 0, "gate.weight": xavier, "gate.bias": -1},
    ),
    "characters": (lambda: Characters(PIECES, [20, 30], 40), {"projection.weight": xavier, "projection.bias": 0}),
    "low rank": (lambda: LowRank(torch.zeros(50, 90), 20, 1.0), {"down": 1 / math.sqrt(90), "up": 0}),
    "LSTM": (lambda: LSTMLayer(40, 50), {"w": xavier, "u": torch_default}),
    "projected LSTM": (lambda: ProjectedLSTM(40, 60, 2, 0.0), {f"projections.{i}.weight": xavier for i in (0, 1)}),
    "learned positions": (lambda: LearnedPositions(50, 60), {"table": math.sqrt(0.5)}),
    "embedding": (lambda: token_embedding(90, 50), {"weight": 1 / math.sqrt(50)}),
    "output": (lambda: output_projection(token_embedding(90, 50), tied=False), {"weight": xavier, "bias": 0}),
    "tied output": (lambda: output_projection(token_embedding(90, 50), tied=True), {"weight": 1 / math.sqrt(50)}),
    "mix": (lambda: Mix(3), {"s": 0, "gamma": 1}),
    "Bahdanau": (
        lambda: build_model(RecurrentOptions(width=32, attention="bahdanau"), 40, 40),
        {"decoder.readout.weight": xavier},
    ),
    "Luong": (
        lambda: build_model(RecurrentOptions(width=32, attention="luong-general"), 40, 40),
        {"decoder.combine.weight": xavier},
    ),
    "characters of a bidirectional model": (
        lambda: build_model(
            BiLSTMLanguageOptions(width=32, hidden=24, characters=True, filters=(8, 8)), 40, 40, PIECES
        ),
        {"output.weight": xavier, "output.bias": 0},
    ),
    "captioner": (
        lambda: build_model(CaptionerOptions(**SCENE, positions="learned"), 40, 40),
        {
            "decoder.hidden_projection.weight": xavier,
            "decoder.context_projection.weight": xavier,
            "source_embedding.project.weight": xavier,
            "source_embedding.project.bias": 0,
            "source_embedding.positions": math.sqrt(0.5),
        },
    ),
    "hard attention": (lambda: build_model(CaptionerOptions(**SCENE, attention="hard"), 40, 40), {"baseline": 0}),
    "captioner without attention": (
        lambda: build_model(CaptionerOptions(**SCENE, attention="none", gate=False), 40, 40),
        {"decoder.hidden_projection.weight": xavier},
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_root_mean_square_of_initial_weights(name):
    build, expected = LAYERS[name]
    weights = dict(build().named_parameters())
    for key, size in expected.items():
        weight = weights[key].detach()
        if callable(size):
            size = size(weight)
        if size in (0, 1, -1):
            assert (weight == size).all(), key
        else:
            assert weight.square().mean().sqrt().item() == pytest.approx(size, rel=0.08), key


def test_only_the_forget_gates_of_an_lstm_are_open_at_first():
    assert LSTMLayer(2, 5).b.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10
