"""What a model saw, onto disk: a picture, a page or the figures themselves, told by the file's ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError
from translucid.inspection import ENDINGS, refuse_picture, refuse_untranslated
from translucid.inspection.archive import save_maps
from translucid.inspection.html import page
from translucid.inspection.inspected import Inspected


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
        pieces: what was seen of each piece of the text.
        file: `.html` and `.npz` hold all pieces with all layers and heads; a picture or `.json` holds one piece, and of
            a longer text the first, the others beside it as `name-2.png` and so on.
        source: the text.
        translation: of it.
        layer: for pictures, the decoder layer; the average of all if not given.
        head: for pictures, the head; the average of all if not given.
        trees: for `.html`, the trees of the beam search, see `page`.
        explanations: for `.html`, see `page`.

    Raises:
        UserError: the file's ending is none of those, Matplotlib is not installed for a picture, the model has no
            attention, or no such layer or head, or no part of the text was translated.
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
    for number, one in enumerate(pieces, 1):
        place = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        if kind == ".json":
            one.save(place)
            continue
        from translucid.inspection.plots import draw_words, save_figure

        which = "all layers" if layer is None else f"layer {layer}"
        which += ", all heads" if head is None else f", head {head}"
        save_figure(draw_words(one.words(one.cross(layer, head)), which), place)
