"""`translucid patch`.

**Examples**

    translucid patch runs/demo "The house is big" "The car is big"

    translucid patch runs/demo "I like music" "I like soccer" --words la/el --save patched.png

    translucid patch runs/demo "I like the music" "I like soccer" --pairs "0-0 1-1 3-2" --json
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from typer import Option

from translucid.cli import option
from translucid.cli.printing import print_json, with_examples
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import PAGES


class Choice(NamedTuple):
    """Choice."""

    words: Annotated[
        str | None, Option(metavar="A/B", help="Target words: A of CLEAN's translation, B instead of it.")
    ] = None
    target: Annotated[str | None, Option(help="Use this translation of CLEAN instead of the model's own.")] = None
    pairs: Annotated[
        str | None, Option(metavar="PAIRS", help="Pairs of source words, 0-0 1-2: CLEAN's word first, from 0.")
    ] = None
    device: option.Device = "auto"


class Output(NamedTuple):
    """Output."""

    as_json: option.Json = False
    save: Annotated[Path | None, option.to_save("Save as .html, .png, .svg, .pdf or .json.", *PAGES)] = None
    overwrite: option.Overwrite = False


@with_examples(__doc__)
def patch(
    run: option.Run,
    clean: Annotated[str, option.Text(metavar="CLEAN", help="A sentence.")],
    other: Annotated[str, option.Text(metavar="OTHER", help="A sentence that differs in what is examined.")],
    *,
    choice: Choice,
    output: Output,
    languages: option.Languages,
) -> None:
    """Find the states that carry the difference between two sentences (activation patching).

    In the run on OTHER, the states of one layer at one word are replaced by those of the run on CLEAN. The result is
    the share of the difference in log-odds of two target words that this carries over: 0 % is like OTHER, 100 % like
    CLEAN. Both runs have the same target prefix, the translation of CLEAN up to the first word of --words, or up to the
    first difference of both translations.

    Source words are paired by position, or equal words if one sentence has more words; otherwise give --pairs.
    """
    from translucid.inspection.patching import read_pairs, terminal_view
    from translucid.inspection.rendering.saving import save_patching

    if configuration_of(run).model.reads != "text":
        what = "is no translator, and patching compares translations of two sentences"
        fix = "In Python, `handling` replaces the states of any model (docs/interventions.md)."
        raise UserError(what, file=run, fix=fix)
    words = _words(choice.words)
    pairs = None if choice.pairs is None else read_pairs(choice.pairs)
    translator = translator_of(run, languages, choice.device, "torch")
    patching = translator.inspector.patch(clean, other, words, target=choice.target, pairs=pairs)
    if output.save:
        save_patching(patching, output.save)
    if output.as_json:
        print_json(patching.to_json())
        return
    console = Console()
    console.print(terminal_view(patching, console.width))
    if output.save:
        console.print(f"\nsaved: {output.save}", soft_wrap=True)


def _words(text: str | None) -> tuple[str, str] | None:
    """Read the words `a/b`."""
    if text is None:
        return None
    clean_word, _, other_word = map(str.strip, text.partition("/"))
    if not clean_word or not other_word or clean_word == other_word:
        raise UserError(f"--words {text!r} are not two different words", fix="Write --words el/la.")
    return clean_word, other_word
