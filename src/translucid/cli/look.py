"""`translucid look`.

**Examples**

    translucid look runs/demo "I like soccer" --layer 1 --head 0

    translucid look runs/demo "I like soccer" --method contributions

    translucid look runs/demo "I like soccer and also going to the beach" --save maps.html

    translucid look runs/demo "I like soccer" --save why.html --why erasure

    translucid look runs/demo "I like soccer" --lens logit --save layers.png

    translucid look runs/context "It is cold." --context "The soup is ready." --method contributions

    translucid look opus-mt-en-ROMANCE "I like soccer" --target-language es --language-piece

    translucid look runs/demo --tsv runs/demo/phrasebook/test.tsv --save test.npz

    translucid look runs/demo "I like soccer" --ablate decoder.1.cross.head.0

    translucid look runs/demo "I like soccer" --memory mine.memory

    translucid look runs/eyes photograph.jpg --save looked.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from rich.text import Text
from typer import Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.combinations import refuse_unsuitable
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import configuration_of, translator_of, view_of
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import ENDINGS, refuse_untranslated
from translucid.layers.variants import Method

if TYPE_CHECKING:
    from translucid.api.translation import SentenceInContext, Translation
    from translucid.api.translator import Translator
    from translucid.engines.choosing import EngineName
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.lens import DecoderLens, Lens


class View(NamedTuple):
    """View."""

    target: Annotated[str | None, Option(help="Show this target (by forced decoding) instead of the model's.")] = None
    layer: Annotated[int | None, Option(help="One decoder layer instead of the average of all.")] = None
    head: Annotated[int | None, Option(help="One head instead of the average of all.")] = None
    flow: Annotated[bool, Option("--flow", help="The attention through all layers (attention rollout).")] = False
    lens: Annotated[
        Literal["logit", "tuned", "decoder"] | None,
        Option(help="What each layer predicts; decoder: what is written from each layer of the encoder."),
    ] = None
    method: Annotated[
        Method, Option(help="Attention weights, those of content words only, norms, or contributions (ALTI+).")
    ] = "weights"
    context: option.Context = None
    memory: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Retrieve from this memory (`translate --knn`); show which segment decided a word."
        ),
    ] = None
    language_piece: Annotated[
        bool, Option("--language-piece", help="The heads that read the language piece of a multilingual model.")
    ] = False
    formality: option.Formality = None
    device: option.Device = "auto"

    @property
    def needs_attention(self) -> bool:
        """Whether a part of the attention or another method is chosen."""
        return self.layer is not None or self.head is not None or self.flow or self.method != "weights"

    @property
    def contributions(self) -> bool:
        """Whether the method needs contributions."""
        return self.method in ("norms", "contributions")


class Saving(NamedTuple):
    """Saving."""

    save: Annotated[Path | None, option.to_save("Save as .html, .png, .svg, .pdf, .json or .npz.", *ENDINGS)] = None
    why: Annotated[
        list[str] | None, Option(metavar="METHOD", callback=option.checked_methods, help="Explain by erasure, lime ...")
    ] = None
    tsv: Annotated[list[str] | None, option.files("Save the attention over sentence pairs as .npz.")] = None
    overwrite: option.Overwrite = False

    @property
    def saves_page(self) -> bool:
        """Whether an HTML page is saved."""
        return self.save is not None and self.save.suffix.lower() == ".html"


@with_examples(__doc__)
def look(
    run: option.Run,
    text: Annotated[
        str | None, option.Text(metavar="[TEXT|IMAGE]", help="A text, or for a captioner an image.")
    ] = None,
    *,
    view: View,
    interventions: option.Interventions,
    saving: Saving,
    languages: option.Languages,
) -> None:
    """Show the attention of one translation or caption.

    This is cross-attention, averaged over all heads and layers unless one is chosen. It shows where the model looked,
    not why it wrote a word. Words with a probability below 30 % are underlined. The confidence of the translation is
    shown if `translucid tune confidence` has fitted it.

    --lens shows the prediction of each decoder layer in place of attention, and marks the layer from which on it is the
    word written. `tuned` needs `translucid tune lens`. `decoder` shows the translation that the decoder writes from
    each layer of the encoder.

    --method content leaves out the attention to punctuation, the end token and language tokens, where heads look that
    have nothing to do. --method norms shows how much a head adds from each source word. --method contributions shows
    the share of each source word in the translated word, and how much comes from the translation so far. These two need
    a Transformer.

    A run that was trained with data.context shows the words of the previous sentences too, before ‖, and names the one
    that contributes most, if that is much.

    --memory translates as `translate --memory FILE --knn` does, and lists the words that a similar segment changed or
    supported, each with its share of the word's probability.

    For an image, a picture has one panel per word, and a page highlights the image for the selected word. --flow,
    --ablate, --feature, --tsv, --context, --memory and --language-piece are for text only.

    For a text classifier, the probability of the label after each word is shown, in the terminal, as .html or .json.
    """
    if saving.why and not saving.saves_page:
        raise UserError("--why is shown by a page", fix="Save one: --save why.html.")
    reads, method = configuration_of(run).model.reads, f"--method {view.method}"
    lenses = ["--lens", f"--lens {view.lens}"] if view.lens else []
    refuse_unsuitable(
        "look", option.changed_flags(view, interventions, saving), method, *lenses, reads, f"{reads}, {method}"
    )
    if view.lens == "decoder" and saving.save and saving.save.suffix.lower() not in _KINDS:
        fix = "End it in .html or .json."
        raise UserError("is no kind that translations are saved as", file=saving.save, fix=fix)
    if other := view_of(reads, "look"):
        other(run, text, view, saving.save)
        return
    load = partial(_load, run, view, interventions, languages)
    _look_at_translation(run, text, view, saving, load)


def _look_at_translation(
    run: Path, text: str | None, view: View, saving: Saving, load: Callable[..., Translator]
) -> None:
    """Look at a translation; `load` returns the translator, given an engine if one is needed."""
    from translucid.api.translation import SentenceInContext
    from translucid.decoding.maps import chosen_maps
    from translucid.inspection.rendering.saving import save
    from translucid.inspection.rendering.terminal import retrieval_table

    if view.memory and (view.lens or view.target is not None or saving.saves_page or saving.tsv):
        fix = "Leave out --lens, --target, --tsv and the page."
        raise UserError("--memory shows a new translation in the terminal", fix=fix)
    if saving.tsv:
        file = saving.save
        if view.context is not None or view.language_piece:
            raise UserError("--context and --language-piece are for one text", fix="Leave them out, or --tsv.")
        if text is not None or view.target is not None or file is None or file.suffix.lower() != ".npz":
            raise UserError("the attention over sentence pairs goes into a file", fix="Give --tsv PAIRS --save X.npz.")
        _save_all(load("torch"), saving.tsv, file, contributions=view.contributions)
        return
    if not text or (view.target is not None and not view.target.strip()):
        raise UserError("there is nothing to look at", fix="Give a text with words in it.")
    translator = load()
    if view.memory:
        translator = translator.with_knn(view.memory)
    if view.lens:
        look_at_layers(translator, text, view, saving.save)
        return
    if translator.inspector.has_cross_attention:
        chosen_maps(translator.inspector.heads, "cross", view.layer, view.head)
    elif saving.save or view.needs_attention:
        raise UserError("the model has no attention", file=run, fix="Train one that has: translucid models.")
    before = translator.inspector.after(view.context).before
    translation = translator.translate(text, context=view.context) if view.target is None else None
    target = translation.text if translation else view.target or ""
    if not translator.inspector.has_cross_attention:
        Console().print(Text(target, "bold"))
        Console().print("\nThe model has no attention: all that it knew of the source was one vector.")
        return
    has_context = any(translation.contexts) if translation else bool(before)
    contributions = view.contributions or (
        (saving.saves_page or has_context) and translator.inspector.has_contributions
    )
    if translation:
        pieces = translation.inspect(contributions=contributions, with_context=True)
    else:
        pieces = translator.inspector.inspect([(text, target)], contributions=contributions, context=view.context)
    if translation and saving.save:
        refuse_untranslated(pieces)
    _print_translation(translator, translation, target, pieces)
    if translation and translation.retrieved:
        Console().print()
        Console().print(retrieval_table(translation.retrieved))
    _print_attention(pieces, view)
    if saving.save:
        details: list[dict[str, Any]] = []
        if saving.saves_page:
            details = _details(translator, translation, [SentenceInContext(text, target, before)], saving.why or ())
        save(pieces, saving.save, text, target, view.layer, view.head, details, view.method)
        Console().print(f"\nsaved: {saving.save}", soft_wrap=True)


def _load(
    run: Path,
    view: View,
    interventions: option.Interventions,
    languages: option.Languages,
    engine: EngineName = "auto",
) -> Translator:
    """Load the translator with its form of address and its interventions."""
    from translucid.inspection.intervention import interventions_of

    engine = "torch" if interventions.values else engine
    translator = translator_of(run, languages, view.device, engine).with_formality(view.formality)
    if not interventions.values:
        return translator
    return translator.with_interventions(*interventions_of(run, interventions.values))


def _print_translation(
    translator: Translator, translation: Translation | None, target: str, pieces: Sequence[Inspected]
) -> None:
    """Print what was written, its words of low probability and, if it is the model's translation, its warnings."""
    from translucid.decoding.hypothesis import percent
    from translucid.evaluation.confidence import UNSURE
    from translucid.inspection.rendering.terminal import with_unsure

    words: list[tuple[str, float]] = []
    for piece in pieces:
        words += piece.word_probabilities()
    console = Console()
    console.print(with_unsure(target, words))
    unsure_words = [f"{word} {percent(probability)}" for word, probability in words if probability < UNSURE]
    if unsure_words:
        console.print(f"not sure of: {', '.join(unsure_words)}")
    if not translation:
        return
    if translation.confidence is not None:
        console.print(f"confidence {percent(translation.confidence)}")
    for warning in (translator.quality.estimator_note, *translation.warnings, *translation.attention_warnings):
        if warning:  # there may be no note
            console.print(f"warning: {warning}", soft_wrap=True)


