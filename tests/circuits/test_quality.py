"""The figures of a dictionary and of baselines, against NumPy and cases whose result is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from translucid import Translator
from translucid.circuits import quality
from translucid.circuits.dictionary import sublayers_of
from translucid.circuits.quality import Moments, Quality, TopNeurons, measure
from translucid.circuits.replacement import read_states
from translucid.circuits.transcoder import Transcoder
from translucid.evaluation.metrics import bleu
from translucid.ground.console import Console

PAIRS = [
    ("I like soccer.", "Me gusta el fútbol."),
    ("She reads a book.", "Ella lee un libro."),
    ("I like a book", "Me gusta un libro"),
]
D, NEURONS = 16, 32


@pytest.fixture
def translator(run):
    return Translator.load(run, "cpu", "torch")


def states(translator):
    """Return the input and the output [n, D] of the decoder's sublayer over all pairs, one pair after the other."""
    inputs, outputs = [], []
    for pair in translator.pipeline.pairs(PAIRS):
        source, target = (torch.tensor([side]) for side in pair.ids)
        read = read_states(translator.model, ["decoder.0"], source, target)
        inputs.append(read.inputs["decoder.0"])
        outputs.append(read.outputs["decoder.0"])
    return torch.cat(inputs).detach(), torch.cat(outputs).detach()


def test_the_figures(translator, dictionary):
    measured = measure(translator, dictionary, PAIRS, PAIRS, console=Console(stderr=True))
    names = [system.system for system in measured.systems]
    assert names[:2] == [quality.ORIGINAL, quality.DICTIONARY] and len(names) == 6
    original, learned, neurons, components, random, zeros = measured.systems
    assert original.unexplained == 0 and original.divergence == pytest.approx(0, abs=1e-6) and original.active is None
    # The dictionary has the neurons of the sublayers, and some random features that are rarely active.
    assert learned.divergence == pytest.approx(neurons.divergence, rel=0.2)
    assert learned.unexplained == pytest.approx(neurons.unexplained, rel=0.2)
    assert 0 < learned.active <= 4 and 0 < neurons.active <= 4
    assert max(components.unexplained, random.unexplained) < zeros.unexplained
    assert original.loss < zeros.loss
    x, y = (states.double().numpy() for states in states(translator))
    transcoder = dictionary.transcoders["decoder.0"]
    reconstructed = transcoder(torch.tensor(x).float()).numpy()
    share = ((y - reconstructed) ** 2).sum() / ((y - y.mean(0)) ** 2).sum()
    decoder = measured.sublayers[1]
    assert decoder.sublayer == "decoder.0" and decoder.unexplained == pytest.approx(share, rel=1e-4)
    f = transcoder.features(torch.tensor(x).float())
    assert decoder.active == pytest.approx((f > 0).sum(1).double().mean().item())
    assert decoder.dead == pytest.approx(((f > 0).sum(0) == 0).double().mean().item())
    score = translator.translate([source for source, _ in PAIRS], beam=1, split=False)
    expected = bleu([translation.text for translation in score], [[target for _, target in PAIRS]])
    assert original.greedy == pytest.approx(expected, abs=1e-6)
    assert Quality.from_json(measured.to_json()) == measured and measured.metric == "BLEU"
    assert replace(measured, metric="chrF").tables()[1][0][-2:] == ["chrF greedy", "chrF beam 5"]


def test_all_neurons_and_all_components_are_the_sublayer(translator, dictionary):
    x, y = states(translator)
    sublayer = sublayers_of(translator.model)["decoder.0"]
    assert_close(TopNeurons(sublayer, NEURONS)(x), y)
    moments = Moments(dictionary.transcoders["decoder.0"], 1)
    moments.add(dictionary.transcoders["decoder.0"], x, y)
    assert_close(moments.principal(sublayer, D)(x), y, rtol=1e-3, atol=1e-3)
    centered = (y - y.mean(0)).double().numpy()
    _, singular_values, _ = np.linalg.svd(centered)
    error = (moments.principal(sublayer, 3)(x) - y).pow(2).sum().item()
    assert error == pytest.approx((singular_values[3:] ** 2).sum(), rel=1e-3)


def test_the_neurons_that_write_most_are_kept(translator):
    x, _ = states(translator)
    sublayer = sublayers_of(translator.model)["decoder.0"]
    weight, bias = sublayer.outer.weight.detach().numpy(), sublayer.outer.bias.detach().numpy()
    neurons = sublayer.neurons(x).detach().numpy()
    for row, output in zip(neurons, TopNeurons(sublayer, 3)(x).detach().numpy(), strict=True):
        order = np.argsort(-np.abs(row) * np.linalg.norm(weight, axis=0))[:3]
        assert_close(output, sum(row[i] * weight[:, i] for i in order) + bias, rtol=1e-4, atol=1e-5)


def test_the_output_of_random_features_is_that_of_least_squares(dictionary):
    torch.manual_seed(7)
    transcoder = Transcoder(4, 6, 2).requires_grad_(False)
    x, y = torch.randn(300, 4), torch.randn(300, 4)
    moments = Moments(transcoder, 1)
    for rows in torch.arange(300).split(100):
        moments.add(transcoder, x[rows], y[rows])
    fitted = moments.random_dictionary()
    f = np.hstack([fitted.features(x).numpy(), np.ones((300, 1))])
    expected, *_ = np.linalg.lstsq(f, y.numpy(), rcond=None)
    best = ((y.numpy() - f @ expected) ** 2).sum()
    assert ((y - fitted(x)) ** 2).sum().item() == pytest.approx(best, rel=1e-3)
