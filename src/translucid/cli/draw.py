"""`translucid draw`: pictures of heads, masks, positions, beam search and training curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.run_kinds import configuration_of, translator_of, view_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.rendering.captions import CaptionFormat
from translucid.inspection.rendering.file_formats import PICTURES, refuse_picture, refuse_untranslated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = typer.Typer(no_args_is_help=True, help="Draw pictures: heads, masks, positions, beam search, training curves.")

Out = Annotated[Path, option.to_save("The picture: .png, .svg or .pdf.", *PICTURES)]


@app.command()
def attention(
    run: option.Run,
    text: option.TextOrImage,
    out: Out,
    layer: Annotated[int | None, Option(help="The layer, from 0; all layers, smaller, if not given.")] = None,
    kind: Annotated[Literal["cross", "encoder", "decoder"], Option(help="The kind of attention.")] = "cross",
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Draw the heads of a layer, or all heads of all layers.

    For an image, cross-attention is drawn on the image, with a row for each head and a panel for each word.

    **Examples**

        translucid draw attention runs/demo "I like soccer" --layer 1 --out heads.png

        translucid draw attention runs/demo "I like soccer" --kind encoder --out encoder.png

        translucid draw attention runs/eyes photograph.jpg --out heads.png
    """
    if view := view_of(configuration_of(run).model.reads, "draw attention"):
        _save(view(run, text, layer, kind), out)
        return
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection.plots import draw_attention, draw_heads

    translator = translator_of(run, (source_language, target_language))
    chosen_maps(translator.inspector.heads, kind, layer)
    pieces = translator.translate(text).inspected
    refuse_untranslated(pieces)
    for number, piece in enumerate(pieces, 1):
        figure = draw_attention(piece, kind) if layer is None else draw_heads(piece, layer, kind)
        _save(figure, out if number == 1 else out.with_stem(f"{out.stem}-{number}"))


