"""`translucid draw`: pictures beyond one translation's attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, refuse_to_replace, resolved
from translucid.ground.console import Console

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = typer.Typer(no_args_is_help=True, help="Draw pictures: heads, masks, positions, beam search, training curves.")

Text = Annotated[
    str, typer.Argument(metavar="TEXT|IMAGE", help="What to translate; of a captioner's run, an image file.")
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The picture: .png, .svg or .pdf.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace --out if it is there.")]


@app.command()
def heads(
    run: RunArgument,
    text: Text,
    out: Out,
    layer: Annotated[int | None, typer.Option(help="From 0; all layers, smaller, if not given.")] = None,
    kind: Annotated[
        Literal["cross", "encoder", "decoder"], typer.Option(help="Cross-attention, or the self-attention of a side.")
    ] = "cross",
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the heads of a layer, or all heads of all layers.

    Of an image, cross-attention is drawn on the image, a row for each head and a panel for each word.

    **Examples**

        translucid draw heads runs/demo "I like soccer" --layer 1 --out heads.png

        translucid draw heads runs/demo "I like soccer" --kind encoder --out encoder.png

        translucid draw heads runs/eyes photograph.jpg --out heads.png
    """
    _refuse(out, overwrite, text)
    from translucid.cli.images import captioner_of, heads_of_image

    if captioner := captioner_of(run):
        _save(heads_of_image(captioner, text, layer, kind), out)
        return
    from translucid.api.translator import Translator
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection import refuse_untranslated
    from translucid.inspection.plots import draw_attention, draw_heads

    translator = Translator.load(run, source=source_language, target=target_language)
    chosen_maps(translator.heads, kind, layer)
    pieces = translator.translate(text).inspected
    refuse_untranslated(pieces)
    for number, piece in enumerate(pieces, 1):
        figure = draw_attention(piece, kind) if layer is None else draw_heads(piece, layer, kind)
        _save(figure, out if number == 1 else out.with_stem(f"{out.stem}-{number}"))


@app.command()
def mask(
    run: RunArgument,
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT|IMAGE...", help="What to translate, or image files; several are one batch."),
    ],
    out: Out,
    kind: Annotated[
        Literal["target", "causal", "padding"],
        typer.Option(help="Of the decoder: the past and no padding, or the past; of the encoder: no padding."),
    ] = "target",
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw a mask of a batch of translations or captions: who may look at whom. Images have no padding to be masked.

    **Examples**

        translucid draw mask runs/demo "I like soccer" --out mask.png

        translucid draw mask runs/demo "I like soccer" "They are going to the beach" --kind padding --out padding.png
    """
    _refuse(out, overwrite, *texts)
    from translucid.api.translator import Translator
    from translucid.cli.images import captioner_of, mask_of_images
    from translucid.ground.errors import UserError
    from translucid.inspection.masks import draw_batch_mask

    if captioner := captioner_of(run):
        _save(mask_of_images(captioner, run, texts, kind), out)
        return
    translator = Translator.load(run, source=source_language, target=target_language)
    if kind != "padding" and translator.configuration.model.kind == "recurrent":
        what = f"a recurrent decoder has no {kind} mask: it reads its words one after the other"
        raise UserError(what, file=run, fix="Draw --kind padding.")
    parts = [found.parts for found in translator.translate(texts, split=False)]
    if any(len(one) != 1 for one in parts):
        raise UserError("a mask is drawn of whole texts", fix="Give texts that fit in one piece.")
    sources, targets = [one[0][0].ids for one in parts], [one[0][1].tokens for one in parts]
    _save(draw_batch_mask(kind, translator.tokenizer, sources, targets), out)


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
    _refuse(out, overwrite)
    from translucid.inspection.plots import draw_positions
    from translucid.layers.positions import sinusoidal_positions

    _save(draw_positions(sinusoidal_positions(length, width)), out)


@app.command()
def beam(
    run: RunArgument,
    text: Text,
    out: Out,
    width: Annotated[int, typer.Option("--beam", help="Beam width; 1 is greedy.", min=1, max=50)] = 4,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the tree of a beam search: what was kept, what ended, what was dropped, with probabilities.

    **Examples**

        translucid draw beam runs/demo "I like soccer" --beam 4 --out beam.svg

        translucid draw beam runs/eyes photograph.jpg --out beam.svg
    """
    _refuse(out, overwrite, text)
    from translucid.api.translator import Translator
    from translucid.cli.images import captioner_of, picture_of
    from translucid.inspection.plots import draw_beam

    if captioner := captioner_of(run):
        trace = captioner.trace(picture_of(captioner, text), width)
    else:
        translator = Translator.load(run, engine="torch", source=source_language, target=target_language)
        trace = translator.trace(text, width)
    _save(draw_beam(trace), out)


@app.command()
def curves(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", callback=resolved, help="Runs.")],
    out: Out,
    overwrite: Overwrite = False,
) -> None:
    """Draw loss, BLEU and learning rate of one run or several over minutes.

    **Examples**

        translucid draw curves runs/demo --out curves.png

        translucid draw curves runs/small runs/rnn --out curves.svg
    """
    _refuse(out, overwrite)
    from translucid.inspection.plots import draw_curves
    from translucid.runs.run_folder import RunFolder

    for run in runs:
        RunFolder(run).configuration()  # raises if it is none
    _save(draw_curves({run.name: RunFolder(run).metrics() for run in runs}), out)


def _refuse(out: Path, overwrite: bool, *texts: str) -> None:
    """Check, before any work, that a picture may be written, and that there is something to draw."""
    from translucid.ground.errors import UserError
    from translucid.inspection import PICTURES, refuse_picture

    refuse_to_replace(out, overwrite, PICTURES)
    refuse_picture(out)
    if not all(text.strip() for text in texts):
        raise UserError("there is nothing to translate", fix="Give a text with words in it.")


def _save(figure: Figure, out: Path) -> None:
    from translucid.inspection.plots import save_figure

    save_figure(figure, out)
    Console().print(f"saved: {out}", soft_wrap=True)
