"""An attention mask that shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from torch import Tensor


@dataclass(frozen=True)
class ShownMask:
    """An attention mask with the tokens of its queries and keys."""

    mask: Tensor
    """[.., rows, columns] boolean, True = may attend; only the first entry of leading dimensions is shown. A single row
    applies to all queries."""
    rows: Sequence[str]
    """The tokens of the queries."""
    columns: Sequence[str]
    """The tokens of the keys."""

    def __post_init__(self) -> None:
        """Check the numbers of tokens.

        Raises:
            ValueError: they don't match the shape of the mask.
        """
        if self.mask.shape[-1] != len(self.columns) or self.mask.shape[-2] not in (1, len(self.rows)):
            raise ValueError(f"a mask {tuple(self.mask.shape)} for {len(self.rows)} rows, {len(self.columns)} columns")

    def _repr_html_(self) -> str:
        """Show itself: a square for each pair, green where attention is allowed, with a sentence as its tooltip."""
        flat = self.mask.reshape(-1, *self.mask.shape[-2:])[0].expand(len(self.rows), -1)
        html = "<table><tr><td>looks ↓ at →</td>"
        for column in self.columns:
            html += f"<th style='writing-mode:vertical-rl;text-align:right'>{escape(column)}</th>"
        html += "</tr>"
        for row, allowed in zip(self.rows, flat.tolist(), strict=True):
            html += f"<tr><th style='text-align:right'>{escape(row)}</th>"
            for column, is_allowed in zip(self.columns, allowed, strict=True):
                html += _cell(row, column, is_allowed)
            html += "</tr>"
        return html + "</table>"


def _cell(row: str, column: str, is_allowed: bool) -> str:
    verb, opacity, sign = ("may", 0.35, "✓") if is_allowed else ("may not", 0, "·")
    tooltip = escape(f"{row} {verb} look at {column}")
    return f"<td title='{tooltip}' style='text-align:center;background:rgba(21,128,61,{opacity})'>{sign}</td>"
