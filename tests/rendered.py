"""Reports as lines of plain text."""

import io
from collections.abc import Iterable
from typing import Any

from translucid.ground.console import Console


def rendered(parts: Iterable[Any], width: int = 100) -> list[str]:
    """Return the lines that a terminal of this width would show."""
    console = Console(file=io.StringIO(), width=width)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]
