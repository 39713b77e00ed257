"""A model of somebody else's on its way to being a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most, refuse_strange

if TYPE_CHECKING:
    from torch import Tensor

LONGEST_JSON = 1 << 26
"""Bytes of a vocabulary, at most."""


@dataclass
class Imported:
    """All that a run is made of."""

    kind: str
    """What it was, in words."""
    settings: dict[str, Any]
    """Of the configuration, group by group."""
    tensors: dict[str, Tensor]
    """The weights by our names, every shared one under all of its names."""
    tokenizer: Tokenizer
    parameters: int = 0
    """How many weights the model has, shared ones once."""


def read_json(file: Path, most: int = LONGEST_JSON) -> Any:
    """Read a JSON file of a folder that may be a stranger's.

    Raises:
        UserError: it is missing, too large, no file of that folder, or not JSON.
    """
    try:
        return json.loads(read_file(file, most))
    except (ValueError, RecursionError) as error:
        raise UserError("is not JSON, or is damaged", file=file, fix="Get the folder again.") from error


def read_file(file: Path, most: int) -> bytes:
    """Read a file of a folder that may be a stranger's.

    Raises:
        UserError: it is missing, too large, or no file of that folder.
    """
    if not file.exists():
        raise UserError("is missing", file=file, fix="Is the folder complete?")
    refuse_strange(file, whole_of(file), most)
    try:
        return read_at_most(file, most)
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error


def whole_of(file: Path) -> Path:
    """Return the folder that a model is in, given a file: Hugging Face's cache has files beside the folder of links."""
    folder = file.parent
    return folder.parent.parent if folder.parent.name == "snapshots" else folder


class Keys:
    """The keys of another model's configuration, read once each, with what must be so."""

    def __init__(self, values: Any, file: Path) -> None:
        """`values`: what the file holds.

        Raises:
            UserError: it holds no keys and values.
        """
        if not isinstance(values, dict):
            raise UserError("holds no keys and values", file=file, fix="Is this the configuration of a model?")
        self.values, self.file = values, file

    def number(self, key: str, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            UserError: there is none, or it is something else.
        """
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UserError(f"{key} is {value!r:.50}, not a whole number", file=self.file)
        return value

    def text(self, key: str, default: str = "") -> str:
        """Return a text; errors as of `number`."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise UserError(f"{key} is {value!r:.50}, not a text", file=self.file)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return yes or no; errors as of `number`."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise UserError(f"{key} is {value!r:.50}, not true or false", file=self.file)
        return value

    def share(self, key: str, default: float, most: float) -> float:
        """Return a number between 0 and `most`, the nearest one if it is outside; errors as of `number`."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # NaN is not itself
            raise UserError(f"{key} is {value!r:.50}, not a number", file=self.file)
        return min(max(float(min(value, 1)), 0.0), most)

    def refuse(self, key: str, *, unless: Any) -> None:
        """Refuse a model in which a key has another value than the one that we have; a missing key passes.

        Raises:
            UserError: it has.
        """
        value = self.values.get(key, unless)
        if value != unless and value is not None:
            self.unsupported(key, value)

    def unsupported(self, key: str, value: Any) -> None:
        """Refuse a model.

        Raises:
            UserError: always.
        """
        raise UserError(
            f"{key}={value!r:.50} is not supported", file=self.file, fix="Models of other kinds can be imported."
        )
