"""`translucid look`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, pair_up, refuse_to_replace
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator


def look(
    run: RunArgument,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT|IMAGE]", help="What to translate; of a captioner's run, an image file."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Watch the model write this instead of its own translation.")
    ] = None,
    layer: Annotated[int | None, typer.Option(help="One decoder layer instead of the average of all.")] = None,
    head: Annotated[int | None, typer.Option(help="One head instead of the average of all.")] = None,
    flow: Annotated[bool, typer.Option("--flow", help="What flowed through all layers (attention rollout).")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save as .html, .png, .svg, .pdf, .json or .npz.")
    ] = None,
    why: Annotated[
        list[str] | None,
        typer.Option("--why", metavar="METHOD", help="With --save x.html: explain it too: erasure, lime, gradients."),
    ] = None,
    tsv: Annotated[
        list[str] | None,
        typer.Option("--tsv", metavar="FILES", help="Sentence pairs: save the attention over all of them as .npz."),
    ] = None,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --save if it is there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Show the attention of one translation or caption.

    What is shown is cross-attention, averaged over all heads and layers if none is chosen. It tells where the model
    looked, not why it wrote what it wrote. Words under a probability of 30 % are underlined; how sure the whole is, is
    told if `translucid tune --confidence` has fitted that.

    Of an image, a picture has one panel a word, a page lights up the image for the word that is pointed at. There is no
    --flow and no --tsv.

    Of a text with a label, how the label's probability moves as the words are read, in the terminal, as .html or .json.

    **Examples**

        translucid look runs/demo "I like soccer"

        translucid look runs/demo "I like soccer" --layer 1 --head 0

        translucid look runs/demo "I like soccer and also going to the beach" --save maps.html

        translucid look runs/demo "I like soccer" --save why.html --why erasure

        translucid look runs/demo --tsv runs/demo/phrasebook/test.tsv --save test.npz

        translucid look runs/eyes photograph.jpg --save looked.html
    """
    from translucid.ground.errors import UserError
    from translucid.inspection import ENDINGS, refuse_picture, refuse_untranslated
    from translucid.inspection.explain import refuse_method

    refuse_to_replace(save, overwrite, ENDINGS)
    if save:
        refuse_picture(save)
    if why and (save is None or save.suffix.lower() != ".html"):
        raise UserError("--why is shown by a page", fix="Save one: --save why.html.")
    for method in why or ():
        refuse_method(method)
    from translucid.cli.images import captioner_of, look_at_image, refuse_for
    from translucid.cli.texts import classifier_of, look_at_text
    from translucid.data.readers.file_kinds import refuse_file_names

    captioner = captioner_of(run, device)
    if not captioner:
        refuse_file_names([text or ""])
    if classifier := classifier_of(run, device):
        refuse_for("translations", {"--flow": flow, "--tsv": tsv, "--layer": layer, "--head": head, "--why": why})
        look_at_text(classifier, text, target, save)
        return
    if captioner:
        refuse_for("texts", {"--flow": flow, "--tsv": tsv, "--why": why})
        look_at_image(captioner, run, text, target, layer, head, save)
        return
    from translucid.api.translator import Translator
    from translucid.decoding.hypothesis import percent
    from translucid.decoding.maps import chosen_maps
    from translucid.evaluation.confidence.features import UNSURE
    from translucid.inspection.saving import save as save_attention
    from translucid.inspection.terminal import heatmap, looked_at, with_unsure

    if tsv:
        if text is not None or target is not None or save is None or save.suffix.lower() != ".npz":
            raise UserError("the attention over sentence pairs goes into a file", fix="Give --tsv PAIRS --save X.npz.")
        _save_all(Translator.load(run, device, "torch", source=source_language, target=target_language), tsv, save)
        return
    if not (text or "").strip() or (target is not None and not target.strip()):
        raise UserError("there is nothing to look at", fix="Give a text with words in it.")
    assert text is not None
    console = Console()
    translator = Translator.load(run, device, source=source_language, target=target_language)
    if not translator.can_look():
        if save or layer is not None or head is not None or flow:
            raise UserError("the model has no attention", file=run, fix="Train one that has: translucid models.")
        console.print(Text(translator.translate(text).text if target is None else target, "bold"))
        console.print("\nThe model has no attention: all that it knew of the source was one vector.")
        return
    chosen_maps(translator.heads, "cross", layer, head)
    if target is None:
        found = translator.translate(text)
        written, pieces = found.text, found.inspected
        if save:
            refuse_untranslated(pieces)
    else:
        written, pieces = target, translator.inspect([(text, target)])
    words = [pair for one in pieces for pair in one.word_probabilities()]
    console.print(with_unsure(written, words))
    if unsure := [f"{word} {percent(p)}" for word, p in words if p < UNSURE]:
        console.print(f"not sure of: {', '.join(unsure)}")
    if target is None:
        if found.confidence is not None:
            console.print(f"confidence {percent(found.confidence)}")
        for line in filter(None, [translator.estimator_note, *found.warnings, *found.attention_warnings]):
            console.print(f"warning: {line}", soft_wrap=True)
    if not pieces:
        console.print("\nThe model translates no part of this text: it stays as it is.")
    for one in pieces:
        shown = one.words(one.rollout() if flow else one.cross(layer, head))
        console.print()
        console.print(heatmap(shown, console.width))
        console.print()
        console.print(looked_at(shown))
    if save:
        trees = _trees(translator, found) if target is None and save.suffix.lower() == ".html" else []
        sentences = found.sentences if target is None else [(text, target)]
        whys = [_whys(translator, *sentence, why or ()) for sentence in sentences]
        save_attention(pieces, save, text, written, layer, head, trees, whys)
        console.print(f"\nsaved: {save}", soft_wrap=True)


def _trees(translator: Translator, found: Translation) -> list[dict[str, Any]]:
    """Return the tree of the beam search of each part of a text."""
    from translucid.inspection.records import beam_record

    options = translator.configuration.decoding
    about = options.beam, translator.tokenizer, options.length_penalty
    return [beam_record(translator.trace(piece.text, options.beam), *about) for piece, _ in found.parts]


def _whys(translator: Translator, source: str, written: str, methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the explanations of a sentence by method."""
    from translucid.inspection.explain.case import Case
    from translucid.inspection.explain.faithfulness import why_record

    if not methods:
        return {}
    case = Case(translator.model, translator.pipeline, source, written)
    return {method: why_record(case, method) for method in methods}


def _save_all(translator: Translator, files: list[str], save: Path) -> None:
    """Write the attention of a model that is made to write the targets of sentence pairs."""
    from translucid.ground.console import counting
    from translucid.inspection.archive import save_maps
    from translucid.runs.corpus_files import pairs_of

    pairs = list(pairs_of(translator.configuration.data, *pair_up(files)))
    log = Console(stderr=True)
    with counting(log, "looking", len(pairs)) as advance:
        count = save_maps(translator.inspect_all(pairs, advance), save)
    log.print(f"saved: {save}, {count:,} pairs", soft_wrap=True)
