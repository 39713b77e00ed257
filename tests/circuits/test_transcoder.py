"""Transcoders, against the equations in NumPy and against the neurons of a sublayer."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from translucid.circuits.transcoder import Transcoder
from translucid.layers.feed_forward import FeedForward

D, NEURONS, K = 6, 20, 3


def sublayer(nonlinearity="relu"):
    torch.manual_seed(3)
    layer = FeedForward(D, NEURONS, nonlinearity)
    for parameter in layer.parameters():
        parameter.data.normal_()
    return layer.requires_grad_(False).double()


def states(count=50):
    torch.manual_seed(4)
    return torch.randn(2, count, D, dtype=torch.float64)


def test_features_and_output_are_those_of_the_equation():
    torch.manual_seed(5)
    transcoder = Transcoder(D, NEURONS, K).double().requires_grad_(False)
    transcoder.encoder_bias.normal_()
    transcoder.decoder_bias.normal_()
    x = states()
    w_e, b_e, w_d, b_d = (parameter.numpy() for parameter in transcoder.parameters())
    for row, f, output in zip(
        x.view(-1, D).numpy(), transcoder.features(x).view(-1, NEURONS), transcoder(x).view(-1, D), strict=True
    ):
        values = np.maximum(0, w_e @ row + b_e)
        kept = np.argsort(-values)[:K]
        expected = np.zeros(NEURONS)
        expected[kept] = values[kept]
        assert_close(f.numpy(), expected)
        assert_close(output.numpy(), sum(expected[i] * w_d[i] for i in kept) + b_d)


def test_with_all_neurons_active_a_transcoder_is_the_sublayer():
    layer, x = sublayer(), states()
    torch.manual_seed(1)
    transcoder = Transcoder.of_neurons(layer, NEURONS, NEURONS)
    assert_close(transcoder(x), layer(x))
    assert_close(transcoder.decoder_weight.norm(dim=-1), torch.ones(NEURONS, dtype=torch.float64))


def test_with_few_active_it_keeps_the_neurons_that_write_most():
    layer, x = sublayer(), states()
    torch.manual_seed(1)
    f = Transcoder.of_neurons(layer, 3 * NEURONS, K).features(x)
    neurons = torch.relu(layer.inner(x))  # [.., F]
    written = neurons * layer.outer.weight.norm(dim=0)
    expected = torch.zeros_like(written)
    for position in np.ndindex(*written.shape[:-1]):
        kept = written[position].argsort(descending=True)[:K]
        expected[position][kept] = written[position][kept]
    # The further features are too weak to displace them.
    agree = (f[..., :NEURONS] - expected).abs().amax(-1) < 1e-9
    assert agree.double().mean() > 0.9


def test_scaling_changes_no_value_of_the_output():
    torch.manual_seed(6)
    transcoder = Transcoder(D, NEURONS, NEURONS).double().requires_grad_(False)
    transcoder.decoder_weight.normal_()
    before = transcoder(states())
    transcoder.normalize()
    assert_close(transcoder(states()), before)


def test_other_nonlinearities_are_approximated():
    layer, x = sublayer("gelu"), states()
    torch.manual_seed(1)
    error = (Transcoder.of_neurons(layer, NEURONS, NEURONS)(x) - layer(x)).pow(2).sum() / layer(x).var(
        unbiased=False
    ).mul(layer(x).numel())
    assert 0 < error < 0.5


def test_no_more_features_than_there_are_can_be_active():
    with pytest.raises(ValueError, match="7 of 6"):
        Transcoder(D, 6, 7)
