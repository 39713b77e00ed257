"""Captioners in `evaluate`, `look`, `explain` and `draw`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from translucid.captions.caption_scores import score_captions
from translucid.captions.captioner import Captioner
from translucid.captions.image_files import ImageFiles
from translucid.captions.kinds import PACKAGES
from translucid.captions.pixels import Picture
from translucid.captions.saliency_overlay import (
    AttentionResult,
    SaliencyOverlay,
    draw_saliency,
    drawings,
    page,
    place_table,
    save_attention,
    sections_of,
)
from translucid.cli.evaluate import EvaluationRequest
from translucid.cli.explain import Explanation, Output, print_contrast, print_faithfulness
from translucid.cli.look import View, show_lenses, show_translations
from translucid.cli.printing import evenly_spread, print_json, print_scores
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.maps import chosen_maps
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.rendering.saving import save_view
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.decoding.trace import BeamTrace
    from translucid.inspection.plots import MaskKind


def evaluate_captions(asked: EvaluationRequest) -> None:
    """Caption a test set and score the captions.

    Raises:
        UserError: there are no captions, or a file can't be read.
    """
    run, configuration, test, data, translation, scoring, report = asked
    pairs = list(read_pairs(*test))
    if not pairs:
        raise UserError("holds no captions", file=test[0], fix="Check the file.")
    folders = data.images or list(dict.fromkeys(Path(file).parent for file in test))
    files = ImageFiles.open(folders)
    boxes = None
    if data.gold:
        from translucid.captions.pointing import read_gold  # knows the words of the built-in scenes

        boxes = read_gold(data.gold)
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


def look_at_image(run: Path, image: str | None, view: View, save: Path | None) -> None:
    """Caption an image, and show for each word where the model looked.

    Raises:
        UserError: there is no image, it can't be read, the caption has no words, or the model has no attention, no
            such layer or no such head.
    """
    captioner = Captioner.load(run, view.device)
    if view.lens:
        _look_at_layers(captioner, image, view, save)
        return
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


def heads_of_image(run: Path, image: str, layer: int | None, kind: Literal["cross", "encoder", "decoder"]) -> Figure:
    """Draw the heads of a layer, or of all: on the image, or between the words of its caption.

    Raises:
        UserError: the image can't be read, or the model has no such attention, or it is that between cells.
    """
    from translucid.captions.saliency_overlay import draw_saliency_rows
    from translucid.inspection.plots import draw_attention, draw_heads

    captioner = Captioner.load(run)
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


def mask_of_images(run: Path, images: Sequence[str], kind: MaskKind) -> Figure:
    """Draw the attention mask for the captions of a batch of images.

    Raises:
        UserError: an image can't be read, or there is no such mask.
    """
    from translucid.inspection.plots import draw_batch_mask

    captioner = Captioner.load(run)
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


def beam_of_image(run: Path, image: str, width: int) -> BeamTrace:
    """Return the search tree of a caption.

    Raises:
        UserError: the image can't be read.
    """
    captioner = Captioner.load(run)
    return captioner.trace(picture_of(captioner, image), width)


def _look_at_layers(captioner: Captioner, image: str | None, view: View, save: Path | None) -> None:
    """Show what each layer of a captioner predicts.

    Raises:
        UserError: the model is no Transformer, the image can't be read, or a tuned lens is requested.
    """
    if view.lens == "tuned":
        raise UserError("a tuned lens is for translators", fix="Use --lens logit.")
    picture = picture_of(captioner, image)
    if view.lens == "decoder":
        show_translations(captioner.decoder_lens(picture), save)
    else:
        show_lenses([captioner.lens(picture, view.target)], image or "", save)


def explain_image(run: Path, image: str, options: Explanation, output: Output) -> None:
    """Explain a caption: LIME by superpixels, the other methods by cells."""
    from translucid.captions.image_cases import SHARE, image_case, overlay_of, part_positions
    from translucid.inspection.explain import compare_with_random, contrast, explain, part_count, record, refuse_method

    captioner = Captioner.load(run, options.device)
    method = options.method
    refuse_method(method, PACKAGES)
    if method == "attention" and not captioner.can_look():
        raise UserError("the model has no attention", file=run, fix="Use --method erasure.")
    picture = picture_of(captioner, image)
    caption = " ".join(looked_at(captioner, picture, options.target).words)
    parts = "superpixels" if method == "lime" else "cells"
    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, caption, captioner.grid)
    contrasted, target_label = None, "each word"
    if options.instead_of is not None:
        contrasted = contrast(case, options.instead_of, options.word)
        target_label = contrasted.label
    explanation = explain(contrasted or case, method, samples=options.samples)
    k = part_count(SHARE if options.share is None else options.share, len(explanation.source))
    scores = compare_with_random(contrasted or case, explanation, k)
    overlay, name = overlay_of(case, explanation, contrasted), Path(image).name
    content = {"image": name, "parts": parts, "k": k, **record(explanation, scores, contrasted), **part_positions(case)}
    if output.save:
        title = f"{method}: the {parts} that speak for {target_label}"
        save_view(output.save, lambda: page(name, {title: overlay}), content, lambda: draw_saliency(overlay, title))
    if output.as_json:
        print(json.dumps(content, ensure_ascii=False))
        return
    console = Console()
    console.print(Text(f"{caption}\n", "bold"))
    print_contrast(console, contrasted)
    console.print(drawings(overlay, console.width, color=console.color_system is not None))
    console.print()
    console.print(place_table(overlay))
    description = f"the {k} most important of {len(explanation.source)} {parts} for each word"
    print_faithfulness(console, description, scores, contrasted)
    if output.save:
        console.print(f"\nsaved: {output.save}", soft_wrap=True)
