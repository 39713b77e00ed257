"""A mask as squares."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from translucid.inspection.plots.saving import new_figure


def draw_mask(mask: Tensor, rows: Sequence[str], columns: Sequence[str], title: str = "") -> Figure:
    """Draw a mask [.., rows, columns], of whose leading dimensions only the first entry is taken; filled = may look.

    Raises:
        ValueError: the labels are not as many as the mask is large.
    """
    while mask.dim() > 2:
        mask = mask[0]
    mask = mask.expand(len(rows), -1) if mask.size(0) == 1 else mask
    if tuple(mask.shape) != (len(rows), len(columns)):
        raise ValueError(f"a mask {tuple(mask.shape)} for {len(rows)} rows and {len(columns)} columns")
    figure = new_figure(1.5 + 0.36 * len(columns), 1.2 + 0.36 * len(rows))
    axes = figure.subplots()
    axes.imshow(mask.float(), cmap="Greens", vmin=0, vmax=1.4)
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set(xlabel="may be looked at", ylabel="looks")
    axes.xaxis.set_label_position("bottom")
    if title:
        axes.set_title(title, fontsize=10)
    for row in range(len(rows)):
        for column in range(len(columns)):
            axes.text(column, row, "✓" if mask[row, column] else "·", ha="center", va="center", fontsize=7)
    return figure
