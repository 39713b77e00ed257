"""Translucid: translation you can see through."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"
__all__ = [
    "Captioner",
    "DecodingOptions",
    "Embedder",
    "Generator",
    "PivotTranslator",
    "TextClassifier",
    "Translation",
    "Translations",
    "Translator",
    "UserError",
    "__version__",
    "train",
]


_MODULES = {
    "Captioner": "translucid.captions.captioner",
    "DecodingOptions": "translucid.decoding.decoding_options",
    "Embedder": "translucid.language.embedder",
    "Generator": "translucid.language.generator",
    "PivotTranslator": "translucid.api.pivot_translator",
    "TextClassifier": "translucid.language.text_classifier",
    "Translation": "translucid.api.translation",
    "Translations": "translucid.api.translation",
    "Translator": "translucid.api.translator",
    "UserError": "translucid.ground.errors",
    "train": "translucid.training.train",
}


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first used: PyTorch takes seconds, and `translucid --help` needs none."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'translucid' has no attribute {name!r}")
