"""Bitext: documents, translation memories and bilingual files, without a translator.

It imports nothing of Translucid (docs/bitext.md). `__init__.pyi` lists its public names.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
