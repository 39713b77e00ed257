"""Convert a Transformer into a model of CTranslate2, the fastest maintained engine for Transformers on CPUs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from ctranslate2 import specs
from ctranslate2.specs.common_spec import LayerNormSpec
from ctranslate2.specs.model_spec import index_spec

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.shortlist import read_shortlist
from translucid.engines.ctranslate2.conventions import (
    ACTIVATIONS,
    SOURCE_END,
    TRANSFORMERS,
    Quantization,
    layer_names,
    position_rows,
)
from translucid.ground.atomic import export_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.models.model_options import unknown_option
from translucid.runs.transformer_weights import Floats, TransformerWeights

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import SequenceModel

MARKER = "model.bin", "a CTranslate2 model"
"""A file by which an exported folder is recognized, and the name of its kind."""


def export_ctranslate2(
    model: SequenceModel,
    tokenizer: Tokenizer,
    out: Path,
    quantization: Quantization,
    *,
    overwrite: bool = False,
    attention_layer: int = -1,
    extra_files: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write a folder for `ctranslate2.Translator`, with the tokenizer in it, atomically.

    Args:
        model: a Transformer.
        tokenizer: its tokenizer.
        out: the folder.
        quantization: the type of the weights.
        overwrite: whether to replace an existing export.
        attention_layer: the decoder layer of the attention that CTranslate2 returns, which is that of the first head.
        extra_files: the content of further files by name.

    Raises:
        UserError: the model is not a Transformer, or the folder exists already or can't be written.
    """
    with export_folder(out, overwrite, *MARKER) as folder:
        save_ctranslate2(model, tokenizer, folder, quantization, attention_layer=attention_layer)
        tokenizer.save(folder)
        if SPECIAL.start in tokenizer.source_opening:  # which our own engine puts there
            file = folder / "config.json"
            config = json.loads(file.read_text(encoding="utf-8"))
            write_atomically(file, json.dumps(config | {"add_source_bos": True}, indent=2).encode())
        for name, content in extra_files.items():
            write_atomically(folder / name, content)


def save_ctranslate2(
    model: SequenceModel,
    tokenizer: Tokenizer,
    folder: Path,
    quantization: Quantization = "float32",
    shortlist: Path | None = None,
    *,
    attention_layer: int = -1,
) -> None:
    """Write a PyTorch model into a folder; see `save_weights`.

    Raises:
        UserError: the model is not a Transformer, the only kind that CTranslate2 supports, or there is no shortlist.
    """
    save_weights(weights_of(model), tokenizer, folder, quantization, shortlist, attention_layer=attention_layer)


def weights_of(model: SequenceModel) -> TransformerWeights:
    """Return the weights of a PyTorch model as CTranslate2 needs them.

    Raises:
        UserError: the model is not a Transformer that CTranslate2 supports.
    """
    from translucid.models.transformer import Transformer

    if not isinstance(model, Transformer):
        what = f"a model of the kind {type(model).__name__} can't become a CTranslate2 model"
        raise UserError(what, fix="CTranslate2 runs Transformers only; use the model as it is.")
    if model.options.elmo:
        fix = "CTranslate2 has no bidirectional LSTM; use the model as it is."
        raise UserError("a model that reads its source with ELMo can't become a CTranslate2 model", fix=fix)
    if model.options.decoder == "ssru":
        fix = "CTranslate2 has decoders with self-attention only; use `export_onnx` or `export_marian`."
        raise UserError("a model with model.decoder=ssru can't become a CTranslate2 model", fix=fix)
    if key := unknown_option(model.options, TRANSFORMERS):
        what = f"a model with model.{key}={getattr(model.options, key)} can't become a CTranslate2 model"
        raise UserError(what, fix="Use `export_onnx`.")
    rows, tables = position_rows(model.options), []
    for side in (model.source_embedding, model.target_embedding):
        embedding: Any = side  # submodules have no static types
        encodings = embedding.positions(rows)
        if isinstance(encodings, float):  # CTranslate2 has no switch for a model without positions
            tables.append(np.zeros((rows, model.options.width), np.float32))
        else:
            tables.append(_array(encodings))
    arrays = {name: _array(tensor) for name, tensor in model.state_dict().items()}
    return TransformerWeights(model.options, arrays, (tables[0], tables[1]))


def _array(tensor: Tensor) -> Floats:
    array: Floats = tensor.detach().float().cpu().numpy()
    return array


