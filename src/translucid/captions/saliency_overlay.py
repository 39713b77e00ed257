"""The attention of a captioner over an image, and the saliency of each word of a caption.

Saliency is shown as an overlay of the image: in HTML, in figures, and as drawings in the terminal.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.hypothesis import percent
from translucid.ground.special import SPELLINGS
from translucid.inspection.forced_decoding import inspecting_pass
from translucid.inspection.inspected import Inspected, title_of
from translucid.inspection.rendering.html import document
from translucid.inspection.rendering.saving import save_maps, save_view
from translucid.inspection.rendering.terminal import SHADES, bar, brightness_color, strong_shares
from translucid.layers.variants import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.captions.pixels import Picture
    from translucid.models.protocol import SequenceModel

SPREAD = 0.6
"""Standard deviation of the Gaussian around a cell, in cells, or in pixels if those are larger."""
SHADE = np.array([10, 14, 24], np.float32)
"""The RGB color over dark parts."""
GLOW = np.array([255, 214, 90], np.float32)
"""The RGB color over bright parts."""
DARKEST, BRIGHTEST = 0.82, 0.12
"""The greatest opacities of shade and glow."""
PLACES = (("top left", "top", "top right"), ("left", "middle", "right"), ("bottom left", "bottom", "bottom right"))
"""Names of the thirds of an image, row by row."""
THUMBNAIL = 128
"""Pixels of the longer side of a small panel."""
FINENESS = 4
"""Pixels of an overlay for each side of a cell; the browser interpolates between them."""
PANEL_INCHES = 1.7
"""The longer side of a panel, in inches."""
SMALL_PANEL_INCHES = 1.0
"""The longer side of a panel, in inches, if each row is a whole caption."""
WIDEST_FIGURE = 12.0
"""The greatest width of a row of panels, in inches."""
FIGURE_FINENESS = 240
"""Pixels of a panel's longer side."""
WIDEST_DRAWING = 16
"""The maximum number of columns of a drawing; a finer grid is drawn coarser."""
DRAWING_GAP = 2
"""Spaces between two drawings."""


@dataclass(frozen=True)
class SaliencyOverlay:
    """An image, and its salient places for each word."""

    pixels: NDArray[np.uint8]
    """[height, width, 3]."""
    words: list[str]
    notes: list[str]
    """A note beside each word, such as its probability."""
    weights: NDArray[np.float32]
    """[words, rows, columns], not negative; the rows and columns are those of cells or of pixels."""
    verb: str = "attends to"
    """The relation of a word to its salient places."""

    @classmethod
    def of(
        cls, result: AttentionResult, layer: int | None = None, head: int | None = None, method: Method = "weights"
    ) -> SaliencyOverlay:
        """Return the overlay of a captioner's attention; layers and heads are averaged unless one is chosen.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        notes = [percent(math.exp(value)) for value in result.log_probs]
        return cls(result.pixels, result.words, notes, result.weights(layer, head, method).float().numpy())

    def brightness(self, word: int, height: int, width: int) -> NDArray[np.float32]:
        """Return the brightness of the image for a word [height, width], 0 to 1 at the most salient place.

        An image without salient places is dark everywhere.
        """
        light = spread(self.weights[word], height, width)
        return np.divide(light, max(float(light.max()), 1e-9), dtype=np.float32)

    def panel(self, word: int, side: int) -> NDArray[np.uint8]:
        """Return the image with the overlay of a word [height, width, 3], scaled to this longer side."""
        image = self.scaled(side)
        color, alpha = overlay(self.brightness(word, *image.shape[:2]))
        return (image * (1 - alpha) + color * alpha).round().astype(np.uint8)

    def scaled(self, side: int) -> NDArray[np.uint8]:
        """Return the image without an overlay [height, width, 3], scaled to this longer side."""
        from PIL import Image

        height, width = self.pixels.shape[:2]
        factor = side / max(height, width)
        size = max(1, round(width * factor)), max(1, round(height * factor))
        return np.array(Image.fromarray(self.pixels).resize(size, Image.Resampling.BICUBIC))

    def places(self, word: int, limit: int = 2) -> list[tuple[str, float]]:
        """Return the most salient thirds of the image for a word by name, each with its share of all weights."""
        return places(self.weights[word])[:limit]

    def places_text(self, word: int) -> str:
        """Return the salient places of a word as text."""
        return strong_shares(self.places(word, 3)) or "nothing in particular"


def spread(weights: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """Return weights [rows, columns] upsampled smoothly [height, width].

    A pixel's value is the mean of all cells, weighted by a Gaussian around the center of each cell (Xu et al. 2015,
    arXiv 1502.03044, section 5.4, upsample and filter with a Gaussian as well).
    """
    vertical, horizontal = _cell_weights(weights.shape[0], height), _cell_weights(weights.shape[1], width)
    return np.matmul(vertical @ weights, horizontal.T, dtype=np.float32)


def _cell_weights(cells: int, pixels: int) -> NDArray[np.float32]:
    """Return the weight of each cell for each pixel along one axis [pixels, cells]; rows sum to 1."""
    pixel, cell = (np.arange(pixels) + 0.5) / pixels * cells, np.arange(cells) + 0.5
    deviation = SPREAD * max(1, cells / pixels)
    weights = np.exp(-((pixel[:, None] - cell) ** 2) / (2 * deviation**2))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def overlay(brightness: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the colors [height, width, 3] and the opacities, 0 to 1, [height, width, 1] of an overlay.

    It is a shade over dark parts, and over that a glow, without which bright parts of a black image would be invisible.
    """
    shade, glow = DARKEST * (1 - brightness[..., None]), BRIGHTEST * brightness[..., None] ** 2
    # Two layers as one: the "over" operator of alpha compositing.
    alpha = 1 - (1 - shade) * (1 - glow)
    return (SHADE * shade * (1 - glow) + GLOW * glow) / np.maximum(alpha, 1e-6), alpha


