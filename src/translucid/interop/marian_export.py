"""Export a Transformer to a folder for Marian: `model.npz`, its vocabularies, and `decoder.yml`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import refuse_to_lose, whole_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.marian import CONFIGURATION, NONLINEARITIES, layers
from translucid.interop.pieces import pieces_of
from translucid.models.model_options import TransformerOptions
from translucid.models.protocol import SequenceModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_END, _UNKNOWN = 0, 1
"""The rows of Marian's special pieces."""
_NEEDED = {"positions": "sinusoidal-tensor2tensor", "first_position": 0, "scale_embeddings": True, "zero_start": True}
"""The only options that Marian supports."""

HOLDS = "decoder.yml", "a model of Marian"
"""A file by which an exported folder is recognised, and the name of its kind."""


def export_marian(model: SequenceModel, tokenizer: Tokenizer, out: Path, *, beam: int, overwrite: bool = False) -> None:
    """Write a folder for Marian atomically.

    Raises:
        UserError: Marian computes another function than this model, or the folder exists already or can't be written.
    """
    refuse_to_lose(out, overwrite, *HOLDS)
    with whole_folder(out) as half:
        save_marian(model, tokenizer, half, beam=beam)


def save_marian(model: SequenceModel, tokenizer: Tokenizer, folder: Path, *, beam: int = 5) -> None:
    """Write a model into a folder for `marian-decoder -c decoder.yml`, which reads and writes plain text.

    Raises:
        UserError: Marian computes another function than this model.
    """
    options = model.options
    if not isinstance(options, TransformerOptions) or options.elmo:
        raise UserError("only a Transformer can become a model of Marian", fix="Use it as it is.")
    for name, value in _NEEDED.items():
        if getattr(options, name) != value:
            what = f"model.{name}={getattr(options, name)} is another function than Marian computes"
            settings = [f"model.{key}={needed}".replace("True", "true") for key, needed in _NEEDED.items()]
            raise UserError(what, fix=f"Train with --set {' '.join(settings)} for it.")
    if options.nonlinearity not in NONLINEARITIES:
        raise UserError(f"Marian has no model.nonlinearity={options.nonlinearity}", fix="Train with relu or swish.")
    if tokenizer.source_opening or tokenizer.target_opening:
        raise UserError("Marian's vocabularies do not tell languages", fix="Use --to huggingface.")
    folder.mkdir(parents=True, exist_ok=True)
    names = ["vocab"] if tokenizer.joint else ["source", "target"]
    for name, sentencepiece in zip(names, tokenizer.models, strict=True):
        write_atomically(folder / f"{name}.spm", _reordered(sentencepiece))
    files = [f"{names[0]}.spm", f"{names[-1]}.spm"]
    # Marian has neither padding nor start token.
    sizes = [tokenizer.source_size - 2, tokenizer.target_size - 2]
    weights = {name: parameter.detach().float().numpy() for name, parameter in model.named_parameters()}
    arrays = _arrays(weights, options)
    text = yaml.safe_dump(_configuration(options, sizes), sort_keys=False)
    arrays[CONFIGURATION] = np.frombuffer(text.encode() + b"\0", np.int8)
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


def _reordered(model: bytes) -> bytes:
    """Return a SentencePiece model without padding and start, the end token first and the unknown one second."""
    parsed = pieces_of(model, Path("tokenizer.model"))
    pieces = list(parsed.pieces)
    kept = [pieces[SPECIAL.end], pieces[SPECIAL.unknown], *pieces[len(SPECIAL) :]]
    del parsed.pieces[:]
    parsed.pieces.extend(kept)
    spec = parsed.trainer_spec
    spec.eos_id, spec.unk_id, spec.pad_id, spec.bos_id, spec.vocab_size = _END, _UNKNOWN, -1, -1, len(kept)
    return parsed.SerializeToString()


def _rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of a vocabulary in Marian's order."""
    return np.concatenate([matrix[[SPECIAL.end, SPECIAL.unknown]], matrix[len(SPECIAL) :]])


def _arrays(weights: Mapping[str, NDArray[Any]], options: TransformerOptions) -> dict[str, NDArray[Any]]:
    """Return the weights by Marian's names, matrices as inputs times outputs."""
    found: dict[str, NDArray[Any]] = {}
    source = _rows(weights["source_embedding.tokens.weight"])
    if options.share_embeddings:
        found["Wemb"] = source
    else:
        found["encoder_Wemb"] = source
        found["decoder_Wemb"] = _rows(weights["target_embedding.tokens.weight"])
    if not options.tie_output:
        found["decoder_ff_logit_out_W"] = np.ascontiguousarray(_rows(weights["output.weight"]).T)
    found["decoder_ff_logit_out_b"] = _rows(weights["output.bias"])[None]
    behind = "_pre" if options.norm == "pre" else ""
    for name, theirs, what in layers(options.encoder_layers, range(1, options.decoder_layers + 1)):
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        if what == "W":
            matrices, vectors = np.split(weight, len(theirs)), np.split(bias, len(theirs))
            for part, matrix, vector in zip(theirs, matrices, vectors, strict=True):
                found[part.format("W")] = np.ascontiguousarray(matrix.T)
                found[part.format("b")] = vector[None]
        else:
            found[f"{theirs[0]}_scale{behind}"], found[f"{theirs[0]}_bias{behind}"] = weight[None], bias[None]
    if options.norm == "pre":
        for side in ("encoder", "decoder"):
            found[f"{side}_top_ln_scale"] = weights[f"{side}_norm.weight"][None]
            found[f"{side}_top_ln_bias"] = weights[f"{side}_norm.bias"][None]
    return found


def _configuration(options: TransformerOptions, sizes: Sequence[int]) -> dict[str, Any]:
    """Return Marian's configuration of a model, with every option that its decoder requires."""
    pre = options.norm == "pre"
    return {
        "type": "transformer",
        "version": "v1.12.0",
        "dim-vocabs": list(sizes),
        "dim-emb": options.width,
        "dim-rnn": options.width,
        "lemma-dim-emb": 0,
        "lemma-dependency": "",
        "factors-combine": "sum",
        "factors-dim-emb": 0,
        "enc-depth": options.encoder_layers,
        "dec-depth": options.decoder_layers,
        "transformer-heads": options.heads,
        "transformer-no-projection": False,
        "transformer-no-bias": False,
        "transformer-no-affine": False,
        "transformer-rnn-projection": False,
        "transformer-pool": False,
        "transformer-dim-ffn": options.feed_forward,
        "transformer-decoder-dim-ffn": 0,
        "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 0,
        "transformer-ffn-activation": options.nonlinearity,
        "transformer-dim-aan": options.feed_forward,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": options.nonlinearity,
        "transformer-aan-nogate": False,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-tied-layers": [],
        "transformer-guided-alignment-layer": "last",
        "transformer-preprocess": "n" if pre else "",
        "transformer-postprocess": "da" if pre else "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n" if pre else "",
        "transformer-train-position-embeddings": False,
        "transformer-depth-scaling": False,
        "tied-embeddings": options.tie_output and not options.share_embeddings,
        "tied-embeddings-src": options.share_embeddings and not options.tie_output,
        "tied-embeddings-all": options.share_embeddings and options.tie_output,
        "output-omit-bias": False,
        "layer-normalization": False,
        "bert-train-type-embeddings": True,
        "bert-type-vocab-size": 2,
        "char-conv": 0,
        "input-types": [],
        "ulr": False,
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
    }