def _print_attention(pieces: Sequence[Inspected], view: View) -> None:
    from translucid.inspection.inspected import largest_context_contribution, readers_table
    from translucid.inspection.rendering.terminal import attention_table, heatmap, source_table

    console = Console()
    if not pieces:
        console.print("\nThe model translates no part of this text: it stays as it is.")
    for piece in pieces:
        if view.flow:
            words = piece.words(piece.rollout())
        else:
            words = piece.cross_words(view.layer, view.head, view.method)
        console.print()
        console.print(heatmap(words, console.width))
        console.print()
        console.print(attention_table(words))
        if view.method == "contributions":
            console.print()
            console.print(source_table(piece.target_words, piece.source_contributions(), piece.prefix_words()))
        if piece.contributions and (largest := largest_context_contribution(piece)):
            console.print(f"\n{largest}", soft_wrap=True, highlight=False, markup=False)
        if view.language_piece:
            console.print()
            console.print(readers_table(piece))


def _details(
    translator: Translator, translation: Translation | None, sentences: list[SentenceInContext], methods: Sequence[str]
) -> list[dict[str, Any]]:
    """Return what a page shows of each part of a text besides attention.

    Args:
        translator: the translator.
        translation: the model's own translation, if the page shows it.
        sentences: the text with another translation, and the sentences before it.
        methods: the methods of explanations.
    """
    from translucid.inspection.explain import Case, explanation_record
    from translucid.inspection.rendering.html import beam_record

    details = []
    options = translator.configuration.decoding
    for source, target, before in translation.in_context if translation else sentences:
        inspector = replace(translator.inspector, before=before)
        piece_details = inspector.page_details(source, target)
        if translation:
            search = inspector.trace(source, options.beam)
            piece_details["tree"] = beam_record(search, options.beam, translator.tokenizer, options.length_penalty)
        if methods:
            case = Case(translator.model, translator.pipeline, source, target, before)
            piece_details["explanations"] = {method: explanation_record(case, method) for method in methods}
        details.append(piece_details)
    return details


