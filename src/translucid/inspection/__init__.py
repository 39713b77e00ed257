"""Looking inside: attention maps, words, alignments."""

from importlib.util import find_spec
from pathlib import Path

from translucid.ground.errors import missing_package

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
