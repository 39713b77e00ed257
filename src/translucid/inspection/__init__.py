"""Inspection of models: attention maps, words, alignments, explanations, figures and pages."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
