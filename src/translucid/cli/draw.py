"""`translucid draw`: pictures beyond one translation's attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli.files import refuse_to_replace

if TYPE_CHECKING:
    from translucid.inspection.inspected import Inspected

app = typer.Typer(no_args_is_help=True, help="Draw pictures: heads, masks, positions, beam search, training curves.")

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to translate.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The picture: .png, .svg or .pdf.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace --out if it is there.")]


@app.command()
def heads(
    run: Run,
    text: Text,
    out: Out,
    layer: Annotated[int | None, typer.Option(help="Of the decoder; all layers, smaller, if not given.")] = None,
    kind: Annotated[str, typer.Option(help="cross, encoder or decoder; for all layers.")] = "cross",
    overwrite: Overwrite = False,
) -> None:
    """Draw the heads of a layer, or all heads of all layers.

    **Examples**

        translucid draw heads runs/demo "I like soccer" --layer 1 --out heads.png

        translucid draw heads runs/demo "I like soccer" --kind encoder --out encoder.png
    """
    from translucid.errors import UserError, nearest
    from translucid.inspection.plots import draw_attention, draw_heads, save_figure

    refuse_to_replace(out, overwrite)
    kinds = ("cross", "encoder", "decoder")
    if kind not in kinds:
        raise UserError(f"there is no attention {kind!r}", fix=nearest(kind, kinds))
    piece = _first_piece(run, text)
    save_figure(draw_attention(piece, kind) if layer is None else draw_heads(piece, layer), out)


@app.command()
def mask(run: Run, text: Text, out: Out, overwrite: Overwrite = False) -> None:
    """Draw the target mask of a translation: who may look at whom in the decoder.

    **Examples**

        translucid draw mask runs/demo "I like soccer" --out mask.png
    """
    from translucid.attention.masks import causal_mask
    from translucid.inspection.plots import draw_mask, save_figure

    refuse_to_replace(out, overwrite)
    piece = _first_piece(run, text)
    fed = ["<s>", *piece.target[:-1]]
    save_figure(draw_mask(causal_mask(len(fed)), fed, fed, "target mask: the past and the present"), out)


@app.command()
def positions(
    out: Out,
    length: Annotated[int, typer.Option(help="Positions.", min=2, max=10_000)] = 100,
    width: Annotated[int, typer.Option(help="D.", min=1, max=10_000)] = 128,
    overwrite: Overwrite = False,
) -> None:
    """Draw sinusoidal positions: the matrix, single dimensions, one position.

    **Examples**

        translucid draw positions --length 100 --width 128 --out positions.svg
    """
    from translucid.inspection.plots import draw_positions, save_figure
    from translucid.layers.positions import sinusoidal_positions

    refuse_to_replace(out, overwrite)
    save_figure(draw_positions(sinusoidal_positions(length, width)), out)


@app.command()
def beam(
    run: Run,
    text: Text,
    out: Out,
    width: Annotated[int, typer.Option("--beam", help="Beam width.", min=2, max=50)] = 4,
    overwrite: Overwrite = False,
) -> None:
    """Draw the tree of a beam search: what was kept, what ended, what was dropped, with probabilities.

    **Examples**

        translucid draw beam runs/demo "I like soccer" --beam 4 --out beam.svg
    """
    from translucid.inspection.plots import draw_beam, save_figure
    from translucid.translator import Translator

    refuse_to_replace(out, overwrite)
    translator = Translator.load(run, engine="torch")
    trace, best = translator.trace(text, width)
    save_figure(draw_beam(trace, lambda token: translator.tokenizer.target_pieces([token])[0], best), out)


@app.command()
def curves(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: Out,
    overwrite: Overwrite = False,
) -> None:
    """Draw loss, BLEU and learning rate of one run or several over minutes.

    **Examples**

        translucid draw curves runs/demo --out curves.png

        translucid draw curves runs/small runs/rnn --out curves.svg
    """
    from translucid.inspection.plots import draw_curves, save_figure
    from translucid.training.run_folder import RunFolder

    refuse_to_replace(out, overwrite)
    for run in runs:
        RunFolder(run).configuration()  # raises if it is none
    save_figure(draw_curves({run.name: RunFolder(run).metrics() for run in runs}), out)


def _first_piece(run: Path, text: str) -> Inspected:
    """Translate a text and return what is seen of it, or of its first part."""
    from translucid.errors import UserError
    from translucid.translator import Translator

    pieces = Translator.load(run).translate(text).inspected
    if not pieces:
        raise UserError("there is nothing to translate", fix="Give a text with words in it.")
    return pieces[0]
