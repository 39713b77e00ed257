"""A mask that shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from torch import Tensor


@dataclass(frozen=True)
class ShownMask:
    """Who may look at whom."""

    mask: Tensor
    """[.., rows, columns] boolean, True = may look; of leading dimensions only the first entry is shown. A single row
    counts for all."""
    rows: Sequence[str]
    """The tokens that look."""
    columns: Sequence[str]
    """The tokens that may be looked at."""

    def __post_init__(self) -> None:
        """Check that the tokens fit.

        Raises:
            ValueError: they are not as many as the mask is large.
        """
        if self.mask.shape[-1] != len(self.columns) or self.mask.shape[-2] not in (1, len(self.rows)):
            raise ValueError(f"a mask {tuple(self.mask.shape)} for {len(self.rows)} rows, {len(self.columns)} columns")

    def _repr_html_(self) -> str:
        """Show itself: a square for each pair, green where the row may look; who is pointed at says so."""
        flat = self.mask.reshape(-1, *self.mask.shape[-2:])[0].expand(len(self.rows), -1)
        head = "".join(
            f"<th style='writing-mode:vertical-rl;text-align:right'>{escape(name)}</th>" for name in self.columns
        )
        body = []
        for row, allowed in zip(self.rows, flat.tolist(), strict=True):
            cells = [_cell(row, column, may) for column, may in zip(self.columns, allowed, strict=True)]
            body.append(f"<tr><th style='text-align:right'>{escape(row)}</th>{''.join(cells)}</tr>")
        return f"<table><tr><td>looks ↓ at →</td>{head}</tr>{''.join(body)}</table>"


def _cell(row: str, column: str, may: bool) -> str:
    told = escape(f"{row} may{'' if may else ' not'} look at {column}")
    style = f"text-align:center;background:rgba(21,128,61,{0.35 if may else 0})"
    return f"<td title='{told}' style='{style}'>{'✓' if may else '·'}</td>"
