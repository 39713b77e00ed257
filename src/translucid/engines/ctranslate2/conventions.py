"""Conventions shared by the conversion and the use of a model."""

from typing import Literal, TypeAlias

Quantization: TypeAlias = Literal["float32", "int8"]

POSITIONS = 1024
"""Rows of the table of sinusoidal positions that CTranslate2 requires; it rejects longer sentences."""
