"""CTranslate2, the fastest maintained engine for Transformers on CPUs: models for it, and searching with it."""

from translucid.interop.ctranslate2.convert import save_ctranslate2
from translucid.interop.ctranslate2.engine import CTranslate2Engine

__all__ = ["CTranslate2Engine", "save_ctranslate2"]
