"""Knowledge distillation: a teacher's translations of a corpus train a small, fast student; measured at the end."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
