"""Export runs to Hugging Face folders, which `AutoModelForSeq2SeqLM` and `AutoTokenizer` load, with the same logits.

| a run with | becomes |
| --- | --- |
| layer normalisation behind each sublayer | MarianMT |
| it in front | Pegasus, the same architecture with that difference, with MarianMT's tokenizer |
| it in front, and the positions of M2M100 | M2M100 or NLLB |

The positions of the first two have all sines first, then all cosines; the channels of runs that were trained with
alternating ones are reordered (`channels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid import __version__
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import refuse_to_lose, whole_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.channels import sines_first
from translucid.interop.huggingface_card import model_card
from translucid.interop.huggingface_names import SIDES, block_names, last_norm
from translucid.interop.huggingface_rows import Rows, fairseq_rows, kept, marian_rows
from translucid.interop.huggingface_tokenizer import save_fairseq, save_json, save_marian
from translucid.interop.pieces import NEVER
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import Configuration

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import SequenceModel

HOLDS = "generation_config.json", "a model of Hugging Face"
"""A file by which an exported folder is recognised, and the name of its kind."""
_CLASSES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}
_ELSEWHERE = "Use --to ctranslate2."


def export_huggingface(
    model: SequenceModel, tokenizer: Tokenizer, configuration: Configuration, out: Path, *, overwrite: bool = False
) -> str:
    """Write a folder atomically.

    Args:
        model: a translator.
        tokenizer: the model's tokenizer.
        configuration: the configuration of the run.
        out: the folder.
        overwrite: whether to replace an existing export.

    Returns:
        The name of the class in `transformers`.

    Raises:
        UserError: the model is of a kind that can't be exported, or the folder exists already or can't be written.
    """
    from safetensors.torch import save

    from translucid.layers.positions import sinusoidal_positions

    refuse_to_lose(out, overwrite, *HOLDS)
    kind = _kind(configuration)
    options = configuration.model
    assert isinstance(options, TransformerOptions)
    tensors = {name: tensor.detach().float().cpu() for name, tensor in model.state_dict().items()}
    if options.positions == "sinusoidal":
        tensors = sines_first(tensors, options.width)
    layout = _layout(kind, tokenizer, configuration, options, tensors)
    longest = max(configuration.data.max_tokens, 512)
    languages = configuration.data.languages
    pieces = configuration.data.tokenizer.languages
    with whole_folder(out) as folder:
        if kind == "m2m_100":
            rows = layout.rows["target"]
            names = sorted(pieces.values(), key=rows.vocabulary.__getitem__)
            save_fairseq(folder, tokenizer, rows, names, longest=longest, languages=languages)
        else:
            save_marian(folder, tokenizer, layout.rows, longest=longest, languages=languages)
        config = _config(kind, options, layout, longest)
        save_json(folder / "config.json", config)
        save_json(folder / HOLDS[0], _generation(configuration, layout, longest))
        theirs = _renamed(tensors, options, layout)
        if kind == "m2m_100":
            del theirs["final_logits_bias"]  # all zeros, which this class does not have
        if kind == "pegasus":  # the class computes the table as well, but warns if it is missing
            table = sinusoidal_positions(longest, options.width, kind="sinusoidal-halves")
            theirs |= {f"model.{side}.embed_positions.weight": table.clone() for side in SIDES}
        write_atomically(folder / "model.safetensors", save(theirs, {"format": "pt"}))
        card = model_card(_CLASSES[kind], languages, pieces, by_language=kind == "m2m_100", made_by=__version__)
        write_atomically(folder / "README.md", card.encode())
    return _CLASSES[kind]


def _kind(configuration: Configuration) -> str:
    """Return the `model_type` for a run.

    Raises:
        UserError: no class of `transformers` has such a model.
    """
    o = configuration.model
    if not isinstance(o, TransformerOptions):
        raise UserError(f"a model of the kind {o.kind} has none like it at Hugging Face", fix="Use it as it is.")
    if o.elmo:
        raise UserError("Hugging Face has no translator that reads its source with ELMo", fix="Use the model as it is.")
    many = configuration.data.tokenizer.told == "each on its own side" and bool(configuration.data.tokenizer.languages)
    if o.positions == "sinusoidal-tensor2tensor" and o.norm == "pre" and many:
        kind, first = "m2m_100", 2
    elif o.positions in ("sinusoidal", "sinusoidal-halves") and not many:
        kind, first = ("marian" if o.norm == "post" else "pegasus"), 0
    else:
        what = f"model.positions={o.positions} with model.norm={o.norm}"
        raise UserError(f"Hugging Face has no translator with {what}", fix=_ELSEWHERE)
    if o.first_position != first:
        raise UserError(f"{_CLASSES[kind]} has no model.first_position={o.first_position}", fix=_ELSEWHERE)
    if kind != "marian" and not o.share_embeddings:
        raise UserError(f"{_CLASSES[kind]} has no model.share_embeddings=false", fix=_ELSEWHERE)
    return kind


@dataclass(frozen=True)
class _Layout:
    """The rows of an exported model."""

    rows: dict[str, Rows]
    """The vocabulary of each side; the same object if both share it."""
    zero_start: bool
    """Whether the embedding of the start token has to become zero."""


def _layout(
    kind: str,
    tokenizer: Tokenizer,
    configuration: Configuration,
    options: TransformerOptions,
    tensors: dict[str, Tensor],
) -> _Layout:
    """Return the order of the rows.

    Raises:
        UserError: M2M100's tokenizer or class has nothing like it.
    """
    source, target = tensors["source_embedding.tokens.weight"], tensors["target_embedding.tokens.weight"]
    bias = tensors["output.bias"]
    many = kept(target, bias)
    named = tokenizer.target_pieces(range(many))
    if kind == "m2m_100":
        same_start = bool((target[SPECIAL.start] == target[SPECIAL.end]).all())
        rows = fairseq_rows(named, [*configuration.data.tokenizer.languages.values()], same_start=same_start)
        said = [our_id for our_id in rows.ids if our_id not in (SPECIAL.pad, SPECIAL.start)]  # see `_generation`
        if options.zero_start or bias[said].any():
            raise UserError("M2M100 adds no bias to its logits, and this model has learned one", fix=_ELSEWHERE)
        return _Layout({"source": rows, "target": rows}, False)
    if options.share_embeddings:
        rows = marian_rows(named, as_opus=options.zero_start)
        return _Layout({"source": rows, "target": rows}, options.zero_start)
    read = kept(source)
    as_opus = options.zero_start and read == many  # otherwise padding would have different rows on the two sides
    both = {
        "source": marian_rows(tokenizer.source_pieces(range(read)), as_opus=as_opus),
        "target": marian_rows(named, as_opus=as_opus),
    }
    return _Layout(both, options.zero_start)


def _config(kind: str, o: TransformerOptions, layout: _Layout, longest: int) -> dict[str, Any]:
    """Return the content of config.json."""
    source, target = layout.rows["source"], layout.rows["target"]
    shape: dict[str, Any] = {}
    for side, layers in zip(SIDES, (o.encoder_layers, o.decoder_layers), strict=True):
        shape |= {f"{side}_layers": layers, f"{side}_attention_heads": o.heads, f"{side}_ffn_dim": o.feed_forward}
        shape[f"{side}_layerdrop"] = 0.0
    if kind == "marian":
        shape |= {"decoder_vocab_size": len(target.ids), "share_encoder_decoder_embeddings": source is target}
    return {
        "architectures": [_CLASSES[kind]],
        "model_type": kind,
        "is_encoder_decoder": True,
        "vocab_size": len(source.ids),
        "d_model": o.width,
        **shape,
        "activation_function": o.nonlinearity,
        "dropout": o.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": o.scale_embeddings,
        "tie_word_embeddings": o.tie_output,
        "max_position_embeddings": longest,
        "pad_token_id": target.pad,
        "bos_token_id": None,
        "eos_token_id": target.end,
        "decoder_start_token_id": target.start,
        "forced_eos_token_id": target.end,
        "torch_dtype": "float32",
    }


def _generation(configuration: Configuration, layout: _Layout, longest: int) -> dict[str, Any]:
    """Return the defaults of `generate`, which are those of our search where it has the same options."""
    decoding, rows = configuration.decoding, layout.rows["target"]
    never = {rows.pad, rows.row(SPECIAL.unknown), rows.start} - {rows.end}
    return {
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "max_length": longest,
        "bad_words_ids": [[row] for row in sorted(never)],
        "pad_token_id": rows.pad,
        "eos_token_id": rows.end,
        "decoder_start_token_id": rows.start,
        "forced_eos_token_id": rows.end,
    }


def _renamed(ours: dict[str, Tensor], o: TransformerOptions, layout: _Layout) -> dict[str, Tensor]:
    """Return the weights by Hugging Face's names, under all names that a version of `transformers` expects."""
    source, target = layout.rows["source"], layout.rows["target"]
    read = ours["source_embedding.tokens.weight"][source.ids]
    written = ours["target_embedding.tokens.weight"][target.ids]
    projection, bias = ours["output.weight"][target.ids], ours["output.bias"][target.ids]
    if layout.zero_start:
        if o.tie_output and written[target.start].any():  # its logit changes, but the token is never output
            bias[target.start] = NEVER
        written[target.start] = 0.0
        if source is target:
            read[source.start] = 0.0
        if o.tie_output:
            projection[target.start] = 0.0
    theirs = {"model.encoder.embed_tokens.weight": read, "model.decoder.embed_tokens.weight": written}
    if source is target:
        theirs["model.shared.weight"] = read.clone()
    if not o.tie_output:
        theirs["lm_head.weight"] = projection
    theirs["final_logits_bias"] = bias[None]
    for side, layers in zip(SIDES, (o.encoder_layers, o.decoder_layers), strict=True):
        names: list[tuple[str, tuple[str, ...]]] = []
        for i in range(layers):
            names += block_names(side, i)
        if o.norm == "pre":
            norm, their_norm = last_norm(side)
            names.append((norm, (their_norm,)))
        for mine, parts in names:
            for what in ("weight", "bias"):
                for name, part in zip(parts, ours[f"{mine}.{what}"].chunk(len(parts)), strict=True):
                    theirs[f"{name}.{what}"] = part
    # Copies, since safetensors does not save tensors that share memory.
    return {name: tensor.contiguous().clone() for name, tensor in theirs.items()}
