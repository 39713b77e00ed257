"""Import models of Marian (Junczys-Dowmunt et al. 2018, arXiv 1804.00344): .npz files, or .bin files of Firefox.

Marian stores matrices as inputs times outputs, PyTorch as outputs times inputs. The configuration within the file
describes the model. The decoder's first input has a position, but no embedding.

Firefox runs a fork of Marian, with 8-bit weights and lexical shortlists. Its model file has a version, the headers of
all items, their names, their shapes, and their contents, which begin at multiples of 256 bytes. All numbers are
little-endian.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitext.reading import reading, refuse_unsafe
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.shortlist import Shortlist
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.imported import LONGEST_JSON, SIDES, Imported, Keys, Names, all_are, joined, read_file, read_npz
from translucid.interop.pieces import Vocabulary, adapted_models, read_sentencepiece, vocabulary_weights
from translucid.kernels.machine import refuse_more_than_memory
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
        shortlist=_shortlist(file.parent, source, target, shared=shared),
    )


def layers(encoder: int, decoder: Sequence[int], *, pre: bool, ssru: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield our name of each linear layer and norm, with theirs, whose rows are joined in ours.

    Their names of norms end in `_ln`; those of linear layers have braces for `W` or `b`. The units of an SSRU, whose
    biases do not belong to all of their rows, are those of `units`.

    Args:
        encoder: the number of encoder layers.
        decoder: for each decoder layer, the number of the layer whose weights it has, from 1.
        pre: whether layer normalization comes before each sublayer, so that there is another norm after all blocks.
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
    keys.expect({"type": "transformer"})
    ssru = keys.text("transformer-decoder-autoreg", "self-attention") == "rnn"
    if ssru:
        keys.expect({"transformer-rnn-projection": False, "layer-normalization": False})
        if (cell := keys.text("dec-cell", "gru")) != "ssru":
            keys.unsupported("dec-cell", cell)
    else:
        keys.expect({"transformer-decoder-autoreg": "self-attention"})
    keys.expect(
        {
            "transformer-no-projection": False,
            "transformer-train-position-embeddings": False,
            "transformer-train-positions": False,
            "transformer-ffn-depth": 2,
            "lemma-dim-emb": 0,
        }
    )
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


SHORTLIST = "lex*.bin"
"""Names of Firefox's shortlists, such as `lex.50.50.enes.s2t.bin`."""
_LONGEST_SHORTLIST = 1 << 28


def _shortlist(folder: Path, source: Vocabulary, target: Vocabulary, *, shared: bool) -> Shortlist | None:
    """Read the shortlist beside a model, if there is one.

    As in Marian, the first rows of the target vocabulary are candidates for every sentence and, if both sides have the
    same vocabulary, the source pieces themselves.

    Raises:
        UserError: there are several, or the file is damaged or that of another vocabulary.
    """
    files = sorted(folder.glob(SHORTLIST))
    if not files:
        return None
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:5])
        raise UserError(f"holds {len(files)} shortlists: {names}", file=folder, fix="Leave the model's own there.")
    try:
        first, offsets, rows = read_shortlist_file(read_file(files[0], _LONGEST_SHORTLIST))
    except ValueError as error:
        raise UserError(f"is damaged, or no shortlist of Firefox ({error})", file=files[0], fix=_FIX) from error
    source_ids, target_ids = source.ids_by_row(), target.ids_by_row()
    if len(offsets) - 1 > len(source_ids) or max(first - 1, int(rows.max(initial=0))) >= len(target_ids):
        what = f"has rows that the vocabularies of {len(source_ids):,} and {len(target_ids):,} pieces lack"
        raise UserError(what, file=files[0], fix="Is this the shortlist of the model?")
    always = [target_ids[row] for row in range(first)]
    by_source: dict[int, list[int]] = {}
    for row in range(len(offsets) - 1):
        targets = [target_ids[number] for number in rows[offsets[row] : offsets[row + 1]].tolist()]
        if source_ids[row] == SPECIAL.end:  # every source has it
            always += targets
        elif targets:
            by_source[source_ids[row]] = targets
    if shared:
        for number in source_ids.values():
            by_source.setdefault(number, []).append(number)
    return Shortlist(always, by_source)


