"""`translucid graph`.

**Examples**

    translucid graph runs/demo "I like soccer and also going to the beach" --word playa

    translucid graph runs/demo "I like the house" --word la --instead-of el --save graph.html

    translucid graph runs/demo "I like soccer" --score decoder.1.cross.head.3:fútbol:soccer

    translucid graph runs/demo --pairs pairs.tsv
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Option

from translucid.cli import option
from translucid.cli.printing import print_json, with_examples
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import refuse_picture

if TYPE_CHECKING:
    from translucid.api.translator import Translator
    from translucid.circuits.transcoder import Transcoder


ENDINGS = (".html", ".svg", ".pdf", ".png", ".json")


class Word(NamedTuple):
    """Word."""

    word: Annotated[str | None, Option(metavar="WORD|N", help="A word of the translation, or its position from 0.")] = (
        None
    )
    instead_of: Annotated[str | None, Option(metavar="WORD", help="Another word in its place.")] = None
    target: Annotated[str | None, Option(help="Use this translation instead of the model's own.")] = None
    score: Annotated[
        str | None,
        Option(metavar="HEAD:QUERY:KEY", help="Instead of a word: why a head looks from a word to another."),
    ] = None
    pairs: Annotated[
        Path | None,
        Option(metavar="FILE", help="Instead of a text: minimal pairs, CLEAN tab OTHER tab A/B on each line."),
    ] = None
    device: option.Device = "auto"


class Output(NamedTuple):
    """Output."""

    as_json: option.Json = False
    save: Annotated[Path | None, option.to_save("Save as .html, .svg, .pdf, .png or .json.", *ENDINGS)] = None
    overwrite: option.Overwrite = False


@with_examples(__doc__)
def graph(
    run: option.Run,
    text: Annotated[str | None, option.Text(metavar="[TEXT]", help="A sentence.")] = None,
    *,
    asked: Word,
    output: Output,
    languages: option.Languages,
) -> None:
    """Show from which words, through which features, a word of a translation comes (attribution graph).

    The logit of the word, minus the mean logit or that of --instead-of, is the sum of the direct effects of tokens,
    positions, features and errors, and of biases, with the attention weights and the deviations of norms held. The
    graph keeps the fewest nodes with 80 % of the influence, at most 40. Then the model translates without the strongest
    features: does it write another word? The run needs a dictionary (`features`).
    """
    from translucid.circuits.dictionary import Dictionary
    from translucid.circuits.graph import attribution_graph
    from translucid.circuits.graph_view import figures, terminal_view
    from translucid.circuits.labels import Meanings, labels_of
    from translucid.circuits.linear import refuse_others
    from translucid.circuits.saved_graph import save_graph

    if (text is None) == (asked.pairs is None):
        raise UserError("a graph needs a text, or --pairs", fix="Give one of them.")
    if text is not None and (asked.word is None) == (asked.score is None):
        raise UserError("a graph is that of a word", fix="Name it: --word; or give --score.")
    if (asked.score or asked.pairs) and (output.save or asked.instead_of):
        raise UserError("--save and --instead-of are for the graph of a word", fix="Leave them out.")
    if configuration_of(run).model.reads != "text":
        raise UserError("is no translator", file=run, fix="Graphs are for translators.")
    if output.save and output.save.suffix.lower() != ".svg":  # our own SVG needs no Matplotlib
        refuse_picture(output.save)
    translator = translator_of(run, languages, asked.device, "torch")
    refuse_others(translator.model)
    dictionary = Dictionary.load(run)
    labels = labels_of(Meanings.load(run, dictionary))
    transcoders = dictionary.to(translator.device).transcoders
    console = Console()
    if asked.pairs:
        _print_pairs(translator, transcoders, asked.pairs, as_json=output.as_json)
        return
    assert text is not None
    if asked.score:
        _print_score(translator, transcoders, text, asked, as_json=output.as_json)
        return
    assert asked.word is not None
    result = attribution_graph(
        translator, transcoders, text, asked.word, instead_of=asked.instead_of, target=asked.target
    )
    saved = []
    if output.save:
        saved = save_graph(result, output.save, figures(result), labels, run.name)
    if output.as_json:
        print_json(result.to_json())
        return
    console.print(terminal_view(result, labels, console.width))
    for file in saved:
        console.print(f"\nsaved: {file}", soft_wrap=True)


def _print_pairs(translator: Translator, transcoders: Mapping[str, Transcoder], file: Path, *, as_json: bool) -> None:
    """Print how often the word changes, over minimal pairs."""
    from translucid.circuits.minimal_pairs import measure, read_minimal_pairs, rows, to_json, view

    pairs = read_minimal_pairs(file)
    with progress_bar(Console(stderr=True), "graphs", len(pairs)) as advance:
        results, left_out = measure(translator, transcoders, pairs, advance)
    if not results:
        raise UserError("the model writes none of the words", file=file, fix="A is a word of CLEAN's translation.")
    table = rows(results)
    if as_json:
        print_json(to_json(table, left_out))
        return
    Console().print(view(table, left_out))


def _print_score(
    translator: Translator, transcoders: Mapping[str, Transcoder], text: str, asked: Word, *, as_json: bool
) -> None:
    """Print why a head looks at a word."""
    from translucid.circuits.scores import head_score, score_view

    head, query, key = ((asked.score or "").split(":") + ["", ""])[:3]
    if not (head and query and key):
        fix = "Write --score decoder.1.cross.head.3:fútbol:soccer."
        raise UserError(f"--score {asked.score!r} is no head, query and key", fix=fix)
    result = head_score(translator, transcoders, text, head, query, key, target=asked.target)
    if as_json:
        print_json(result.to_json())
        return
    Console().print(score_view(result))
