"""Saving the attention of a translation as a figure, a page or data, by the file's ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError
from translucid.inspection import ENDINGS, refuse_picture, refuse_untranslated
from translucid.inspection.archive import save_maps
from translucid.inspection.html import page
from translucid.inspection.inspected import Inspected, title_of


def save(
    pieces: Sequence[Inspected],
    file: Path,
    source: str,
    translation: str,
    layer: int | None = None,
    head: int | None = None,
    trees: Sequence[dict[str, Any]] = (),
    explanations: Sequence[dict[str, dict[str, Any]]] = (),
) -> None:
    """Save the attention of one translation.

    Args:
        pieces: the attention of each piece of the text.
        file: `.html` and `.npz` hold all pieces with all layers and heads; a figure or `.json` holds one piece, the
            first of a longer text, whose other pieces are saved beside it as `name-2.png` and so on.
        source: the text.
        translation: its translation.
        layer: for figures, the decoder layer; the average of all if not given.
        head: for figures, the head; the average of all if not given.
        trees: for `.html`, the trees of the beam search, as `page` takes them.
        explanations: for `.html`, the explanations, as `page` takes them.

    Raises:
        UserError: the file has another ending, Matplotlib is not installed for a figure, the model has no attention, or
            no such layer or head, or no part of the text was translated.
    """
    kind = file.suffix.lower()
    if kind not in ENDINGS:
        raise UserError("is nothing that attention is saved as", file=file, fix=f"End it in {', '.join(ENDINGS)}.")
    refuse_picture(file)
    refuse_untranslated(pieces)
    if kind == ".html":
        write_output(file, page(pieces, source, translation, trees, explanations).encode())
        return
    if kind == ".npz":
        save_maps(pieces, file)
        return
    for number, inspected in enumerate(pieces, 1):
        place = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        if kind == ".json":
            inspected.save(place)
            continue
        from translucid.inspection.plots import draw_words, save_figure

        words = inspected.words(inspected.cross(layer, head))
        save_figure(draw_words(words, title_of(layer, head)), place)
