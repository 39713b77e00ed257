"""Passages of two to four sentences, of which the last can be translated only with those before it."""

from .passages import Passage, generate_passages

__all__ = ["Passage", "generate_passages"]
