"""Our blocks against PyTorch's own Transformer layers, with the same weights."""

import pytest
import torch
from torch import nn

from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGETS = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def copy_attention(reference, ours):
    """Copy attention weights; PyTorch stores query, key and value in one matrix."""
    reference.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
    reference.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
    reference.out_proj.load_state_dict(ours.output.state_dict())


def copy_block(reference, ours):
    copy_attention(reference.self_attn, ours.self_attention)
    if hasattr(reference, "multihead_attn"):
        copy_attention(reference.multihead_attn, ours.cross_attention)
    reference.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    reference.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for i, residual in enumerate(ours.residuals, 1):
        getattr(reference, f"norm{i}").load_state_dict(residual.norm.state_dict())


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_encoder_and_decoder_are_those_of_torch(norm):
    options = TransformerOptions(width=24, heads=3, feed_forward=40, encoder_layers=2, decoder_layers=2, norm=norm)
    model = Transformer(15, 15, options).eval()
    for parameter in model.parameters():  # also biases and norms, which are initialized with zeros and ones
        parameter.add_(torch.randn_like(parameter) * 0.1)
    settings = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    encoder = nn.ModuleList(nn.TransformerEncoderLayer(24, 3, 40, **settings) for _ in range(2))
    decoder = nn.ModuleList(nn.TransformerDecoderLayer(24, 3, 40, **settings) for _ in range(2))
    for reference, ours in [*zip(encoder, model.encoder, strict=True), *zip(decoder, model.decoder, strict=True)]:
        copy_block(reference, ours)

    memory = model.encode(SOURCE)
    padding = SOURCE == 0  # in PyTorch's layers, True masks a position
    x = model.source_embedding(SOURCE)
    for layer in encoder:
        x = layer(x, src_key_padding_mask=padding)
    expected = model.encoder_norm(x)
    torch.testing.assert_close(memory.states[~padding], expected[~padding], rtol=0, atol=1e-5)

    future = torch.ones(4, 4).triu(1).bool()
    y = model.target_embedding(TARGETS)
    for layer in decoder:
        y = layer(y, expected, tgt_mask=future, memory_key_padding_mask=padding)
    torch.testing.assert_close(model.features(memory, TARGETS), model.decoder_norm(y), rtol=0, atol=1e-5)
