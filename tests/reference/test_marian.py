"""Our Transformer against Hugging Face's MarianMTModel, with the same weights."""

import torch

from translucid.ground.special import SpecialTokens
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

V, WIDTH, PAD = 37, 24, 36


def interleaved():
    """Return the index in Marian's embedding of each of our dimensions: Marian has all sines first, we alternate."""
    return torch.arange(WIDTH).view(2, -1).t().flatten()


def copy_attention(ours, reference, order):
    def inward(linear):
        return linear.weight[:, order], linear.bias

    query, key, value = (inward(linear) for linear in (reference.q_proj, reference.k_proj, reference.v_proj))
    ours.query.weight.copy_(query[0])
    ours.query.bias.copy_(query[1])
    ours.key_value.weight.copy_(torch.cat([key[0], value[0]]))
    ours.key_value.bias.copy_(torch.cat([key[1], value[1]]))
    ours.output.weight.copy_(reference.out_proj.weight[order])
    ours.output.bias.copy_(reference.out_proj.bias[order])


def copy_block(ours, reference, order):
    copy_attention(ours.self_attention, reference.self_attn, order)
    norms = [reference.self_attn_layer_norm, reference.final_layer_norm]
    if hasattr(reference, "encoder_attn"):
        copy_attention(ours.cross_attention, reference.encoder_attn, order)
        norms.insert(1, reference.encoder_attn_layer_norm)
    for residual, norm in zip(ours.residuals, norms, strict=True):
        residual.norm.weight.copy_(norm.weight[order])
        residual.norm.bias.copy_(norm.bias[order])
    ours.feed_forward.inner.weight.copy_(reference.fc1.weight[:, order])
    ours.feed_forward.inner.bias.copy_(reference.fc1.bias)
    ours.feed_forward.outer.weight.copy_(reference.fc2.weight[order])
    ours.feed_forward.outer.bias.copy_(reference.fc2.bias[order])


@torch.no_grad()
def test_the_same_weights_give_the_same_logits():
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=V,
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=64,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=0,
        forced_eos_token_id=0,
        share_encoder_decoder_embeddings=True,
    )
    reference = MarianMTModel(config).eval()
    for name, parameter in reference.named_parameters():
        if "positions" not in name:
            parameter.add_(torch.randn_like(parameter) * 0.1)
    reference.final_logits_bias.normal_()
    options = TransformerOptions(width=WIDTH, heads=3, feed_forward=40, encoder_layers=2, decoder_layers=3, norm="post")
    ours = Transformer(V, V, options).eval()
    ours.special = SpecialTokens(pad=PAD, unknown=1, start=PAD, end=0)
    order = interleaved()
    ours.output.weight.copy_(reference.model.shared.weight[:, order])
    ours.output.bias.copy_(reference.final_logits_bias[0])
    for side in ("encoder", "decoder"):
        layers = getattr(reference.model, side).layers
        for block, layer in zip(getattr(ours, side), layers, strict=True):
            copy_block(block, layer, order)

    source = torch.tensor([[5, 6, 7, 8, 0], [9, 10, 0, PAD, PAD]])
    targets = torch.tensor([[PAD, 5, 6, 7], [PAD, 8, 9, 10]])
    real = source != PAD
    expected = reference(
        input_ids=source, attention_mask=real.long(), decoder_input_ids=targets, output_attentions=False
    )
    memory = ours.encode(source)
    torch.testing.assert_close(
        memory.states[real], expected.encoder_last_hidden_state[real][:, order], rtol=0, atol=1e-5
    )
    torch.testing.assert_close(ours.decode(memory, targets), expected.logits, rtol=0, atol=1e-5)
