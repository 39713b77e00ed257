"""Import Hugging Face folders of MarianMT, M2M100 and NLLB; of Pegasus too, if it has Marian's vocabulary.

All are Transformers of "Attention Is All You Need": Marian's with layer normalization after each sublayer, the
others' before it. They differ from ours in the order of the sinusoids, the nonlinearity, the rows of the special
tokens, and the conversion of text to rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.hub import FAIRSEQ
from translucid.interop.imported import SIDES, Imported, Keys, Names, all_are, joined, read_json, read_weights
from translucid.interop.pieces import (
    LANGUAGE,
    Vocabulary,
    adapted_models,
    read_sentencepiece,
    vocabulary_weights,
)

KINDS = {"marian": "MarianMT", "m2m_100": "M2M100", "pegasus": "Pegasus"}
"""The name of each `model_type`."""
NONLINEARITIES = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
"""Our names of the nonlinearities, by Hugging Face's."""


def from_huggingface(folder: Path) -> Imported:
    """Read a Hugging Face folder.

    Raises:
        UserError: the folder is incomplete, damaged, or has a model of an unsupported kind.
    """
    file = folder / "config.json"
    keys = Keys(read_json(file, 1 << 20), file)
    kind = keys.text("model_type")
    if kind not in KINDS:
        raise UserError(
            f"model_type={kind!r:.50} is not supported", file=file, fix="marian, m2m_100 and NLLB can be imported."
        )
    marian = kind != "m2m_100"
    model = _shape(keys, marian=marian, pre=kind != "marian")
    tensors = read_weights(folder)
    tied = keys.flag("tie_word_embeddings", True)
    one_list = keys.flag("share_encoder_decoder_embeddings", True)
    embeddings = _embeddings(tensors, shared=tied and one_list, tied=tied, folder=folder)
    read_vocabularies = _marian_vocabularies if marian else _many_languages
    source, target, tokenizer, languages = read_vocabularies(folder, keys, embeddings)
    # OPUS models begin with padding, whose embedding is zero.
    zero_start = marian and not embeddings["target"][target.rows[2]].any()
    joint, shared = tokenizer.joint, source is target
    one_matrix = shared and embeddings["source"] is embeddings["target"]
    model |= {"zero_start": bool(zero_start), "share_embeddings": one_matrix, "tie_output": tied}
    depths = []  # of the file: if the configuration has others, the model can't be filled
    for side in SIDES:
        depths.append(len({name.split(".")[3] for name in tensors if name.startswith(f"model.{side}.layers.")}))
    names = layer_names(depths, pre=model["norm"] == "pre")
    placement = "source-side" if marian else "both-sides"
    options = {"joint": joint, "shared_ids": shared and not joint, "languages": languages, "language_pieces": placement}
    return Imported(
        kind=KINDS[kind],
        settings={
            "model": model,
            "data": {
                "tokenizer": options | {"vocabulary": len(target.names)},
                "max_tokens": min(keys.number("max_position_embeddings", 512), 1 << 14),
            },
            "decoding": {"beam": min(max(keys.number("num_beams", 5), 1), 10)},
        },
        tensors=_renamed(tensors, embeddings, source, target, names, folder=folder),
        tokenizer=tokenizer,
    )


def _shape(keys: Keys, *, marian: bool, pre: bool) -> dict[str, Any]:
    """Return the options of the model; `pre`: whether layer normalization comes before each sublayer."""
    keys.expect(
        {
            "normalize_before": pre,
            "normalize_embedding": False,
            "add_bias_logits": False,
            "add_final_layer_norm": pre,
            "static_position_embeddings": True,
            "is_encoder_decoder": True,
        }
    )
    activation = keys.text("activation_function", "relu")
    if activation not in NONLINEARITIES:
        keys.unsupported("activation_function", activation)
    for option in ("attention_heads", "ffn_dim"):
        if keys.number(f"decoder_{option}") != keys.number(f"encoder_{option}"):
            keys.unsupported(f"decoder_{option}", f"{keys.number(f'decoder_{option}')} unlike the encoder's")
    return {
        "kind": "transformer",
        "width": keys.number("d_model"),
        "heads": keys.number("encoder_attention_heads"),
        "feed_forward": keys.number("encoder_ffn_dim"),
        "encoder_layers": keys.number("encoder_layers"),
        "decoder_layers": keys.number("decoder_layers"),
        "dropout": keys.share("dropout", 0.1, maximum=0.9),
        "norm": "pre" if pre else "post",
        "nonlinearity": NONLINEARITIES[activation],
        "positions": "sinusoidal-halves" if marian else "sinusoidal-tensor2tensor",
        "first_position": 0 if marian else 2,
        "scale_embeddings": keys.flag("scale_embedding", not marian),
    }


