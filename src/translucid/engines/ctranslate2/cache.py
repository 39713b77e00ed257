"""Converted models, kept for the next time in the user's own cache.

Opening one needs no PyTorch, which takes longer to load than most texts take to translate. They are not kept in the run
folder, which may come from a stranger.
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
"""Models that stay, those used last."""

Opened = TypeVar("Opened")


def open_converted(made_from: str, convert: Callable[[Path], None], opened: Callable[[Path], Opened]) -> Opened:
    """Open the converted model that was made from something with this fingerprint, or convert it and open that.

    Args:
        made_from: hexadecimal.
        convert: writes a converted model into a folder.
        opened: opens the model in a folder, which is not needed any more afterwards.

    Raises:
        UserError: it can't be converted; `convert` has said so.
    """
    if kept := find_kept("ctranslate2", made_from):
        with suppress(OSError, ValueError, RuntimeError, UserError):  # damaged: it is made again
            return opened(kept)
    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        made = Path(name) / "model"
        convert(made)
        with suppress(OSError):  # no room, no home: then it is not kept
            keep("ctranslate2", made_from, partial(shutil.copytree, made), KEPT)
        return opened(made)
