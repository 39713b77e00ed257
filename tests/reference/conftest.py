"""Keras computes with PyTorch; its backend must be set before the import."""

import os

os.environ["KERAS_BACKEND"] = "torch"
