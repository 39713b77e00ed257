"""The file formats in which attention can be saved, and what to check before any work."""

from collections.abc import Sized
from importlib.util import find_spec
from pathlib import Path

from translucid.ground.errors import UserError, missing_package

PICTURES = (".png", ".svg", ".pdf")
"""The file formats of figures."""
PAGES = (*PICTURES, ".html", ".json")
"""The file formats in which explanations and patched states can be saved."""
ENDINGS = (*PICTURES, ".html", ".json", ".npz")
"""The file formats in which the attention of a translation can be saved."""


def refuse_picture(file: Path) -> None:
    """Check, before any work, that Matplotlib is installed if the file is a figure.

    Raises:
        UserError: Matplotlib is not installed.
    """
    if file.suffix.lower() in PICTURES and not find_spec("matplotlib"):
        raise missing_package("a picture", "matplotlib", "plots")


def refuse_untranslated(parts: Sized) -> None:
    """Check that the model has translated some part of a text; a text of numbers or addresses only never reaches it.

    Raises:
        UserError: the model has translated no part.
    """
    if not parts:
        what = "the model translates no part of this text, so there is nothing to see"
        raise UserError(what, fix="Give a text with words in it.")
