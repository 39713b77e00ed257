"""What is fast, and why it may be: products, attention, dropout and loss; `reference_mode` turns all of it off."""

from translucid.kernels.dispatch import reference_mode

__all__ = ["reference_mode"]