def places(weights: NDArray[np.float32]) -> list[tuple[str, float]]:
    """Return the thirds of a grid [rows, columns] by name, and their shares of all weights, the greatest first.

    A cell belongs to the third in which its center lies. If all weights are 0, so are the shares.
    """
    rows, columns = _thirds(weights.shape[0]), _thirds(weights.shape[1])
    total = max(float(weights.sum()), 1e-12)
    shares = []
    for row, names in enumerate(PLACES):
        for column, name in enumerate(names):
            third = weights[np.ix_(rows == row, columns == column)]
            shares.append((name, float(third.sum()) / total))
    return sorted(shares, key=lambda place: -place[1])


def _thirds(cells: int) -> NDArray[np.int64]:
    """Return for each cell along one axis the third with its center: 0, 1 or 2."""
    return (2 * np.arange(cells) + 1) * 3 // (2 * cells)


def panels(result: AttentionResult) -> str:
    """Return a row of small panels for notebooks: the image, then its saliency overlay for each word."""
    return row_of_panels(SaliencyOverlay.of(result))


def row_of_panels(saliency: SaliencyOverlay) -> str:
    """Return a row of small panels: the image, then its saliency overlay for each word."""
    figures = [_figure("", "", saliency.scaled(THUMBNAIL), "the image")]
    for i, (word, note) in enumerate(zip(saliency.words, saliency.notes, strict=True)):
        figures.append(
            _figure(word, note, saliency.panel(i, THUMBNAIL), f"{word} {saliency.verb}: {saliency.places_text(i)}")
        )
    return f"<div style='display:flex;flex-wrap:wrap;gap:.5em'>{''.join(figures)}</div>"


def _figure(word: str, note: str, pixels: NDArray[np.uint8], description: str) -> str:
    height, width = pixels.shape[:2]
    return (
        "<figure style='margin:0;text-align:center'>"
        f"<img src='{data_uri(pixels, jpeg=True)}' alt='{escape(description)}' title='{escape(description)}' "
        f"width='{width}' height='{height}'>"
        f"<figcaption>{escape(word)} <small style='opacity:.7'>{escape(note)}</small></figcaption></figure>"
    )


def sections_of(result: AttentionResult, method: Method = "weights") -> dict[str, SaliencyOverlay]:
    """Return the saliency averaged over layers and heads, then that of each layer and head, by name.

    With another method, that of all layers by this method comes first.
    """
    sections: dict[str, SaliencyOverlay] = {}
    if method != "weights":
        sections[method] = SaliencyOverlay.of(result, method=method)
    for name, choice in result.layers_and_heads().items():
        sections[name] = SaliencyOverlay.of(result, *choice)
    return sections


