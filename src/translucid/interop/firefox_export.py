"""Export a student to the files of Firefox's translations, which Bergamot's engines run: weights and inputs in 8 bits.

    y = round(a x) round(w W) / (a w) + b,    w = 127 / max |W|,    a = 127 / max |x|

Each matrix has its factor w. The factor a of its input x is measured on sentence pairs before the export, so that no
engine needs to compute it (`int8shiftAlphaAll` in the fork of Marian that Firefox runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.shortlist import Shortlist
from translucid.ground.atomic import export_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.marian import CONFIGURATION, Item, layers, model_file, quantized, shortlist_file, units
from translucid.interop.marian_export import (
    END,
    UNKNOWN,
    arrays_of,
    configuration_text,
    refuse_other_functions,
    reordered,
)
from translucid.interop.pieces import NEVER
from translucid.kernels.dispatch import reference_mode
from translucid.models.model_options import TransformerOptions
from translucid.models.protocol import SequenceModel

MARKER = "config.yml", "a model of Firefox"
"""A file by which an exported folder is recognized, and the name of its kind."""
MULTIPLE = 64
"""The engines multiply rows of a multiple of 64 numbers, the width of a register of AVX-512 in bytes."""
_COLUMNS = 8
"""The engines compute a multiple of 8 columns at once, also of the vocabulary."""
_OUTPUT, _JOINED = "output", ("key_value", "ssru.projection")
"""Our name of the output projection, and endings of our names of layers that are two matrices in Marian."""
_EMBEDDING, _BIAS = "Wemb", "decoder_ff_logit_out_b"
_SHAPE = {"decoder": "ssru", "norm": "post", "nonlinearity": "relu", "share_embeddings": True, "tie_output": True}
"""The only options that all of Firefox's engines support; they compute with SSRU decoders only."""

Ids = tuple[Sequence[int], Sequence[int]]
"""The ids of a source and of its translation, both with the end token."""


class Names(NamedTuple):
    """The names of the files: Firefox's contain the codes of both languages."""

    model: str
    vocabulary: str
    shortlist: str

    @classmethod
    def of(cls, languages: tuple[str | None, str | None]) -> Names:
        """Return the names for two languages.

        Raises:
            UserError: a language is unknown.
        """
        if not all(languages):
            what = "the languages are unknown, and the names of Firefox's files contain them"
            raise UserError(what, fix='Add `source="en"` `target="es"` (their codes).')
        pair = "".join(map(str, languages))
        return cls(f"model.{pair}.intgemm.alphas.bin", f"vocab.{pair}.spm", f"lex.50.50.{pair}.s2t.bin")


def export_firefox(
    model: SequenceModel,
    tokenizer: Tokenizer,
    out: Path,
    factors: Mapping[str, float],
    *,
    languages: tuple[str | None, str | None],
    shortlist: Shortlist | None = None,
    overwrite: bool = False,
) -> None:
    """Write a folder with Firefox's files, and `config.yml` for Bergamot's own programs, atomically.

    Args:
        model: a student.
        tokenizer: the model's tokenizer.
        out: the folder.
        factors: the factors of the inputs, which `input_factors` measures.
        languages: the codes of source and target.
        shortlist: the candidates for each sentence, if there is a list by source words.
        overwrite: whether to replace an existing export.

    Raises:
        UserError: Firefox's engines can't run the model, a language is unknown, or the folder exists already or can't
            be written.
    """
    with export_folder(out, overwrite, *MARKER) as folder:
        refuse_other_models(model, tokenizer)
        names = Names.of(languages)
        write_atomically(folder / names.model, model_file(_items(model, tokenizer, factors)))
        write_atomically(folder / names.vocabulary, reordered(tokenizer.models[0]))
        if shortlist:
            write_atomically(folder / names.shortlist, _shortlist(shortlist, tokenizer))
        configuration = _engine_configuration(names, with_shortlist=shortlist is not None)
        write_atomically(folder / MARKER[0], yaml.safe_dump(configuration, sort_keys=False).encode())


def refuse_other_models(model: SequenceModel, tokenizer: Tokenizer) -> None:
    """Check that Firefox's engines compute the same as a model.

    Raises:
        UserError: they can't run it.
    """
    refuse_other_functions(model, tokenizer)
    options = model.options
    assert isinstance(options, TransformerOptions)
    for name, value in _SHAPE.items():
        if getattr(options, name) != value:
            what = f"model.{name}={getattr(options, name)} is not supported by Firefox's engines"
            raise UserError(what.replace("False", "false"), fix="Train a student, or use `export_marian`.")
    if not tokenizer.joint:
        raise UserError("Firefox's format has one vocabulary here", fix="Train with data.tokenizer.joint=true.")
    for name in ("width", "feed_forward"):
        if getattr(options, name) % MULTIPLE:
            what = (
                f"model.{name}={getattr(options, name)} is not a multiple of {MULTIPLE}, as Firefox's engines need it"
            )
            raise UserError(what, fix="Use `export_marian`.")


