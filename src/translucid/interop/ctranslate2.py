"""Import CTranslate2 folders: our own exports, and models from its converters for Transformers, OpenNMT and fairseq.

The folder must have the SentencePiece models beside the weights, which CTranslate2 itself does not need: ours have
them, `ct2-transformers-converter` copies them with `--copy_files`. If all pieces are characters, none are needed.
Positions are stored as a table, whose kind is found by comparison; without one, CTranslate2 computes OpenNMT-tf's.

`model.bin` is little-endian: version of the format; name and revision of the specification; the number of variables
and, for each, name, dimensions, type, number of bytes and content; the number of aliases and, for each, its name and
that of a variable. A text is preceded by its length, and ends with a zero byte, which is counted. Before version 4, the
size of a number stands for the type, before its count; before version 3, there are no aliases; before version 6, what
is in config.json now are variables. The file may be untrusted: every number is checked against its size. `Variables`
are the arrays in float32; each is used once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.reading import reading, refuse_unsafe
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.ctranslate2.conventions import ACTIVATIONS, SOURCE_END, layer_names
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.interop.hub import FAIRSEQ
from translucid.interop.imported import LONGEST_JSON, Imported, Keys, all_are, kind_of_positions, read_file, read_json
from translucid.interop.pieces import (
    Vocabulary,
    adapted_models,
    has_only_characters,
    languages_in,
    listed_model,
    read_sentencepiece,
    vocabulary_weights,
)
from translucid.kernels.machine import refuse_more_than_memory

_FIRST_REVISION, _REVISION = 2, 7
_HEADS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}
"""The names of the specification, with the number of heads where a file has none."""
PIECES = Path("pieces")
"""Given as the tokenizer: texts are already split into pieces of the vocabulary, between spaces."""
_BLANK = "<blank>"
"""The padding token of OpenNMT."""
_NONLINEARITIES = dict(zip(ACTIVATIONS.values(), ACTIVATIONS, strict=True))
"""Our names of the nonlinearities, by CTranslate2's numbers."""
_ACTIVATIONS = "RELU", "GELUTanh", "SWISH", "GELU", "GELUSigmoid", "Tanh", "Sigmoid"
"""CTranslate2's names of all activations, in the order of its numbers."""
OURS = "tokenizer.model", "source.model"
"""The files of which our own exports have one."""


def from_ctranslate2(folder: Path, tokenizer: Path | None = None) -> Imported:
    """Read a CTranslate2 folder.

    Args:
        folder: the folder.
        tokenizer: a SentencePiece model of both languages that is not in the folder, or `PIECES`.

    Raises:
        UserError: the folder is incomplete, damaged, or has a model of an unsupported kind.
    """
    file = folder / "model.bin"
    if tokenizer and _has_our_tokenizer(folder):
        raise UserError("has a tokenizer", file=folder, fix="Leave `tokenizer` out.")
    model_file = read_model_file(file)
    if model_file.specification not in _HEADS or not _FIRST_REVISION <= model_file.revision <= _REVISION:
        what = f"is a {model_file.specification[:50]!r} of revision {model_file.revision}, which is not supported"
        names = f"{', '.join(_HEADS)} of revisions {_FIRST_REVISION} to {_REVISION}"
        raise UserError(what, file=file, fix=f"Transformers that translate can be imported: {names}.")
    keys = _configuration(folder, model_file)
    if keys.values.get("layer_norm_epsilon") not in (None, 1e-5):
        keys.unsupported("layer_norm_epsilon", keys.values["layer_norm_epsilon"])
    variables = Variables(_as_in_last_revision(model_file), file)
    model, arrays = _network(variables)
    variables.refuse_unused()
    return _with_vocabulary(folder, keys, model, arrays, tokenizer)


def _has_our_tokenizer(folder: Path) -> bool:
    return any((folder / name).exists() for name in OURS)


