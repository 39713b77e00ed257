"""`translucid align`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from translucid.cli import option
from translucid.cli.arguments import pair_up, refuse_to_replace
from translucid.evaluation.alignment_error import Method
from translucid.ground.atomic import write_output
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.inspection.inspected import Inspected


def align(
    run: option.Run,
    pairs: Annotated[list[str] | None, option.files("Sentence pairs to align.")] = None,
    reverse: Annotated[Path | None, option.run("A run of the reverse direction, to combine with.")] = None,
    layer: Annotated[int | None, Option(help="The decoder layer to read; the run decides if not given.")] = None,
    method: Annotated[Method | None, Option(help="Read weights, norms or contributions (ALTI).")] = None,
    shift: Annotated[bool | None, Option("--shift/--no-shift", help="Read the row one step later (SHIFT-ATT).")] = None,
    both: Annotated[bool | None, Option("--both/--one-side", help="Combine both sides by grow-diagonal.")] = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    device: option.Device = "auto",
) -> None:
    """Align the words of sentence pairs: one line of `0-0 1-2` for each pair (source word first, counted from 0).

    The alignment is read from the attention during forced decoding of the target, or from the alignment layer of
    `translucid tune --alignments` unless --layer, --method or --shift is given.

    **Examples**

        translucid align runs/demo --pairs runs/demo/phrasebook/test.tsv > test.align

        translucid align runs/en-es --reverse runs/es-en --pairs pairs.tsv --layer 1 --shift
    """
    from translucid.api.translator import Translator
    from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
    from translucid.inspection.alignment import read_alignment
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.settings import without_none

    if not pairs:
        raise UserError("there is nothing to align", fix="Give sentence pairs with --pairs FILES.")
    refuse_to_replace(output, overwrite)
    files = pair_up(pairs)
    forward = Translator.load(run, device, "torch", source=source_language, target=target_language)
    texts = list(pairs_of(forward.configuration.data, *files))
    changes = without_none({"layer": layer, "method": method, "shift": shift})
    if changes:  # of attention, which is then read instead of the alignment layer
        changes["learned"] = False
    changes |= without_none({"both": both})
    options = AlignmentOptions(**{**forward.configuration.alignment.model_dump(), **changes})
    backward = Translator.load(reverse, device, "torch") if reverse else None
    lines = []
    with counting(Console(stderr=True), "aligning", len(texts)) as advance:
        contributions = options.reads_contributions(forward.alignment_layer is not None)
        sides = forward.inspect_all(texts, advance, contributions=contributions)
        others: Iterable[Inspected | None] = repeat(None, len(texts))
        if backward:
            swapped = [pair.swapped for pair in texts]
            others = backward.inspect_all(swapped, contributions=contributions)
        for side, other in zip(sides, others, strict=True):
            lines.append(to_pharaoh(read_alignment(side, options, other)) + "\n")
    if output:
        write_output(output, "".join(lines).encode())
    else:
        print("".join(lines), end="")
