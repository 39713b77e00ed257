"""The built-in corpus: a grammar that generates English–Spanish sentence pairs with gold word alignments."""

from .generation import generate, split_of
from .text import Phrase

__all__ = ["Phrase", "generate", "split_of"]
