"""The switch: what it names, where it holds, and that everything asks it."""

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


def made_plain():
    return {name for name in KERNELS if uses_reference(name)}


def test_without_names_all_are_plain_and_names_add_up():
    assert made_plain() == set()
    with reference_mode():
        assert made_plain() == KERNELS
        with reference_mode("loss"):
            assert made_plain() == KERNELS
    with reference_mode("loss"), reference_mode("dropout", "linear"):
        assert made_plain() == {"loss", "dropout", "linear"}
    assert made_plain() == set()


def test_an_error_opens_it_again():
    with pytest.raises(ZeroDivisionError), reference_mode():
        raise ZeroDivisionError
    assert made_plain() == set()


def test_a_kernel_that_is_not_there_is_refused():
    with (
        pytest.raises(ValueError, match=r"no kernel 'softmax', but additive, attention, dropout, linear, loss"),
        reference_mode("softmax"),
    ):
        pass


def test_other_threads_are_not_concerned():
    found = []
    with reference_mode():
        thread = Thread(target=lambda: found.append(made_plain()))
        thread.start()
        thread.join()
    assert found == [set()]


def losses(model, batch):
    torch.manual_seed(3)
    loss = batch_loss(model, batch, 0.1).smoothed
    return loss, torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_within_it_a_training_step_is_pytorchs_own_operations(dropout, monkeypatch):
    """No function of ours is left in the graph, and precision and thresholds make no difference."""
    model = Transformer(
        40,
        40,
        TransformerOptions(width=16, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=1, dropout=dropout),
    ).train()
    batch = Batch(*torch.randint(4, 40, (3, 6, 5)))
    ours = {"_LinearBackward", "_ProductsBackward", "_ChunkedLossBackward"}

    def nodes(loss):
        seen, todo = set(), [loss.grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo += [before for before, _ in node.next_functions]
        return {node.name() for node in seen}

    with reference_mode():
        exact, gradients = losses(model, batch)
    monkeypatch.setattr(linear, "LARGE", 0)
    monkeypatch.setattr(onednn, "onednn_is_better", lambda: True)
    with rounded_products():
        taken = nodes(losses(model, batch)[0])
        with reference_mode():
            loss, same = losses(model, batch)
    assert ours <= taken
    assert not ours & nodes(loss)
    assert "ScaledDotProductFlashAttentionForCpuBackward0" not in nodes(loss)
    assert torch.equal(loss, exact)
    for one, other in zip(same, gradients, strict=True):
        assert torch.equal(one, other)


def test_the_machine_can_be_asked_without_pytorch():
    program = "import sys, translucid.kernels.machine, translucid.kernels.dispatch; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