def page(name: str, sections: Mapping[str, SaliencyOverlay]) -> str:
    """Return a page in one file: the image and its words, each of which shows its saliency over the image.

    A word shows it while the pointer is on it, and keeps showing it when it is selected by a tap, a click or the arrow
    keys.

    Args:
        name: the name of the image.
        sections: the overlays of the same image by name; the first section is open, the others are folded.
    """
    first_overlay = next(iter(sections.values()))
    style = (files("translucid.inspection") / "web" / "saliency_page.css").read_text(encoding="utf-8")
    height, width = first_overlay.pixels.shape[:2]
    folded = ""
    for number, (title, saliency) in enumerate(sections.items()):
        if number > 0:
            folded += f"<details><summary>{escape(title)}</summary>{_section(name, saliency, number)}</details>"
    caption = " ".join(first_overlay.words)
    # The style sheet contains the image once; all sections use it as their background.
    shape = f":root {{ --ratio: {width} / {height}; --picture: url({data_uri(first_overlay.pixels)}); }}\n"
    body = f"""<main>
<h1>{escape(caption)}</h1>
{_section(name, first_overlay, 0)}
<details><summary>one panel a word</summary>{row_of_panels(first_overlay)}</details>
{folded}
</main>
"""
    return document(caption, shape + style, body)


def _section(name: str, saliency: SaliencyOverlay, number: int) -> str:
    """Return the image and its words: a group of radio buttons, the first of which shows the image alone."""
    words = ""
    for i, (word, note) in enumerate(zip(saliency.words, saliency.notes, strict=True)):
        words += (
            f"<label><input type='radio' name='word-{number}'><span class='word'>{escape(word)}</span>"
            f"<span class='overlay' style='background-image:url({_overlay_uri(saliency, i)})'></span>"
            f"<span class='description'>{escape(note)}; "
            f"{escape(saliency.verb)}: {escape(saliency.places_text(i))}</span></label>"
        )
    return (
        f"<section class='saliency'><div class='picture' role='img' aria-label='{escape(name)}'></div>"
        "<fieldset><legend>Point at a word, tap it, or use the arrow keys.</legend>"
        f"<label><input type='radio' name='word-{number}' checked><span class='word'>the image</span></label>"
        f"{words}</fieldset></section>"
    )


def _overlay_uri(saliency: SaliencyOverlay, word: int) -> str:
    """Return the overlay of a word as a PNG with opacities."""
    rows, columns = saliency.weights[word].shape
    height = min(FINENESS * rows, saliency.pixels.shape[0])
    width = min(FINENESS * columns, saliency.pixels.shape[1])
    color, alpha = overlay(saliency.brightness(word, height, width))
    return data_uri(np.concatenate([color, 255 * alpha], -1).round().astype(np.uint8))


def data_uri(pixels: NDArray[np.uint8], *, jpeg: bool = False) -> str:
    """Return a data URI of pixels [height, width, 3], or 4 with opacities, which JPEG does not have."""
    from PIL import Image

    buffer = io.BytesIO()
    if jpeg:
        Image.fromarray(pixels).save(buffer, "jpeg", quality=85)
    else:
        Image.fromarray(pixels).save(buffer, "png", optimize=True)
    kind = "jpeg" if jpeg else "png"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def cell_names(grid: tuple[int, int]) -> list[str]:
    """Return the names of the cells of a grid, `row,column`, row by row."""
    rows, columns = map(range, grid)
    return [f"{row},{column}" for row, column in product(rows, columns)]


@dataclass(frozen=True)
class AttentionResult:
    """An image, a caption, and the attention of the model that wrote the caption."""

    pixels: NDArray[np.uint8]
    """[height, width, 3], the image as the model reads it."""
    grid: tuple[int, int]
    """Rows and columns of cells."""
    inspected: Inspected
    """The attention; its source are the cells, row by row."""

    @cached_property
    def words(self) -> list[str]:
        """The caption's words."""
        return self.inspected.target_words[:-1]

    @cached_property
    def log_probs(self) -> list[float]:
        """The log-probability of each word."""
        return self.inspected.word_log_probs()[:-1]

    @property
    def has_attention(self) -> bool:
        """Whether the model has attention; without it there are only the words and their probabilities."""
        return bool(self.inspected.layers)

    def layers_and_heads(self) -> dict[str, tuple[int | None, int | None]]:
        """Return the choices of layer and head for `weights` by name: all, those of a layer, each head."""
        heads = {layer: self.inspected.heads[f"decoder.{layer}.cross"] for layer in self.inspected.layers}
        choices: dict[str, tuple[int | None, int | None]] = {"all layers and heads": (None, None)}
        if len(heads) > 1:
            for layer in heads:
                choices[title_of(layer, None)] = layer, None
        for layer, count in heads.items():
            if count > 1:  # a single head is the average already
                for head in range(count):
                    choices[title_of(layer, head)] = layer, head
        return choices

    def weights(self, layer: int | None = None, head: int | None = None, method: Method = "weights") -> Tensor:
        """Return the attention over the image for each word [words, rows, columns].

        A word has the attention of its first piece, because later pieces only complete the word. Layers and heads are
        averaged unless one is chosen. The weights of a word sum to 1, its contributions to its source contribution.

        Raises:
            UserError: the model has no attention, no such layer or no such head.
        """
        cross = self.inspected.cross(layer, head, method=method)  # [T, S]
        first_pieces = [start for _, start, _ in self.inspected.target_spans[:-1]]
        return cross[first_pieces].unflatten(1, self.grid)


