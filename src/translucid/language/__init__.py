"""Language models and text classifiers, from options and running text to commands and routes.

Read `model.py`, the base class, then `lstm.py` next to its two papers, `transformer.py` and `classifier.py`.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
