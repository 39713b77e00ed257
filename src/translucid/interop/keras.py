"""Read the weights of Keras' translation tutorials under the names of `torch.nn.Transformer`.

Two layouts are known: "English-to-Spanish translation with a sequence-to-sequence Transformer" of keras.io, and "Neural
machine translation with a Transformer and Keras" of TensorFlow. Both have post-norm blocks without a final norm, heads
that may be as wide as the model, and layer normalization with an epsilon of 0.001.

A `.keras` file is a zip file with the weights in HDF5; nothing of its `config.json` is executed or deserialized.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from bitext.reading import refuse_unsafe
from translucid.ground.errors import UserError, missing_package
from translucid.kernels.machine import refuse_more_than_memory

_WEIGHTS = "model.weights.h5"
"""The file of the weights in a `.keras` file."""
_FIX = (
    "Transformers of keras.io's and TensorFlow's translation tutorials can be imported: docs/tutorial-models.md#keras."
)
_PARTS = {
    "attention": "self_attn",  # keras.io: the layers of a block are its attributes
    "attention_1": "self_attn",
    "attention_2": "multihead_attn",
    "layernorm_1": "norm1",
    "layernorm_2": "norm2",
    "layernorm_3": "norm3",
    "dense_proj/layers/dense": "linear1",
    "dense_proj/layers/dense_1": "linear2",
    "self_attention/mha": "self_attn",  # TensorFlow: attention and feed-forward layers contain their norms
    "causal_self_attention/mha": "self_attn",
    "cross_attention/mha": "multihead_attn",
    "self_attention/layernorm": "norm1",
    "causal_self_attention/layernorm": "norm1",
    "cross_attention/layernorm": "norm2",
    "ffn/layer_norm": "norm of the feed-forward layer",
    "ffn/seq/layers/dense": "linear1",
    "ffn/seq/layers/dense_1": "linear2",
}
"""The layers of a block in both tutorials, with the names in `nn.Transformer`."""
_CROSS = "multihead_attn"


class KerasWeights(NamedTuple):
    """The weights of a model, and what they say."""

    tensors: dict[str, Tensor]
    """By the names in `nn.Transformer`; an unknown array under its own name."""
    heads: int
    of_tensorflow: bool
    """Whether the layout is that of TensorFlow's tutorial."""


Arrays: TypeAlias = dict[str, list[Tensor]]
"""The variables of each layer, by its path."""


def read_keras(file: Path) -> KerasWeights:
    """Read a `.keras` or a `.weights.h5` file.

    Raises:
        UserError: h5py is missing, the file is damaged or too large, or the model is of another kind.
    """
    layers = _read_layers(file)
    blocks = dict.fromkeys(_block_of(path) for path in layers if path.endswith("/query_dense"))
    tensors: dict[str, Tensor] = {}
    heads = set[int]()
    sides: dict[str, list[str]] = {"encoder": [], "decoder": []}
    for block in sorted(blocks, key=_in_order):
        parts = {path.removeprefix(f"{block}/").partition("/query_dense")[0] for path in layers if _is_in(path, block)}
        side = "decoder" if any(_PARTS.get(part) == _CROSS for part in parts) else "encoder"
        name = f"{side}.layers.{len(sides[side])}"
        sides[side].append(block)
        for path in [path for path in layers if _is_in(path, block)]:
            heads |= _take(tensors, layers, path, block, name, last_norm="norm3" if side == "decoder" else "norm2")
    if not sides["encoder"] or not sides["decoder"] or len(heads) != 1:
        names = ", ".join(sorted({path.split("/")[-1] for path in layers})[:12])
        counts = f"{len(sides['encoder'])} encoder and {len(sides['decoder'])} decoder blocks"
        what = f"has {counts} of the tutorials, with {len(heads)} numbers of heads; its layers are {names:.300}"
        raise UserError(what, file=file, fix=_FIX)
    _take_others(tensors, layers, blocks, sides["encoder"][0], sides["decoder"][0])
    return KerasWeights(tensors, heads.pop(), any("_layers/" in block for block in blocks))


def _is_in(path: str, block: str) -> bool:
    return path.startswith(f"{block}/")


def _block_of(path: str) -> str:
    """Return the path of a block, given that of the queries of one of its attentions."""
    attention = path.removesuffix("/query_dense")
    parent, _, name = attention.rpartition("/")
    return parent if name.startswith("attention") else parent.rpartition("/")[0]


def _in_order(path: str) -> tuple[str, int]:
    """Return a key that sorts names as Keras numbers them: `layer`, `layer_1`, .. `layer_10`."""
    name, _, number = path.rpartition("_")
    return (name, int(number)) if number.isdecimal() and len(number) < 6 else (path, 0)