def input_factors(model: SequenceModel, pairs: Sequence[Ids]) -> dict[str, float]:
    """Return the factor a = 127 / max |x| of the input of each linear layer, by our names, from teacher forcing."""
    largest: dict[str, float] = {}

    def visit(name: str, layer: nn.Module, inputs: tuple[Tensor]) -> None:
        largest[name] = max(largest.get(name, 0.0), inputs[0].abs().max().item())

    hooks = []
    for name, layer in _linear_layers(model):
        hooks.append(layer.register_forward_pre_hook(partial(visit, name)))
    try:
        with reference_mode(), torch.inference_mode():
            for source, target in pairs:  # one by one, as padding would count
                model(torch.tensor([source]), torch.tensor([[SPECIAL.start, *target[:-1]]]))
    finally:
        for hook in hooks:
            hook.remove()
    return {name: 127 / (value or 1) for name, value in largest.items()}


def simulated(model: SequenceModel, factors: Mapping[str, float]) -> SequenceModel:
    """Return a copy of a model that computes in float32 with the rounded weights and inputs of an export."""
    rounded = deepcopy(model)
    embedding = rounded.output.weight.data
    embedding[[SPECIAL.pad, SPECIAL.start]] = 0  # the export has no such rows
    matrices = [embedding]
    for name, layer in _linear_layers(rounded):
        if name != _OUTPUT:
            matrices += layer.weight.data.chunk(2 if name.endswith(_JOINED) else 1)
        layer.register_forward_pre_hook(partial(_round_input, factors[name]))
    for matrix in matrices:
        numbers, factor = quantized(matrix.numpy())
        matrix.copy_(torch.from_numpy(numbers / factor))
    return rounded


def _round_input(factor: float, layer: nn.Module, inputs: tuple[Tensor]) -> Tensor:
    return (inputs[0] * factor).round().clamp(-127, 127) / factor


def _linear_layers(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            yield name, module


def _items(model: SequenceModel, tokenizer: Tokenizer, factors: Mapping[str, float]) -> list[Item]:
    """Return the content of the model file."""
    options = model.options
    assert isinstance(options, TransformerOptions)
    arrays, matrix_factors = arrays_of(model), _factors_of_matrices(options, factors)
    padding = -len(arrays[_EMBEDDING]) % _COLUMNS
    arrays[_EMBEDDING] = np.pad(arrays[_EMBEDDING], ((0, padding), (0, 0)))
    arrays[_BIAS] = np.pad(arrays[_BIAS], ((0, 0), (0, padding)), constant_values=NEVER)
    items = []
    for name, array in arrays.items():
        if name in matrix_factors:
            items.append(Item.of_matrix(name, array, transposed=name != _EMBEDDING))
        else:
            items.append(Item.of_floats(name, array))
    # With a shortlist, the engines multiply by selected rows of the embeddings, a matrix without a name.
    matrix_factors["none"] = matrix_factors[_EMBEDDING]
    for name, factor in matrix_factors.items():
        items.append(Item.of_floats(f"{name}_QuantMultA", np.array([[factor]], np.float32)))
    size = len(arrays[_EMBEDDING])
    return [*items, Item.of_text(CONFIGURATION, configuration_text(options, [size, size]))]


def _factors_of_matrices(options: TransformerOptions, factors: Mapping[str, float]) -> dict[str, float]:
    """Return the factor of the input of each matrix, by Marian's names."""
    decoder = range(1, options.decoder_layers + 1)
    matrix_factors = {_EMBEDDING: factors[_OUTPUT]}
    for ours, theirs in layers(options.encoder_layers, decoder, pre=False, ssru=True):
        if ours in factors:
            matrix_factors |= {name.format("W"): factors[ours] for name in theirs}
    for ours, unit in units(decoder):
        matrix_factors[f"{unit}_W"] = matrix_factors[f"{unit}_Wf"] = factors[f"{ours}.projection"]
    return matrix_factors


def _shortlist(shortlist: Shortlist, tokenizer: Tokenizer) -> bytes:
    """Return the file of a shortlist, whose ids become the rows of Marian's vocabulary."""
    rows = {SPECIAL.end: END, SPECIAL.unknown: UNKNOWN}
    rows |= {number: number - 2 for number in range(len(SPECIAL), tokenizer.target_size)}
    by_source = {}
    for source, targets in shortlist.by_source.items():
        by_source[rows[source]] = [rows[target] for target in targets if target in rows]
    always = [rows[target] for target in shortlist.always if target in rows]
    return shortlist_file(tokenizer.source_size - 2, always, by_source, END)


def _engine_configuration(names: Names, *, with_shortlist: bool) -> dict[str, Any]:
    """Return the content of `config.yml`, with every option that Bergamot's programs require."""
    configuration = {
        "relative-paths": True,
        "models": [names.model],
        "vocabs": [names.vocabulary] * 2,
        "beam-size": 1,
        "normalize": 1.0,
        "word-penalty": 0,
        "max-length-break": 128,
        "mini-batch-words": 1024,
        "workspace": 128,
        "max-length-factor": 3.0,
        "skip-cost": True,
        "cpu-threads": 1,
        "quiet": True,
        "quiet-translation": True,
        "gemm-precision": "int8shiftAlphaAll",
        "alignment": "soft",
        "ssplit-mode": "sentence",
        "ssplit-prefix-file": "",
    }
    if with_shortlist:
        configuration["shortlist"] = [names.shortlist, False]
    return configuration
