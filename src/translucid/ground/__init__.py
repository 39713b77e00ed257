"""The lowest layer: errors, files, the console, cancellation, the base of options, special tokens, tensor shapes."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
