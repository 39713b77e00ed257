"""Hugging Face's MarianMTModel with fresh weights; its decoder starts with padding."""

from common import END, START, Size, vocabulary
from transformers import MarianConfig, MarianMTModel


def marian(size: Size) -> MarianMTModel:
    """Return a model of this shape over the common vocabulary."""
    entries = len(vocabulary())
    padding = entries - 1
    return MarianMTModel(
        MarianConfig(
            vocab_size=entries,
            d_model=size.width,
            encoder_layers=size.layers,
            decoder_layers=size.layers,
            encoder_attention_heads=size.heads,
            decoder_attention_heads=size.heads,
            encoder_ffn_dim=size.feed_forward,
            decoder_ffn_dim=size.feed_forward,
            dropout=size.dropout,
            activation_function="relu",
            max_position_embeddings=512,
            pad_token_id=padding,
            eos_token_id=END,
            bos_token_id=START,
            forced_eos_token_id=None,
            decoder_start_token_id=padding,
            scale_embedding=True,
        )
    )
