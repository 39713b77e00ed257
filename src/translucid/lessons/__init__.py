"""Sixteen lessons about attention, with the numbers of small models: pages that a browser shows, and notebooks."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