def _take(tensors: dict[str, Tensor], layers: Arrays, path: str, block: str, name: str, *, last_norm: str) -> set[int]:
    """Put the variables of a layer of a block, which is called `name`, into `tensors`; return the number of heads."""
    part, _, dense = path.removeprefix(f"{block}/").partition("/mha/")
    if dense:
        part += "/mha"
    elif path.endswith("_dense"):
        part, _, dense = part.rpartition("/")
    theirs = _PARTS.get(part)
    variables = layers[path]
    if theirs is None or not 1 <= len(variables) <= 2:
        tensors[path] = variables[0]
        return set()
    theirs = last_norm if theirs.startswith("norm of") else theirs
    if not theirs.startswith(("norm", "linear")):
        return _take_attention(tensors, layers, path, dense, f"{name}.{theirs}")
    tensors[f"{name}.{theirs}.weight"] = variables[0] if variables[0].dim() == 1 else variables[0].T
    if len(variables) == 2:
        tensors[f"{name}.{theirs}.bias"] = variables[1]
    return set()


def _take_attention(tensors: dict[str, Tensor], layers: Arrays, path: str, dense: str, name: str) -> set[int]:
    """Do the same for a layer of an attention: [D, H, d] for queries, keys and values, and [H, d, D] for the output."""
    variables = layers[path]
    if variables[0].dim() != 3:
        tensors[path] = variables[0]
        return set()
    if dense == "output_dense":
        tensors[f"{name}.out_proj.weight"] = variables[0].flatten(0, 1).T
        if len(variables) == 2:
            tensors[f"{name}.out_proj.bias"] = variables[1]
    if dense != "query_dense":  # which takes keys and values along
        return set()
    three = [layers.get(path.replace("query_dense", f"{kind}_dense"), []) for kind in ("query", "key", "value")]
    if all(len(layer) == len(variables) for layer in three):
        tensors[f"{name}.in_proj_weight"] = torch.cat([layer[0].flatten(1).T for layer in three])
        if len(variables) == 2:
            tensors[f"{name}.in_proj_bias"] = torch.cat([layer[1].flatten() for layer in three])
    return {variables[0].shape[1]}


def _take_others(tensors: dict[str, Tensor], layers: Arrays, blocks: Iterable[str], encoder: str, decoder: str) -> None:
    """Put embeddings, positions and the output into `tensors`, given the path of a block of each side."""
    others = sorted((path for path in layers if not any(_is_in(path, block) for block in blocks)), key=_in_order)
    groups: dict[str, list[str]] = {"embedding.weight": [], "positions": [], "output": []}
    for path in others:
        last = path.rpartition("/")[2]
        if last.startswith("position"):
            groups["positions"].append(path)
        elif "embedding" in last:
            groups["embedding.weight"].append(path)
        elif len(layers[path]) == 2:
            groups["output"].append(path)
        else:
            tensors[path] = layers[path][0]
    for kind in ("embedding.weight", "positions"):
        # The sides are nested differently, or in the order of the model.
        paths = sorted(groups[kind], key=lambda path: _common_parts(path, decoder) - _common_parts(path, encoder))
        for side, path in zip(("source", "target"), paths, strict=False):
            tensors[f"{side}_{kind}"] = layers[path][0]
        tensors.update((path, layers[path][0]) for path in paths[2:])
    for path in groups["output"]:
        name = "output" if len(groups["output"]) == 1 else path
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = layers[path][0].T, layers[path][1]


def _common_parts(path: str, other: str) -> int:
    """Return the number of parts with which both paths begin."""
    pairs = zip(path.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _read_layers(file: Path) -> Arrays:
    """Read all arrays of numbers, after checking that they are in the file, and in no other file that it names."""
    if find_spec("h5py") is None:
        raise missing_package("reading a file of Keras", "h5py", "keras")
    h5py: Any = import_module("h5py")
    if not file.exists():
        raise UserError("is missing", file=file)
    refuse_unsafe(file, file.parent)
    refuse_more_than_memory(2 * file.stat().st_size, file)
    variables: dict[str, dict[int, Tensor]] = {}
    try:
        content = file.read_bytes()
        if file.suffix == ".keras":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                refuse_more_than_memory(2 * archive.getinfo(_WEIGHTS).file_size, file)
                content = archive.read(_WEIGHTS)

        def read(path: str, item: Any) -> None:
            if not isinstance(item, h5py.Dataset) or "optimizer/" in path:
                return
            if item.external or item.is_virtual or item.nbytes > len(content) or item.dtype.kind != "f":
                raise UserError(
                    f"{path:.80} is no array of numbers in this file", file=file, fix="Save the model again."
                )
            layer, _, number = path.partition("/vars/")
            if number.isdecimal() and item.size:
                variables.setdefault(layer, {})[int(number)] = torch.from_numpy(item[()]).float()

        with h5py.File(io.BytesIO(content), "r") as opened:
            opened.visititems(read)
    except (OSError, RuntimeError, KeyError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise UserError(
            f"is damaged, or no file of Keras 3 ({error})", file=file, fix="Save the model again."
        ) from error
    layers = {}
    for layer, numbered in variables.items():
        layers[layer] = [numbered[number] for number in sorted(numbered)]
    return layers
