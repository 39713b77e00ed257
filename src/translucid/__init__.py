"""Translucid: translation you can see through."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["Translation", "Translator", "UserError", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the front door only when it is used, so that `translucid --help` is quick."""
    if name in ("Translator", "Translation"):
        from translucid import translator

        return getattr(translator, name)
    if name == "UserError":
        from translucid.errors import UserError

        return UserError
    raise AttributeError(f"module 'translucid' has no attribute {name!r}")
