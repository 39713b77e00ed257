"""Sparse features of a translator's feed-forward sublayers, and the circuits that they form.

Read `transcoder.py` next to the paper, then `dictionary.py` and `training.py`.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
