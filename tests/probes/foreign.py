"""Small model folders of other toolkits with random weights, made with `transformers`."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from translucid.corpora.phrasebook import generate

SHORT = {"max_length_ratio": 0.0, "max_length_extra": 8}
"""Length limits for translations by random weights, which would never end a sentence."""


@cache
def sentences() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return English sentences and their Spanish translations."""
    pairs = [*generate(400, seed=1)]
    return tuple(pair.source for pair in pairs), tuple(pair.target for pair in pairs)


@cache
def sentencepiece_model(texts: tuple[str, ...], size: int, **settings: Any) -> bytes:
    """Return a SentencePiece model with the default special pieces <unk>, <s> and </s> first."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, minloglevel=3, **settings
    )
    return model.getvalue()


def marian_pieces(folder: Path, languages: Sequence[str] = (), missing: int = 5) -> list[str]:
    """Write two SentencePiece models; return a vocabulary that begins with `</s>` and lacks `missing` pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces: list[str] = []
    for side, texts in zip(("source", "target"), sentences(), strict=True):
        model = sentencepiece_model(texts, 120)
        (folder / f"{side}.spm").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces += [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    pieces = [*dict.fromkeys(pieces)]
    random.Random(1).shuffle(pieces)
    return ["</s>", "<unk>", *(f">>{code}<<" for code in languages), *pieces[missing:]]


def add_noise(model: torch.nn.Module, seed: int) -> Any:
    """Add noise to the weights, so that none are zero as in a fresh model; return the model in evaluation mode."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name and "shared" not in name and "embed_tokens" not in name:
                weight.add_(0.2 * torch.randn_like(weight))
    return model.eval()


def marian_folder(
    folder: Path, *, activation: str = "swish", languages: Sequence[str] = (), end: float = 5.0, **changes: Any
) -> Any:
    """Write a MarianMT folder; return the model. `end`: the bias of the end token; a low one makes outputs long."""
    from transformers import MarianConfig, MarianMTModel

    vocabulary = {piece: i for i, piece in enumerate([*marian_pieces(folder, languages), "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    size = len(vocabulary)
    shape = {
        "vocab_size": size,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "activation_function": activation,
        "scale_embedding": True,
        "pad_token_id": size - 1,
        "eos_token_id": 0,
        "decoder_start_token_id": size - 1,
        "forced_eos_token_id": None,
        "max_position_embeddings": 600,
    }
    torch.manual_seed(2)
    model = add_noise(MarianMTModel(MarianConfig(**shape | changes)), 3)
    with torch.no_grad():
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, 0] = end
        if model.config.share_encoder_decoder_embeddings:
            model.model.shared.weight.mul_(20)
    model.save_pretrained(folder)
    facts = {"tokenizer_class": "MarianTokenizer", "source_lang": "eng", "target_lang": "spa", "separate_vocabs": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    return model


def many_languages_folder(
    folder: Path, *, nllb: bool = False, end: float = 5.0, codes: Sequence[str] = ("en", "es"), **changes: Any
) -> Any:
    """Write a folder of M2M100 for these languages, or of NLLB for English and Spanish; return the model."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    folder.mkdir(parents=True, exist_ok=True)
    model_file = sentencepiece_model(tuple(text for side in sentences() for text in side), 200, model_type="bpe")
    (folder / "sentencepiece.bpe.model").write_bytes(model_file)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_file)
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    languages = ["eng_Latn", "spa_Latn"] if nllb else [f"__{code}__" for code in codes]
    facts: dict[str, Any] = {"additional_special_tokens": languages}
    size = 4 + len(pieces)
    if nllb:
        added = {size + i: {"content": name, "special": True} for i, name in enumerate([*languages, "<mask>"])}
        facts |= {"tokenizer_class": "NllbTokenizer", "added_tokens_decoder": added}
        (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    else:
        vocabulary = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        (folder / "special_tokens_map.json").write_text(json.dumps(facts))
    torch.manual_seed(2)
    shape = {
        "vocab_size": size + len(languages) + 8,
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "scale_embedding": True,
        "max_position_embeddings": 600,
    }
    model = add_noise(M2M100ForConditionalGeneration(M2M100Config(**shape | changes)), 4)
    with torch.no_grad():
        model.model.shared.weight.mul_(20)
        bias = model.model.decoder.layer_norm.bias
        model.lm_head.weight[2] = end * bias / bias.dot(bias)  # the logit of the end token is about `end`
    model.save_pretrained(folder)
    return model


def marian_file(
    folder: Path,
    *,
    norm: str = "post",
    activation: str = "swish",
    ties: str = "all",
    ssru: bool = False,
    **changes: Any,
) -> None:
    """Write model.npz, vocab.yml and SentencePiece models as Marian does.

    `ssru`: whether the decoder has an SSRU in place of self-attention.
    `ties`: which embeddings are shared: all, src (both languages), target (with the output), none.
    """
    import numpy as np
    import yaml

    pieces = [*marian_pieces(folder), '"quoted"', "it's", ": 3", "#1", "\x85"]
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {i}\n" for i, piece in enumerate(pieces)]
    (folder / "vocab.yml").write_text("".join(lines), encoding="utf-8")
    size, width, inner, depths = len(pieces), 16, 24, {"encoder": 2, "decoder": 2}
    draw = np.random.default_rng(5)
    arrays: dict[str, Any] = {}

    def linear(name: str, suffix: str, rows: int, columns: int) -> None:
        arrays[f"{name}_W{suffix}"] = draw.normal(0, rows**-0.5, (rows, columns)).astype("f")
        arrays[f"{name}_b{suffix}"] = draw.normal(0, 0.2, (1, columns)).astype("f")

    def layer_norm(name: str, suffix: str) -> None:
        arrays[f"{name}_ln_scale{suffix}"] = draw.normal(1, 0.2, (1, width)).astype("f")
        arrays[f"{name}_ln_bias{suffix}"] = draw.normal(0, 0.2, (1, width)).astype("f")

    norm_suffix = "_pre" if norm == "pre" else ""
    for side, depth in depths.items():
        for i in range(1, depth + 1):
            for scope in ("self", "context")[: 1 + (side == "decoder")]:
                if ssru and (side, scope) == ("decoder", "self"):
                    linear(f"{side}_l{i}_rnn", "f", width, width)
                    linear(f"{side}_l{i}_rnn", "", width, width)
                    del arrays[f"{side}_l{i}_rnn_b"]
                    layer_norm(f"{side}_l{i}_rnn" if norm_suffix else f"{side}_l{i}_rnn_ffn", norm_suffix)
                    continue
                for place in "qkvo":
                    linear(f"{side}_l{i}_{scope}", place, width, width)
                layer_norm(f"{side}_l{i}_{scope}_Wo", norm_suffix)
            linear(f"{side}_l{i}_ffn", "1", width, inner)
            linear(f"{side}_l{i}_ffn", "2", inner, width)
            layer_norm(f"{side}_l{i}_ffn_ffn", norm_suffix)
        if norm == "pre":
            layer_norm(f"{side}_top", "")
    shared = ties in ("all", "src")
    for name in ["Wemb"] if shared else ["encoder_Wemb", "decoder_Wemb"]:
        arrays[name] = draw.normal(0, 0.6, (size, width)).astype("f")
    if ties in ("src", "none"):
        arrays["decoder_ff_logit_out_W"] = draw.normal(0, 0.6, (width, size)).astype("f")
    arrays["decoder_ff_logit_out_b"] = draw.normal(0, 0.5, (1, size)).astype("f")
    arrays["decoder_ff_logit_out_b"][0, 0] = 2.5
    facts = {
        "type": "transformer",
        "dim-vocabs": [size, size],
        "dim-emb": width,
        "enc-depth": 2,
        "dec-depth": 2,
        "transformer-heads": 4,
        "transformer-dim-ffn": inner,
        "transformer-ffn-activation": activation,
        "transformer-decoder-autoreg": "rnn" if ssru else "self-attention",
        **({"dec-cell": "ssru"} if ssru else {}),
        "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
        "transformer-preprocess": "n" if norm == "pre" else "",
        "transformer-postprocess": "da" if norm == "pre" else "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n" if norm == "pre" else "",
        "tied-embeddings": ties == "target",
        "tied-embeddings-src": ties == "src",
        "tied-embeddings-all": ties == "all",
    }
    text = yaml.safe_dump(facts | changes)
    arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **arrays)
