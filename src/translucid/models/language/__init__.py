"""Language models: what comes next, given what came before.

Read `model.py`, which says what they have in common, then `lstm.py` next to its paper.
"""

from translucid.models.language.lstm import LSTMLanguageModel
from translucid.models.language.model import LanguageModel

__all__ = ["LSTMLanguageModel", "LanguageModel"]
