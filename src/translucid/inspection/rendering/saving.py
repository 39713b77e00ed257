"""Saving attention, lenses, patching and explanations as figures, pages or data, by the file's ending."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from translucid.ground.atomic import output, write_output
from translucid.ground.errors import UserError
from translucid.inspection.inspected import Inspected, page, title_of
from translucid.inspection.lens import NOTE, DecoderLens, Lens, html_table, html_translations
from translucid.inspection.patching import Patching, html_tables
from translucid.inspection.rendering.file_formats import ENDINGS, refuse_picture, refuse_untranslated
from translucid.inspection.rendering.html import document
from translucid.layers.variants import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(
    pieces: Sequence[Inspected],
    file: Path,
    source: str,
    translation: str,
    layer: int | None = None,
    head: int | None = None,
    details: Sequence[Mapping[str, Any]] = (),
    method: Method = "weights",
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
        details: for `.html`, what else can be shown of each piece, as `page` takes it.
        method: what a figure shows, and a page at first.

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
        write_output(file, page(pieces, source, translation, details, method).encode())
        return
    if kind == ".npz":
        save_maps(pieces, file)
        return
    for number, inspected in enumerate(pieces, 1):
        path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        if kind == ".json":
            inspected.save(path)
            continue
        from translucid.inspection.plots import draw_words, save_figure

        words = inspected.cross_words(layer, head, method)
        label = "attention" if method in ("weights", "content") else method
        save_figure(draw_words(words, title_of(layer, head, method), label), path)


def save_view(file: Path, page: Callable[[], str], record: Any, draw: Callable[[], Figure] | None = None) -> None:
    """Save something as a page (.html), as plain values (.json), or else as a figure if there is a way to draw it.

    Args:
        file: the file, whose ending decides.
        page: returns the page; only called for one, because it may compute much.
        record: the plain values.
        draw: returns the figure.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        write_output(file, page().encode())
    elif kind == ".json" or draw is None:
        write_output(file, json.dumps(record, ensure_ascii=False).encode())
    else:
        from translucid.inspection.plots import save_figure

        save_figure(draw(), file)


def save_maps(pieces: Iterable[Inspected], file: Path) -> int:
    """Write an `.npz`: for translation i, counted from 0, its pieces, log-probabilities and attention maps.

    `numpy.load(file)` returns them by name: `i/source` [S] and `i/target` [T], pieces of words; `i/log_probs` [T], in
    nats, float32; `i/encoder.0.self` [H, S, S], `i/decoder.1.cross` [H, T, S] and so on, float16. If contributions were
    computed, `i/contributions.source` [T, S], `i/contributions.norms.decoder.1.cross` [T, S] and so on are the tensors
    of `Contributions.arrays`, float32. The file appears when it is complete; only one translation at a time is in
    memory.

    Returns:
        The number of translations.

    Raises:
        UserError: the file can't be written.
    """
    return write_arrays(file, map(_arrays, pieces))


def _arrays(inspected: Inspected) -> dict[str, np.ndarray]:
    arrays = {
        "source": np.array(inspected.source),
        "target": np.array(inspected.target),
        "log_probs": np.array(inspected.log_probs, np.float32),
    }
    for name, weights in inspected.maps.items():
        arrays[name] = weights.half().numpy()
    if inspected.contributions is not None:
        for name, values in inspected.contributions.arrays().items():
            arrays[f"contributions.{name}"] = values.float().numpy()
    return arrays


def write_arrays(file: Path, rows: Iterable[Mapping[str, np.ndarray]]) -> int:
    """Write an `.npz` with the arrays of row i, counted from 0, under `i/name`; return the number of rows.

    The file appears when it is complete; only one row at a time is in memory.

    Raises:
        UserError: the file can't be written.
    """
    count = 0
    # `numpy.savez` would need all arrays in memory at once; an .npz is a zip archive of .npy files.
    with output(file) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for count, arrays in enumerate(rows, 1):
            for name, array in arrays.items():
                with archive.open(f"{count - 1}/{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    return count


_LENS_STYLE = """body { font-family: system-ui, sans-serif; }
main { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.3em 0.6em; text-align: left; }
"""


def save_lenses(lenses: Sequence[Lens], file: Path, source: str) -> None:
    """Save the lens of each piece of a text.

    Args:
        lenses: at least one.
        file: `.html`, `.json` and `.npz` hold all pieces; a figure holds one, the first of a longer text, whose other
            pieces are saved beside it as `name-2.png` and so on. In `.npz`, piece i, counted from 0, has `i/layers`
            [L + 1], `i/target` [T] and `i/top` [L + 1, T, k], texts; `i/log_probs` [L + 1, T] and `i/top_log_probs`
            [L + 1, T, k], in nats, float32; and `i/ranks` [L + 1, T].
        source: the text, the title of a page.

    Raises:
        UserError: the file can't be written.
    """
    kind = file.suffix.lower()
    if kind == ".html":
        tables = "".join(f"<p>{html_table(lens)}</p>" for lens in lenses)
        write_output(file, document(source, _LENS_STYLE, f"<main>{tables}<p>{NOTE}</p></main>").encode())
    elif kind == ".json":
        records = [lens.to_json() for lens in lenses]
        write_output(file, json.dumps(records, ensure_ascii=False).encode())
    elif kind == ".npz":
        write_arrays(file, map(_lens_arrays, lenses))
    else:
        from translucid.inspection.plots import draw_lens, save_figure

        for number, lens in enumerate(lenses, 1):
            path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
            save_figure(draw_lens(lens), path)


def save_decoder_lens(lens: DecoderLens, file: Path) -> None:
    """Save the translations from each layer of the encoder as `.html` or `.json`.

    Raises:
        UserError: the file can't be written.
    """
    body = f"<main>{html_translations(lens)}</main>"
    save_view(file, lambda: document(lens.source, _LENS_STYLE, body), lens.to_json())


def _lens_arrays(lens: Lens) -> dict[str, np.ndarray]:
    return {
        "layers": np.array(lens.layers),
        "target": np.array(lens.target),
        "top": np.array(lens.top),
        "log_probs": lens.log_probs.float().numpy(),
        "top_log_probs": lens.top_log_probs.float().numpy(),
        "ranks": lens.ranks.numpy(),
    }


_PATCHING_STYLE = """body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem;
  background: var(--background); color: var(--text); font-family: var(--sans); }
table { border-collapse: collapse; margin-bottom: 1.5rem; }
th, td { padding: 0.2em 0.5em; text-align: center; font-weight: normal; }
th[scope="row"] { text-align: right; }
"""


def save_patching(patching: Patching, file: Path) -> None:
    """Save as a figure, a page or JSON, by the file's ending: a picture, .html or .json.

    Raises:
        UserError: the file can't be written.
    """

    def draw() -> Figure:
        from translucid.inspection.plots import draw_patching

        return draw_patching(patching)

    title = f"{patching.clean} → {patching.other}"
    body = f"<main><h1>Activation patching</h1>{html_tables(patching)}</main>\n"
    save_view(file, lambda: document(title, _PATCHING_STYLE, body), patching.to_json(), draw)
