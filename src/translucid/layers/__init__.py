"""The layers of a model other than attention: embeddings, positions, residuals, feed-forward and recurrent layers."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