def _configuration(folder: Path, model_file: ModelFile) -> Keys:
    """Return the keys of config.json; before version 6 of the format, they are flags in the file."""
    file = folder / "config.json"
    if model_file.version == VERSION:
        return Keys(read_json(file, 1 << 20), file)
    flags = {"with_source_bos": False, "with_source_eos": False, "with_target_bos": True}
    flags["user_decoder_start_tokens"] = False
    for name in flags:
        if name in model_file.variables:
            flags[name] = bool(model_file.variables.pop(name).any())
    start: str | None = SPELLINGS.start if flags["with_target_bos"] else SPELLINGS.end
    values = {
        "add_source_bos": flags["with_source_bos"],
        "add_source_eos": flags["with_source_eos"],
        "decoder_start_token": None if flags["user_decoder_start_tokens"] else start,
    }
    return Keys(values, folder / "model.bin")


def _as_in_last_revision(model_file: ModelFile) -> dict[str, NDArray[Any]]:
    """Return the arrays by the names of the last revision, with the numbers that the first ones do not have.

    Both sides had one number in common before revision 5.
    """
    arrays = dict(model_file.variables)
    for suffix in ("weight", "weight_scale"):
        if f"encoder/embeddings/{suffix}" in arrays:
            arrays[f"encoder/embeddings_0/{suffix}"] = arrays.pop(f"encoder/embeddings/{suffix}")
    if model_file.revision == _REVISION:
        return arrays
    numbers = {"num_heads": _HEADS[model_file.specification], "pre_norm": 1, "activation": 0}
    for name, default in numbers.items():
        value = arrays.pop(name, np.int8(default))
        for side in ("encoder", "decoder"):
            arrays.setdefault(f"{side}/{name}", np.asarray(value))
    for side in ("encoder", "decoder"):
        scaled = arrays.pop(f"{side}/embeddings/multiply_by_sqrt_depth", np.int8(1))
        arrays.setdefault(f"{side}/scale_embeddings", np.asarray(scaled))
    return arrays


def _network(variables: Variables) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Return the options of the model, and its weights by our names, with the rows of the vocabularies in the file."""
    arrays = {
        "source_embedding.tokens.weight": variables.array("encoder/embeddings_0/weight", 2),
        "target_embedding.tokens.weight": variables.array("decoder/embeddings/weight", 2),
    }
    width = arrays["source_embedding.tokens.weight"].shape[1]
    layers = {"encoder": variables.layers("encoder"), "decoder": variables.layers("decoder")}
    pre = bool(_shared_scalar(variables, "pre_norm"))
    norm = "pre" if pre else "post-final" if variables.has("encoder/layer_norm/gamma") else "post"
    names = [*layer_names(layers, final_norm=norm != "post")]
    variables.refuse_missing(_needed(names))
    arrays |= joined_arrays(variables, names, width)
    activation = int(_shared_scalar(variables, "activation"))
    if activation not in _NONLINEARITIES:
        name = _ACTIVATIONS[activation] if 0 <= activation < len(_ACTIVATIONS) else "unknown"
        what = f"has the activation {activation} ({name}), which is not supported"
        raise UserError(what, file=variables.file, fix=f"Supported are {', '.join(ACTIVATIONS)}.")
    model = {
        "kind": "transformer",
        "width": width,
        "heads": int(_shared_scalar(variables, "num_heads")),
        "feed_forward": len(arrays["encoder.0.feed_forward.inner.weight"]) if layers["encoder"] else 1,
        "encoder_layers": layers["encoder"],
        "decoder_layers": layers["decoder"],
        "norm": norm,
        "nonlinearity": _NONLINEARITIES[activation],
        "scale_embeddings": _scaled(variables, width),
        "zero_start": bool(variables.scalar("decoder/start_from_zero_embedding", 0)),
        "tie_output": np.array_equal(arrays["output.weight"], arrays["target_embedding.tokens.weight"]),
    }
    return model | _positions(variables, width, arrays), arrays


def _needed(names: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the names of the arrays of linear layers and norms that a file must have: biases may be missing."""
    for name, _ in names:
        parts = ("gamma", "beta") if name.endswith("layer_norm") else ("weight",)
        yield from (f"{name}/{part}" for part in parts)


def _shared_scalar(variables: Variables, name: str) -> float:
    """Return a number that both sides must have."""
    encoder_value, decoder_value = variables.scalar(f"encoder/{name}"), variables.scalar(f"decoder/{name}")
    if encoder_value != decoder_value:
        raise UserError(f"has another {name} on each side, which is not supported", file=variables.file)
    return encoder_value


