"""Graphs against the model itself, NumPy, and finite differences, in float64."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from tests.circuits.models import (
    PREFIX,
    SHAPES,
    SOURCE,
    A,
    B,
    logit_of,
    parts_of,
    question,
    random_transcoders,
    transformer,
)
from translucid.attention.points import recording_weights
from translucid.circuits.graph import influence, logit_target, strongest, total_effects
from translucid.circuits.linear import HeldModel
from translucid.circuits.nodes import near_ties
from translucid.circuits.transcoder import Transcoder
from translucid.ground.errors import UserError
from translucid.inspection.ablation import Ablation
from translucid.models.attention_only import AttentionOnly
from translucid.models.ensemble import Ensemble
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions
from translucid.models.recurrent import RecurrentModel

EXACT = {"rtol": 0, "atol": 1e-6}


def values_of(parts, targets):
    """Return what the held model computes for targets, at the sentence itself."""
    points = list(dict.fromkeys(target.point for target in targets))
    values = parts.held.values(points, parts.held.leaves)
    return torch.stack([values[target.point][(0, *target.place)] @ target.vector for target in targets])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("other", [B, None])
def test_effects_and_biases_sum_to_the_logit(shape, other):
    model = transformer(**SHAPES[shape])
    parts = parts_of(model, random_transcoders(model))
    target, bias = logit_target(question(model, other))
    known, constant = influence(parts, target, expanded=8)
    assert_close(known.direct.sum().item() + constant + bias, logit_of(model, other), **EXACT)
    kept = strongest(known.influence, most=10)
    remainder = logit_of(model, other) - bias - constant - known.direct[kept].sum().item()
    others = [index for index in range(len(parts)) if index not in kept]
    assert_close(known.direct[others].sum().item(), remainder, **EXACT)


@pytest.mark.parametrize("shape", SHAPES)
def test_effects_and_biases_sum_to_what_a_feature_reads(shape):
    model = transformer(**SHAPES[shape])
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    features = parts.features[::-5]  # the decoder first: results have the order of the targets
    targets = [parts.target(index) for index in features]
    effects, biases = parts.effects(parts.held.gradients(targets))
    sums = effects.sum(1) + biases + parts.held.constants(targets)
    for index, total in zip(features, sums.tolist(), strict=True):
        node = parts.nodes[index]
        bias = transcoders[node.place].encoder_bias[node.number].item()
        assert_close(total + bias, node.activation, **EXACT)


def test_features_errors_and_biases_sum_to_the_output_of_a_sublayer():
    model = transformer()
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    for sublayer, transcoder in transcoders.items():
        x, output = (parts.held.states[f"{sublayer}.{end}"][0] for end in ("feed_forward_input", "feed_forward"))
        assert_close(output, model.get_submodule(f"{sublayer}.feed_forward")(x))
        positions, vectors = parts.vectors[f"{sublayer}.feed_forward"]
        sums = transcoder.decoder_bias.repeat(len(output), 1).index_add(0, positions, vectors)
        assert_close(sums, output)


@pytest.mark.parametrize("shape", SHAPES)
def test_frozen_finite_differences_agree_and_unfrozen_ones_differ(shape):
    model = transformer(**SHAPES[shape])
    parts = parts_of(model, random_transcoders(model))
    target, _ = logit_target(question(model))
    direct = parts.effects(parts.held.gradients([target]))[0][0]
    assert not parts.ties  # at a tie, a small difference changes which features are active
    removed = range(0, len(parts), max(1, len(parts) // 40))
    without = [parts.held.leaves, *(parts.without([index]) for index in removed)]
    leaves = {name: torch.cat([row[name] for row in without]) for name in parts.held.leaves}
    differences = []
    for held in (True, False):
        values = parts.held.values([target.point], leaves, held=held)[target.point]
        products = values[(slice(None), *target.place)] @ target.vector
        differences.append(products[0] - products[1:])
    assert_close(differences[0], direct[list(removed)], **EXACT)
    assert (differences[1] - differences[0]).abs().max() > 1e-4  # the error of freezing


@pytest.mark.parametrize("shape", ["pre-norm", "post-norm", "ssru"])
def test_total_effects_are_sums_over_all_paths(shape):
    model = transformer(**SHAPES[shape])
    parts = parts_of(model, random_transcoders(model, features=12, k=3))
    target, _ = logit_target(question(model))
    direct = parts.effects(parts.held.gradients([target]))[0][0]
    features = parts.features
    edges = parts.effects(parts.held.gradients([parts.target(index) for index in features]))[0]
    totals = direct.clone()
    # From the last feature to the first: what a feature does for the logit for each unit of its value, times an edge.
    for row, index in reversed(list(enumerate(features))):
        totals = totals + edges[row] * totals[index] / parts.nodes[index].activation
    assert_close(total_effects(parts, target), totals, **EXACT)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_graph_of_one_layer_equals_an_exhaustive_computation(norm):
    """Every path by itself in NumPy: residual connection or head and source position, at each attention."""
    model = transformer(layers=1, norm=norm, tie_output=False)
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    target, _ = logit_target(question(model))
    effects = parts.effects(parts.held.gradients([target]))[0][0]
    oracle = OneLayer(model, norm)
    row = oracle.logit_row(A, B)
    for index in [*range(0, len(parts), 3)]:
        node = parts.nodes[index]
        point = node.place if node.place.endswith("input") else f"{node.place}.feed_forward"
        first = sum(len(vectors) for name, (_, vectors) in parts.vectors.items() if _before(parts, name, point))
        vector = parts.vectors[point][1][index - first].numpy()
        assert_close(effects[index].item(), oracle.effect(row, point, node.position, vector), **EXACT)


def _before(parts, name, point):
    names = list(parts.vectors)
    return names.index(name) < names.index(point)


class OneLayer:
    """A Transformer of one layer with recorded attention weights and deviations."""

    def __init__(self, model, norm):
        self.model, self.pre = model, norm == "pre"
        self.states = {}
        hooks = []
        for path, module in model.named_modules():
            if isinstance(module, torch.nn.LayerNorm):
                hooks.append(module.register_forward_hook(self.keep(path)))
        with torch.no_grad(), recording_weights(model) as maps:
            model(SOURCE, PREFIX)
        self.weights = {name: weights[0].numpy() for name, weights in maps.items()}
        for hook in hooks:
            hook.remove()

    def keep(self, path):
        def hook(module, inputs, output):
            self.states[path] = np.sqrt(inputs[0][0].numpy().var(-1) + module.eps)

        return hook

    def norm(self, path, x):
        """Map changes x [P, D] of the input of a norm to those of its output."""
        gain = self.model.get_submodule(path).weight.detach().numpy()
        return (x - x.mean(-1, keepdims=True)) / self.states[path][:, None] * gain

    def attention(self, path, name, x):
        """Map changes x [S, D] of the memory to those of the output [T, D], head by head and position by position."""
        module, maps = self.model.get_submodule(path), self.weights[name]
        width = x.shape[1] // module.heads
        value = module.key_value.weight.detach().numpy()[x.shape[1] :]  # keys come first
        output = module.output.weight.detach().numpy()
        result = np.zeros((maps.shape[1], x.shape[1]))
        for head in range(module.heads):
            rows = slice(head * width, (head + 1) * width)
            for t in range(maps.shape[1]):
                for s in range(maps.shape[2]):
                    result[t] += maps[head, t, s] * output[:, rows] @ value[rows] @ x[s]
        return result

    def around(self, path, x, sublayer):
        if self.pre:
            return x + sublayer(self.norm(f"{path}.norm", x))
        return self.norm(f"{path}.norm", x + sublayer(x))

    def logit_row(self, a, b):
        weight = self.model.output.weight.detach().numpy()
        return weight[a] - weight[b]

    def effect(self, row, point, position, vector):
        """Return what the logit loses without a vector at a position of a leaf."""
        source = np.zeros((SOURCE.size(1), len(vector)))
        target = np.zeros((PREFIX.size(1), len(vector)))
        added = {
            name: np.zeros_like(source if name.startswith("encoder") else target)
            for name in ("encoder.input", "encoder.0.feed_forward", "decoder.input", "decoder.0.feed_forward")
        }
        added[point][position] = vector
        e, d = "encoder.0.residuals", "decoder.0.residuals"
        x = self.around(
            f"{e}.0", added["encoder.input"], lambda x: self.attention("encoder.0.self_attention", "encoder.0.self", x)
        )
        x = self.around(f"{e}.1", x, lambda x: added["encoder.0.feed_forward"])
        memory = self.norm("encoder_norm", x) if self.pre else x
        y = self.around(
            f"{d}.0", added["decoder.input"], lambda y: self.attention("decoder.0.self_attention", "decoder.0.self", y)
        )
        y = self.around(f"{d}.1", y, lambda y: self.attention("decoder.0.cross_attention", "decoder.0.cross", memory))
        y = self.around(f"{d}.2", y, lambda y: added["decoder.0.feed_forward"])
        y = self.norm("decoder_norm", y) if self.pre else y
        return row @ y[-1]


def test_influence_is_the_sum_over_all_paths():
    model = transformer()
    parts = parts_of(model, random_transcoders(model, features=12, k=3))
    target, _ = logit_target(question(model))
    known, _ = influence(parts, target, expanded=10_000, rest=0)
    assert sorted(known.expanded) == parts.features
    order = {index: row for row, index in enumerate(known.expanded)}
    expected = np.zeros(len(parts))

    def follow(effects, weight):
        shares = effects.abs() / effects.abs().sum()
        for index in shares.nonzero()[:, 0].tolist():
            through = weight * shares[index].item()
            expected[index] += through
            if index in order and through > 1e-5:
                follow(known.edges[order[index]], through)

    follow(known.direct, 1.0)
    assert_close(known.influence.numpy(), expected, rtol=0, atol=2e-3)


def test_the_smallest_set_with_a_share_of_the_influence():
    values = torch.tensor([0.1, 0.5, 0.0, 0.3, 0.1])
    assert strongest(values, 0.8) == [1, 3]
    assert strongest(values, 0.81) == [1, 3, 0]
    assert strongest(values, 0.8, most=1) == [1]


def test_near_ties_are_listed():
    transcoder = Transcoder(2, 3, 1)
    transcoder.encoder_weight.data[:] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    transcoder.encoder_bias.data[:] = 0
    x = torch.tensor([[1.0, 1.0 - 1e-6], [1.0, 1.0 - 1e-4], [-1.0, -1.0], [-1.0, 1.0]])
    assert near_ties(transcoder, x) == [0]


def test_heads_that_are_off_stay_off():
    model = Ablation(("decoder.0.cross.head.1",)).applied(transformer())
    parts = parts_of(model, random_transcoders(model))
    target, bias = logit_target(question(model))
    known, constant = influence(parts, target, expanded=0)
    assert_close(known.direct.sum().item() + constant + bias, logit_of(model), **EXACT)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (RecurrentModel(30, 30, RecurrentOptions(width=16)), "recurrent"),
        (AttentionOnly(30, 30, AttentionOnlyOptions(width=16)), "attention-only"),
        (Ensemble([transformer(), transformer()]), "ensemble"),
    ],
)
def test_other_models_are_rejected_by_name(model, name):
    with pytest.raises(UserError, match=name):
        HeldModel(model, SOURCE, PREFIX)
