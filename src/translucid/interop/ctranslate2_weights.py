"""The arrays of a CTranslate2 model as weights by our names, in float32; each array is used once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from translucid.ground.errors import UserError
from translucid.interop.ctranslate2_file import BFLOAT16

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIX = "Models of other kinds can be imported."
_IGNORED = ("alignment_layer", "alignment_heads", "embeddings_merge")
"""Name endings of values that change no logit."""
_NEUTRAL = {"alibi", "alibi_use_positive_positions", "scale_alibi", "multi_query_attention"}
"""Name endings of flags that change nothing when they are 0."""


class Variables:
    """The arrays of a `model.bin`, and the names of those that were not used yet."""

    def __init__(self, found: Mapping[str, NDArray[Any]], file: Path) -> None:
        """Take arrays by name, and the file for messages."""
        self._found, self._left, self.file = found, {*found}, file

    def scalar(self, name: str, default: float | None = None) -> float:
        """Return a single number.

        Raises:
            UserError: there is no such number and no default, or the array is no number.
        """
        if name not in self._found:
            if default is None:
                raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
            return default
        self._left.discard(name)
        array = self._found[name]
        value = float(_plain(array).flat[0]) if array.size == 1 else math.nan
        if not math.isfinite(value):
            raise UserError(f"{name} is not a number", file=self.file, fix="Get the file again.")
        return value

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return name in self._found

    def is_flag(self, name: str) -> bool:
        """Whether a number is a flag."""
        return self._found[name].dtype == np.int8

    def array(self, name: str, dimensions: int) -> NDArray[np.float32]:
        """Return an array, divided by its scale if it was quantised.

        int8 has a scale for each row, int16 one for all: the stored number is the value times the scale.

        Raises:
            UserError: there is no such array, or it has other dimensions or no scale.
        """
        if name not in self._found:
            raise UserError(f"has no {name}", file=self.file, fix="Is it a translator?")
        self._left -= {name, f"{name}_scale"}
        array = self._found[name]
        if array.ndim != dimensions:
            raise UserError(f"{name} has {array.ndim} dimensions, not {dimensions}", file=self.file, fix=_FIX)
        if array.dtype.kind == "i":
            scale = self._found.get(f"{name}_scale")
            if scale is None or scale.dtype != np.float32 or scale.size not in (1, len(array)):
                raise UserError(f"{name} has no scale", file=self.file, fix="Get the file again.")
            with np.errstate(all="ignore"):  # a damaged scale of 0 is reported below, as the numbers are not finite
                made = array.astype(np.float32) / scale.reshape(-1, *(1,) * (dimensions - 1))
        else:
            made = _plain(array)
        if not np.isfinite(made).all():
            raise UserError(f"{name} has weights that are no numbers", file=self.file, fix="Get the file again.")
        return made

    def bias(self, name: str, size: int) -> NDArray[np.float32]:
        """Return a vector of `size` numbers; zeros if there is none."""
        if name not in self._found:
            return np.zeros(size, np.float32)
        return self.array(name, 1)

    def layers(self, side: str) -> int:
        """Return the number of blocks of a side without a gap; any others are found by `refuse_what_is_left`."""
        number = 0
        while f"{side}/layer_{number}/ffn/linear_0/weight" in self._found:
            number += 1
        return number

    def refuse_what_is_left(self) -> None:
        """Check that all arrays were used.

        Raises:
            UserError: an array that matters was not used.
        """
        for name in sorted(self._left):
            end = name.rpartition("/")[2]
            if end in _IGNORED or (end in _NEUTRAL and not self.scalar(name)):
                continue
            raise UserError(f"has {name[:100]}, which is not supported", file=self.file, fix=_FIX)


def _plain(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32, whose upper half are the bits of a bfloat16."""
    if array.dtype == BFLOAT16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def block_arrays(variables: Variables, side: str, layer: int, width: int) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a block by our names.

    Raises:
        UserError: an array is missing or too small.
    """
    theirs, ours = f"{side}/layer_{layer}", f"{side}.{layer}"
    made: dict[str, NDArray[np.float32]] = {}

    def linear(name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        weight = variables.array(f"{theirs}/{name}/weight", 2)
        return weight, variables.bias(f"{theirs}/{name}/bias", len(weight))

    def put(name: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
        made[f"{ours}.{name}.weight"], made[f"{ours}.{name}.bias"] = weight, bias

    def norm(place: int, name: str) -> None:
        gamma = variables.array(f"{theirs}/{name}/layer_norm/gamma", 1)
        put(f"residuals.{place}.norm", gamma, variables.array(f"{theirs}/{name}/layer_norm/beta", 1))

    # Queries, keys and values stand in one matrix, one below the other.
    weight, bias = linear("self_attention/linear_0")
    put("self_attention.query", weight[:width], bias[:width])
    put("self_attention.key_value", weight[width:], bias[width:])
    put("self_attention.output", *linear("self_attention/linear_1"))
    norm(0, "self_attention")
    if side == "decoder":
        for place, name in enumerate(("query", "key_value", "output")):
            put(f"cross_attention.{name}", *linear(f"attention/linear_{place}"))
        norm(1, "attention")
    put("feed_forward.inner", *linear("ffn/linear_0"))
    put("feed_forward.outer", *linear("ffn/linear_1"))
    norm(2 if side == "decoder" else 1, "ffn")
    return made
