"""The AWD-LSTM against NumPy, its dropouts mask by mask, and its state from window to window."""

import numpy as np
import pytest
import torch

from translucid.data.batching import Batch
from translucid.language import lstm
from translucid.language.lstm import DroppedEmbedding, LSTMLayer, locked_dropout
from translucid.language.model import Reading
from translucid.language.options import LSTMLanguageOptions
from translucid.language.running_text import StreamLoss
from translucid.language.scores import empty_source
from translucid.models.build import build_model

V = 19
DROPPED = {"dropout": 0.3, "hidden_dropout": 0.4, "input_dropout": 0.5, "embedding_dropout": 0.2, "weight_dropout": 0.6}
WITHOUT = dict.fromkeys(DROPPED, 0.0)


def model_of(**options):
    torch.manual_seed(2)
    shape = {"width": 6, "hidden": 8, "layers": 3, **WITHOUT, **options}
    return build_model(LSTMLanguageOptions(**shape), V, V).double()


def initial_state(model):
    """Return the initial state of two rows in float64."""
    state = model.begin(2, torch.device("cpu"))
    return state.of(tuple(part.double() for part in state.cells))


@pytest.fixture
def ids():
    return torch.randint(4, V, (2, 11), generator=torch.Generator().manual_seed(3))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_numpy(model, ids, masks, cells=None):
    """Return log-probabilities [B, T, V] and the last cells by the equations of `LSTMLanguageModel` with masks."""
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    E, width = weights["embedding.tokens.weight"], model.options.width
    x = np.sqrt(width) * E[ids] * masks["embedding"][ids][..., None] * masks["input"]
    after = []
    for layer in range(model.options.layers):
        W, U, b = (weights[f"layers.{layer}.{name}"] for name in "wub")
        U = U * masks["weight"][layer]
        h, c = cells[layer] if cells else (np.zeros((len(ids), U.shape[1])),) * 2
        outputs = []
        for t in range(ids.shape[1]):
            i, f, g, o = np.split(x[:, t] @ W.T + h @ U.T + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs.append(h)
        after.append((h, c))
        x = np.stack(outputs, 1) * masks["hidden"][layer]
    logits = x @ weights.get("output.weight", E).T + weights["output.bias"]
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True)), after


def ones(model):
    layers = model.options.layers
    return {"embedding": np.ones(V), "input": 1.0, "weight": [1.0] * layers, "hidden": [1.0] * layers}


