"""The reference mode: kernel names, scope, and its effect on a whole training step."""

import subprocess
import sys
from threading import Thread

import pytest
import torch

from translucid.data.batching import Batch
from translucid.kernels import linear, onednn, reference_mode
from translucid.kernels.dispatch import KERNELS, uses_reference
from translucid.kernels.rounding import rounded_products
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer
from translucid.training.objective import batch_loss


def reference_kernels():
    return {name for name in KERNELS if uses_reference(name)}


def test_the_default_is_all_kernels_and_names_accumulate():
    assert reference_kernels() == set()
    with reference_mode():
        assert reference_kernels() == KERNELS
        with reference_mode("loss"):
            assert reference_kernels() == KERNELS
    with reference_mode("loss"), reference_mode("dropout", "linear"):
        assert reference_kernels() == {"loss", "dropout", "linear"}
    assert reference_kernels() == set()


def test_an_error_ends_the_reference_mode():
    with pytest.raises(ZeroDivisionError), reference_mode():
        raise ZeroDivisionError
    assert reference_kernels() == set()


def test_a_kernel_that_is_not_there_is_refused():
    with (
        pytest.raises(ValueError, match=r"no kernel 'softmax', but additive, attention, dropout, linear, loss"),
        reference_mode("softmax"),
    ):
        pass


def test_other_threads_are_not_in_reference_mode():
    results = []
    with reference_mode():
        thread = Thread(target=lambda: results.append(reference_kernels()))
        thread.start()
        thread.join()
    assert results == [set()]


def losses(model, batch):
    torch.manual_seed(3)
    loss = batch_loss(model, batch, 0.1).smoothed
    return loss, torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_within_it_a_training_step_is_pytorchs_own_operations(dropout, monkeypatch):
    """The graph has no custom function, and neither precision nor thresholds change the results."""
    model = Transformer(
        40,
        40,
        TransformerOptions(width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=1, dropout=dropout),
    ).train()
    batch = Batch(*torch.randint(4, 40, (3, 6, 5)))
    custom_nodes = {"_LinearBackward", "_ProductsBackward", "_ChunkedLossBackward"}

    def nodes(loss):
        visited, pending = set(), [loss.grad_fn]
        while pending:
            node = pending.pop()
            if node is not None and node not in visited:
                visited.add(node)
                pending += [before for before, _ in node.next_functions]
        return {node.name() for node in visited}

    with reference_mode():
        exact, gradients = losses(model, batch)
    monkeypatch.setattr(linear, "LARGE", 0)
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    with rounded_products():
        kernel_nodes = nodes(losses(model, batch)[0])
        with reference_mode():
            loss, repeated_gradients = losses(model, batch)
    assert custom_nodes <= kernel_nodes
    assert not custom_nodes & nodes(loss)
    assert "ScaledDotProductFlashAttentionForCpuBackward0" not in nodes(loss)
    assert torch.equal(loss, exact)
    for actual, expected in zip(repeated_gradients, gradients, strict=True):
        assert torch.equal(actual, expected)


def test_machine_and_dispatch_are_imported_without_pytorch():
    program = "import sys, translucid.kernels.machine, translucid.kernels.dispatch; print('torch' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "False"
