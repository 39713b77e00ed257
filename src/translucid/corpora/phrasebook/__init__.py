"""The built-in corpus: a grammar that generates English–Spanish pairs with gold word alignments, or passages."""

from .discourse import Passage, generate_passages
from .formality import AddressedPhrase, generate_addressed
from .generation import generate, split_of
from .text import Phrase

__all__ = ["AddressedPhrase", "Passage", "Phrase", "generate", "generate_addressed", "generate_passages", "split_of"]
