"""From a model to its outputs: greedy search, beam search and sampling over any model of the protocol."""

from translucid.decoding.batched import decode_sentences
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.options import DecodingOptions
from translucid.decoding.search import search

__all__ = ["DecodingOptions", "Hypothesis", "decode_sentences", "search"]
