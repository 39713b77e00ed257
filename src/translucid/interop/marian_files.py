"""The files of Marian's models: arrays in .npz files or in Firefox's .bin files, and vocabularies."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.reading import reading, refuse_unsafe
from translucid.ground.errors import UserError
from translucid.interop.imported import LONGEST_JSON, Keys, read_file
from translucid.interop.marian_binary import read_model_file
from translucid.interop.pieces import read_sentencepiece
from translucid.kernels.machine import refuse_more_than_memory
from translucid.runs.settings import parse_yaml

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
    return _read_bin(file) if file.suffix == ".bin" else _read_npz(file)


def _read_bin(file: Path) -> dict[str, NDArray[Any]]:
    with reading(file):
        refuse_more_than_memory(5 * file.stat().st_size, file, verb="holds")  # the file, and its numbers in 32 bits
        content = file.read_bytes()
    try:
        return read_model_file(content)
    except ValueError as error:
        raise UserError(f"is damaged, or no .bin file of Firefox ({error})", file=file, fix=_FIX) from error


def _read_npz(file: Path) -> dict[str, NDArray[Any]]:
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            refuse_more_than_memory(sum(member.file_size for member in members), file, verb="holds")
            for member in members:
                content = io.BytesIO(archive.read(member))
                arrays[member.filename.removesuffix(".npy")] = np.load(content, allow_pickle=False)
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise UserError(f"is damaged, or no .npz file ({error})", file=file, fix=_FIX) from error
    return arrays


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