FIREFOX = "model.*.bin"
"""Names of Firefox's model files, such as `model.enes.intgemm.alphas.bin`; CTranslate2 has `model.bin`."""
_FIX = "Get the file again."
_LINE = re.compile(r"(.*?):\s*(\d{1,9})\s*", re.DOTALL)
_HEXADECIMAL = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")


def model_file_of(path: Path) -> Path:
    """Return the model file of a folder, or the given file.

    Raises:
        UserError: the folder has no model file, or several.
    """
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.npz")) or sorted(path.glob(FIREFOX))
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:5])
        raise UserError(f"holds {len(files)} model files: {names}", file=path, fix="Give one of them.")
    return files[0]


def read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of a model file without unpickling, after checking that they fit in memory.

    Raises:
        UserError: the file is damaged, or has another format.
    """
    refuse_unsafe(file, file.parent)
    return _read_bin(file) if file.suffix == ".bin" else read_npz(file)


def _read_bin(file: Path) -> dict[str, NDArray[Any]]:
    with reading(file):
        refuse_more_than_memory(5 * file.stat().st_size, file, verb="holds")  # the file, and its numbers in 32 bits
        content = file.read_bytes()
    try:
        return read_model_file(content)
    except ValueError as error:
        raise UserError(f"is damaged, or no .bin file of Firefox ({error})", file=file, fix=_FIX) from error


class VocabularyFiles:
    """The vocabulary of one side: its list of pieces, and its SentencePiece model."""

    def __init__(self, file: Path, side: str) -> None:
        """Read a vocabulary, which is a SentencePiece model or has one beside it, named after the side.

        Raises:
            UserError: a file is missing or damaged.
        """
        self.file = file
        self.model = file if file.suffix == ".spm" else file.parent / f"{side}.spm"
        if not self.model.exists():
            raise UserError("is missing: it cuts text into the pieces of the vocabulary", file=self.model)
        if file.suffix == ".spm":
            self.ids = {piece.piece: row for row, piece in enumerate(read_sentencepiece(file).pieces)}
        else:
            self.ids = read_vocabulary(read_file(file, LONGEST_JSON), file)


def find_vocabularies(keys: Keys, file: Path) -> tuple[VocabularyFiles, VocabularyFiles]:
    """Find the vocabularies that decoder.yml or the model names, or those beside it.

    Raises:
        UserError: there are none or too many, or a file is damaged.
    """
    folder = file.parent
    names: Any = None
    decoder = folder / "decoder.yml"
    if decoder.exists():
        names = Keys(parse_yaml(read_file(decoder, 1 << 20).decode("utf-8", "replace")), decoder).values.get("vocabs")
    # The paths are those of another machine: only the names are used.
    candidates = [folder / Path(str(name)).name for name in (names or keys.values.get("vocabs") or [])]
    if not candidates or not all(map(Path.exists, candidates)):
        candidates = sorted(folder.glob("*vocab*.yml")) or sorted(folder.glob("*.spm"))
    if not 1 <= len(candidates) <= 2:
        fix = "Put a decoder.yml beside it that names them under vocabs."
        raise UserError(f"{len(candidates)} vocabularies stand beside it, and it needs one or two", file=file, fix=fix)
    return VocabularyFiles(candidates[0], "source"), VocabularyFiles(candidates[-1], "target")


def read_vocabulary(content: bytes, file: Path) -> dict[str, int]:
    """Return the row of each piece of a `vocab.yml`, line by line: PyYAML drops pieces that it takes for other syntax.

    Raises:
        UserError: a line has no piece and row, or two pieces have the same row.
    """
    ids: dict[str, int] = {}
    key = None
    text = content.decode("utf-8", "replace").removeprefix("---")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line:
            continue
        if line.startswith("? "):  # YAML's syntax for a long key, whose value is on the next line
            key = line[2:]
            continue
        match = _LINE.fullmatch(line if key is None else f"{key}{line}")
        if match is None:
            raise UserError("is not a piece and its row", file=file, line=number, fix=_FIX)
        key = None
        ids[_unquoted(match[1].strip())] = int(match[2])
    if len({*ids.values()}) != len(ids):
        raise UserError("gives two pieces the same row", file=file, fix=_FIX)
    return ids


def _unquoted(key: str) -> str:
    """Return a key without its quotes and escapes."""
    if len(key) >= 2 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) >= 2 and key[0] == key[-1] == '"':
        escaped = _HEXADECIMAL.sub(r"\1\\u00\2", key)  # JSON has no \x41
        try:
            return str(json.loads(escaped, strict=False))
        except ValueError:  # an escape that only YAML has
            return re.sub(r"\\(.)", r"\1", key[1:-1])
    return key


_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
"""Numbers of types. The last one, matrices of 8 bits, has another number in Marian 1.12."""
_VERSION, _HEADER = 1, struct.Struct("<QQQQ")
_ALIGNED = 256
_MAGIC = 0xF11A48D5013417F5
"""The first number of a binary shortlist."""


class Item(NamedTuple):
    """A named array of a model file."""

    name: str
    type: int
    shape: tuple[int, ...]
    content: bytes

    @classmethod
    def of_floats(cls, name: str, array: NDArray[np.float32]) -> Item:
        """Return an item with numbers of 32 bits."""
        return cls(name, _FLOAT32, array.shape, array.astype("<f4").tobytes())

    @classmethod
    def of_text(cls, name: str, text: bytes) -> Item:
        """Return an item with a text, which must end with NUL."""
        return cls(name, _INT8, (len(text),), text)

    @classmethod
    def of_matrix(cls, name: str, matrix: NDArray[np.float32], *, transposed: bool) -> Item:
        """Return an item with a matrix of 8 bits, followed by the factor that multiplied it, 127 / max |w|.

        `transposed`: whether the rows of the content are the columns of the matrix, as for all but embeddings.
        """
        numbers, factor = quantized(matrix)
        content = numbers.T if transposed else numbers
        return cls(name, _INTGEMM8, matrix.shape, content.tobytes() + struct.pack("<f", factor))


def quantized(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], np.float32]:
    """Return a matrix in 8 bits, round(f w), and its factor f = 127 / max |w|."""
    largest = np.abs(matrix).max()
    factor = np.float32(127) / (largest or np.float32(1))
    return np.rint(matrix * factor).clip(-127, 127).astype(np.int8), factor


def model_file(items: Sequence[Item]) -> bytes:
    """Return the content of a model file."""
    contents = [item.content + bytes(-len(item.content) % _ALIGNED) for item in items]
    parts = [struct.pack("<QQ", _VERSION, len(items))]
    for item, content in zip(items, contents, strict=True):
        name_length = len(item.name.encode()) + 1
        parts.append(_HEADER.pack(name_length, item.type, len(item.shape), len(content)))
    parts += [item.name.encode() + b"\0" for item in items]
    parts += [struct.pack(f"<{len(item.shape)}i", *item.shape) for item in items]
    header = b"".join(parts)
    padding = -(len(header) + 8) % _ALIGNED
    return b"".join([header, struct.pack("<Q", padding), bytes(padding), *contents])


def read_model_file(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model file by their names; matrices of 8 bits become float32.

    Raises:
        ValueError: the file is damaged, or has another format.
    """
    try:
        version, count = struct.unpack_from("<QQ", content)
        if version != _VERSION or count > len(content) // _HEADER.size:
            raise ValueError("it has another format")
        headers = [_HEADER.unpack_from(content, 16 + _HEADER.size * i) for i in range(count)]
        offset, names, shapes = 16 + _HEADER.size * count, [], []
        for length, *_ in headers:
            names.append(content[offset : offset + length].rstrip(b"\0").decode())
            offset += length
        for _, _, dimensions, _ in headers:
            shapes.append(struct.unpack_from(f"<{dimensions}i", content, offset))
            offset += 4 * dimensions
        offset += 8 + struct.unpack_from("<Q", content, offset)[0]
        arrays = {}
        for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
            arrays[name] = _array(name, kind, shape, content[offset : offset + length])
            offset += length
    except struct.error as error:
        raise ValueError("it is cut short") from error
    return arrays


