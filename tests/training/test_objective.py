"""The training loss against its equation, and when it is computed in chunks."""

import pytest
import torch
from torch import nn

from translucid.data.batching import Batch
from translucid.kernels import loss as kernel
from translucid.kernels import reference_mode
from translucid.kernels.loss import Target
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer
from translucid.training import objective
from translucid.training.objective import batch_loss, loss_of_target, reference_loss, smoothed_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("path", [reference_loss, loss_of_target])
@pytest.mark.parametrize("rows", [1, 7, 512])
def test_both_paths_are_the_loss_of_torch(path, smoothing, rows, monkeypatch):
    monkeypatch.setattr(kernel, "ROWS", rows)
    features, output, labels = torch.randn(23, 6, requires_grad=True), nn.Linear(6, 11), torch.randint(11, (23,))
    parameters = [features, *output.parameters()]
    loss = path(features, output, Target(labels, smoothing))
    gradients = torch.autograd.grad(loss.smoothed, parameters)
    logits = output(features)
    expected = nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss.smoothed, expected)
    for actual, reference in zip(gradients, torch.autograd.grad(expected, parameters), strict=True):
        torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-5)
    plain = nn.functional.cross_entropy(output(features), labels, reduction="sum").item()
    assert loss.cross_entropy == pytest.approx(plain, rel=1e-5)
    assert loss.correct == (output(features).argmax(1) == labels).sum()
    assert loss.tokens == 23


def test_when_the_loss_is_computed_in_chunks(monkeypatch):
    dtypes = []
    chunked = objective.chunked_loss
    monkeypatch.setattr(objective, "chunked_loss", lambda *x: dtypes.append(x[0].dtype) or chunked(*x))

    def loss(dtype=torch.float32, bias=True):
        output = nn.Linear(6, 11, bias=bias).to(dtype)
        return smoothed_loss(torch.randn(23, 6).to(dtype), output, torch.randint(11, (23,)), 0.1)

    with reference_mode("loss"):
        loss()
    loss(torch.bfloat16)
    loss(bias=False)
    assert not dtypes
    assert loss().tokens == loss(torch.float64).tokens == 23
    assert dtypes == [torch.float32, torch.float64]


def test_padding_does_not_count():
    model = Transformer(
        9, 9, TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1, dropout=0)
    )

    def loss(padding):
        padding_ids = [[0] * padding]
        source = torch.tensor([[5, 6, 3] + padding_ids[0]])
        targets = torch.tensor([[2, 7, 8] + padding_ids[0]])
        labels = torch.tensor([[7, 8, 3] + padding_ids[0]])
        return batch_loss(model, Batch(source, targets, labels), 0.1)

    short, padded = loss(0), loss(4)
    torch.testing.assert_close(short.smoothed, padded.smoothed)
    assert short.tokens == padded.tokens == 3