def save_weights(
    weights: TransformerWeights,
    tokenizer: Tokenizer,
    folder: Path,
    quantization: Quantization = "float32",
    shortlist: Path | None = None,
    *,
    attention_layer: int = -1,
) -> None:
    """Write weights into a folder that `ctranslate2.Translator` opens.

    Its input is pieces, end token included unless the model reads none.
    With a `shortlist` that is the same for all sources, the model has no other target pieces; one by source words is
    saved with the model, to be used with `use_vmap=True`.

    Raises:
        UserError: there is no shortlist.
    """
    spec = _spec(weights, attention_layer)
    targets = tokenizer.target_pieces(range(tokenizer.target_size))
    if shortlist:
        # This validates the file: CTranslate2 would accept a damaged one.
        parsed_shortlist = read_shortlist(shortlist, tokenizer)
        if parsed_shortlist.by_source:
            spec.register_vocabulary_mapping(str(shortlist))
        else:
            # A smaller output layer is faster than masking, and needs no list while searching.
            targets = [targets[i] for i in parsed_shortlist.always]
            decoder: Any = spec.decoder
            for layer in (decoder.embeddings, decoder.projection):
                layer.weight = layer.weight[parsed_shortlist.always]
            decoder.projection.bias = decoder.projection.bias[parsed_shortlist.always]
    sources = tokenizer.source_pieces(range(tokenizer.source_size))
    spec.register_source_vocabulary(_vocabulary(sources))
    spec.register_target_vocabulary(_vocabulary(targets))
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (
        SPELLINGS.start,
        SPELLINGS.end,
        SPELLINGS.unknown,
    )
    spec.config.decoder_start_token = SPELLINGS.start
    # The pieces of a sentence come with their end token, if the model reads it.
    spec.config.add_source_bos = spec.config.add_source_eos = False
    if not weights.options.source_end:
        spec.config.add_attribute(SOURCE_END, False)
    if quantization == "int8":
        # The table of positions, which is not quantized, is an eighth of a small model. CTranslate2 converts it to the
        # type of the other numbers, here float32, when it opens the model.
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = side.position_encodings.encodings.astype(np.float16)
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    for file in folder.glob("*_vocabulary.json"):  # CTranslate2 writes a line for each piece, most of which are escapes
        pieces = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps(pieces, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _vocabulary(pieces: list[str]) -> list[str]:
    """Return the pieces with the names of the four special tokens that the configuration gives to CTranslate2."""
    return [*SPELLINGS, *pieces[len(SPELLINGS) :]]


def _spec(weights: TransformerWeights, attention_layer: int) -> specs.TransformerSpec:
    """Return the weights of a Transformer in CTranslate2's structure."""
    o, arrays = weights.options, weights.arrays
    layers = {"encoder": o.encoder_layers, "decoder": o.decoder_layers}
    spec = specs.TransformerSpec.from_config(
        (*layers.values(),),
        o.heads,
        pre_norm=o.has_final_norm,  # this adds the final norms
        activation=specs.Activation(ACTIVATIONS[o.nonlinearity]),
        alignment_layer=attention_layer,
        alignment_heads=1,
    )
    spec.decoder.start_from_zero_embedding = o.zero_start
    spec.encoder.pre_norm = spec.decoder.pre_norm = o.norm == "pre"
    # Copies, because quantization would change the model's weights in place.
    for side, positions in zip((spec.encoder, spec.decoder), weights.positions, strict=True):
        side.scale_embeddings = o.scale_embeddings
        side.position_encodings.encodings = positions.copy()
    spec.encoder.embeddings[0].weight = arrays["source_embedding.tokens.weight"].copy()
    spec.decoder.embeddings.weight = arrays["target_embedding.tokens.weight"].copy()
    for layer_name, names in layer_names(layers, final_norm=o.has_final_norm):
        layer = index_spec(spec, layer_name)
        weight, bias = _joined(arrays, names, "weight"), _joined(arrays, names, "bias")
        if isinstance(layer, LayerNormSpec):
            layer.gamma, layer.beta = weight, bias
        else:
            layer.weight, layer.bias = weight, bias
    return spec


def _joined(arrays: Mapping[str, Floats], names: Iterable[str], kind: str) -> Floats:
    """Return a copy of the weights or biases of layers that CTranslate2 has as one."""
    return np.concatenate([arrays[f"{name}.{kind}"] for name in names])
