"""Saving the attention or an explanation of a caption as a figure, a page or data, by the file's ending."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from translucid.ground.atomic import write_output
from translucid.inspection.archive import save_maps
from translucid.inspection.attention_result import AttentionResult
from translucid.inspection.attention_result_html import page, sections_of
from translucid.inspection.inspected import title_of
from translucid.inspection.saliency_overlay import SaliencyOverlay


def save_looked(
    looked: AttentionResult, file: Path, name: str, layer: int | None = None, head: int | None = None
) -> None:
    """Save the attention of a captioner.

    A figure shows one layer and head, or averages; `.html`, `.json` and `.npz` hold all of them. In `.npz`, which
    `save_maps` writes, and in `.json` the source's pieces are the cells, `row,column`.

    Args:
        looked: the attention.
        file: a file with one of the `ENDINGS`.
        name: the name of the image.
        layer: the decoder layer; the average of all if not given.
        head: the head; the average of all if not given.

    Raises:
        UserError: Matplotlib is not installed for a figure; the model has no attention, no such layer or no such head.
    """
    if file.suffix.lower() == ".npz":
        save_maps([looked.inspected], file)
        return
    title = title_of(layer, head) if len(looked.inspected.maps) > 1 else ""
    record = {"image": name, "grid": looked.grid, **looked.inspected.to_json()}
    lit = SaliencyOverlay.of(looked, layer, head)
    save_lit(lit, file, name, lambda: sections_of(looked), record, title)


def save_lit(
    lit: SaliencyOverlay,
    file: Path,
    name: str,
    sections: Callable[[], Mapping[str, SaliencyOverlay]],
    record: Mapping[str, Any],
    title: str = "",
) -> None:
    """Save a saliency overlay.

    Args:
        lit: the overlay, which a figure shows.
        file: a figure, `.html` or `.json`.
        name: the name of the image.
        sections: returns the overlays of a page; only called for a page, because it may compute many of them.
        record: the content of `.json`.
        title: the title of the figure.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        write_output(file, page(name, sections()).encode())
    elif kind == ".json":
        write_output(file, json.dumps(record, ensure_ascii=False).encode())
    else:
        from translucid.inspection.plots import draw_lit, save_figure

        save_figure(draw_lit(lit, title), file)
