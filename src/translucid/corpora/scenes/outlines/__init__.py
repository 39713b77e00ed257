"""The outlines of all shapes."""

from .built import BUILT
from .made import MADE
from .nature import NATURE
from .parts import Outlines
from .signs import SIGNS

OUTLINES: Outlines = SIGNS | NATURE | BUILT | MADE

__all__ = ["OUTLINES"]
