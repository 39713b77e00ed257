"""`translucid features`.

**Examples**

    translucid features runs/demo --text runs/demo/phrasebook/train.tsv

    translucid features runs/demo "I like soccer"

    translucid features runs/demo --card decoder.1.feature.412 --save card.html

    translucid features runs/demo --labels labeled.jsonl

    translucid features runs/opus-mt --text news.en.txt --expansion 16 --device cuda
"""

from __future__ import annotations

import json
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.translator import Translator


class Learning(NamedTuple):
    """Learning."""

    text: Annotated[
        list[str] | None,
        option.files("Learn a dictionary from these pairs, as for train; a .txt of sources is translated first."),
    ] = None
    valid: Annotated[
        list[str] | None, option.files("Measure it on these pairs; without, on some that are held out.")
    ] = None
    sentences: Annotated[int, Option(help="The largest number of pairs to measure it on.", min=1)] = 300
    expansion: Annotated[int | None, Option(help="Features for each dimension of the model (8).", min=1, max=256)] = (
        None
    )
    active: Annotated[int | None, Option(help="Active features at a position (32).", min=1, max=4096)] = None
    updates: Annotated[int | None, Option(help="Updates of the training (600).", min=1)] = None
    seed: Annotated[int, Option(help="The seed of the training.")] = 1
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted training.")] = False


class View(NamedTuple):
    """View."""

    target: Annotated[str | None, Option(help="Show this target instead of the model's.")] = None
    card: Annotated[
        str | None, Option(metavar="FEATURE", help="Show what is known of a feature, such as decoder.1.feature.412.")
    ] = None
    save: Annotated[Path | None, option.to_save("Save the card as a page, .html.", ".html")] = None
    overwrite: option.Overwrite = False
    labels: Annotated[
        Path | None, Option(metavar="FILE", help="Measure what features mean, on pairs of data phrasebook --labels.")
    ] = None
    output_format: Annotated[option.Format, Option("--format", help="A table, or JSON lines.")] = "text"


@with_examples(__doc__)
def features(
    run: option.Run,
    source: Annotated[str | None, option.Text(metavar="[TEXT]", help="A text whose features are shown.")] = None,
    *,
    learning: Learning,
    view: View,
    languages: option.Languages,
    device: option.Device = "auto",
) -> None:
    """Learn the features of a translator's feed-forward sublayers, or show those of a translation (docs/circuits.md).

    With --text, a dictionary is learned and written into RUN/circuits, and its quality is measured beside that of
    baselines: what it leaves unexplained, and the translations when it replaces all feed-forward sublayers at once.

    With TEXT, the strongest features of each token and sublayer are shown with their values: of source tokens those of
    the encoder, of target tokens those of the decoder where it predicts them. `translate --feature` changes features.

    With --card, the strongest contexts of a feature are shown, the words that it promotes, and its label. With
    --labels, the labels are measured: how well single features tell the gender, number or sense of a word.
    """
    configuration_of(run, "text")
    if sum(asked is not None for asked in (source, learning.text, view.card, view.labels)) != 1:
        fix = "Give a text, --text FILES to learn from, --card FEATURE, or --labels FILE."
        raise UserError("there is nothing to do, or too much", fix=fix)
    if view.save is not None and view.card is None:
        raise UserError("--save is for cards", fix="Give --card FEATURE too.")
    for flag in option.changed_flags(learning):
        if learning.text is None:
            raise UserError(f"{flag} is for learning, with --text", fix="Leave it out.")
    translator = translator_of(run, languages, device, "torch")
    if learning.text is not None:
        _learn(translator, learning, view)
    elif view.card is not None:
        _show_card(translator, view.card, view)
    elif view.labels is not None:
        _measure_labels(translator, view.labels, view)
    elif source is not None:
        _show_features(translator, source, view)


def _show_features(translator: Translator, source: str, view: View) -> None:
    from translucid.circuits.features import features_of

    shown = features_of(translator, source, view.target)
    if view.output_format == "jsonl":
        for token in shown.tokens:
            print(json.dumps(token.to_json(), ensure_ascii=False))
        return
    console = Console()
    console.print(shown.target, style="bold", markup=False)
    for table in shown.render():
        console.print()
        console.print(table)


def _show_card(translator: Translator, name: str, view: View) -> None:
    from translucid.circuits.cards import card_of, card_page
    from translucid.circuits.dictionary import Dictionary

    card = card_of(translator, Dictionary.load(translator.loaded.folder), name, console=Console(stderr=True))
    if view.output_format == "jsonl":
        print(json.dumps(card.to_json(), ensure_ascii=False))
    else:
        console = Console()
        for part in card.render():
            console.print(part)
    if view.save is not None:
        write_output(view.save, card_page(card).encode())
        Console(stderr=True).print(f"saved: {view.save}", soft_wrap=True)


def _measure_labels(translator: Translator, file: Path, view: View) -> None:
    from translucid.circuits.dictionary import Dictionary
    from translucid.circuits.labels import measure_labels, read_labeled

    dictionary = Dictionary.load(translator.loaded.folder)
    meanings = measure_labels(translator, dictionary, read_labeled(file), console=Console(stderr=True))
    meanings.save(translator.loaded.folder)
    if view.output_format == "jsonl":
        for record in meanings.to_json()["rows"]:
            print(json.dumps(record, ensure_ascii=False))
    else:
        Console().print(meanings.render())


def _learn(translator: Translator, learning: Learning, view: View) -> None:
    from translucid.circuits.contexts import find_contexts
    from translucid.circuits.dictionary import sublayers_of
    from translucid.circuits.quality import measure, save_quality
    from translucid.circuits.training import FeatureOptions, has_sources, learn_features, text_pairs

    def corpora_of(files: list[str]) -> list[str]:
        """Join the two sides of corpora; the files of sources have one."""
        return [*filter(has_sources, files), *pair_up([*filterfalse(has_sources, files)])]

    sublayers_of(translator.model)  # refuses other models before any work
    log, files = Console(stderr=True), corpora_of(learning.text or [])
    pairs = text_pairs(translator, files, console=log)
    if learning.valid:
        held_out = text_pairs(translator, corpora_of(learning.valid), console=log)[: learning.sentences]
    else:
        step = max(10, -(-len(pairs) // learning.sentences))
        held_out, pairs = pairs[::step], [pair for i, pair in enumerate(pairs) if i % step]
    chosen = {name: getattr(learning, name) for name in ("expansion", "active", "updates")}
    options = FeatureOptions(**{name: value for name, value in chosen.items() if value is not None}, seed=learning.seed)
    dictionary = learn_features(translator, pairs, options, text=files, console=log, resume=learning.resume)
    quality = measure(translator, dictionary, pairs, held_out, console=log)
    save_quality(translator.loaded.folder, dictionary, quality)
    find_contexts(translator, dictionary, pairs, console=log).save(translator.loaded.folder)
    if view.output_format == "jsonl":
        print(json.dumps(quality.to_json()))
        return
    console = Console()
    for table in quality.render():
        console.print(table)
        console.print()
