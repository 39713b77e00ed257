"""Activation patching: which states of a model carry the difference between two sentences."""

from .patch import patch
from .result import PatchedStates, Patching

__all__ = ["PatchedStates", "Patching", "patch"]