def _array(name: str, kind: int, shape: tuple[int, ...], content: bytes) -> NDArray[Any]:
    """Return the array of an item."""
    if min(shape, default=0) < 1:
        raise ValueError(f"{name} has the shape {shape}")
    size = math.prod(shape)
    if kind in (_FLOAT32, _INT8):
        return np.frombuffer(content, "<f4" if kind == _FLOAT32 else "i1", size).reshape(shape)
    if kind != _INTGEMM8:
        raise ValueError(f"{name} has the type {kind:#x}, which only Marian itself reads")
    numbers = np.frombuffer(content, np.int8, size)
    (factor,) = struct.unpack_from("<f", content, size)
    stored = numbers.reshape(shape) if "Wemb" in name else numbers.reshape(shape[::-1]).T
    return stored.astype(np.float32) / np.float32(factor)


def shortlist_file(size: int, always: Iterable[int], by_source: Mapping[int, Iterable[int]], end: int) -> bytes:
    """Return the content of a binary shortlist.

    The format has no list of pieces that are always candidates, only a number of first rows. The end token, which every
    source has, brings them instead.

    Args:
        size: the number of pieces of the source vocabulary.
        always: rows of target pieces that are candidates for every sentence.
        by_source: rows of the target pieces that a source piece adds, by its row.
        end: the row of the end token.
    """
    offsets, rows = [0], []
    for source in range(size):
        targets = {*by_source.get(source, ())}
        if source == end:
            targets |= {*always}
        rows += sorted(targets)
        offsets.append(len(rows))
    # first rows that are always candidates, the largest number of rows that a source piece adds
    counts = struct.pack("<QQQQ", 0, int(np.diff(offsets).max()), len(offsets), len(rows))
    body = counts + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(rows)}I", *rows)
    return struct.pack("<QQ", _MAGIC, _checksum(body)) + body


