"""Export a Transformer to a folder for Marian: `model.npz`, its vocabularies, and `decoder.yml`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import export_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.imported import separated
from translucid.interop.marian import CONFIGURATION, NONLINEARITIES, layers, units
from translucid.interop.pieces import pieces_of
from translucid.models.model_options import Choices, TransformerOptions, unknown_option
from translucid.models.protocol import SequenceModel

_OPTIONS = Path(__file__).with_name("marian_options.yml")
END, UNKNOWN = 0, 1
"""The rows of Marian's special pieces."""
_COMPUTED: Choices = {
    "decoder": ("self-attention", "ssru"),
    "norm": ("pre", "post"),
    "nonlinearity": NONLINEARITIES,
}
"""The choices that Marian has."""
_NEEDED = {"positions": "sinusoidal-tensor2tensor", "first_position": 0, "scale_embeddings": True, "zero_start": True}
"""The only options that Marian supports."""

MARKER = "decoder.yml", "a model of Marian"
"""A file by which an exported folder is recognized, and the name of its kind."""


def export_marian(model: SequenceModel, tokenizer: Tokenizer, out: Path, *, beam: int, overwrite: bool = False) -> None:
    """Write a folder for `marian-decoder -c decoder.yml`, which reads and writes plain text, atomically.

    Raises:
        UserError: Marian computes another function than this model, or the folder exists already or can't be written.
    """
    with export_folder(out, overwrite, *MARKER) as folder:
        refuse_other_functions(model, tokenizer)
        _save(model, tokenizer, folder, beam)


def refuse_other_functions(model: SequenceModel, tokenizer: Tokenizer) -> None:
    """Check that Marian computes the same as a model.

    Raises:
        UserError: it computes another function.
    """
    options = model.options
    if not isinstance(options, TransformerOptions) or options.elmo:
        raise UserError("only a Transformer can become a model of Marian", fix="Use it as it is.")
    for name, value in _NEEDED.items():
        if getattr(options, name) != value:
            what = f"model.{name}={getattr(options, name)} is another function than Marian computes"
            settings = [f"model.{key}={needed}".replace("True", "true") for key, needed in _NEEDED.items()]
            raise UserError(what, fix=f"Train with `settings={' '.join(settings)}` for it.")
    if options.nonlinearity not in NONLINEARITIES:
        raise UserError(f"Marian has no model.nonlinearity={options.nonlinearity}", fix="Train with relu or swish.")
    if key := unknown_option(options, {**_COMPUTED, **{name: [value] for name, value in _NEEDED.items()}}):
        raise UserError(f"Marian has no model.{key}={getattr(options, key)}", fix="Use `export_onnx`.")
    if tokenizer.source_opening or tokenizer.target_opening:
        raise UserError(
            "Marian reads no language pieces, and this model is multilingual", fix="Use `export_huggingface`."
        )


def _save(model: SequenceModel, tokenizer: Tokenizer, folder: Path, beam: int) -> None:
    options = model.options
    assert isinstance(options, TransformerOptions)
    names = ["vocab"] if tokenizer.joint else ["source", "target"]
    for name, sentencepiece in zip(names, tokenizer.models, strict=True):
        write_atomically(folder / f"{name}.spm", reordered(sentencepiece))
    files = [f"{names[0]}.spm", f"{names[-1]}.spm"]
    # Marian has neither padding nor start token.
    sizes = [tokenizer.source_size - 2, tokenizer.target_size - 2]
    arrays: dict[str, NDArray[Any]] = {**arrays_of(model)}
    arrays[CONFIGURATION] = np.frombuffer(configuration_text(options, sizes), np.int8)
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_atomically(folder / "model.npz", content.getvalue())
    decoder = {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": files,
        "beam-size": beam,
        "normalize": 1.0,
        "mini-batch": 16,
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
    }
    write_atomically(folder / "decoder.yml", yaml.safe_dump(decoder, sort_keys=False).encode())


