"""Whether PyTorch is installed: the runtime installation translates, serves and aligns without it."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from translucid.ground.errors import missing_package


@cache
def has_pytorch() -> bool:
    """Whether PyTorch is installed; it is not imported."""
    return find_spec("torch") is not None


def require_pytorch(what: str) -> None:
    """Check that PyTorch is installed, for something that needs it.

    Raises:
        UserError: it is not.
    """
    if not has_pytorch():
        raise missing_package(what, "PyTorch", "train")
