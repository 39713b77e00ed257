"""Captioners in `evaluate`, `look` and `draw`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from translucid.captions.caption_scoring import score_captions
from translucid.captions.captioner import Captioner
from translucid.captions.image_files import ImageFiles
from translucid.captions.pixels import Picture
from translucid.captions.pointing import read_gold
from translucid.captions.saliency_overlay import AttentionResult, SaliencyOverlay, sections_of
from translucid.cli.evaluate import Report, Scoring, TestSet, Translation
from translucid.cli.look import View
from translucid.cli.printing import evenly_spread, print_json, print_scores
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.maps import chosen_maps
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.saving import save_attention
from translucid.inspection.terminal import drawings, place_table
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.inspection.plots.heatmaps import MaskKind


def evaluate_captions(
    run: Path, configuration: Configuration, data: TestSet, scoring: Scoring, report: Report, translation: Translation
) -> None:
    """Caption a test set and score the captions.

    Raises:
        UserError: there are no captions, or a file can't be read.
    """
    assert data.test
    pairs = list(read_pairs(*data.test))
    if not pairs:
        raise UserError("holds no captions", file=data.test[0], fix="Check the file.")
    folders = data.images or list(dict.fromkeys(Path(file).parent for file in data.test))
    files = ImageFiles.open(folders)
    boxes = read_gold(data.gold) if data.gold else None
    captioner = Captioner.open(RunFolder(run), configuration, translation.device)
    options = configuration.decoding_with({"beam": translation.beam})
    log = Console(stderr=True)
    scores, texts = score_captions(
        captioner, pairs, files, options, perplexity=scoring.perplexity, gold=boxes, console=log
    )
    report.save([f"{name}\t{text}" for name, text in texts.items()])
    if report.as_json:
        print_json({**scores.to_json(), "beam": options.beam})
        return
    print_scores(scores)
    names = list(texts)
    console = Console()
    for i in evenly_spread(report.samples, len(names)):
        console.print(f"\nimage       {names[i]}")
        for pair in pairs:
            if pair.source == names[i]:
                console.print(f"reference   {pair.target}")
        console.print(f"caption     {texts[names[i]]}")


def look_at_image(captioner: Captioner, run: Path, image: str | None, view: View, save: Path | None) -> None:
    """Caption an image, and show for each word where the model looked.

    Raises:
        UserError: there is no image, it can't be read, the caption has no words, or the model has no attention, no
            such layer or no such head.
    """
    if captioner.can_look():
        chosen_maps(captioner.configuration.model.maps, "cross", view.layer, view.head)
    elif save or view.needs_attention:
        raise UserError("the model has no attention", file=run, fix="Train one that has: translucid models.")
    console = Console()
    attention = looked_at(captioner, picture_of(captioner, image), view.target, contributions=view.contributions)
    console.print(Text(" ".join(attention.words), "bold"))
    if not attention.has_attention:
        console.print("\nThe model has no attention: all that it knew of the image was one vector.")
        return
    saliency = SaliencyOverlay.of(attention, view.layer, view.head, view.method)
    console.print()
    console.print(drawings(saliency, console.width, color=console.color_system is not None))
    console.print()
    console.print(place_table(saliency))
    if save:
        save_attention(attention, save, Path(image or "").name, view.layer, view.head, view.method)
        console.print(f"\nsaved: {save}", soft_wrap=True)


def picture_of(captioner: Captioner, image: str | None) -> Picture:
    """Read an image file.

    Raises:
        UserError: there is none, or it can't be read.
    """
    if not image:
        raise UserError("there is no image to look at", fix="Give an image file.")
    return captioner.picture(Path(image))


def looked_at(
    captioner: Captioner, picture: Picture, target: str | None, *, contributions: bool = False
) -> AttentionResult:
    """Return the attention while a caption is written: the model's own, or a given one by forced decoding.

    Raises:
        UserError: the caption has no words, or the model has no contributions.
    """
    fix = "Give a caption with words in it."
    if target is not None:
        attention = captioner.inspect(picture, target, contributions=contributions)
    else:
        caption, fix = captioner.caption(picture), "Train it longer."
        if contributions:
            attention = captioner.look(caption.picture, caption.nbest[0].hypothesis.tokens, contributions=True)
        else:
            attention = caption.looked
    if not attention.words:
        raise UserError("the caption has no words", fix=fix)
    return attention


def heads_of_image(
    captioner: Captioner, image: str, layer: int | None, kind: Literal["cross", "encoder", "decoder"]
) -> Figure:
    """Draw the heads of a layer, or of all: on the image, or between the words of its caption.

    Raises:
        UserError: the image can't be read, or the model has no such attention, or it is that between cells.
    """
    from translucid.inspection.plots import draw_attention, draw_heads, draw_saliency_rows

    chosen_maps(captioner.configuration.model.maps, kind, layer)
    if kind == "encoder":
        raise UserError("attention between the cells of an image is not drawn", fix="Draw --kind cross or decoder.")
    attention = looked_at(captioner, picture_of(captioner, image), None)
    if kind == "decoder":
        inspected = attention.inspected
        return draw_attention(inspected, kind) if layer is None else draw_heads(inspected, layer, kind)
    sections = sections_of(attention)
    head_sections = {}
    for name, saliency in sections.items():
        # The other sections are averages over heads; a model with one head has only these.
        if "head " in name and (layer is None or name.startswith(f"layer {layer},")):
            head_sections[name] = saliency
    return draw_saliency_rows(head_sections or sections)


def mask_of_images(captioner: Captioner, run: Path, images: Sequence[str], kind: MaskKind) -> Figure:
    """Draw the attention mask for the captions of a batch of images.

    Raises:
        UserError: an image can't be read, or there is no such mask.
    """
    from translucid.inspection.plots.heatmaps import draw_batch_mask

    if kind == "padding":
        raise UserError("images have no padding, all cells may be looked at", file=run, fix="Draw --kind target.")
    if captioner.configuration.model.kind == "captioner":  # with a recurrent decoder
        what = f"a recurrent decoder has no {kind} mask: it reads its words one after the other"
        raise UserError(what, file=run, fix="Draw one of a captioning Transformer.")
    targets = []
    for image in images:
        caption = captioner.caption(picture_of(captioner, image))
        targets.append(caption.nbest[0].hypothesis.tokens)
    return draw_batch_mask(kind, captioner.tokenizer, [], targets)