def reordered(model: bytes) -> bytes:
    """Return a SentencePiece model without padding and start, the end token first and the unknown one second."""
    parsed = pieces_of(model, Path("tokenizer.model"))
    pieces = list(parsed.pieces)
    ordered_pieces = [pieces[SPECIAL.end], pieces[SPECIAL.unknown], *pieces[len(SPECIAL) :]]
    del parsed.pieces[:]
    parsed.pieces.extend(ordered_pieces)
    spec = parsed.trainer_spec
    spec.eos_id, spec.unk_id, spec.pad_id, spec.bos_id, spec.vocab_size = END, UNKNOWN, -1, -1, len(ordered_pieces)
    return parsed.SerializeToString()


def _rows(matrix: Tensor) -> Tensor:
    """Return the rows of a vocabulary in Marian's order."""
    return torch.cat([matrix[[SPECIAL.end, SPECIAL.unknown]], matrix[len(SPECIAL) :]])


def arrays_of(model: SequenceModel) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a Transformer by Marian's names, matrices as inputs times outputs."""
    options = model.options
    assert isinstance(options, TransformerOptions)
    weights = {name: parameter.detach().float() for name, parameter in model.named_parameters()}
    arrays: dict[str, Tensor] = {}
    source = _rows(weights["source_embedding.tokens.weight"])
    if options.share_embeddings:
        arrays["Wemb"] = source
    else:
        arrays["encoder_Wemb"] = source
        arrays["decoder_Wemb"] = _rows(weights["target_embedding.tokens.weight"])
    if not options.tie_output:
        arrays["decoder_ff_logit_out_W"] = _rows(weights["output.weight"]).T
    arrays["decoder_ff_logit_out_b"] = _rows(weights["output.bias"])[None]
    pre = options.norm == "pre"
    ssru, decoder = options.decoder == "ssru", range(1, options.decoder_layers + 1)
    names = layers(options.encoder_layers, decoder, pre=pre, ssru=ssru)
    for name, weight, bias in separated(names, weights):
        if name.endswith("_ln"):
            suffix = "_pre" if pre and "_top_" not in name else ""
            arrays[f"{name}_scale{suffix}"], arrays[f"{name}_bias{suffix}"] = weight[None], bias[None]
        else:
            arrays[name.format("W")], arrays[name.format("b")] = weight.T, bias[None]
    if ssru:
        for ours, theirs in units(decoder):
            arrays[f"{theirs}_Wf"], arrays[f"{theirs}_W"] = weights[f"{ours}.projection.weight"].T.chunk(2, 1)
            arrays[f"{theirs}_bf"] = weights[f"{ours}.forget_bias"][None]
    return {name: tensor.contiguous().numpy() for name, tensor in arrays.items()}


def configuration_text(options: TransformerOptions, sizes: Sequence[int]) -> bytes:
    """Return Marian's configuration of a model in the form of a model file: YAML that ends with NUL."""
    return yaml.safe_dump(_configuration(options, sizes), sort_keys=False).encode() + b"\0"


def _configuration(options: TransformerOptions, sizes: Sequence[int]) -> dict[str, Any]:
    """Return Marian's configuration of a model, with every option that its decoder requires."""
    pre = options.norm == "pre"
    configuration: dict[str, Any] = yaml.safe_load(_OPTIONS.read_text(encoding="utf-8"))
    if options.decoder == "ssru":
        configuration |= {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    return configuration | {
        "dim-vocabs": list(sizes),
        "dim-emb": options.width,
        "dim-rnn": options.width,
        "enc-depth": options.encoder_layers,
        "dec-depth": options.decoder_layers,
        "transformer-heads": options.heads,
        "transformer-dim-ffn": options.feed_forward,
        "transformer-ffn-activation": options.nonlinearity,
        "transformer-dim-aan": options.feed_forward,
        "transformer-aan-activation": options.nonlinearity,
        "transformer-preprocess": "n" if pre else "",
        "transformer-postprocess": "da" if pre else "dan",
        "transformer-postprocess-top": "n" if pre else "",
        "tied-embeddings": options.tie_output and not options.share_embeddings,
        "tied-embeddings-src": options.share_embeddings and not options.tie_output,
        "tied-embeddings-all": options.share_embeddings and options.tie_output,
    }
