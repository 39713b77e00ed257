"""Ablation in the original model, against modules that are replaced by hand."""

import pytest
import torch
from torch.testing import assert_close

from tests.circuits.models import PREFIX, SOURCE, A, logit_of, parts_of, question, random_transcoders, transformer
from translucid.circuits.faithfulness import faithfulness, most_active, others, outcomes
from translucid.circuits.nodes import Node


class WithoutFeature(torch.nn.Module):
    """A sublayer that does not write a feature at a position."""

    def __init__(self, sublayer, transcoder, node):
        super().__init__()
        self.sublayer, self.transcoder, self.node = sublayer, transcoder, node

    def forward(self, x):
        output = self.sublayer(x).clone()
        value = self.transcoder.features(x)[:, self.node.position, self.node.number]
        output[:, self.node.position] -= value[:, None] * self.transcoder.decoder_weight[self.node.number]
        return output


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_ablation_computes_everything_after_it_again(norm):
    model = transformer(norm=norm)
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    features = [parts.nodes[index] for index in parts.features]
    sets = [[features[0]], [features[0], features[1]], [features[0], features[40], features[-1]], []]
    logit, results = outcomes(question(model), transcoders, sets)
    assert_close(logit, logit_of(model))
    for nodes, outcome in zip(sets, results, strict=True):
        changed = transformer(norm=norm)
        for node in nodes:
            path = f"{node.place}.feed_forward"
            module = WithoutFeature(changed.get_submodule(path), transcoders[node.place], node)
            changed.set_submodule(path, module)
        assert_close(outcome.logit, logit_of(changed))
        with torch.no_grad():
            assert outcome.piece == changed(SOURCE, PREFIX)[0, -1].argmax()
            assert outcome.changed == (outcome.piece != model(SOURCE, PREFIX)[0, -1].argmax())


def test_a_word_of_several_pieces_changes_with_any_of_them():
    """Another piece after the forced pieces is another word, too."""
    model = transformer()
    model.output.bias.data.zero_()
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    for transcoder in transcoders.values():
        transcoder.decoder_weight.mul_(60)
    nodes = [parts.nodes[index] for index in parts.features]
    asked = question(model)._replace(pieces=(A, 13, 14))
    changed = [outcome.changed for outcome in outcomes(asked, transcoders, [[node] for node in nodes])[1]]
    inputs, expected, first = torch.cat([PREFIX, torch.tensor([[A, 13]])], 1), [], []
    for node in nodes:
        other = transformer()
        other.output.bias.data.zero_()
        path = f"{node.place}.feed_forward"
        other.set_submodule(path, WithoutFeature(other.get_submodule(path), transcoders[node.place], node))
        with torch.no_grad():
            differs = other(SOURCE, inputs)[0, -3:].argmax(-1) != model(SOURCE, inputs)[0, -3:].argmax(-1)
        expected.append(bool(differs.any()))
        first.append(bool(differs[0]))
    assert changed == expected
    assert sum(expected) > sum(first)


def test_random_and_most_active_features_have_the_same_places():
    nodes = [
        Node("feature", "encoder.0", position, number, float(number)) for position in (0, 1) for number in range(6)
    ]
    nodes.append(Node("error", "encoder.0", 0))
    chosen = [nodes[0], nodes[1], nodes[6]]
    sets = others(nodes, chosen)
    assert len({tuple(drawn) for drawn in sets}) > 1
    for drawn in sets:
        assert sorted(node.position for node in drawn) == [0, 0, 1]
        assert not set(drawn) & set(chosen)
        assert len(set(drawn)) == 3
    assert [(node.position, node.number) for node in most_active(nodes, chosen)] == [(0, 5), (0, 4), (1, 5)]


def test_features_without_others_have_no_counterpart():
    nodes = [Node("feature", "encoder.0", 0, 1, 1.0)]
    assert others(nodes, nodes, draws=2) == [[], []]


def test_the_figures_are_those_of_the_outcomes():
    model = transformer()
    transcoders = random_transcoders(model)
    parts = parts_of(model, transcoders)
    chosen = [parts.nodes[index] for index in parts.features[:3]]
    result = faithfulness(question(model), transcoders, parts.nodes, chosen, 1.0)
    record = result.to_json()
    assert record["features"] == [f"{node.name} @ {node.position}" for node in chosen]
    assert record["draws"] == 20
    assert record["top"]["logit"] == round(outcomes(question(model), transcoders, [chosen])[1][0].logit, 4)
    assert 0 <= record["random"]["changed"] <= 1
