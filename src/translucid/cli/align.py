"""`translucid align`."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, pair_up, refuse_to_replace, resolved
from translucid.ground.console import Console


def align(
    run: RunArgument,
    pairs: Annotated[
        list[str] | None, typer.Option("--pairs", metavar="FILES", help="Sentence pairs to align.")
    ] = None,
    reverse: Annotated[
        Path | None,
        typer.Option(metavar="RUN", callback=resolved, help="A run of the other direction, which is asked as well."),
    ] = None,
    layer: Annotated[int | None, typer.Option(help="Decoder layer to read; the run's own choice if not given.")] = None,
    shift: Annotated[
        bool | None, typer.Option("--shift/--no-shift", help="Read a word's row one step later (SHIFT-ATT).")
    ] = None,
    both: Annotated[
        bool | None, typer.Option("--both/--one-side", help="Read from both sides, joined by grow-diagonal.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --output if it is there.")] = False,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Align the words of sentence pairs: one line of `0-0 1-2` for each pair (source word first, counted from 0).

    The model is made to write each target, and the alignment is read off its attention; or off the alignment layer that
    `translucid tune --alignments` has taught it, unless --layer or --shift says otherwise.

    **Examples**

        translucid align runs/demo --pairs runs/demo/phrasebook/test.tsv > test.align

        translucid align runs/en-es --reverse runs/es-en --pairs pairs.tsv --layer 1 --shift
    """
    from translucid.api.translator import Translator
    from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
    from translucid.ground.atomic import write_output
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.inspection.alignment import read_alignment
    from translucid.runs.corpus_files import pairs_of

    if not pairs:
        raise UserError("there is nothing to align", fix="Give sentence pairs with --pairs FILES.")
    refuse_to_replace(output, overwrite)
    files = pair_up(pairs)
    given = {key: value for key, value in (("layer", layer), ("shift", shift), ("both", both)) if value is not None}
    if not given.keys() <= {"both"}:
        given["learned"] = False

    forward = Translator.load(run, device, "torch", source=source_language, target=target_language)
    texts = list(pairs_of(forward.configuration.data, *files))
    backward = Translator.load(reverse, device, "torch") if reverse else None
    options = AlignmentOptions(**{**forward.configuration.alignment.model_dump(), **given})
    turned = [pair.swapped for pair in texts]
    with counting(Console(stderr=True), "aligning", len(texts)) as advance:
        seen = forward.inspect_all(texts, advance)
        back = backward.inspect_all(turned) if backward else repeat(None, len(texts))
        links = [read_alignment(one, options, other) for one, other in zip(seen, back, strict=True)]
    lines = "".join(to_pharaoh(one) + "\n" for one in links)
    if output:
        write_output(output, lines.encode())
    else:
        print(lines, end="")
