"""Language models, which predict the next token from those before it.

Read `model.py`, the base class, then `lstm.py` and `bilstm.py`, each next to its paper. The decoder-only Transformer is
in `models/transformer.py`.
"""

from translucid.models.language.bilstm import BidirectionalLSTM
from translucid.models.language.lstm import LSTMLanguageModel
from translucid.models.language.model import LanguageModel

__all__ = ["BidirectionalLSTM", "LSTMLanguageModel", "LanguageModel"]
