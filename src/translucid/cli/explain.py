"""`translucid explain`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, refuse_to_replace
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.api.captioner import Captioner
    from translucid.inspection.explain import Faithfulness

KINDS = (".png", ".svg", ".pdf", ".html", ".json")
"""What an explanation of a caption is saved as."""


def explain(
    run: RunArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT|IMAGE", help="What to translate; of a captioner's run, an image file.")
    ],
    target: Annotated[str | None, typer.Option(help="Explain this instead of what the model writes itself.")] = None,
    method: Annotated[str, typer.Option(help="erasure, lime, gradients, attention or random.")] = "erasure",
    samples: Annotated[int, typer.Option(help="Of LIME: sources with random parts left out.", min=10)] = 500,
    k: Annotated[
        int | None,
        typer.Option("--k", help="Source words taken away or kept to test the explanation; 1 if not given.", min=1),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="The same for an image: the share of its cells or superpixels; 0.1 if not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of an image or a label: save as .html, .png, .svg, .pdf or .json."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --save if it is there.")] = False,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Explain a prediction: which source words each target word depends on, with a faithfulness test.

    Attention shows where the model looked. These methods ask what happens when parts of the source are not there. Of a
    text, erasure leaves out one word at a time, LIME fits a linear model to many such sources, gradients go the way
    from no words to these. A text of several sentences is explained sentence by sentence.

    Of a text with a label, the label is explained, or that of --target.

    Of an image, erasure masks one cell of the grid at a time, LIME paints over superpixels with their mean colour,
    gradients go the way from a grey image. LIME and gradients need the packages of the extra `explain`.

    The test leaves out the parts said to matter, or all others, and measures how far the log-probability of the target
    word falls; the same for random parts, to compare with.

    **Examples**

        translucid explain runs/demo "I like soccer"

        translucid explain runs/demo "I like soccer" --json

        translucid explain runs/demo "I like soccer" --method lime

        translucid explain runs/eyes photograph.jpg --method lime --save why.html

        translucid explain runs/mood "I want my money back" --method gradients --save why.html
    """
    from translucid.api.translator import Translator
    from translucid.cli.images import captioner_of, refuse_for
    from translucid.cli.texts import classifier_of, explain_label
    from translucid.data.readers.file_kinds import refuse_file_names
    from translucid.ground.errors import UserError
    from translucid.inspection import refuse_picture, refuse_untranslated
    from translucid.inspection.explain import compare_with_random, refuse_method
    from translucid.inspection.explain import explain as explaining
    from translucid.inspection.explain.case import Case
    from translucid.inspection.explain.shown import record
    from translucid.inspection.terminal import importance_table

    refuse_method(method)
    refuse_to_replace(save, overwrite, KINDS)
    if save:
        refuse_picture(save)
    if share is not None and not 0 < share <= 1:
        raise UserError(f"--share {share} is no share of an image", fix="Give more than 0, at most 1.")
    captioner = captioner_of(run, device)
    if not captioner:
        refuse_file_names([text])
    if classifier := classifier_of(run, device):
        refuse_for("images", {"--share": share})
        explain_label(classifier, text, target, method, samples, k or 1, as_json, save)
        return
    if captioner:
        refuse_for("texts", {"--k": k})
        _explain_image(captioner, run, text, target, method, samples, share, as_json, save)
        return
    refuse_for("images", {"--share": share, "--save": save})
    k = k or 1
    if not text.strip() or (target is not None and not target.strip()):
        raise UserError("there are no words to explain", fix="Give a text with words in it.")
    translator = Translator.load(run, device, source=source_language, target=target_language)
    if method == "attention" and not translator.can_look():
        raise UserError("the model has no attention", file=run, fix="Use --method erasure.")
    console = Console()
    sentences = translator.translate(text).sentences if target is None else [(text, target)]
    refuse_untranslated(sentences)
    for source, written in sentences:
        case = Case(translator.model, translator.pipeline, source, written)
        found = explaining(case, method, samples=samples)
        scores = compare_with_random(case, found, k)
        if as_json:
            print(json.dumps(record(found, scores), ensure_ascii=False))
            continue
        console.print(Text(f"{written}\n", "bold"))
        console.print(importance_table(found.source, found.target, found.importance, found.fit))
        _print_faithfulness(console, f"the {k} most important source words of each word", scores)
        console.print()


def _explain_image(
    captioner: Captioner,
    run: Path,
    image: str,
    target: str | None,
    method: str,
    samples: int,
    share: float | None,
    as_json: bool,
    save: Path | None,
) -> None:
    """Explain a caption: LIME by superpixels, the others by cells."""
    from translucid.cli.images import looked_at, picture_of
    from translucid.ground.errors import UserError
    from translucid.inspection.explain import compare_with_random, part_count, refuse_method
    from translucid.inspection.explain import explain as explaining
    from translucid.inspection.explain.image_case import image_case
    from translucid.inspection.explain.shown import SHARE, lit, record, where
    from translucid.inspection.saving_images import save_lit
    from translucid.inspection.terminal_images import drawings, place_table

    refuse_method(method, images=True)
    if method == "attention" and not captioner.can_look():
        raise UserError("the model has no attention", file=run, fix="Use --method erasure.")
    picture = picture_of(captioner, image)
    caption = " ".join(looked_at(captioner, picture, target).words)
    parts = "superpixels" if method == "lime" else "cells"
    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, caption, captioner.grid)
    found = explaining(case, method, samples=samples)
    k = part_count(SHARE if share is None else share, len(found.source))
    scores = compare_with_random(case, found, k)
    shown, told = (
        lit(case, found),
        {"image": Path(image).name, "parts": parts, "k": k, **record(found, scores), **where(case)},
    )
    if save:
        title = f"{method}: the {parts} that speak for each word"
        save_lit(shown, save, Path(image).name, lambda: {title: shown}, told, title)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return
    console = Console()
    console.print(Text(f"{caption}\n", "bold"))
    console.print(drawings(shown, console.width, colour=console.color_system is not None))
    console.print()
    console.print(place_table(shown))
    which = f"the {k} most important of {len(found.source)} {parts} for each word"
    _print_faithfulness(console, which, scores)
    if save:
        console.print(f"\nsaved: {save}", soft_wrap=True)


def _print_faithfulness(console: Console, which: str, scores: Mapping[str, Faithfulness]) -> None:
    """Say how far the log-probability of a target word falls without some parts of the source, and with them alone."""
    console.print(f"\nlog-probability lost, in nats, with {which}")
    for name, score in scores.items():
        console.print(f"  {name:10} left out {score.comprehensiveness:6.2f}   alone {score.sufficiency:6.2f}")
