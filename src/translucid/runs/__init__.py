"""Runs: configuration, presets and run folders."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
