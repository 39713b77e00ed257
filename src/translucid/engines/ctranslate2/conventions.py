"""What those who write and those who use a converted model agree on."""

from typing import Literal, TypeAlias

Quantization: TypeAlias = Literal["float32", "int8"]

POSITIONS = 1024
"""Rows of the table of sinusoids, which CTranslate2 wants at hand; it refuses what is longer."""
