"""Export a translator to a folder of web pages: it translates in the visitor's browser, from a server or from files.

Pages that are opened as files can load scripts but no data, so the weights are in a script, in base64.

    s_i = 127 / max_j |W_ij|,    Q_ij = round(s_i W_ij)

Matrices are stored as 8-bit integers Q with a scale s for each row, biases and norms as float32.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from copy import deepcopy
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bitext.languages import english_name, usual_code
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.atomic import export_folder, write_atomically
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.rendering.bundling import WEB, bundle
from translucid.inspection.rendering.html import document
from translucid.inspection.rendering.message_catalogs import LOADER, page_scripts
from translucid.interop.pieces import pieces_of
from translucid.interop.web.scripts import ENGINE, PAGE
from translucid.layers.quantized import quantized, row_scales
from translucid.models.model_options import Choices, RecurrentOptions, TransformerOptions, unknown_option
from translucid.models.model_shape import ModelShape
from translucid.models.protocol import SequenceModel

MARKER = "model.js", "a web page of a model"
"""A file by which an exported folder is recognized, and the name of its kind."""
_DECLARATION = re.compile(r"^(?:class|const|function) (\w+)", re.MULTILINE)
STYLES = WEB / "tokens.css", WEB / "inspector.css", PAGE / "page.css", PAGE / "pass.css"
_SHAPES: Mapping[type[ModelShape], Choices] = {
    TransformerOptions: {
        "decoder": ("self-attention",),
        "nonlinearity": ("relu", "swish"),
        "norm": ("pre", "post"),
        "positions": ("sinusoidal",),
        "first_position": range(1 << 20),
        "scale_embeddings": (False, True),
    },
    RecurrentOptions: {
        "attention": ("bahdanau",),
        "cell": ("gru",),
        "bidirectional": (True,),
    },
}
"""The kinds of models that the scripts compute, and the values of their options."""
_SEARCH = ("beam", "length_penalty", "min_length", "max_length_ratio", "max_length_extra", "max_loops")
"""The options of the search that the scripts follow."""


def export_web(
    model: SequenceModel,
    tokenizer: Tokenizer,
    out: Path,
    *,
    decoding: DecodingOptions,
    longest: int,
    languages: tuple[str | None, str | None],
    name: str,
    package_version: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a folder with a page that translates and shows attention, heads and the beam search, atomically.

    Args:
        model: a Transformer or a translator with Bahdanau's attention.
        tokenizer: the model's tokenizer.
        out: the folder.
        decoding: the options of the search.
        longest: the largest number of source tokens that the model reads at once, end token included.
        languages: the codes of source and target, if known.
        name: the name of the run, for the lines of code on the page.
        package_version: the commit or the version of this package that trained the run, for the captions of pictures.
        overwrite: whether to replace an existing export.

    Raises:
        UserError: the scripts can't compute the model, or the folder exists already or can't be written.
    """
    with export_folder(out, overwrite, *MARKER) as folder:
        refuse_other_models(model, tokenizer, decoding)
        record = model_record(model, tokenizer, decoding, longest)
        known = [code or "" for code in languages]
        # Browsers accept only standard codes: `pt-BR`, but neither `pt_BR` nor `por_Latn`.
        record |= {"name": name, "package_version": package_version}
        record["languages"] = [usual_code(code) or "" for code in known]
        record["language_names"] = [english_name(code) for code in known]
        (folder / "engine").mkdir()
        for script in ENGINE:
            write_atomically(folder / "engine" / script, (PAGE / "engine" / script).read_bytes())
        (folder / "languages").mkdir()
        for script, text in page_scripts().items():
            write_atomically(folder / script, text.encode())
        write_atomically(folder / "page.js", _page_script().encode())
        write_atomically(folder / MARKER[0], f"const MODEL = {json.dumps(record, ensure_ascii=False)};\n".encode())
        write_atomically(folder / "index.html", _page(record["language_names"]).encode())


def refuse_other_models(model: SequenceModel, tokenizer: Tokenizer, decoding: DecodingOptions) -> None:
    """Check that the scripts compute the same as a model, read the same pieces, and search by the same rules.

    Raises:
        UserError: they do not.
    """
    options = model.options
    shape = _SHAPES.get(type(options))
    if shape is None:
        what = f"model.kind={options.model_dump()['kind']} does not run in the browser"
        raise UserError(what, fix="Export a Transformer or an rnn-bahdanau model.")
    key = unknown_option(options, shape)
    if isinstance(options, RecurrentOptions) and options.layers > 1:
        key = "layers"
    if key:
        value, values = getattr(options, key), shape.get(key, [type(options).model_fields[key].default])
        what = f"model.{key}={_yaml(value)} does not run in the browser"
        raise UserError(what, fix=f"Train with model.{key}={' or '.join(map(_yaml, values))} for it.")
    if decoding.no_repeat_ngram:
        what = f"decoding.no_repeat_ngram={decoding.no_repeat_ngram} is not a rule of the search in the browser"
        raise UserError(what, fix="Set it to 0 in the run's config.yaml.")
    if tokenizer.source_opening or tokenizer.target_opening:
        raise UserError("a multilingual model does not run in the browser", fix="Train one for a single pair.")
    for content in tokenizer.models:
        _refuse_other_tokenizers(pieces_of(content, Path("tokenizer.model")))


