"""Other toolkits' models over the common vocabulary: their size, and MarianMT, whose decoder starts with padding."""

from typing import Any

from common import END, START, Size, vocabulary
from modules import Shape, marian_model


def shape_of(size: Size) -> Shape:
    """Return a size with the ids of the common vocabulary."""
    entries = len(vocabulary())
    ids = {"entries": entries, "padding": entries - 1, "start": START, "end": END}
    return Shape(size.layers, size.width, size.feed_forward, size.heads, size.dropout, **ids)


def marian(size: Size) -> Any:
    """Return MarianMT of this size."""
    shape = shape_of(size)
    return marian_model(shape, first=shape.padding)
