"""Import an .npz file of Marian (Junczys-Dowmunt et al. 2018, arXiv 1804.00344), or Firefox's .bin, and vocabularies.

Marian stores matrices as inputs times outputs, PyTorch as outputs times inputs. The configuration within the file
describes the model. The decoder's first input has a position, but no embedding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.interop.imported import Imported, Keys, all_are
from translucid.interop.joined_layers import SIDES, Names, joined
from translucid.interop.marian_files import find_vocabularies, model_file_of, read_arrays
from translucid.interop.pieces import Vocabulary, adapted_models, read_sentencepiece, vocabulary_weights
from translucid.runs.settings import parse_yaml

CONFIGURATION = "special:model.yml"
"""The array with the configuration, as text that ends with NUL."""
NONLINEARITIES = ("relu", "swish")
"""The nonlinearities that both have; Marian's gelu is not the usual function of that name."""
_NORMS = {
    "post": {"transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-top": ""},
    "pre": {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"},
}


def from_marian(path: Path) -> Imported:
    """Read an .npz file, a .bin file of Firefox's, or the folder that has one.

    Raises:
        UserError: the file is incomplete, damaged, or has a model of an unsupported kind.
    """
    file = model_file_of(path)
    arrays = read_arrays(file)
    keys = _configuration(arrays, file)
    model = _shape(keys)
    sources, targets = find_vocabularies(keys, file)
    sizes = _sizes(keys)
    shared = bool(keys.values.get("tied-embeddings-all") or keys.values.get("tied-embeddings-src"))
    source = _vocabulary(sources.ids, sizes[0], sources.file)
    target = source if shared else _vocabulary(targets.ids, sizes[1], targets.file)
    parsed = [read_sentencepiece(sources.model), read_sentencepiece(targets.model)]
    models, languages = adapted_models(parsed, (source, target), "marian")
    joint = shared and models[0] == models[1]
    tokenizer = Tokenizer(models[0]) if joint else Tokenizer(*models)
    tied = bool(keys.values.get("tied-embeddings-all") or keys.values.get("tied-embeddings"))
    model |= {"share_embeddings": shared, "tie_output": tied}
    options = {"joint": joint, "shared_ids": shared and not joint, "languages": languages}
    weights, decoder = _Weights(arrays, file), _decoder_layers(keys)
    ssru = model["decoder"] == "ssru"
    names = layers(model["encoder_layers"], decoder, pre=model["norm"] == "pre", ssru=ssru)
    tensors = _renamed(weights, keys, source, target, names, shared=shared, tied=tied)
    if ssru:
        tensors |= _units(weights, decoder)
    return Imported(
        kind="Marian",
        settings={
            "model": model,
            "data": {"tokenizer": options | {"vocabulary": len(target.names)}, "max_tokens": 512},
        },
        tensors=tensors,
        tokenizer=tokenizer,
    )


def layers(encoder: int, decoder: Sequence[int], *, pre: bool, ssru: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield our name of each linear layer and norm, with theirs, whose rows are joined in ours.

    Their names of norms end in `_ln`; those of linear layers have braces for `W` or `b`. The units of an SSRU, whose
    biases do not belong to all of their rows, are those of `units`.

    Args:
        encoder: the number of encoder layers.
        decoder: for each decoder layer, the number of the layer whose weights it has, from 1.
        pre: whether layer normalisation comes before each sublayer, so that there is another norm after all blocks.
        ssru: whether the decoder has an SSRU in place of self-attention.
    """
    for side, numbers in zip(SIDES, (range(1, encoder + 1), decoder), strict=True):
        for i, number in enumerate(numbers):
            layer = f"{side}_l{number}"
            attentions = [("self", "self_attention")] + [("context", "cross_attention")] * (side == "decoder")
            for index, (scope, attention) in enumerate(attentions):
                if ssru and (side, scope) == ("decoder", "self"):
                    yield f"{side}.{i}.residuals.{index}.norm", [f"{layer}_rnn_ln" if pre else f"{layer}_rnn_ffn_ln"]
                    continue
                yield f"{side}.{i}.{attention}.query", [f"{layer}_{scope}_{{}}q"]
                yield f"{side}.{i}.{attention}.key_value", [f"{layer}_{scope}_{{}}k", f"{layer}_{scope}_{{}}v"]
                yield f"{side}.{i}.{attention}.output", [f"{layer}_{scope}_{{}}o"]
                yield f"{side}.{i}.residuals.{index}.norm", [f"{layer}_{scope}_Wo_ln"]
            yield f"{side}.{i}.feed_forward.inner", [f"{layer}_ffn_{{}}1"]
            yield f"{side}.{i}.feed_forward.outer", [f"{layer}_ffn_{{}}2"]
            yield f"{side}.{i}.residuals.{len(attentions)}.norm", [f"{layer}_ffn_ffn_ln"]
    if pre:
        for side in SIDES:
            yield f"{side}_norm", [f"{side}_top_ln"]


def units(decoder: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield our name of each SSRU with theirs; `decoder` as for `layers`."""
    for i, number in enumerate(decoder):
        yield f"decoder.{i}.ssru", f"decoder_l{number}_rnn"


def _configuration(arrays: dict[str, NDArray[Any]], file: Path) -> Keys:
    """Return the configuration that the file has."""
    if CONFIGURATION not in arrays:
        raise UserError(f"has no {CONFIGURATION}: it is no model of Marian", file=file)
    text = arrays[CONFIGURATION].tobytes().partition(b"\0")[0].decode("utf-8", "replace")
    try:
        return Keys(parse_yaml(text), file)
    except Exception as error:  # PyYAML also raises ValueError, KeyError and RecursionError for damaged text
        raise UserError(f"has a {CONFIGURATION} that is not YAML", file=file) from error


def _shape(keys: Keys) -> dict[str, Any]:
    """Return the options of the model."""
    keys.refuse("type", unless="transformer")
    ssru = keys.text("transformer-decoder-autoreg", "self-attention") == "rnn"
    if ssru:
        cell = keys.text("dec-cell", "gru")
        if cell != "ssru":
            keys.unsupported("dec-cell", cell)
        keys.refuse("transformer-rnn-projection", unless=False)
        keys.refuse("layer-normalization", unless=False)
    else:
        keys.refuse("transformer-decoder-autoreg", unless="self-attention")
    keys.refuse("transformer-no-projection", unless=False)
    keys.refuse("transformer-train-position-embeddings", unless=False)
    keys.refuse("transformer-train-positions", unless=False)
    keys.refuse("transformer-ffn-depth", unless=2)
    keys.refuse("lemma-dim-emb", unless=0)
    norm = None
    for name, steps in _NORMS.items():
        if {key: keys.text(key) for key in steps} == steps:
            norm = name
    if norm is None:
        keys.unsupported("transformer-postprocess", keys.text("transformer-postprocess"))
    if keys.text("transformer-postprocess-emb", "d") not in ("", "d"):
        keys.unsupported("transformer-postprocess-emb", keys.text("transformer-postprocess-emb"))
    nonlinearity = keys.text("transformer-ffn-activation", "swish")
    if nonlinearity not in NONLINEARITIES:
        keys.unsupported("transformer-ffn-activation", nonlinearity)
    for key in ("transformer-decoder-dim-ffn", "transformer-decoder-ffn-depth"):
        value = keys.number(key, 0)
        if value not in (0, keys.number(key.replace("decoder-", ""), 0)):  # 0 is the encoder's
            keys.unsupported(key, value)
    return {
        "kind": "transformer",
        "width": keys.number("dim-emb"),
        "heads": keys.number("transformer-heads"),
        "feed_forward": keys.number("transformer-dim-ffn"),
        "encoder_layers": keys.number("enc-depth"),
        "decoder_layers": keys.number("dec-depth"),
        "decoder": "ssru" if ssru else "self-attention",
        "norm": norm,
        "nonlinearity": nonlinearity,
        "positions": "sinusoidal-tensor2tensor",
        "zero_start": True,
    }


def _sizes(keys: Keys) -> list[int]:
    """Return the sizes of both vocabularies."""
    sizes = keys.values.get("dim-vocabs")
    if not isinstance(sizes, list) or len(sizes) != 2 or not all_are(int, sizes):
        keys.unsupported("dim-vocabs", sizes)
    return sizes


def _vocabulary(ids: dict[str, int], size: int, file: Path) -> Vocabulary:
    """Return a vocabulary in the order of our ids."""
    unknown, end = ids.get("<unk>"), ids.get("</s>")
    if unknown is None or end is None:
        raise UserError("has no <unk> or no </s>", file=file, fix="Is this the model's vocabulary?")
    return Vocabulary.of(ids, size, pad=None, unknown=unknown, start=None, end=end)


class _Weights:
    """Arrays by Marian's names, as tensors."""

    def __init__(self, arrays: dict[str, NDArray[Any]], file: Path) -> None:
        self.arrays, self.file = arrays, file

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def get(self, name: str) -> Tensor:
        """Return an array as a tensor.

        Raises:
            UserError: the array is missing, or has no floating-point numbers.
        """
        if name not in self.arrays:
            raise UserError(f"has no weights {name}", file=self.file, fix="Is this model of a kind that we have?")
        array = self.arrays[name]
        if array.dtype.kind != "f":
            raise UserError(
                f"has weights {name} of the type {array.dtype}", file=self.file, fix="Give float32 weights."
            )
        return torch.from_numpy(array.astype(np.float32))

    def layer(self, name: str) -> tuple[Tensor, Tensor]:
        """Return the weight and the bias of a layer by its name in `layers`; errors as for `get`."""
        if not name.endswith("_ln"):
            return self.get(name.format("W")).T, self.get(name.format("b")).flatten()
        # Marian adds `_pre` to the names of norms before a sublayer.
        suffix = "_pre" if f"{name}_scale_pre" in self else ""
        return self.get(f"{name}_scale{suffix}").flatten(), self.get(f"{name}_bias{suffix}").flatten()


def _renamed(
    weights: _Weights, keys: Keys, source: Vocabulary, target: Vocabulary, names: Names, *, shared: bool, tied: bool
) -> dict[str, Tensor]:
    """Return the weights by our names, given `names` of the layers."""
    source_matrix = weights.get("Wemb" if "Wemb" in weights else "encoder_Wemb")
    target_matrix = weights.get("Wemb" if shared else "decoder_Wemb")
    for matrix, size in zip((source_matrix, target_matrix), _sizes(keys), strict=True):
        if matrix.dim() != 2 or len(matrix) != size:
            raise UserError(f"has embeddings {list(matrix.shape)} for {size} pieces", file=weights.file)
    if tied:
        output = target_matrix
    elif "decoder_ff_logit_out_Wt" in weights:
        output = weights.get("decoder_ff_logit_out_Wt")
    else:
        output = weights.get("decoder_ff_logit_out_W").T
    bias = weights.get("decoder_ff_logit_out_b").flatten() if "decoder_ff_logit_out_b" in weights else None
    tensors = vocabulary_weights(
        source, target, {"source": source_matrix, "target": target_matrix, "output": output}, bias
    )
    tensors |= joined(names, weights.layer)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _units(weights: _Weights, decoder: Sequence[int]) -> dict[str, Tensor]:
    """Return the weights of SSRUs by our names: W_f and W are one matrix, and only W_f has a bias."""
    tensors = {}
    for ours, theirs in units(decoder):
        matrices = [weights.get(f"{theirs}_Wf").T, weights.get(f"{theirs}_W").T]
        tensors[f"{ours}.projection.weight"] = torch.cat(matrices)
        tensors[f"{ours}.forget_bias"] = weights.get(f"{theirs}_bf").flatten()
    return tensors


def _decoder_layers(keys: Keys) -> list[int]:
    """Return for each decoder layer the number of the layer whose weights it has, from 1."""
    depth = keys.number("dec-depth")
    numbers = range(1, depth + 1)
    tied = keys.values.get("transformer-tied-layers") or [*numbers[:256]]
    if not isinstance(tied, list) or len(tied) != depth or not all_are(int, tied) or not {*tied} <= {*numbers}:
        keys.unsupported("transformer-tied-layers", tied)
    return tied