@pytest.mark.parametrize("tied", [True, False])
def test_the_model_equals_its_equations(tied, ids):
    model = model_of(tie_output=tied).eval()
    assert ("output.weight" in dict(model.named_parameters())) != tied
    expected, after = by_numpy(model, ids.numpy(), ones(model))
    reading, state = model.read_on(ids, initial_state(model))
    np.testing.assert_allclose(model.output(reading.features).log_softmax(-1).detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(
        torch.cat(state.cells[::2], 1).detach().numpy(), np.concatenate([h for h, _ in after], 1)
    )
    np.testing.assert_allclose(
        torch.cat(state.cells[1::2], 1).detach().numpy(), np.concatenate([c for _, c in after], 1)
    )


def test_a_training_step_is_its_equations_with_the_same_masks(ids, monkeypatch):
    """Replace each dropout mask and check the number, shapes and scales of the masks."""
    model = model_of(**DROPPED).train()
    generator = np.random.default_rng(1)
    applied = []

    def mask(x, p=0.5, training=True, inplace=False):
        scaled = (generator.random(x.shape) >= p) / (1 - p)
        applied.append((p, scaled))
        return x * torch.from_numpy(scaled)

    monkeypatch.setattr(lstm.nn.functional, "dropout", mask)
    uniform = generator.random(V)
    monkeypatch.setattr(lstm.torch, "rand", lambda *size, **options: torch.from_numpy(uniform))
    reading, _ = model.read_on(ids, initial_state(model))
    # in the order of the equations: input, weights, hidden, weights, hidden, weights, features
    assert [p for p, _ in applied] == [0.5, 0.6, 0.4, 0.6, 0.4, 0.6, 0.3]
    shapes = [scaled.shape for _, scaled in applied]
    assert shapes == [(2, 1, 6), (32, 8), (2, 1, 8), (32, 8), (2, 1, 8), (24, 6), (2, 1, 6)]
    dropout_masks = [mask for _, mask in applied]
    masks = {
        "embedding": (uniform >= 0.2) / 0.8,
        "input": dropout_masks[0],
        "weight": dropout_masks[1::2],
        "hidden": dropout_masks[2::2],
    }
    assert 0 < (uniform < 0.2).sum() < V
    expected, _ = by_numpy(model, ids.numpy(), masks)
    np.testing.assert_allclose(model.output(reading.features).log_softmax(-1).detach().numpy(), expected, atol=1e-12)


def test_dropped_weights_are_drawn_once_a_call_and_have_no_gradient():
    torch.manual_seed(1)
    layer = LSTMLayer(3, 50, weight_dropout=0.4).train()
    x, cells = torch.randn(2, 9, 3), (torch.randn(2, 50), torch.randn(2, 50))
    layer(x, cells)[0].square().sum().backward()
    dropped = layer.u.grad == 0
    assert dropped.float().mean() == pytest.approx(0.4, abs=0.02)
    layer.zero_grad()
    layer(x, cells)[0].square().sum().backward()
    assert not torch.equal(layer.u.grad == 0, dropped), "another draw each time"
    layer.eval()
    layer.zero_grad()
    layer(x, cells)[0].square().sum().backward()
    assert (layer.u.grad != 0).all()


def test_locked_dropout_is_alike_at_all_positions_and_differs_from_row_to_row():
    x = torch.ones(40, 6, 50)
    dropped = locked_dropout(x, 0.3, training=True)
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.04)
    assert torch.equal(locked_dropout(x, 0.3, training=False), x)


def test_a_word_loses_its_vector_wherever_it_stands():
    torch.manual_seed(4)
    embedding = DroppedEmbedding(500, 4, 0.25).train()
    ids = torch.arange(500).repeat(2, 1)
    dropped, whole = embedding(ids), 2 * embedding.tokens(ids)
    is_kept = (dropped != 0).all(-1)
    assert torch.equal(is_kept[0], is_kept[1])
    assert not dropped[~is_kept].any()
    torch.testing.assert_close(dropped[is_kept], whole[is_kept] / 0.75)
    assert (~is_kept[0]).float().mean() == pytest.approx(0.25, abs=0.05)
    torch.testing.assert_close(embedding.eval()(ids), whole)


def test_embeddings_begin_with_variance_1():
    torch.manual_seed(1)
    embedded = DroppedEmbedding(3000, 64, 0.0).eval()(torch.arange(3000)[None])
    assert float(embedded.detach().var()) == pytest.approx(1, abs=0.02)


def windows(ids, *lengths):
    """Yield a text [B, T + 1] as windows for next-token prediction."""
    start = 0
    for length in lengths:
        part = ids[:, start : start + length + 1]
        yield Batch(empty_source(len(ids)), part[:, :-1], part[:, 1:])
        start += length


def losses(model, ids, *lengths):
    """Return the loss of each window, carrying the state over."""
    loss_of = StreamLoss(model)
    loss_of.state = initial_state(model)
    return [loss_of(window) for window in windows(ids, *lengths)]


