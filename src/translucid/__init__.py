"""Translucid: translation you can see through."""

from typing import Any

__version__ = "0.1.0"
__all__ = [
    "Captioner",
    "DecodingOptions",
    "Embedder",
    "Generator",
    "TextClassifier",
    "Translation",
    "Translations",
    "Translator",
    "UserError",
    "__version__",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first used: PyTorch takes seconds, and `translucid --help` needs none."""
    if name == "Translator":
        from translucid.api.translator import Translator

        return Translator
    if name == "Captioner":
        from translucid.api.captioner import Captioner

        return Captioner
    if name == "Embedder":
        from translucid.api.embedder import Embedder

        return Embedder
    if name == "Generator":
        from translucid.api.generator import Generator

        return Generator
    if name == "TextClassifier":
        from translucid.api.text_classifier import TextClassifier

        return TextClassifier
    if name == "train":
        from translucid.training.train import train

        return train
    if name in ("Translation", "Translations"):
        from translucid.api import translation

        return getattr(translation, name)
    if name == "DecodingOptions":
        from translucid.decoding.decoding_options import DecodingOptions

        return DecodingOptions
    if name == "UserError":
        from translucid.ground.errors import UserError

        return UserError
    raise AttributeError(f"module 'translucid' has no attribute {name!r}")
