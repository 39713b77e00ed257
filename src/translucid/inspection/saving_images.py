"""What a captioner saw, or why it wrote what it wrote, onto disk, told by the file's ending."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from translucid.ground.atomic import write_output
from translucid.inspection.archive import save_maps
from translucid.inspection.attention_result import AttentionResult
from translucid.inspection.attention_result_html import page, sections_of
from translucid.inspection.saliency_overlay import SaliencyOverlay


def save_looked(
    looked: AttentionResult, file: Path, name: str, layer: int | None = None, head: int | None = None
) -> None:
    """Save where a captioner looked.

    A picture shows the layer and the head that are chosen; `.html`, `.json` and `.npz` hold all of them. In `.npz`, as
    `save_maps` writes it, and in `.json` the source's pieces are the cells, `row,column`.

    Args:
        looked: what is saved.
        file: one of `ENDINGS`.
        name: of the image.
        layer: of the decoder; the average of all if not given.
        head: the average of all if not given.

    Raises:
        UserError: Matplotlib is not installed for a picture; the model has no attention, no such layer or no such head.
    """
    if file.suffix.lower() == ".npz":
        save_maps([looked.inspected], file)
        return
    which = "all layers" if layer is None else f"layer {layer}"
    which += ", all heads" if head is None else f", head {head}"
    record = {"image": name, "grid": looked.grid, **looked.inspected.to_json()}
    lit = SaliencyOverlay.of(looked, layer, head)
    save_lit(lit, file, name, lambda: sections_of(looked), record, which if len(looked.inspected.maps) > 1 else "")


def save_lit(
    lit: SaliencyOverlay,
    file: Path,
    name: str,
    sections: Callable[[], Mapping[str, SaliencyOverlay]],
    record: Mapping[str, Any],
    title: str = "",
) -> None:
    """Save an image that lights up.

    Args:
        lit: what a picture shows.
        file: a picture, `.html` or `.json`.
        name: of the image.
        sections: gives what a page shows.
        record: what `.json` holds.
        title: of the picture.

    Raises:
        UserError: it can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        write_output(file, page(name, sections()).encode())
    elif kind == ".json":
        write_output(file, json.dumps(record, ensure_ascii=False).encode())
    else:
        from translucid.inspection.plots import draw_lit, save_figure

        save_figure(draw_lit(lit, title), file)
