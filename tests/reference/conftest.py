"""Keras is an oracle on PyTorch's tensors; it must be told before it is imported."""

import os

os.environ["KERAS_BACKEND"] = "torch"
