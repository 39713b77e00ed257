"""Gradients are summed over processes in buckets, during the last backward pass of an update."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from tests.devices.shrunk import build_case
from translucid.training.hardware import ddp
from translucid.training.hardware.ddp import GradientBuckets, Workers
from translucid.training.weights import Weights

PROCESSES = 3
"""The number of processes; all have the same gradients, so a sum is three times the gradient."""


class Sum:
    """An asynchronous sum of a bucket, available after `wait`."""

    def __init__(self, bucket):
        self.bucket = bucket

    def wait(self):
        self.bucket.mul_(PROCESSES)


@pytest.fixture
def sums(monkeypatch):
    """Record the sizes of the buckets whose sums have started; a bucket holds 40 numbers, or one larger parameter."""
    sizes = []

    def all_reduce(bucket, async_op):
        assert async_op
        sizes.append(bucket.numel())
        return Sum(bucket)

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    monkeypatch.setattr(ddp, "BUCKET", 160)
    return sizes


@pytest.fixture
def layers():
    """Return four layers of 20 numbers each; two layers fit into a bucket."""
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))


def gradients(model):
    """Return copies of the gradients; an unused parameter has None."""
    return [deepcopy(parameter.grad) for parameter in model.parameters()]


def test_each_gradient_is_summed_once_and_waited_for(layers, sums):
    inputs = torch.randn(5, 4)
    layers(inputs).sum().backward()
    expected = [PROCESSES * gradient for gradient in gradients(layers)]
    layers.zero_grad()
    buckets = GradientBuckets([*layers.parameters()])
    for _ in range(2):
        buckets.overlap()
        layers(inputs).sum().backward()
        assert sums == [40, 40]  # all sums start before the end of the backward pass
        buckets.finish()
        torch.testing.assert_close(gradients(layers), expected, rtol=0, atol=0)
        layers.zero_grad()
        sums.clear()


def test_sums_start_while_the_backward_pass_is_under_way(layers, sums):
    buckets = GradientBuckets([*layers.parameters()])
    started = []
    layers[1].register_full_backward_hook(lambda *rest: started.append(len(sums)))
    buckets.overlap()
    layers(torch.randn(5, 4).requires_grad_()).sum().backward()
    assert started == [1]


def test_batches_before_the_last_are_not_summed(layers, sums):
    buckets = GradientBuckets([*layers.parameters()])
    first, last = torch.randn(5, 4), torch.randn(5, 4)
    layers(first).sum().backward()
    assert sums == []
    buckets.overlap()
    layers(last).sum().backward()
    buckets.finish()
    accumulated = gradients(layers)
    layers.zero_grad()
    layers(torch.cat([first, last])).sum().backward()
    torch.testing.assert_close(accumulated, [PROCESSES * gradient for gradient in gradients(layers)])
    assert sums == [40, 40]


def test_the_trainer_sums_in_the_last_batch_of_an_update(train, tmp_path, monkeypatch):
    backward, lasts = Weights.backward, []

    def spy(self, loss, *, last):
        lasts.append(last)
        backward(self, loss, last=last)

    monkeypatch.setattr(Weights, "backward", spy)
    train(tmp_path / "run", "training.accumulate=3", "training.max_steps=2")
    assert lasts == 2 * [False, False, True]


def test_a_process_without_rows_sums_zeros(layers, sums):
    """It runs no backward pass but makes the same calls as the other processes."""
    GradientBuckets([*layers.parameters()]).finish()
    assert sums == [40, 40]
    assert all(gradient is not None and not gradient.any() for gradient in gradients(layers))


def test_a_parameter_without_a_gradient_holds_up_no_other(layers, sums):
    """It gets zeros. Buckets are summed in a fixed order, so later ones wait for the end of the backward pass."""
    spare = nn.Parameter(torch.ones(3))
    buckets = GradientBuckets([*layers[:2].parameters(), spare, *layers[2:].parameters()])
    buckets.overlap()
    layers(torch.randn(5, 4)).sum().backward()
    assert sums == [40]
    buckets.finish()
    assert sums == [40, 27, 16]
    assert spare.grad is not None and not spare.grad.any()
    assert all(gradient.any() for gradient in gradients(layers))


def test_frozen_layers_are_not_summed(layers, sums):
    """Gradual unfreezing sets `requires_grad` again later."""
    buckets = GradientBuckets([*layers.parameters()])
    for frozen, expected in ((3, [20]), (2, [40]), (1, [40, 20])):
        layers[:frozen].requires_grad_(False)
        layers[frozen:].requires_grad_(True)
        buckets.overlap()
        layers(torch.randn(5, 4)).sum().backward()
        buckets.finish()
        assert sums == expected
        assert [gradient is None for gradient in gradients(layers)] == [True] * 2 * frozen + [False] * 2 * (4 - frozen)
        layers.zero_grad()
        sums.clear()


def test_a_second_backward_pass_is_an_error(layers, sums):
    """Its gradients would be added to sums that have started."""
    buckets = GradientBuckets([*layers.parameters()])
    buckets.overlap()
    layers(torch.randn(5, 4)).sum().backward()
    with pytest.raises(KeyError):
        layers(torch.randn(5, 4)).sum().backward()


@pytest.mark.parametrize("name", ["tiny", "lm-lstm", "rnn-bahdanau", "classifier", "captioner that reads first"])
def test_models_with_shared_and_unused_parameters(name, sums):
    """`tiny` shares one matrix between both embeddings and the output."""
    case = build_case(name)
    single, distributed = (Weights(case.model, torch.device("cpu"), Workers(0, count)) for count in (1, PROCESSES))
    results = []
    for weights in (single, distributed):
        torch.manual_seed(1)
        for last in (False, True):
            weights.backward(weights.loss(weights.rows(case.batch), 0.1).smoothed, last=last)
        weights.sum_gradients()
        results.append(gradients(case.model))
        case.model.zero_grad()
    for ours, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(ours, torch.zeros_like(ours) if expected is None else PROCESSES * expected)
    assert sum(sums) == sum(parameter.numel() for parameter in distributed.parameters)
    assert len(sums) > 3
