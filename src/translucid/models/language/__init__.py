"""Language models, which predict the next token from those before it.

Read `model.py`, the base class, then `lstm.py`, `bilstm.py` and `transformer.py`, each next to its paper.
"""

from translucid.models.language.bilstm import BidirectionalLSTM
from translucid.models.language.lstm import LSTMLanguageModel
from translucid.models.language.model import LanguageModel
from translucid.models.language.transformer import TransformerLanguageModel

__all__ = ["BidirectionalLSTM", "LSTMLanguageModel", "LanguageModel", "TransformerLanguageModel"]
