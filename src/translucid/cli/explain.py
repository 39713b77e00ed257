"""`translucid explain`.

**Examples**

    translucid explain runs/demo "I like soccer"

    translucid explain runs/demo "I like soccer" --method lime --json

    translucid explain runs/demo "I like the house" --instead-of el --word la

    translucid explain runs/context "It is cold." --context "The soup is ready." --instead-of frío

    translucid explain runs/eyes photograph.jpg --method lime --save why.html

    translucid explain runs/mood "I want my money back" --method gradients --save why.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rich.text import Text
from typer import Option

from translucid.cli import option
from translucid.cli.combinations import refuse_unsuitable
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import configuration_of, translator_of, view_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import PAGES, refuse_untranslated

if TYPE_CHECKING:
    from translucid.inspection.explain import Contrast, Faithfulness


class Explanation(NamedTuple):
    """Explanation."""

    target: Annotated[str | None, Option(help="Explain this target instead of the model's own output.")] = None
    method: Annotated[
        str, Option(callback=option.checked_methods, help="erasure, lime, gradients, attention or random.")
    ] = "erasure"
    instead_of: Annotated[
        str | None, Option(metavar="WORD", help="Explain why a word is there and not this one; or a label.")
    ] = None
    word: Annotated[
        str | None,
        Option(metavar="WORD|N", help="Which word that is, or its position from 0; by default, the closest to WORD."),
    ] = None
    samples: Annotated[int, Option(help="For LIME: sources with random parts left out.", min=10)] = 500
    context: option.Context = None
    k: Annotated[int | None, Option("--k", help="Test with this many words left out, or kept (1).", min=1)] = None
    share: Annotated[float | None, Option(help="For an image: test with this share of the cells (0.1).")] = None
    device: option.Device = "auto"


class Output(NamedTuple):
    """Output."""

    as_json: option.Json = False
    save: Annotated[Path | None, option.to_save("For an image or a label: save as .html, .png ...", *PAGES)] = None
    overwrite: option.Overwrite = False


@with_examples(__doc__)
def explain(
    run: option.Run,
    text: option.TextOrImage,
    *,
    options: Explanation,
    output: Output,
    languages: option.Languages,
) -> None:
    """Explain a prediction: which source words each target word depends on, with a faithfulness test.

    Attention shows where the model looks. These methods measure what changes without parts of the source. For a text,
    erasure leaves out one word at a time, LIME fits a linear model to many such sources, gradients integrate along the
    way from no words to these words. A text of several sentences is explained sentence by sentence. For a
    run with document context, the words of previous sentences are parts of the source too.

    With --instead-of, they explain the log-odds of a word to another one after the same words, log p(a) - log p(b).

    For a text classifier, the label is explained, or that of --target.

    For an image, erasure masks one cell of the grid at a time, LIME paints superpixels in their mean color, gradients
    integrate from a gray image. LIME and gradients need the packages of the extra `explain`.

    The test leaves out the most important parts, or all others, and measures how far the log-probability of the target
    word falls; the same with random parts, for comparison.
    """
    if options.share is not None and not 0 < options.share <= 1:
        raise UserError(f"--share {options.share} is no share of an image", fix="Give more than 0, at most 1.")
    if options.word is not None and options.instead_of is None:
        raise UserError("--word is for --instead-of", fix="Give both, or leave it out.")
    flags = option.changed_flags(options, output)
    reads = configuration_of(run).model.reads
    refuse_unsuitable("explain", flags, reads)
    if view := view_of(reads, "explain"):
        view(run, text, options, output)
        return
    _explain_translation(run, text, options, languages, as_json=output.as_json)


def _explain_translation(
    run: Path, text: str, options: Explanation, languages: option.Languages, *, as_json: bool
) -> None:
    from translucid.api.translation import SentenceInContext
    from translucid.inspection.explain import Case, compare_with_random, contrast, explain, record
    from translucid.inspection.rendering.terminal import importance_table
    from translucid.inspection.words import with_context_marked

    k, target = options.k or 1, options.target
    if target is not None and not target.strip():
        raise UserError("there are no words to explain", fix="Give a target with words in it.")
    translator = translator_of(run, languages, options.device)
    if options.method == "attention" and not translator.inspector.has_cross_attention:
        raise UserError("the model has no attention", file=run, fix="Use --method erasure.")
    console = Console()
    if target is None:
        sentences = translator.translate(text, context=options.context).in_context
    else:
        sentences = [SentenceInContext(text, target, translator.inspector.after(options.context).before)]
    refuse_untranslated(sentences)
    if options.instead_of is not None and len(sentences) > 1:
        raise UserError(f"--instead-of is for one sentence, not {len(sentences)}", fix="Give one of them.")
    # Each sentence was translated by itself: no other sentences have an influence but those before it.
    for source, translation, before in sentences:
        full_case = Case(translator.model, translator.pipeline, source, translation, before)
        contrasted = None
        if options.instead_of is not None:
            contrasted = contrast(full_case, options.instead_of, options.word)
        case = contrasted or full_case
        explanation = explain(case, options.method, samples=options.samples)
        scores = compare_with_random(case, explanation, k)
        if as_json:
            print(json.dumps(record(explanation, scores, contrasted), ensure_ascii=False))
            continue
        console.print(Text(f"{translation}\n", "bold"))
        print_contrast(console, contrasted)
        parts = with_context_marked(explanation.source, explanation.context)
        console.print(importance_table(parts, explanation.target, explanation.importance, explanation.fit))
        print_faithfulness(console, f"the {k} most important source words of each word", scores, contrasted)
        console.print()


def print_contrast(console: Console, contrasted: Contrast | None) -> None:
    """Print which words are contrasted, and their log-odds."""
    if contrasted:
        line = f"{contrasted.label} (word {contrasted.word}): log-odds {contrasted.log_odds:+.2f} nats\n"
        console.print(Text(line), highlight=False)


def print_faithfulness(
    console: Console, description: str, scores: Mapping[str, Faithfulness], contrasted: Contrast | None
) -> None:
    """Print how far the log-probability of a target word falls without some parts of the source, and with only them."""
    quantity = "log-odds" if contrasted else "log-probability"
    console.print(f"\n{quantity} lost, in nats, with {description}")
    for name, score in scores.items():
        console.print(f"  {name:10} left out {score.comprehensiveness:6.2f}   alone {score.sufficiency:6.2f}")