def _scaled(variables: Variables, width: int) -> bool:
    """Return whether embeddings are multiplied by sqrt(D): the file has a flag, or the factor itself."""
    scaled = set()
    for side in ("encoder", "decoder"):
        name = f"{side}/scale_embeddings"
        value = variables.scalar(name)
        if not variables.is_flag(name):
            if value != 1 and abs(value - width**0.5) > 0.01:
                raise UserError(
                    f"has the factor {value:g} at its embeddings, which is not supported", file=variables.file
                )
            value = float(value != 1)
        scaled.add(bool(value))
    if len(scaled) > 1:
        raise UserError("scales embeddings of one side only, which is not supported", file=variables.file)
    return scaled.pop()


def _positions(variables: Variables, width: int, arrays: dict[str, NDArray[np.float32]]) -> dict[str, Any]:
    """Return the options of the positions; learned positions are added to the weights."""
    name = "position_encodings/encodings"
    tables = [variables.has(f"{side}/{name}") for side in ("encoder", "decoder")]
    if not any(tables):  # other kinds of positions have weights, which are found by `refuse_unused`
        return {"positions": "sinusoidal-tensor2tensor", "first_position": 1}
    if not all(tables):
        raise UserError("has a table of positions on one side only, which is not supported", file=variables.file)
    encoder, decoder = variables.array(f"encoder/{name}", 2), variables.array(f"decoder/{name}", 2)
    first_rows = encoder[:256]
    same = encoder.shape[1] == decoder.shape[1] == width and np.array_equal(first_rows, decoder[: len(first_rows)])
    if same and (options := kind_of_positions(encoder)):
        return options
    arrays["source_embedding.positions.table"], arrays["target_embedding.positions.table"] = encoder, decoder
    return {"positions": "learned", "max_length": max(2, min(len(encoder), len(decoder)))}