def caption_attention(
    model: SequenceModel,
    tokenizer: Tokenizer,
    picture: Picture,
    ids: Sequence[int],
    grid: tuple[int, int],
    device: torch.device | str = "cpu",
    contributions: bool = False,
) -> AttentionResult:
    """Decode an existing caption with a captioner (forced decoding), and return its attention.

    Args:
        model: the captioner, in evaluation mode.
        tokenizer: the tokenizer of the model.
        picture: the image.
        ids: the ids of the caption, without the end token.
        grid: rows and columns of cells.
        device: the device of the model.
        contributions: whether to compute contributions and norms.

    Raises:
        UserError: the model has no contributions.
    """
    cells = [f"▁{name}" for name in cell_names(grid)]  # each a word by itself
    target = torch.tensor([[*ids, model.eos]], device=device)
    source = torch.from_numpy(picture.source.copy())[None].to(device)
    forced, shares = inspecting_pass(model, source, target, with_contributions=contributions)
    maps = {name: weights[0].cpu() for name, weights in forced.maps.items()}
    pieces = [*tokenizer.target_pieces(ids), SPELLINGS.end]
    caption_shares = shares.of_sentence(0, slice(len(cells)), len(pieces)) if shares else None
    inspected = Inspected(cells, pieces, maps, forced.log_probs[0].tolist(), contributions=caption_shares)
    return AttentionResult(picture.pixels, grid, inspected)


def save_attention(
    result: AttentionResult,
    file: Path,
    name: str,
    layer: int | None = None,
    head: int | None = None,
    method: Method = "weights",
) -> None:
    """Save the attention of a captioner.

    A figure shows one layer and head, or averages; `.html`, `.json` and `.npz` hold all of them. In `.npz`, which
    `save_maps` writes, and in `.json` the source's pieces are the cells, `row,column`.

    Args:
        result: the attention.
        file: a file with one of the `ENDINGS`.
        name: the name of the image.
        layer: the decoder layer; the average of all if not given.
        head: the head; the average of all if not given.
        method: what a figure shows, and a page at first.

    Raises:
        UserError: Matplotlib is not installed for a figure; the model has no attention, no such layer or no such head.
    """
    if file.suffix.lower() == ".npz":
        save_maps([result.inspected], file)
        return
    title = title_of(layer, head, method) if len(result.inspected.maps) > 1 else ""
    record = {"image": name, "grid": result.grid, **result.inspected.to_json()}
    saliency = SaliencyOverlay.of(result, layer, head, method)
    save_view(file, lambda: page(name, sections_of(result, method)), record, lambda: draw_saliency(saliency, title))


