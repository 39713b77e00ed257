"""Simultaneous translation: text is translated while it arrives, and the attention decides when to write.

Read `policies.py` next to the papers, then `sentence.py` and `session.py`.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
