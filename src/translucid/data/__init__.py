"""Corpora and tokenizers: readers, cleaning, tokenizing, stores, batches."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
