"""What `look`, `explain` and `draw` do with a run whose model reads images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.api.captioner import Captioner
    from translucid.data.images.pixels import Picture
    from translucid.inspection.attention_result import AttentionResult
    from translucid.inspection.masks import MaskKind


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


def refuse_for(wanted: Literal["texts", "images", "translations"], given: Mapping[str, object]) -> None:
    """Check, of a model that reads the other, that no option was given that is for `wanted` only.

    Args:
        wanted: what the options are for.
        given: values by the option's name; what is None, False or empty was not given.

    Raises:
        UserError: one was.
    """
    for name, value in given.items():
        if value:
            does = {"texts": "reads images", "images": "reads text", "translations": "classifies texts"}[wanted]
            raise UserError(f"{name} is for {wanted}, this model {does}", fix="Leave it out.")


def look_at_image(
    captioner: Captioner,
    run: Path,
    image: str | None,
    target: str | None,
    layer: int | None,
    head: int | None,
    save: Path | None,
) -> None:
    """Caption an image, and show for each word where the model looked; see `translucid look --help`.

    Raises:
        UserError: there is no image, it can't be read, no words are to be looked at, or the model has no attention, no
            such layer or no such head.
    """
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection.saliency_overlay import SaliencyOverlay
    from translucid.inspection.saving_images import save_looked
    from translucid.inspection.terminal_images import drawings, place_table

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
    """Watch the model write a caption, its own if none is given.

    Raises:
        UserError: the caption has no words.
    """
    looked = captioner.caption(picture).looked if target is None else captioner.inspect(picture, target)
    if not looked.words:
        fix = "Train it longer." if target is None else "Give a caption with words in it."
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
    from translucid.inspection.attention_result_html import sections_of
    from translucid.inspection.plots import draw_attention, draw_heads, draw_lit_rows

    chosen_maps(captioner.configuration.model.maps, kind, layer)
    if kind == "encoder":
        raise UserError("attention between the cells of an image is not drawn", fix="Draw --kind cross or decoder.")
    looked = looked_at(captioner, picture_of(captioner, image), None)
    if kind == "decoder":
        inspected = looked.inspected
        return draw_attention(inspected, kind) if layer is None else draw_heads(inspected, layer, kind)
    sections = sections_of(looked)
    single = {name: lit for name, lit in sections.items() if "head " in name}
    of_layer = {name: lit for name, lit in single.items() if layer is None or name.startswith(f"layer {layer},")}
    return draw_lit_rows(of_layer or sections)


def mask_of_images(captioner: Captioner, run: Path, images: Sequence[str], kind: MaskKind) -> Figure:
    """Draw the mask that the captions of a batch of images get.

    Raises:
        UserError: an image can't be read, or there is no such mask.
    """
    from translucid.inspection.masks import draw_batch_mask

    if kind == "padding":
        raise UserError("images have no padding, all cells may be looked at", file=run, fix="Draw --kind target.")
    if captioner.configuration.model.kind == "captioner":
        what = f"a recurrent decoder has no {kind} mask: it reads its words one after the other"
        raise UserError(what, file=run, fix="Draw one of a captioning Transformer.")
    captions = [captioner.caption(picture_of(captioner, image)) for image in images]
    return draw_batch_mask(kind, captioner.tokenizer, [], [one.nbest[0].hypothesis.tokens for one in captions])