_SHARED = "model.shared.weight"


def _embeddings(tensors: Mapping[str, Tensor], *, shared: bool, tied: bool, folder: Path) -> dict[str, Tensor]:
    """Return the matrices of `source`, `target` and `output`, each [V, D], as `transformers` uses them.

    A shared matrix is in the file once, as `model.shared`. Where nothing is tied, `transformers` 5 writes that as well,
    but uses only the matrix of each side.

    Args:
        tensors: the tensors of the folder.
        shared: whether both sides have the same matrix.
        tied: whether the output has the same matrix as the target side.
        folder: the folder, for messages.

    Raises:
        UserError: a matrix is missing, or has other dimensions.
    """
    matrices: dict[str, Tensor] = {}
    for side, coder in (("source", "encoder"), ("target", "decoder")):
        names = [f"model.{coder}.embed_tokens.weight", _SHARED]
        matrices[side] = _first_matrix(tensors, names[::-1] if shared else names, folder)
    output = ["lm_head.weight", "model.decoder.embed_tokens.weight", _SHARED]
    matrices["output"] = matrices["target"] if tied else _first_matrix(tensors, output, folder)
    return matrices


def _first_matrix(tensors: Mapping[str, Tensor], names: Sequence[str], folder: Path) -> Tensor:
    """Return the first of some matrices that exists."""
    for name in names:
        if name in tensors and tensors[name].dim() == 2:
            return tensors[name]
    raise UserError(f"has no weights {names[0]}", file=folder, fix="Is the folder complete?")


_Vocabularies = tuple[Vocabulary, Vocabulary, Tokenizer, dict[str, str]]


def _marian_vocabularies(folder: Path, keys: Keys, embeddings: Mapping[str, Tensor]) -> _Vocabularies:
    """Read two SentencePiece models, and one list of pieces for both sides or one for each."""
    parsed = [read_sentencepiece(folder / "source.spm"), read_sentencepiece(folder / "target.spm")]
    shared = keys.flag("share_encoder_decoder_embeddings", True)
    source = _marian_vocabulary(folder / "vocab.json", keys, len(embeddings["source"]))
    # The target's own list, if there is one; a shared list is one object, which gets the pieces of both sides.
    target = source if shared else _marian_vocabulary(folder / "target_vocab.json", keys, len(embeddings["target"]))
    models, languages = adapted_models(parsed, (source, target), "marian")
    return source, target, Tokenizer(*models), languages


def _marian_vocabulary(file: Path, keys: Keys, size: int) -> Vocabulary:
    """Read a list of pieces with their rows."""
    ids = _ids(file)
    pad, end = keys.number("pad_token_id"), keys.number("eos_token_id")
    start = keys.number("decoder_start_token_id", pad)
    unknown = ids.get("<unk>")
    if unknown is None:
        raise UserError("has no piece <unk>", file=file, fix="Is the folder complete?")
    return Vocabulary.of(ids, size, pad=pad, unknown=unknown, start=start, end=end)


def _many_languages(folder: Path, keys: Keys, embeddings: Mapping[str, Tensor]) -> _Vocabularies:
    """Read one SentencePiece model; its pieces, and those of languages, have Fairseq's order."""
    parsed = read_sentencepiece(folder / FAIRSEQ)
    file = folder / "vocab.json"
    ids = _ids(file) if file.exists() else _fairseq_ids(parsed)
    ids = {**ids, **_read_language_rows(folder, len(ids))}
    unknown = ids.get("<unk>", 3)
    pad, end = keys.number("pad_token_id", 1), keys.number("eos_token_id", 2)
    start = keys.number("decoder_start_token_id", end)
    # Some tokenizers have more pieces than the model has embeddings.
    size = len(embeddings["source"])
    ids = {piece: row for piece, row in ids.items() if row < size}
    vocabulary = Vocabulary.of(ids, size, pad=pad, unknown=unknown, start=start, end=end)
    vocabulary.can_output[SPECIAL.start] = False  # `generate` forbids it too: see `_generation` of the export
    models, languages = adapted_models([parsed], [vocabulary], "m2m", "nllb")
    if not languages:
        raise UserError("names no languages", file=folder, fix="It needs tokenizer_config.json or tokenizer.json.")
    return vocabulary, vocabulary, Tokenizer(*models), languages


