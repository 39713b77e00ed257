"""The predictions of each layer as a heatmap."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from translucid.inspection.lens import Lens
from translucid.inspection.plots.heatmaps import COLOURS
from translucid.inspection.plots.saving import new_figure


def draw_lens(lens: Lens) -> Figure:
    """Draw the most probable piece of each layer: words down, layers across; a frame where a word is decided."""
    words = lens.words
    widest = 3
    for word in words:
        widest = max(widest, *map(len, word.top))
    label_width = 0.09 * max(len(word.word) for word in words)
    cell_width = 0.35 + 0.075 * widest
    figure = new_figure(1.6 + label_width + cell_width * len(lens.layers), 0.8 + 0.36 * len(words))
    axes = figure.subplots()
    probabilities = [word.top_probabilities for word in words]
    image = axes.imshow(probabilities, cmap=COLOURS, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(lens.layers)), lens.layers, fontsize=9)
    axes.set_yticks(range(len(words)), [word.word for word in words], fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for row, word in enumerate(words):
        for column, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            colour = "white" if probability > 0.6 else "black"
            axes.text(column, row, top, ha="center", va="center", fontsize=8, color=colour)
        if word.decided is not None:
            frame = Rectangle(
                (word.decided - 0.47, row - 0.45), 0.94, 0.9, fill=False, edgecolor="#d97706", linewidth=2
            )
            axes.add_patch(frame)
    kind = "tuned" if lens.tuned else "logit"
    axes.set_title(f"{kind} lens: predictions of each layer", fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.6, label="probability")
    return figure
