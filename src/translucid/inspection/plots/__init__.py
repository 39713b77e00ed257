"""Figures by Matplotlib: attention over words, masks, lenses, positions, beams, training, calibration."""

from translucid.inspection.plots.beam import draw_beam
from translucid.inspection.plots.curves import draw_curves, draw_positions, draw_reliability
from translucid.inspection.plots.heatmaps import (
    draw_attention,
    draw_head_report,
    draw_heads,
    draw_lens,
    draw_mask,
    draw_masks,
    draw_padding,
    draw_patching,
    draw_words,
)
from translucid.inspection.plots.ribbons import draw_ribbons
from translucid.inspection.plots.saving import save_figure

__all__ = [
    "draw_attention",
    "draw_beam",
    "draw_curves",
    "draw_head_report",
    "draw_heads",
    "draw_lens",
    "draw_mask",
    "draw_masks",
    "draw_padding",
    "draw_patching",
    "draw_positions",
    "draw_reliability",
    "draw_ribbons",
    "draw_words",
    "save_figure",
]