def _with_vocabulary(
    folder: Path, keys: Keys, model: dict[str, Any], arrays: dict[str, NDArray[np.float32]], given: Path | None
) -> Imported:
    """Put the rows into the order of our ids, and find the tokenizer, if it is not given."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    lists = {"source": read_pieces(folder, "source"), "target": read_pieces(folder, "target")}
    ours, unknown = _has_our_tokenizer(folder), keys.text("unk_token", SPELLINGS.unknown)
    for side, names in lists.items():
        if not ours and unknown not in names:  # CTranslate2 adds it after the others
            names.append(unknown)
        count = len(tensors[f"{side}_embedding.tokens.weight"])
        if len(names) != count:
            what = f"has {len(names):,} pieces, and there are {count:,} embeddings"
            raise UserError(f"its {side} vocabulary {what}", file=folder, fix="Is the folder complete?")
    embeddings = {
        "source": tensors["source_embedding.tokens.weight"],
        "target": tensors["target_embedding.tokens.weight"],
        "output": tensors["output.weight"],
    }
    one_list = lists["source"] == lists["target"]
    shared = one_list and torch.equal(embeddings["source"], embeddings["target"])
    data: dict[str, Any] = {}
    notes: list[str] = []
    if ours:
        tokenizer, languages = our_tokenizer(folder, lists)
        model["source_end"] = keys.flag(SOURCE_END, True)
    else:
        # The vocabularies of OpenNMT, and those of fairseq after its conversion, have `<blank>`. The converter adds an
        # end token for fairseq; for Hugging Face's models, it is one of the tokens that the user gives.
        model["source_end"] = _BLANK not in lists["source"] or keys.flag("add_source_eos", False)
        target = vocabulary_of(lists["target"], keys, zero_start=model["zero_start"])
        source = target
        if one_list:
            start, decoder_start = keys.text("bos_token", SPELLINGS.start), keys.text("decoder_start_token")
            if keys.flag("add_source_bos", False) and decoder_start not in ("", start):
                keys.unsupported("add_source_bos", f"True with decoder_start_token={decoder_start}")
        else:
            needed = {"zero_start": model["zero_start"], "of_source": True, "source_end": model["source_end"]}
            source = vocabulary_of(lists["source"], keys, **needed)
        tokenizer, languages, notes = their_tokenizer(folder, source, target, given)
        tensors |= vocabulary_weights(source, target, embeddings, tensors["output.bias"])
        if "max_length" not in model:
            data["max_tokens"] = 512
    # Marian's `>>de<<` names the target language in the source; M2M100 and NLLB have a token on each side.
    both_sides = bool(languages) and not any(name.startswith(">>") for name in languages.values())
    options = {
        "vocabulary": tokenizer.target_size,
        "joint": tokenizer.joint,
        "shared_ids": shared and not tokenizer.joint,
        "languages": languages,
        "language_pieces": "both-sides" if both_sides else "source-side",
        **({"source_start": True} if keys.flag("add_source_bos", False) else {}),
    }
    return Imported(
        kind="CTranslate2",
        settings={"model": model | {"share_embeddings": shared}, "data": data | {"tokenizer": options}},
        tensors=tensors,
        tokenizer=tokenizer,
        notes=tuple(notes),
    )


def read_pieces(folder: Path, side: str) -> list[str]:
    """Read the list of pieces of a side, in the order of their rows.

    Raises:
        UserError: there is no list, or it is damaged.
    """
    names = []
    for prefix in ("shared", side):  # by the version of CTranslate2 that has written the folder
        names += [f"{prefix}_vocabulary.json", f"{prefix}_vocabulary.txt"]
    for name in names:
        file = folder / name
        if not file.exists():
            continue
        if file.suffix == ".json":
            pieces = read_json(file)
        else:
            try:
                pieces = read_file(file, LONGEST_JSON).decode().removesuffix("\n").split("\n")
            except UnicodeDecodeError as error:
                raise UserError("is not UTF-8", file=file, fix="Get the folder again.") from error
        if not isinstance(pieces, list) or not all_are(str, pieces):
            raise UserError("is not a list of pieces", file=file, fix="Get the folder again.")
        if len({*pieces}) != len(pieces):
            raise UserError("has a piece twice", file=file, fix="Get the folder again.")
        return pieces
    raise UserError(f"has no vocabulary: neither {' nor '.join(names)}", file=folder, fix="Is the folder complete?")


def our_tokenizer(folder: Path, lists: dict[str, list[str]]) -> tuple[Tokenizer, dict[str, str]]:
    """Read the tokenizer of our own export, and the pieces of its languages by their codes.

    Raises:
        UserError: the tokenizer is damaged, or does not belong to the lists of pieces.
    """
    for name in ("tokenizer.model", "source.model", "target.model"):
        if (folder / name).exists():
            parsed = read_sentencepiece(folder / name)
            if name != "target.model":
                controls = [p.piece for p in parsed.pieces if p.type == parsed.SentencePiece.CONTROL]
    tokenizer = Tokenizer.load(folder)
    pieces = {
        "source": tokenizer.source_pieces(range(tokenizer.source_size)),
        "target": tokenizer.target_vocabulary,
    }
    for side, names in lists.items():
        if names[len(SPECIAL) :] != pieces[side][len(SPECIAL) :]:
            what = f"the {side} vocabulary is not that of the SentencePiece model beside it"
            raise UserError(what, file=folder, fix="Take all files from one export.")
    return tokenizer, languages_in(controls)


def their_tokenizer(
    folder: Path, source: Vocabulary, target: Vocabulary, given: Path | None = None
) -> tuple[Tokenizer, dict[str, str], list[str]]:
    """Make a tokenizer from SentencePiece models with other ids, or from the pieces alone.

    Pieces that only SentencePiece has are added to the vocabularies.

    Args:
        folder: the folder with the SentencePiece models.
        source: the pieces of sources.
        target: the pieces of targets; the same object for one list of pieces.
        given: a SentencePiece model of both languages, or `PIECES`.

    Returns:
        The tokenizer, the pieces of languages by their codes, and what the user should know.

    Raises:
        UserError: there are no SentencePiece models and they are needed, or they are damaged.
    """
    vocabularies = {"source": source} if source is target else {"source": source, "target": target}
    pieces = {side: vocabulary.names[len(SPECIAL) :] for side, vocabulary in vocabularies.items()}
    if given == PIECES:
        if any(SPACE in name for names in pieces.values() for name in names):
            fix = "Give that model as `tokenizer`."
            raise UserError(f"has pieces of a SentencePiece model, with {SPACE}", file=folder, fix=fix)
        models = []
        for vocabulary in vocabularies.values():
            words = [SPACE + name for name in vocabulary.names[len(SPECIAL) :]]
            models.append(listed_model([*SPELLINGS, *words], (), words=True))
        return Tokenizer(*models), {}, ["texts are split at spaces: give them as pieces of the model's vocabulary"]
    one_file = given or (folder / FAIRSEQ if (folder / FAIRSEQ).exists() else None)
    files = {"source": one_file or folder / "source.spm", "target": one_file or folder / "target.spm"}
    if not any(file.exists() for file in files.values()) and all(map(has_only_characters, pieces.values())):
        models = [listed_model(vocabulary.names, (), words=False) for vocabulary in vocabularies.values()]
        return Tokenizer(*models), {}, ["all pieces are single characters: texts are split into characters"]
    parsed = []
    for side in ("source",) if one_file and source is target else ("source", "target"):
        if not given and not files[side].exists():
            fix = "Copy it there from the model that was converted (ct2-transformers-converter --copy_files), or give "
            fix += f"`tokenizer`, a SentencePiece model or {PIECES}."
            raise UserError(f"has no SentencePiece model {files[side].name}", file=folder, fix=fix)
        parsed.append(read_sentencepiece(files[side]))
    models, languages = adapted_models(parsed, (source, target)[: len(parsed)])
    return Tokenizer(*models), languages, []


def vocabulary_of(
    names: list[str], keys: Keys, *, zero_start: bool = False, of_source: bool = False, source_end: bool = True
) -> Vocabulary:
    """Return our ids for a list of pieces.

    Args:
        names: the pieces in the order of their rows.
        keys: the keys of the folder's config.json.
        zero_start: whether the decoder begins without an embedding.
        of_source: whether this is the vocabulary of sources only, which needs no start token.
        source_end: whether such a vocabulary needs an end token.

    Raises:
        UserError: a special token is missing.
    """
    ids = {name: row for row, name in enumerate(names)}

    def row(key: str, default: str) -> int:
        name = keys.text(key, default)
        if name not in ids:
            raise UserError(f"{key} is {name!r:.50}, which is not in the vocabulary", file=keys.file)
        return ids[name]

    def optional_row(key: str, default: str) -> int | None:
        return ids.get(keys.text(key, default))

    start: int | None = None
    if of_source and keys.flag("add_source_bos", False):
        start = row("bos_token", SPELLINGS.start)
    elif not zero_start:
        start = (optional_row if of_source else row)("decoder_start_token", SPELLINGS.start)
    end = (row if source_end or not of_source else optional_row)("eos_token", SPELLINGS.end)
    unknown = row("unk_token", SPELLINGS.unknown)
    pad = ids.get(_BLANK, ids.get(SPELLINGS.pad))
    return Vocabulary.of(ids, len(names), pad=pad, unknown=unknown, start=start, end=end)


FIRST_VERSION, VERSION = 2, 6
"""The versions of the format; the last one since CTranslate2 3.0."""
_INT16_SCALE = 1000.0
"""The scale of int16 arrays without one."""
_TYPES_BY_SIZE = {4: 0, 2: 2, 1: 1}
"""The numbers of the types of arrays by the bytes of an element, which stand for the type before version 4."""
_TYPES = [np.dtype(name) for name in ("float32", "int8", "int16", "int32", "float16", "uint16")]
"""The types of arrays by their numbers; the last one stands for bfloat16, which NumPy does not have."""
BFLOAT16 = _TYPES[5]
_MOST_DIMENSIONS = 3
_LISTED = 4
"""The number of variables that a message names."""
_FIX = "Models of other kinds can be imported."
_IGNORED = ("alignment_layer", "alignment_heads", "embeddings_merge")
"""Name endings of values that change no logit."""
_NEUTRAL = {
    "alibi",
    "alibi_use_positive_positions",
    "scale_alibi",
    "multi_query_attention",
    "with_relative_position",
}
"""Name endings of flags that change nothing when they are 0."""


class DamagedError(Exception):
    """The file is damaged."""


@dataclass
class ModelFile:
    """The content of a `model.bin`."""

    specification: str
    """The kind of the model."""
    revision: int
    """The revision of the specification."""
    version: int = VERSION
    """The version of the format."""
    variables: dict[str, NDArray[Any]] = field(default_factory=dict)
    """The arrays by name, aliases too; they are read from the file on first use."""


def read_model_file(file: Path) -> ModelFile:
    """Read a `model.bin`.

    Raises:
        UserError: the file is damaged, truncated, of another version, or larger than this machine's memory.
    """
    refuse_unsafe(file, file.parent)
    with reading(file):
        size = file.stat().st_size
        refuse_more_than_memory(size, file)
        content = np.memmap(file, np.uint8, "r") if size else np.zeros(0, np.uint8)
    reader = _Reader(content)
    try:
        (version,) = reader.numbers("I")
        if not FIRST_VERSION <= version <= VERSION:
            fix = f"Convert it again with CTranslate2 3.0 or newer: its format is {VERSION}."
            raise UserError(f"is a model.bin of the format {version}, or none", file=file, fix=fix)
        reader.version = version
        model_file = ModelFile(reader.text(), reader.numbers("I")[0], version)
        for _ in range(reader.numbers("I")[0]):
            name = reader.text()
            if name in model_file.variables:
                raise DamagedError(f"has {name[:80]!r} twice")
            model_file.variables[name] = reader.array()
        for _ in range(reader.numbers("I")[0] if version >= 3 else 0):
            alias, name = reader.text(), reader.text()
            if alias in model_file.variables or name not in model_file.variables:
                raise DamagedError(f"has no {name[:80]!r} for {alias[:80]!r}, or both")
            model_file.variables[alias] = model_file.variables[name]
            scale = f"{name}_scale"
            if scale in model_file.variables:  # the scale of a quantized array has no alias
                model_file.variables.setdefault(f"{alias}_scale", model_file.variables[scale])
        if reader.remaining:
            raise DamagedError(f"has {reader.remaining:,} bytes too many")
    except DamagedError as error:
        raise UserError(f"is damaged: it {error}", file=file, fix="Get the file again.") from error
    return model_file


class _Reader:
    """Reads values from the content of a file, one after the other."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self.content, self.offset, self.version = content, 0, VERSION

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read."""
        return len(self.content) - self.offset

    def take(self, size: int) -> NDArray[np.uint8]:
        """Read `size` bytes."""
        if size > self.remaining:
            raise DamagedError("is cut short")
        self.offset += size
        return self.content[self.offset - size : self.offset]

    def numbers(self, kinds: str) -> tuple[int, ...]:
        """Read numbers of these kinds, in the notation of `struct`."""
        layout = "<" + kinds
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())

    def text(self) -> str:
        """Read a text, after its length."""
        content = self.take(self.numbers("H")[0]).tobytes()
        if not content.endswith(b"\0"):
            raise DamagedError("has a name without an end")
        try:
            return content[:-1].decode()
        except UnicodeDecodeError:
            raise DamagedError("has a name that is not UTF-8") from None

    def array(self) -> NDArray[Any]:
        """Read an array, after its dimensions and its type."""
        (dimensions,) = self.numbers("B")
        if dimensions > _MOST_DIMENSIONS:
            raise DamagedError(f"has a variable of {dimensions} dimensions")
        shape = self.numbers("I" * dimensions)
        number, size = self.numbers("BI")
        if self.version < 4:
            number, size = _TYPES_BY_SIZE.get(number, len(_TYPES)), size * number
        dtype = _TYPES[number] if number < len(_TYPES) else None
        if dtype is None or 0 in shape or math.prod(shape) * dtype.itemsize != size:
            raise DamagedError("has a variable whose size is not that of its type and dimensions")
        return self.take(size).view(dtype).reshape(shape)


class Variables:
    """The arrays of a `model.bin`, and the names of those that were not used yet."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], file: Path) -> None:
        """Take arrays by name, and the file for messages."""
        self._arrays, self._unused, self.file = arrays, {*arrays}, file

    def scalar(self, name: str, default: float | None = None) -> float:
        """Return a single number.

        Raises:
            UserError: there is no such number and no default, or the array is no number.
        """
        if name not in self._arrays:
            if default is None:
                raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
            return default
        self._unused.discard(name)
        array = self._arrays[name]
        value = float(_plain(array).flat[0]) if array.size == 1 else math.nan
        if not math.isfinite(value):
            raise UserError(f"{name} is not a number", file=self.file, fix="Get the file again.")
        return value

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._arrays

    def is_flag(self, name: str) -> bool:
        """Whether a number is a flag."""
        return self._arrays[name].dtype == np.int8

    def array(self, name: str, dimensions: int) -> NDArray[np.float32]:
        """Return an array, divided by its scale if it was quantized.

        int8 has a scale for each row, int16 one for all, 1000 by default: the stored number is the value times it.

        Raises:
            UserError: there is no such array, or it has other dimensions or no scale.
        """
        if name not in self._arrays:
            raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
        self._unused -= {name, f"{name}_scale"}
        array = self._arrays[name]
        if array.ndim != dimensions:
            raise UserError(f"{name} has {array.ndim} dimensions, not {dimensions}", file=self.file, fix=_FIX)
        if array.dtype.kind == "i":
            scale = self._arrays.get(f"{name}_scale")
            if scale is None and array.dtype == np.int16:
                scale = np.array(_INT16_SCALE, np.float32)
            if scale is None or scale.dtype != np.float32 or scale.size not in (1, len(array)):
                raise UserError(f"{name} has no scale", file=self.file, fix="Get the file again.")
            with np.errstate(all="ignore"):  # a damaged scale of 0 is reported below, as the numbers are not finite
                values = array.astype(np.float32) / scale.reshape(-1, *(1,) * (dimensions - 1))
        else:
            values = _plain(array)
        if not np.isfinite(values).all():
            raise UserError(f"{name} has weights that are no numbers", file=self.file, fix="Get the file again.")
        return values

    def bias(self, name: str, size: int) -> NDArray[np.float32]:
        """Return a vector of `size` numbers; zeros if there is none."""
        if name not in self._arrays:
            return np.zeros(size, np.float32)
        return self.array(name, 1)

    def layers(self, side: str) -> int:
        """Return the number of blocks of a side without a gap; any others are found by `refuse_unused`."""
        number = 0
        while f"{side}/layer_{number}/ffn/linear_0/weight" in self._arrays:
            number += 1
        return number

    def refuse_missing(self, names: Iterable[str]) -> None:
        """Check that there are all arrays of these names.

        Raises:
            UserError: some are missing.
        """
        missing = [name for name in names if name not in self._arrays]
        if missing:
            raise UserError(f"has no {_listed(missing)}", file=self.file, fix="Is it a translator?")

    def refuse_unused(self) -> None:
        """Check that all arrays were used.

        Raises:
            UserError: arrays that matter were not used.
        """
        unknown = []
        for name in sorted(self._unused):
            suffix = name.rpartition("/")[2]
            if suffix not in _IGNORED and not (suffix in _NEUTRAL and not self.scalar(name)):
                unknown.append(name)
        if unknown:
            verb = "is" if len(unknown) == 1 else "are"
            raise UserError(f"has {_listed(unknown)}, which {verb} not supported", file=self.file, fix=_FIX)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(name[:100] for name in names[:_LISTED]) + more


def _plain(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32, whose upper half are the bits of a bfloat16."""
    if array.dtype == BFLOAT16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def joined_arrays(
    variables: Variables, names: Iterable[tuple[str, list[str]]], width: int
) -> dict[str, NDArray[np.float32]]:
    """Return the weights of linear layers and norms by our names.

    Args:
        variables: the arrays.
        names: CTranslate2's name of each layer, with ours, whose rows are joined in it.
        width: the number of rows of the first of two joined layers.

    Raises:
        UserError: an array is missing.
    """
    arrays: dict[str, NDArray[np.float32]] = {}
    for layer_name, our_names in names:
        if layer_name.endswith("layer_norm"):
            weight, bias = variables.array(f"{layer_name}/gamma", 1), variables.array(f"{layer_name}/beta", 1)
        else:
            weight = variables.array(f"{layer_name}/weight", 2)
            bias = variables.bias(f"{layer_name}/bias", len(weight))
        ends = [width] * (len(our_names) - 1)
        for name, rows, numbers in zip(our_names, np.split(weight, ends), np.split(bias, ends), strict=True):
            arrays[f"{name}.weight"], arrays[f"{name}.bias"] = rows, numbers
    return arrays
