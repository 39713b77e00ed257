"""Captioners in `evaluate`, `look` and `draw`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from translucid.cli.printing import evenly_spread, print_json, print_scores
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.api.captioner import Captioner
    from translucid.cli.evaluate import Report, TestSet, Translation
    from translucid.data.images.pixels import Picture
    from translucid.inspection.attention_result import AttentionResult
    from translucid.inspection.plots.mask import MaskKind
    from translucid.runs.configuration import Configuration


def captioner_of(run: Path, device: str = "auto") -> Captioner | None:
    """Load a run whose model reads images; None if it reads text.

    Raises:
        UserError: it is no run, or it is damaged.
    """
    from translucid.runs.run_folder import RunFolder

    folder = RunFolder(run)
    configuration = folder.configuration()
    if configuration.model.reads != "images":
        return None
    from translucid.api.captioner import Captioner

    return Captioner.open(folder, configuration, device)


def refuse_for(wanted: Literal["texts", "images", "translations"], names: Iterable[str], given: Container[str]) -> None:
    """Check that no option was given that is for another kind of model.

    Args:
        wanted: what the options are for.
        names: the options.
        given: the options that were given.

    Raises:
        UserError: one of them was given.
    """
    does = {"texts": "reads images", "images": "reads text", "translations": "classifies texts"}[wanted]
    for name in names:
        if name in given:
            raise UserError(f"{name} is for {wanted}, this model {does}", fix="Leave it out.")


def evaluate_captions(
    run: Path,
    configuration: Configuration,
    data: TestSet,
    report: Report,
    translation: Translation,
    *,
    perplexity: bool,
) -> None:
    """Caption a test set and score the captions.

    Raises:
        UserError: there are no captions, or a file can't be read.
    """
    from translucid.api.caption_scoring import score_captions
    from translucid.api.captioner import Captioner
    from translucid.data.images.image_files import ImageFiles
    from translucid.data.readers.corpus import read_pairs
    from translucid.evaluation.pointing import read_gold
    from translucid.runs.run_folder import RunFolder

    assert data.test
    pairs = list(read_pairs(*data.test))
    if not pairs:
        raise UserError("holds no captions", file=data.test[0], fix="Check the file.")
    folders = data.images or list(dict.fromkeys(Path(file).parent for file in data.test))
    files = ImageFiles.open(folders)
    boxes = read_gold(data.gold) if data.gold else None
    captioner = Captioner.open(RunFolder(run), configuration, translation.device)
    options = configuration.searching({"beam": translation.beam})
    log = Console(stderr=True)
    scores, texts = score_captions(captioner, pairs, files, options, perplexity=perplexity, gold=boxes, console=log)
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


def look_at_image(
    captioner: Captioner,
    run: Path,
    image: str | None,
    target: str | None,
    layer: int | None,
    head: int | None,
    save: Path | None,
) -> None:
    """Caption an image, and show for each word where the model looked.

    Raises:
        UserError: there is no image, it can't be read, no words are to be looked at, or the model has no attention, no
            such layer or no such head.
    """
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection.saliency_overlay import SaliencyOverlay
    from translucid.inspection.saving import save_looked
    from translucid.inspection.terminal import drawings, place_table

    if captioner.can_look():
        chosen_maps(captioner.configuration.model.maps, "cross", layer, head)
    elif save or layer is not None or head is not None:
        raise UserError("the model has no attention", file=run, fix="Train one that has: translucid models.")
    console = Console()
    looked = looked_at(captioner, picture_of(captioner, image), target)
    console.print(Text(" ".join(looked.words), "bold"))
    if not looked.looks:
        console.print("\nThe model has no attention: all that it knew of the image was one vector.")
        return
    lit = SaliencyOverlay.of(looked, layer, head)
    console.print()
    console.print(drawings(lit, console.width, colour=console.color_system is not None))
    console.print()
    console.print(place_table(lit))
    if save:
        save_looked(looked, save, Path(image or "").name, layer, head)
        console.print(f"\nsaved: {save}", soft_wrap=True)


def picture_of(captioner: Captioner, image: str | None) -> Picture:
    """Read an image file.

    Raises:
        UserError: there is none, or it can't be read.
    """
    if not image:
        raise UserError("there is no image to look at", fix="Give an image file.")
    return captioner.picture(Path(image))


def looked_at(captioner: Captioner, picture: Picture, target: str | None) -> AttentionResult:
    """Return the attention while a caption is written: the model's own, or a given one by forced decoding.

    Raises:
        UserError: the caption has no words.
    """
    if target is None:
        looked, fix = captioner.caption(picture).looked, "Train it longer."
    else:
        looked, fix = captioner.inspect(picture, target), "Give a caption with words in it."
    if not looked.words:
        raise UserError("the caption has no words", fix=fix)
    return looked


def heads_of_image(
    captioner: Captioner, image: str, layer: int | None, kind: Literal["cross", "encoder", "decoder"]
) -> Figure:
    """Draw the heads of a layer, or of all: on the image, or between the words of its caption.

    Raises:
        UserError: the image can't be read, or the model has no such attention, or it is that between cells.
    """
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection.plots import draw_attention, draw_heads, draw_lit_rows
    from translucid.inspection.saliency_overlay import sections_of

    chosen_maps(captioner.configuration.model.maps, kind, layer)
    if kind == "encoder":
        raise UserError("attention between the cells of an image is not drawn", fix="Draw --kind cross or decoder.")
    looked = looked_at(captioner, picture_of(captioner, image), None)
    if kind == "decoder":
        inspected = looked.inspected
        return draw_attention(inspected, kind) if layer is None else draw_heads(inspected, layer, kind)
    sections = sections_of(looked)
    chosen = {}
    for name, lit in sections.items():
        # The other sections are averages over heads; a model with one head has only these.
        if "head " in name and (layer is None or name.startswith(f"layer {layer},")):
            chosen[name] = lit
    return draw_lit_rows(chosen or sections)


def mask_of_images(captioner: Captioner, run: Path, images: Sequence[str], kind: MaskKind) -> Figure:
    """Draw the attention mask for the captions of a batch of images.

    Raises:
        UserError: an image can't be read, or there is no such mask.
    """
    from translucid.inspection.plots.mask import draw_batch_mask

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
