"""Retrieval in the decoder (kNN-MT): a memory's similar segments change the probability of the next token.

Read `mixture.py` next to the paper, then `model.py` and `engine.py`.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
