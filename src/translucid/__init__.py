"""Translucid: translation you can see through."""

from bitext.public_names import public_names

__version__ = "0.2.0.dev0"
__getattr__, __dir__ = public_names(__name__)
