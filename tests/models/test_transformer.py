"""The Transformer's options, weight sharing, initialization and training."""

import math

import pytest
import torch
from pydantic import ValidationError

from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
SOURCE, TARGETS = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])


def build(vocabularies=(30, 30), **options):
    torch.manual_seed(4)
    return Transformer(*vocabularies, TransformerOptions(**{**SMALL, **options}))


@pytest.mark.parametrize(
    "change",
    [
        {"width": 32},
        {"heads": 4},
        {"feed_forward": 32},
        {"encoder_layers": 2},
        {"decoder_layers": 2},
        {"decoder": "ssru"},
        {"norm": "post"},
        {"positions": "learned"},
        {"positions": "none"},
        {"share_embeddings": False},
        {"tie_output": False},
    ],
)
def test_every_option_changes_the_output(change):
    assert not torch.allclose(build()(SOURCE, TARGETS), build(**change)(SOURCE, TARGETS))


def test_the_heads_must_divide_the_width():
    with pytest.raises(ValidationError, match="heads=3 do not divide width=16"):
        TransformerOptions(**{**SMALL, "heads": 3})


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_sharing_saves_whole_matrices():
    shared = parameters(build())
    assert parameters(build(share_embeddings=False)) == shared + 30 * 16
    assert parameters(build(tie_output=False)) == shared + 30 * 16
    model = build()
    assert model.output.weight is model.target_embedding.tokens.weight is model.source_embedding.tokens.weight
    unshared = build(share_embeddings=False)
    assert (
        unshared.output.weight is unshared.target_embedding.tokens.weight is not unshared.source_embedding.tokens.weight
    )


def test_two_vocabularies_can_not_be_shared():
    with pytest.raises(ValueError, match="30 and 20 entries"):
        build((30, 20))
    model = build((30, 20), share_embeddings=False)
    assert model(SOURCE, TARGETS).shape == (1, 3, 20)


def test_learned_positions_are_a_limit_and_sinusoids_are_none():
    assert build(positions="learned", max_length=8).max_length == 8
    model = build()
    assert model.max_length is None
    assert model(torch.full((1, 700), 5), torch.full((1, 600), 5)).shape == (1, 600, 30)


def test_without_positions_shuffling_the_source_changes_nothing_else():
    order = torch.tensor([2, 0, 3, 1])
    bag, sequence = build(positions="none").eval(), build().eval()
    torch.testing.assert_close(bag.encode(SOURCE[:, order]).states, bag.encode(SOURCE).states[:, order])
    torch.testing.assert_close(bag(SOURCE[:, order], TARGETS), bag(SOURCE, TARGETS))
    assert not torch.allclose(sequence(SOURCE[:, order], TARGETS), sequence(SOURCE, TARGETS))


@pytest.mark.parametrize("layers", [1, 6])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_first_weights_are_sane_at_every_depth(layers, norm):
    model = build((200, 200), width=64, feed_forward=128, encoder_layers=layers, decoder_layers=layers, norm=norm)
    source = torch.randint(4, 200, (16, 12))
    targets, labels = torch.randint(4, 200, (2, 16, 12))  # independent, because tied weights favor their own input
    loss = torch.nn.functional.cross_entropy(model(source, targets).flatten(0, 1), labels.flatten())
    assert loss.item() == pytest.approx(math.log(200), abs=1.5)
    loss.backward()
    norms = [block.feed_forward.inner.weight.grad.norm() for block in (*model.encoder, *model.decoder)]
    assert max(norms) / min(norms) < 30


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_training_of_many_layers_is_stable(norm):
    model = build((20, 20), width=32, feed_forward=64, encoder_layers=6, decoder_layers=6, norm=norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    losses = []
    for step in range(25):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 15)
        source = torch.randint(4, 20, (32, 5))
        logits = model(source, torch.cat([torch.full((32, 1), 2), source[:, :-1]], 1))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), source.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert all(math.isfinite(loss) for loss in losses)
    assert sum(losses[-5:]) / 5 < min(losses[0], math.log(16)) - 0.1


def test_gradients_are_those_of_finite_differences():
    model = build((12, 12), width=4, feed_forward=4).double()

    def loss():
        return torch.nn.functional.cross_entropy(model(SOURCE, TARGETS)[0], torch.tensor([8, 9, 3]))

    loss().backward()
    for name in (
        "encoder.0.self_attention.query.weight",
        "decoder.0.cross_attention.key_value.weight",
        "output.weight",
    ):
        parameter = model.get_parameter(name)
        flat = parameter.data.flatten()
        for i in (0, len(flat) // 2):
            flat[i] += 1e-6
            up = loss().item()
            flat[i] -= 2e-6
            down = loss().item()
            flat[i] += 1e-6
            assert parameter.grad.flatten()[i].item() == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-8), name
