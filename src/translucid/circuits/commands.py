"""`translucid features`.

**Examples**

    translucid features runs/demo --text runs/demo/phrasebook/train.tsv

    translucid features runs/demo "I like soccer"

    translucid features runs/opus-mt --text news.en.txt --expansion 16 --device cuda
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import with_examples
from translucid.cli.run_kinds import configuration_of, translator_of
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
    updates: Annotated[int | None, Option(help="Updates of the training.", min=1)] = None
    seed: Annotated[int, Option(help="The seed of the training.")] = 1
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted training.")] = False


class View(NamedTuple):
    """View."""

    target: Annotated[str | None, Option(help="Show this target instead of the model's.")] = None
    output_format: Annotated[option.Format, Option("--format", help="A table, or JSON lines.")] = "text"


@with_examples(__doc__)
def features(
    run: option.Run,
    source: Annotated[str | None, Argument(metavar="[TEXT]", help="A text whose features are shown.")] = None,
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
    """
    configuration_of(run, "text")
    if (source is None) == (learning.text is None):
        raise UserError("there is nothing to do, or too much", fix="Give a text, or --text FILES to learn from.")
    translator = translator_of(run, languages, device, "torch")
    if source is None:
        _learn(translator, learning)
        return
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


def _learn(translator: Translator, learning: Learning) -> None:
    from translucid.circuits.dictionary import sublayers_of
    from translucid.circuits.quality import measure, save_quality
    from translucid.circuits.training import FeatureOptions, learn_features, text_pairs

    sublayers_of(translator.model)  # refuses other models before any work
    log, files = Console(stderr=True), pair_up(learning.text or [])
    pairs = text_pairs(translator, files, console=log)
    if learning.valid:
        held_out = text_pairs(translator, pair_up(learning.valid), console=log)[: learning.sentences]
    else:
        step = max(10, -(-len(pairs) // learning.sentences))
        held_out, pairs = pairs[::step], [pair for i, pair in enumerate(pairs) if i % step]
    chosen = {name: getattr(learning, name) for name in ("expansion", "active", "updates")}
    options = FeatureOptions(**{name: value for name, value in chosen.items() if value is not None}, seed=learning.seed)
    dictionary = learn_features(translator, pairs, options, text=files, console=log, resume=learning.resume)
    quality = measure(translator, dictionary, pairs, held_out, console=log)
    save_quality(translator.loaded.folder, dictionary, quality)
    console = Console()
    for table in quality.render():
        console.print(table)
        console.print()
