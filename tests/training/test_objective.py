"""The loss: the plain path against PyTorch's, the chunked path against the plain one."""

import pytest
import torch
from torch import nn

from translucid.data.batching import Batch
from translucid.kernels.linear import rounded_products
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer
from translucid.training import objective
from translucid.training.objective import batch_loss, chunked_loss, plain_loss


@pytest.fixture
def inputs():
    features = torch.randn(23, 6, requires_grad=True)
    return features, nn.Linear(6, 11), torch.randint(11, (23,))


def gradients(path, features, output, labels, smoothing):
    loss = path(features, output, labels, smoothing)
    return loss, torch.autograd.grad(loss.smoothed, [features, output.weight, output.bias])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("path", [plain_loss, chunked_loss])
@pytest.mark.parametrize("rows", [1, 7, 512])
def test_both_paths_are_the_loss_of_torch(inputs, path, smoothing, rows, monkeypatch):
    monkeypatch.setattr(objective, "ROWS", rows)
    features, output, labels = inputs
    loss, found = gradients(path, features, output, labels, smoothing)
    logits = output(features)
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss.smoothed, expected)
    for one, other in zip(found, torch.autograd.grad(expected, [features, output.weight, output.bias]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    plain = nn.functional.cross_entropy(output(features), labels, reduction="sum").item()
    assert loss.cross_entropy == pytest.approx(plain, rel=1e-5)
    assert loss.correct == (output(features).argmax(1) == labels).sum()
    assert loss.tokens == 23


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 512])
def test_rounded_products_give_nearly_the_same(smoothing, rows, monkeypatch):
    monkeypatch.setattr(objective, "ROWS", rows)
    features, output, labels = torch.randn(50, 64, requires_grad=True), nn.Linear(64, 300), torch.randint(300, (50,))
    loss, exact = gradients(plain_loss, features, output, labels, smoothing)
    with rounded_products():
        near, rounded = gradients(chunked_loss, features, output, labels, smoothing)
    assert near.smoothed != loss.smoothed
    torch.testing.assert_close(near.smoothed, loss.smoothed, rtol=1e-3, atol=0)
    assert near.cross_entropy == pytest.approx(loss.cross_entropy, rel=1e-3)
    for one, other in zip(rounded, exact, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()


@pytest.mark.parametrize("bias", [-200.0, 61.0, 200.0])
def test_extreme_logits_are_no_different(inputs, bias):
    features, output, labels = inputs
    loss, found = gradients(chunked_loss, features, output, labels, 0.1)
    with torch.no_grad():
        output.bias += bias
    extreme, same = gradients(chunked_loss, features, output, labels, 0.1)
    torch.testing.assert_close(extreme.smoothed, loss.smoothed, rtol=1e-4, atol=1e-4)
    assert extreme.correct == loss.correct
    for one, other in zip(same, found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_large_logits_stay_finite(inputs):
    features, output, labels = inputs
    loss, found = gradients(chunked_loss, features * 1e4, output, labels, 0.1)
    assert torch.isfinite(loss.smoothed)
    assert all(torch.isfinite(gradient).all() for gradient in found)


def test_second_derivatives_are_refused_by_the_chunks_and_right_on_the_plain_path(inputs):
    features, output, labels = inputs

    def slope(path):
        (gradient,) = torch.autograd.grad(
            path(features, output, labels, 0.1).smoothed.square(), features, create_graph=True
        )
        return gradient.square().sum()

    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope(chunked_loss).backward()
    slope(plain_loss).backward()
    assert features.grad.abs().sum() > 0


def test_padding_does_not_count():
    model = Transformer(
        9, 9, TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1, dropout=0)
    )

    def loss(padding):
        wide = [[0] * padding]
        source = torch.tensor([[5, 6, 3] + wide[0]])
        targets = torch.tensor([[2, 7, 8] + wide[0]])
        labels = torch.tensor([[7, 8, 3] + wide[0]])
        return batch_loss(model, Batch(source, targets, labels), 0.1)

    one, other = loss(0), loss(4)
    torch.testing.assert_close(one.smoothed, other.smoothed)
    assert one.tokens == other.tokens == 3