def _yaml(value: object) -> str:
    """Return a value as it is written in YAML."""
    return json.dumps(value).strip('"')


def _refuse_other_tokenizers(parsed: Any) -> None:
    """Check that the scripts tokenize text as a SentencePiece model does."""
    spec, kinds = parsed.normalizer_spec, parsed.SentencePiece
    if parsed.trainer_spec.model_type != parsed.trainer_spec.BPE:
        raise UserError(
            "only vocabularies of the kind bpe run in the browser", fix="Train with data.tokenizer.kind=bpe."
        )
    if any(piece.type == kinds.USER_DEFINED for piece in parsed.pieces):
        what = (
            "a model with reserved pieces, such as those of placeholders, terms or context, does not run in the browser"
        )
        raise UserError(what, fix="Train without data.placeholders, data.terms, data.fuzzy_matches and data.context.")
    usual_spaces = spec.add_dummy_prefix and spec.remove_extra_whitespaces and spec.escape_whitespaces
    other_pieces = any("▁" in piece.piece[1:] or piece.type in (kinds.UNUSED, kinds.BYTE) for piece in parsed.pieces)
    if (
        not usual_spaces
        or other_pieces
        or parsed.trainer_spec.treat_whitespace_as_suffix
        or parsed.HasField("denormalizer_spec")
    ):
        what = "the SentencePiece model treats spaces or rare pieces differently from those that are trained here"
        raise UserError(what, fix="Export a run that was trained here with its own vocabulary.")


def rounded(model: SequenceModel) -> SequenceModel:
    """Return a copy of a model whose matrices are those of an export, Q / s."""
    model = deepcopy(model)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.copy_(quantized(weight))
    return model


def model_record(model: SequenceModel, tokenizer: Tokenizer, decoding: DecodingOptions, longest: int) -> dict[str, Any]:
    """Return what the scripts need: options, vocabularies, rules of the search, and weights."""
    options = model.options.model_dump(mode="json")
    options["scale"] = float(options["width"] ** 0.5) if options.get("scale_embeddings", True) else 1.0
    search = {key: getattr(decoding, key) for key in _SEARCH}
    never = [SPECIAL.pad, SPECIAL.start, SPECIAL.unknown]
    return {
        "options": options,
        "search": search | {"start": SPECIAL.start, "end": SPECIAL.end, "never": never},
        "longest": longest,
        "tokenizers": list(map(_vocabulary, tokenizer.models)),
        **_weights(model),
    }


def _vocabulary(content: bytes) -> dict[str, Any]:
    """Return the pieces of a SentencePiece model and its rules of normalization."""
    parsed = pieces_of(content, Path("tokenizer.model"))
    control = [i for i, piece in enumerate(parsed.pieces) if piece.type == parsed.SentencePiece.CONTROL]
    return {
        "pieces": [piece.piece for piece in parsed.pieces],
        "scores": [piece.score for piece in parsed.pieces],
        "control": control,
        "rules": b64encode(parsed.normalizer_spec.precompiled_charsmap).decode(),
    }


def _weights(model: SequenceModel) -> dict[str, Any]:
    """Return the names and sizes of all weights, other names of shared ones, and all numbers: floats, then integers."""
    names: dict[Tensor, str] = {}
    aliases, weights = {}, []
    floats, integers = b"", b""
    for name, weight in model.named_parameters(remove_duplicate=False):
        if weight in names:
            aliases[name] = names[weight]
            continue
        names[weight] = name
        values = weight.detach().float()
        if values.dim() == 2:
            scales = row_scales(values)
            integers += (values * scales).round().to(torch.int8).numpy().tobytes()
            weights.append([name, *values.shape])
            values = scales[:, 0]
        else:
            weights.append([name, len(values), None])
        floats += values.numpy().astype("<f4").tobytes()
    return {"weights": weights, "aliases": aliases, "data": b64encode(floats + integers).decode()}


def _page_script() -> str:
    """Return the script of the page, after a table of what the engine declares: it makes a worker of it."""
    scripts = [(PAGE / "engine" / script).read_text(encoding="utf-8") for script in ENGINE]
    names = [name for script in scripts for name in _DECLARATION.findall(script)]
    return f"const ENGINE = {{ {', '.join(names)} }};\n{bundle('page.js', [PAGE, WEB])}"


def _page(language_names: list[str]) -> str:
    """Return the page, which loads the scripts."""
    style = "".join(path.read_text(encoding="utf-8") for path in STYLES[1:])
    scripts = [f"engine/{name}" for name in ENGINE] + [MARKER[0], "page.js"]
    body = (PAGE / "page.html").read_text(encoding="utf-8")
    body += f'<script src="{LOADER}"></script>\n'
    body += "".join(f'<script defer src="{script}"></script>\n' for script in scripts)  # after the catalog
    pair = " to ".join(filter(None, language_names))
    return document(f"Translate {escape(pair)}".strip(), style, body)
