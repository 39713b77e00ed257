"""Converted models in the user's cache.

Opening one needs no PyTorch, which takes longer to load than most texts take to translate. Converted models are not
kept in the run folder, which may come from a stranger.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from translucid.ground.cache import find_kept, keep
from translucid.ground.errors import UserError

KEPT = 8
"""The number of models in the cache; the one that was used least recently is removed."""

Opened = TypeVar("Opened")


def open_converted(made_from: str, convert: Callable[[Path], None], opened: Callable[[Path], Opened]) -> Opened:
    """Open the converted model with this fingerprint from the cache, or convert it first.

    Args:
        made_from: the hexadecimal fingerprint of everything that the model was converted from.
        convert: writes a converted model into a folder.
        opened: opens the model in a folder, which may be deleted afterwards.

    Raises:
        UserError: the model can't be converted.
    """
    kept = find_kept("ctranslate2", made_from)
    if kept:
        with suppress(OSError, ValueError, RuntimeError, UserError):  # a damaged model is converted again
            return opened(kept)
    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        made = Path(name) / "model"
        convert(made)
        with suppress(OSError):  # without space or a home folder, the model is not kept
            keep("ctranslate2", made_from, partial(shutil.copytree, made), KEPT)
        return opened(made)