def _ids(file: Path) -> dict[str, int]:
    """Read the row of each piece."""
    rows = read_json(file)
    if not isinstance(rows, dict) or not all_are(int, rows.values()):
        raise UserError("is not a list of pieces with their rows", file=file, fix="Get the folder again.")
    if len({*rows.values()}) != len(rows):
        raise UserError("gives two pieces the same row", file=file, fix="Get the folder again.")
    return rows


def _fairseq_ids(parsed: Any) -> dict[str, int]:
    """Return the rows of a SentencePiece model's pieces in Fairseq's order: four special tokens, then the others."""
    rows = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    # SentencePiece has three special tokens, <unk>, <s> and </s>, so that all other rows are one higher.
    for row, piece in enumerate(parsed.pieces, 1):
        if row > 3:
            rows[piece.piece] = row
    return rows


def _read_language_rows(folder: Path, first_row: int) -> dict[str, int]:
    """Return the rows of the pieces of languages, from the first file of a tokenizer that has them.

    `first_row`: the row of the first language, for files that list them without rows.
    """
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if not (folder / name).exists():
            continue
        facts = Keys(read_json(folder / name), folder / name).values
        tokens = [*facts.get("added_tokens", [])]
        decoder = facts.get("added_tokens_decoder")
        if isinstance(decoder, dict):
            for row, token in decoder.items():
                if isinstance(token, dict) and str(row).isdecimal():
                    tokens.append({**token, "id": int(row)})
        languages = _language_rows(tokens)
        if languages:
            return languages
        special_tokens = facts.get("extra_special_tokens") or facts.get("additional_special_tokens")
        if isinstance(special_tokens, list):
            names = [piece for piece in special_tokens if isinstance(piece, str) and LANGUAGE.fullmatch(piece)]
            if names:
                return dict(zip(names, count(first_row)))
    return {}


def _language_rows(tokens: Iterable[Any]) -> dict[str, int]:
    """Return the rows of those tokens that stand for a language."""
    rows = {}
    for token in tokens:
        if not isinstance(token, dict):
            continue
        piece, row = token.get("content"), token.get("id")
        if isinstance(piece, str) and type(row) is int and LANGUAGE.fullmatch(piece):
            rows[piece] = row
    return rows


def _renamed(
    tensors: Mapping[str, Tensor],
    embeddings: Mapping[str, Tensor],
    source: Vocabulary,
    target: Vocabulary,
    names: Names,
    *,
    folder: Path,
) -> dict[str, Tensor]:
    """Return the weights by our names, given `names` of the layers."""
    bias = tensors.get("final_logits_bias")

    def tensor_of(name: str) -> Tensor:
        if name not in tensors:
            raise UserError(f"has no weights {name}", file=folder, fix="Is the folder complete?")
        return tensors[name]

    def read(name: str) -> tuple[Tensor, Tensor]:
        return tensor_of(f"{name}.weight"), tensor_of(f"{name}.bias")

    weights = vocabulary_weights(source, target, embeddings, None if bias is None else bias.flatten())
    return weights | joined(names, read)


def layer_names(layers: Iterable[int], *, pre: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield our name of each linear layer and norm, with theirs, whose rows are joined in ours.

    Args:
        layers: the number of blocks of the encoder and of the decoder.
        pre: whether layer normalization comes before each sublayer, so that there is another norm after all blocks.
    """
    for side, depth in zip(SIDES, layers, strict=True):
        for layer in range(depth):
            yield from _block_names(side, layer)
        if pre:
            yield f"{side}_norm", [f"model.{side}.layer_norm"]


def _block_names(side: str, layer: int) -> Iterator[tuple[str, list[str]]]:
    hf_block, block = f"model.{side}.layers.{layer}", f"{side}.{layer}"
    attentions = [("self_attention", "self_attn"), ("cross_attention", "encoder_attn")][: 1 + (side == "decoder")]
    for index, (attention, hf_attention) in enumerate(attentions):
        yield f"{block}.{attention}.query", [f"{hf_block}.{hf_attention}.q_proj"]
        yield (
            f"{block}.{attention}.key_value",
            [f"{hf_block}.{hf_attention}.k_proj", f"{hf_block}.{hf_attention}.v_proj"],
        )
        yield f"{block}.{attention}.output", [f"{hf_block}.{hf_attention}.out_proj"]
        yield f"{block}.residuals.{index}.norm", [f"{hf_block}.{hf_attention}_layer_norm"]
    yield f"{block}.feed_forward.inner", [f"{hf_block}.fc1"]
    yield f"{block}.feed_forward.outer", [f"{hf_block}.fc2"]
    yield f"{block}.residuals.{len(attentions)}.norm", [f"{hf_block}.final_layer_norm"]