def test_windows_with_their_state_carried_on_are_one_long_pass(ids):
    model = model_of().eval()
    (long_pass,) = losses(model, ids, 10)
    window_losses = losses(model, ids, 3, 1, 6)
    assert sum(part.cross_entropy for part in window_losses) == pytest.approx(float(long_pass.cross_entropy), abs=1e-10)
    assert sum(part.tokens for part in window_losses) == long_pass.tokens == 20
    assert sum(part.correct for part in window_losses) == long_pass.correct
    separate = [losses(model, ids[:, start : end + 1], end - start)[0] for start, end in ((0, 3), (3, 4), (4, 10))]
    assert sum(part.cross_entropy for part in separate) != pytest.approx(float(long_pass.cross_entropy), abs=1e-3)


def test_gradients_stop_at_the_border_of_a_window():
    """Words of the first window get no gradient from the second, though its state is carried over."""
    model = model_of(tie_output=False).float().eval()
    first, second = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9, 10]])
    loss_of = StreamLoss(model)
    before = loss_of(Batch(empty_source(1), first, second))
    assert loss_of.state is not None and not any(part.requires_grad for part in loss_of.state.tensors())
    after = loss_of(Batch(empty_source(1), second, first))
    embedding = model.embedding.tokens.weight
    (gradient,) = torch.autograd.grad(after.smoothed, embedding)
    assert not gradient[first].any() and gradient[second].all(-1).all()
    (gradient,) = torch.autograd.grad(before.smoothed, embedding)
    assert gradient[first].all(-1).all()


def test_the_carried_state_is_detached():
    """The carried state is detached, so backward works on one window after the other."""
    model = model_of().float().train()
    loss_of = StreamLoss(model)
    for window in windows(torch.randint(4, V, (2, 7)), 3, 3):
        loss_of(window).smoothed.backward()


def test_a_state_that_is_no_number_is_not_carried_on(ids):
    model = model_of().float().train()
    loss_of = StreamLoss(model)
    window = next(windows(ids, 5))
    with torch.no_grad():
        bias = model.output.bias.clone()
        model.output.bias.fill_(torch.nan)
    loss_of(window)
    assert not any(part.any() for part in loss_of.state_tensors().values())
    with torch.no_grad():
        model.output.bias.copy_(bias)
    assert np.isfinite(loss_of(window).cross_entropy)


def test_regularization_by_hand():
    """alpha times the mean square of the features, and beta that of the change of the last layer."""
    model = model_of(activation=2.0, smoothness=0.5, width=1, layers=1).train()
    features = torch.tensor([[[1.0], [3.0], [-2.0]]])
    last = torch.tensor([[[0.0], [2.0], [1.0]]])
    penalty = model.regularization(Reading(features, [last * 7, last]))
    assert float(penalty) == pytest.approx(2 * (1 + 9 + 4) / 3 + 0.5 * (4 + 1) / 2)
    assert float(model.regularization(Reading(features[:, :1], [last[:, :1]]))) == pytest.approx(2.0)
    assert model_of().regularization(Reading(features, [last])) is None


def test_regularization_is_added_for_each_token_while_training(ids):
    baseline, regularized = model_of().float(), model_of(activation=2.0, smoothness=0.5).float()
    window = next(windows(ids, 10))
    for mode in (True, False):
        baseline_loss, loss = (StreamLoss(model.train(mode))(window) for model in (baseline, regularized))
        reading, _ = regularized.read_on(window.targets_in, regularized.begin(2, ids.device))
        expected_penalty = 20 * regularized.regularization(reading) if mode else torch.zeros(())
        torch.testing.assert_close(loss.smoothed, baseline_loss.smoothed + expected_penalty)
        assert loss.cross_entropy == pytest.approx(float(baseline_loss.cross_entropy))


def test_features_are_those_before_dropout_only_when_not_training(ids):
    """The penalty covers the dropped-out features; the change penalty covers the last layer before dropout."""
    model = model_of(dropout=0.5).float().train()
    reading, _ = model.read_on(ids, model.begin(2, ids.device))
    assert (reading.features == 0).any() and not (reading.layers[-1] == 0).any()
    assert [layer.size(2) for layer in reading.layers] == [6, 8, 8, 6]