def _save_all(translator: Translator, files: list[str], save: Path, *, contributions: bool) -> None:
    """Write the attention during forced decoding of sentence pairs."""
    from translucid.inspection.rendering.saving import save_maps
    from translucid.runs.corpus_files import pairs_of

    pairs = list(pairs_of(translator.configuration.data, *pair_up(files)))
    log = Console(stderr=True)
    with progress_bar(log, "looking", len(pairs)) as advance:
        count = save_maps(translator.inspector.inspect_all(pairs, advance, contributions=contributions), save)
    log.print(f"saved: {save}, {count:,} pairs", soft_wrap=True)


_KINDS = ".html", ".json"
"""The formats in which the DecoderLens is saved."""


def look_at_layers(translator: Translator, text: str, view: View, save: Path | None) -> None:
    """Show what each layer of a translator predicts.

    Raises:
        UserError: the model is no Transformer, there is no tuned lens, or nothing is translated.
    """
    if view.lens == "decoder":
        show_translations(translator.inspector.decoder_lens(text, context=view.context), save)
    else:
        lenses = translator.inspector.lens(text, view.target, tuned=view.lens == "tuned", context=view.context)
        show_lenses(lenses, text, save)


def show_lenses(lenses: list[Lens], source: str, save: Path | None) -> None:
    """Print the lenses of a text, and save them if a file is given."""
    from translucid.inspection.lens import NOTE, terminal_table
    from translucid.inspection.rendering.saving import save_lenses

    refuse_untranslated(lenses)
    console = Console()
    for lens in lenses:
        console.print(terminal_table(lens))
        console.print()
    console.print(NOTE)
    if save:
        save_lenses(lenses, save, source)
        console.print(f"\nsaved: {save}", soft_wrap=True)


def show_translations(lens: DecoderLens, save: Path | None) -> None:
    """Print what is written from each encoder layer, and save it if a file is given."""
    from translucid.inspection.lens import terminal_translations
    from translucid.inspection.rendering.saving import save_decoder_lens

    console = Console()
    console.print(terminal_translations(lens))
    if save:
        save_decoder_lens(lens, save)
        console.print(f"\nsaved: {save}", soft_wrap=True)
