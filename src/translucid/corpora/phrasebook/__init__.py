"""The built-in corpus: a grammar that generates English–Spanish sentence pairs with gold word alignments."""

from .generation import ENGLISH_BOOK, generate, split_of
from .text import Phrase

__all__ = ["ENGLISH_BOOK", "Phrase", "generate", "split_of"]