def read_shortlist_file(content: bytes) -> tuple[int, NDArray[np.uint64], NDArray[np.uint32]]:
    """Read a binary shortlist.

    Returns:
        The number of first target rows that are always candidates; for each source row the index of its first target
        row, and one index more; and the target rows.

    Raises:
        ValueError: the file is damaged, or has another format.
    """
    header = struct.Struct("<QQQQQQ")
    if len(content) < header.size:
        raise ValueError("it is cut short")
    magic, checksum, first, _, offset_count, row_count = header.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError("it has another format")
    size = header.size + 8 * offset_count + 4 * row_count
    if size != len(content):
        raise ValueError(f"it has {len(content):,} bytes, and its header says {size:,}")
    if checksum != _checksum(content[16:]):
        raise ValueError("its checksum is wrong")
    offsets = np.frombuffer(content, "<u8", offset_count, header.size)
    rows = np.frombuffer(content, "<u4", row_count, header.size + 8 * offset_count)
    if not len(offsets) or offsets[0] or (offsets[1:] < offsets[:-1]).any() or offsets[-1] != len(rows):
        raise ValueError("its indices are not in order")
    return first, offsets, rows


def _checksum(body: bytes) -> int:
    """Return Marian's checksum of the whole numbers of 64 bits, without an incomplete one at the end."""
    checksum = 0
    for (number,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        mixed = number + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)
        checksum = (checksum ^ mixed) & 0xFFFF_FFFF_FFFF_FFFF
    return checksum
