"""Training: objective, schedule, trainer, run folder."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