@app.command()
def mask(
    run: option.Run,
    texts: Annotated[list[str], option.Text(metavar="TEXT|IMAGE...", help="A batch of texts or image files.")],
    out: Out,
    kind: Annotated[Literal["target", "causal", "padding"], Option(help="The kind of mask.")] = "target",
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Draw the attention mask of a batch of translations or captions. Images have no padding mask.

    **Examples**

        translucid draw mask runs/demo "I like soccer" --out mask.png

        translucid draw mask runs/demo "I like soccer" "They are going to the beach" --kind padding --out padding.png
    """
    from translucid.inspection.plots import draw_batch_mask

    if view := view_of(configuration_of(run).model.reads, "draw mask"):
        _save(view(run, texts, kind), out)
        return
    translator = translator_of(run, (source_language, target_language))
    # Only a Transformer masks its decoder.
    if kind != "padding" and translator.configuration.model.kind == "recurrent":
        what = f"a recurrent decoder has no {kind} mask: it reads its words one after the other"
        raise UserError(what, file=run, fix="Draw --kind padding.")
    sources, targets = [], []
    for translation in translator.translate(texts, split=False):
        if len(translation.parts) != 1:  # a text that is too long for the model, or one without words
            raise UserError("a mask is drawn of whole texts", fix="Give texts that fit in one piece.")
        source, hypothesis = translation.parts[0]
        sources.append(source.ids)
        targets.append(hypothesis.tokens)
    _save(draw_batch_mask(kind, translator.tokenizer, sources, targets), out)


@app.command()
def positions(
    out: Out,
    length: Annotated[int, Option(help="The number of positions.", min=2, max=10_000)] = 100,
    width: Annotated[int, Option(help="The number of dimensions.", min=1, max=10_000)] = 128,
    overwrite: option.Overwrite = False,
) -> None:
    """Draw sinusoidal positional encodings: the matrix, single dimensions, one position.

    **Examples**

        translucid draw positions --length 100 --width 128 --out positions.svg
    """
    from translucid.inspection.plots import draw_positions
    from translucid.layers.positions import sinusoidal_positions

    _save(draw_positions(sinusoidal_positions(length, width)), out)


@app.command()
def beam(
    run: option.Run,
    text: option.TextOrImage,
    out: Out,
    width: Annotated[int, Option("--beam", help="The beam width; 1 is greedy search.", min=1, max=50)] = 4,
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Draw the search tree of beam search: kept, finished and pruned hypotheses with their probabilities.

    **Examples**

        translucid draw beam runs/demo "I like soccer" --beam 4 --out beam.svg

        translucid draw beam runs/eyes photograph.jpg --out beam.svg
    """
    from translucid.inspection.plots import draw_beam

    if view := view_of(configuration_of(run).model.reads, "draw beam"):
        trace = view(run, text, width)
    else:
        translator = translator_of(run, (source_language, target_language), engine="torch")
        trace = translator.inspector.trace(text, width)
    _save(draw_beam(trace), out)


@app.command()
def curves(
    runs: Annotated[list[Path], Argument(metavar="RUN...", callback=option.resolved, help="Runs.")],
    out: Out,
    overwrite: option.Overwrite = False,
) -> None:
    """Draw loss, BLEU and learning rate of one or more runs over time.

    **Examples**

        translucid draw curves runs/demo --out curves.png

        translucid draw curves runs/small runs/rnn --out curves.svg
    """
    from translucid.inspection.plots import draw_curves
    from translucid.runs.run_folder import RunFolder

    metrics = {}
    for run in runs:
        folder = RunFolder(run)
        folder.configuration()  # raises an error for a folder that is no run
        metrics[run.name] = folder.metrics()
    _save(draw_curves(metrics), out)


@app.command()
def slides(
    run: option.Run,
    text: Annotated[str, option.Text(metavar="TEXT", help="A sentence.")],
    out: Annotated[Path, Option(metavar="FOLDER", help="The folder of the slides.")],
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    language: Annotated[str, Option(metavar="CODE", help="The language of the texts: en, de, es or fr.")] = "en",
    overwrite: option.Overwrite = False,
) -> None:
    """Make slides about a translation: attention, queries and keys, masks, positions, heads, beam search, training.

    `index.html` shows them full screen (16:9), each with a question, and its answer at the next key; a browser prints
    it as PDF. Each slide is also an `.svg`, whose texts stay texts, for another presentation.

    **Examples**

        translucid draw slides runs/demo "I like soccer" --out slides

        translucid draw slides runs/demo "I like soccer" --out folien --language de
    """
    from translucid.ground.atomic import export_folder
    from translucid.inspection.rendering.message_catalogs import gettext_in
    from translucid.inspection.rendering.slides import MARKER, save_slides, slides_of
    from translucid.runs.run_folder import RunFolder

    refuse_picture(out / "slides.svg")
    gettext_in(language)  # raises an error for another language
    if configuration_of(run).model.reads != "text":
        raise UserError("is no translator", file=run, fix="Slides are about translations.")
    translator = translator_of(run, (source_language, target_language), engine="torch")
    pieces = translator.translate(text).inspected
    refuse_untranslated(pieces)
    trace = translator.inspector.trace(text, 4)
    with export_folder(out, overwrite, *MARKER) as folder:
        count = save_slides(slides_of(pieces[0], trace, RunFolder(run).metrics(), language), folder, language)
    Console().print(f"{count} slides: open {out / MARKER[0]}", soft_wrap=True)


@app.command()
def caption(
    file: Annotated[Path, Argument(metavar="FILE", help="A figure: .png, .svg or .pdf.")],
    as_format: Annotated[
        CaptionFormat,
        Option("--format", help="The figure with its caption for LaTeX or Markdown, or the caption alone."),
    ] = "latex",
) -> None:
    """Print the caption of a saved figure: its run, the version that trained the run, and the command that draws it.

    All figures that commands save carry a caption as metadata, and so do those that are saved on the page of `serve`.

    **Examples**

        translucid draw caption heads.pdf

        translucid draw caption heads.svg --format markdown
    """
    from translucid.inspection.rendering.captions import formatted, read_caption

    print(formatted(file, read_caption(file), as_format))


def _save(figure: Figure, out: Path) -> None:
    from translucid.inspection.plots import save_figure

    save_figure(figure, out)
    Console().print(f"saved: {out}", soft_wrap=True)
