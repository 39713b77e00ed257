"""Language models: what comes next, given what came before.

Read `model.py`, which says what they have in common, then `lstm.py` next to its paper, or `transformer.py`.
"""

from translucid.models.language.lstm import LSTMLanguageModel
from translucid.models.language.model import LanguageModel
from translucid.models.language.transformer import TransformerLanguageModel

__all__ = ["LSTMLanguageModel", "LanguageModel", "TransformerLanguageModel"]
