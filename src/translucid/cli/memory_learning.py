"""`translucid memory learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import SetOption, resolved
from translucid.cli.train import shares
from translucid.ground.console import Console


def learn(
    context: typer.Context,
    run: Annotated[
        Path, typer.Argument(metavar="RUN", callback=resolved, help="The run that goes on learning; it stays as it is.")
    ],
    memory: Annotated[Path, typer.Argument(metavar="MEMORY", help="What `memory add` wrote, or a corpus.")],
    out: Annotated[Path | None, typer.Option(help="The run folder to make.")] = None,
    adapter: Annotated[
        str | None, typer.Option(metavar="NAME", help="Learn small differences, for translate RUN --adapter NAME.")
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES=SHARE", help="General pairs to mix in; what RUN was trained on if not given."),
    ] = None,
    relearn: Annotated[bool, typer.Option("--relearn", help="Learn also what RUN has learned of it before.")] = False,
    settings: SetOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Fine-tune a run on what has come into a memory since it last learned.

    One pair of ten is held out, and shows in the end what was learned. What RUN was trained on is mixed in, if its
    files are still there, and its validation pairs watch that it is not forgotten.

    **Examples**

        translucid memory learn runs/es mine.memory --out runs/mine

        translucid memory learn runs/mine mine.memory --out runs/mine-2

        translucid memory learn runs/es mine.memory --adapter mine
    """
    from translucid.ground.errors import UserError
    from translucid.ground.paths import refuse_unusable_name
    from translucid.memory.database import is_database
    from translucid.memory.opening import open_memory
    from translucid.memory.translation_memory import TranslationMemory
    from translucid.runs.run_folder import RunFolder
    from translucid.training.experiment import prepared
    from translucid.training.memory_updates import keep_adapter, lesson, note_learned, remove_earlier_pairs
    from translucid.training.post_training import measure_trained, show_gain, tune_trained

    if out is None and adapter is None:
        raise UserError("there is nowhere to keep what is learned", fix="Give --out RUN, or --adapter NAME.")
    if adapter is not None:
        refuse_unusable_name(adapter)
    out = out or run.with_name(f"{run.name}-{adapter}")
    RunFolder(out).refuse_to_lose(overwrite)
    console, languages = Console(stderr=True), RunFolder(run).configuration().data.languages
    opened = (
        TranslationMemory.open(memory, write=True) if is_database(memory) else open_memory(memory, languages, console)
    )
    with opened:
        given = shares(mix) if mix else None
        found = lesson(
            run,
            opened,
            out,
            again=relearn,
            adapter=adapter is not None,
            mix=given,
            settings=settings or (),
        )
        general = f"mixed with {', '.join(found.general)}" if found.general else "with nothing general mixed in"
        console.print(f"{found.new:,} new pairs, {found.held_out:,} of them held out, {general}", soft_wrap=True)
        with prepared(
            found.configuration, out, overwrite=overwrite, device=device, console=console, command=context.obj
        ) as (trainer, display):
            remove_earlier_pairs(out, found)
            trainer.fit(display)
        show_gain(trainer, console)
        if is_database(memory):
            note_learned(out, opened, found.change)
        if adapter:
            kept = keep_adapter(out, run, adapter)
            console.print(f"translucid translate {run} --adapter {adapter}: {kept}", soft_wrap=True)
        tune_trained(trainer, console)
        measure_trained(trainer, console)
