"""Looking inside: attention maps, words, alignments."""

from collections.abc import Sized
from importlib.util import find_spec
from pathlib import Path

from translucid.ground.errors import UserError, missing_package

PICTURES = (".png", ".svg", ".pdf")
"""What pictures are saved as."""
ENDINGS = (*PICTURES, ".html", ".json", ".npz")
"""What the attention of a translation is saved as."""


def refuse_picture(file: Path) -> None:
    """Check, before any work, that a file is no picture, or that there is what draws it.

    Raises:
        UserError: Matplotlib is not installed.
    """
    if file.suffix.lower() in PICTURES and not find_spec("matplotlib"):
        raise missing_package("a picture", "matplotlib", "plots")


def refuse_untranslated(parts: Sized) -> None:
    """Check that the model has translated some part of a text: a number or an address stays as it is, unseen by it.

    Raises:
        UserError: there is none.
    """
    if not parts:
        what = "the model translates no part of this text, so there is nothing to see"
        raise UserError(what, fix="Give a text with words in it.")