def draw_saliency(saliency: SaliencyOverlay, title: str = "") -> Figure:
    """Draw the image, then its saliency for each word, as many panels a row as fit (Xu et al. 2015, figures 2, 3)."""
    from translucid.inspection.plots import new_figure

    height, width = saliency.pixels.shape[:2]
    inches = PANEL_INCHES * width / max(height, width), PANEL_INCHES * height / max(height, width) + 0.42
    count = len(saliency.words) + 1
    columns = min(count, max(1, int(WIDEST_FIGURE / inches[0])))
    rows = -(-count // columns)
    columns = -(-count // rows)  # rows of similar length
    figure = new_figure(inches[0] * columns, inches[1] * rows + (0.3 if title else 0))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(saliency.scaled(FIGURE_FINENESS))
    for i, (axes, word, note) in enumerate(zip(grid[1:], saliency.words, saliency.notes, strict=False)):
        axes.imshow(saliency.panel(i, FIGURE_FINENESS))
        axes.set_title(f"{word}\n", fontsize=9, pad=2)
        axes.text(0.5, 1.02, note, transform=axes.transAxes, fontsize=6.5, color="#5b6675", ha="center", va="bottom")
    if title:
        figure.suptitle(title, fontsize=9)
    return figure


def draw_saliency_rows(sections: Mapping[str, SaliencyOverlay]) -> Figure:
    """Draw several overlays of the same words and image, such as those of heads: one a row, by name."""
    from translucid.inspection.plots import new_figure

    first_overlay = next(iter(sections.values()))
    height, width = first_overlay.pixels.shape[:2]
    inches = SMALL_PANEL_INCHES * width / max(height, width), SMALL_PANEL_INCHES * height / max(height, width) + 0.12
    figure = new_figure(inches[0] * len(first_overlay.words) + 0.4, inches[1] * len(sections) + 0.3)
    grid = figure.subplots(len(sections), len(first_overlay.words), squeeze=False)
    for row, (name, saliency) in zip(grid, sections.items(), strict=True):
        for i, axes in enumerate(row):
            axes.imshow(saliency.panel(i, FIGURE_FINENESS // 2))
            axes.set(xticks=[], yticks=[])
            axes.set_frame_on(False)
        row[0].set_ylabel(name, fontsize=7)
    for axes, word in zip(grid[0], first_overlay.words, strict=True):
        axes.set_title(word, fontsize=8)
    return figure


def drawings(saliency: SaliencyOverlay, width: int, *, color: bool) -> RenderableType:
    """Return a small drawing of the grid for each word, bright where it is salient, as many in a row as fit.

    Args:
        saliency: the overlay that is drawn.
        width: columns of the terminal.
        color: draw two rows of cells on a line, in half blocks of two colors; otherwise in shades.
    """
    blocks = [_drawing(saliency, i, color=color) for i in range(len(saliency.words))]
    block_width = max((cell_len(block[0].plain) for block in blocks), default=1) + DRAWING_GAP
    per_row = max(1, width // block_width)
    lines: list[Text] = []
    for start in range(0, len(blocks), per_row):
        for row_lines in zip(*blocks[start : start + per_row], strict=True):
            lines.append(Text(" " * DRAWING_GAP).join(row_lines))
        lines.append(Text())
    return Group(*lines[:-1])  # no empty line after the last row


def place_table(saliency: SaliencyOverlay) -> RenderableType:
    """Return a table of the words with their notes and the most salient thirds of the image."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    for i, (word, note) in enumerate(zip(saliency.words, saliency.notes, strict=True)):
        (place, share), *further = saliency.places(i, 3)
        best, bar_text = "nothing", ""
        if share:
            best, bar_text = f"{place} {percent(share)}", bar(share)
        weaker = strong_shares(further)
        table.add_row(Text(word), Text(note), Text("←"), Text(best), Text(bar_text, "cyan"), Text(weaker, "dim"))
    return table


def _drawing(saliency: SaliencyOverlay, word: int, *, color: bool) -> list[Text]:
    """Return the lines of one word: the word itself, its note, the grid."""
    rows, columns = saliency.weights[word].shape
    drawn_columns = min(columns, WIDEST_DRAWING)
    drawn_rows = max(2, 2 * round(rows * drawn_columns / columns / 2))  # an even number: a line of text shows two rows
    weights = saliency.weights[word]
    if (rows, columns) != (drawn_rows, drawn_columns):
        weights = spread(weights, drawn_rows, drawn_columns)
    bright = weights / max(float(weights.max()), 1e-9)
    width = max(drawn_columns, 8)
    lines = [
        Text(set_cell_size(saliency.words[word], width), "bold"),
        Text(set_cell_size(saliency.notes[word], width), "dim"),
    ]
    for upper, lower in zip(bright[::2], bright[1::2], strict=True):
        lines.append(_line(upper, lower, width, color=color))
    return lines


def _line(upper: NDArray[np.float32], lower: NDArray[np.float32], width: int, *, color: bool) -> Text:
    line = Text()
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        if color:
            line.append("▀", Style(color=brightness_color(above), bgcolor=brightness_color(below)))
        else:
            line.append(SHADES[round((above + below) / 2 * (len(SHADES) - 1))])
    line.append(" " * (width - len(upper)))
    return line
