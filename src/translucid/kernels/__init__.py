"""What is fast, and why it may be: products, attention, dropout and loss; `plain` turns all of it off."""

from translucid.kernels.dispatch import plain

__all__ = ["plain"]
