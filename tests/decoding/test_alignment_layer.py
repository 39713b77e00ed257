"""Alignment layers: the equation against NumPy, and learning from links on top of each kind of translator."""

import numpy as np
import pytest
import torch

from translucid.decoding.maps import WIDTH, AlignmentLayer, forced_pass
from translucid.evaluation.alignment_error import Gold
from translucid.inspection.alignment import AlignmentExample, learn_alignment, link_pieces
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions

V = 17
OPTIONS = [
    TransformerOptions(width=16, heads=2, feed_forward=24, encoder_layers=1, decoder_layers=2),
    RecurrentOptions(width=16, attention="bahdanau"),
]
IDS = ["transformer", "bahdanau"]


class Tokens:
    """A tokenizer with the pieces that a test passes."""

    source_opening = (4,)
    target_opening = ()

    def __init__(self, source, target):
        self.source, self.target = source, target

    def source_labels(self, ids):
        return self.source

    def target_labels(self, ids):
        return self.target


def norm(layer, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * layer.weight.detach().numpy() + layer.bias.detach().numpy()


def test_the_equation_in_float64():
    layer = AlignmentLayer(6, 5).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    features, pieces, states = (torch.randn(2, n, d, dtype=torch.float64) for n, d in ((3, 6), (3, 6), (4, 5)))
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    weights = layer(features, pieces, states, mask).detach().numpy()
    q, k = (
        x @ projection.weight.detach().numpy().T + projection.bias.detach().numpy()
        for x, projection in (
            (np.concatenate([norm(layer.feature_norm, features.numpy()), pieces.numpy()], -1), layer.query),
            (norm(layer.state_norm, states.numpy()), layer.key),
        )
    )
    scores = np.where(mask.numpy()[:, None], q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH), -np.inf)
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(weights, expected / expected.sum(-1, keepdims=True), atol=1e-12)


def test_links_between_words_become_shares_of_pieces():
    # <es> bebe r agua . -> "drink ing" "water" "now": the second word has a possible link only, the third none.
    tokens = Tokens(["<es>", "▁bebe", "r", "▁agua", "</s>"], ["▁drink", "ing", "▁water", "▁now", "</s>"])
    gold = Gold(frozenset([(0, 0)]), frozenset([(0, 0), (1, 0), (1, 1)]))
    linked_pair = link_pieces(tokens, [4, 5, 6, 7, 3], [5, 6, 7, 8, 3], gold, (2, 3))
    torch.testing.assert_close(
        linked_pair.shares,
        torch.tensor([[0, 0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0, 0], [0, 0, 0, 1, 0], [0] * 5, [0] * 5]),
    )
    assert link_pieces(tokens, [4, 5, 6, 7, 3], [5, 6, 7, 8, 3], gold, (3, 3)) is None


def sentences(count):
    """Generate pairs whose target is the reversed source; each piece is linked to its copy."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        words = rng.permutation(np.arange(5, V))[: rng.integers(2, 6)].tolist()
        shares = torch.zeros(len(words) + 1, len(words) + 1)
        shares[: len(words), : len(words)] = torch.eye(len(words)).flip(0)
        yield AlignmentExample([*words, 3], [*reversed(words), 3], shares)


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
def test_it_learns_and_the_model_stays_as_it_is(options, monkeypatch):
    monkeypatch.setattr("translucid.inspection.alignment.UPDATES", 150)
    model = build_model(options, V, V).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    reported = []
    *training_pairs, test_pair = sentences(100)
    layer = learn_alignment(model, training_pairs, on_update=reported.append)
    assert sum(reported) == 150
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    result = forced_pass(model, torch.tensor([test_pair.source]), torch.tensor([test_pair.target]), layer=layer)
    assert result.links[0, :-1].argmax(-1).tolist() == test_pair.shares[:-1].argmax(-1).tolist()
    torch.testing.assert_close(result.links.sum(-1), torch.ones(1, len(test_pair.target)))
    assert forced_pass(model, torch.tensor([test_pair.source]), torch.tensor([test_pair.target])).links is None


def test_it_learns_the_same_again_whatever_was_drawn_before(monkeypatch):
    monkeypatch.setattr("translucid.inspection.alignment.UPDATES", 5)
    model = build_model(OPTIONS[0], V, V).eval()
    layers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        layers.append(learn_alignment(model, list(sentences(30))))
    for parameter, repeated in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        torch.testing.assert_close(parameter, repeated)
