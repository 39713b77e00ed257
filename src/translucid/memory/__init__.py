"""What a translator does with a memory: opens any corpus as one, and reads a near match beside the source."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
