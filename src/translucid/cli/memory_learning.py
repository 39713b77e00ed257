"""`translucid memory learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from translucid.cli import option
from translucid.cli.run_kinds import configuration_of
from translucid.cli.train import shares
from translucid.ground.atomic import refuse_unusable_name
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.training.memory_updates import MemoryUpdate
    from translucid.training.trainer import Trainer


def learn(
    context: typer.Context,
    run: option.Run,
    memory: Annotated[Path, Argument(metavar="MEMORY", help="A memory, or a corpus.")],
    out: Annotated[Path | None, Option(help="The run folder to make.")] = None,
    adapter: Annotated[str | None, Option(metavar="NAME", help="Train an adapter for translate --adapter.")] = None,
    mix: Annotated[list[str] | None, Option(metavar="FILES=SHARE", help="General pairs; RUN's own by default.")] = None,
    relearn: Annotated[bool, Option("--relearn", help="Learn all entries, not only new ones.")] = False,
    settings: option.Set = None,
    overwrite: option.Overwrite = False,
    device: option.Device = "auto",
) -> None:
    """Fine-tune a run on the entries of a memory that are new since it last learned.

    One pair of ten is held out to measure the gain. The training data of RUN are mixed in, if the files still exist,
    and its validation pairs guard against forgetting.

    **Examples**

        translucid memory learn runs/es mine.memory --out runs/mine

        translucid memory learn runs/mine mine.memory --out runs/mine-2

        translucid memory learn runs/es mine.memory --adapter mine
    """
    from bitext.memory.database import is_database
    from bitext.memory.translation_memory import TranslationMemory
    from translucid.memory.opening import open_memory
    from translucid.runs.run_folder import RunFolder
    from translucid.training.memory_updates import keep_adapter, note_learned, prepare_update
    from translucid.training.post_training import measure_trained, tune_trained

    if out is None and adapter is None:
        raise UserError("there is nowhere to keep what is learned", fix="Give --out RUN, or --adapter NAME.")
    if adapter is not None:
        refuse_unusable_name(adapter)
    out = out or run.with_name(f"{run.name}-{adapter}")
    RunFolder(out).refuse_overwrite(overwrite)
    console = Console(stderr=True)
    if is_database(memory):
        opened = TranslationMemory.open(memory, write=True)
    else:
        opened = open_memory(memory, configuration_of(run).data.languages, console)
    with opened as entries:
        general_shares = shares(mix) if mix else None
        update = prepare_update(
            run, entries, out, relearn=relearn, adapter=adapter is not None, mix=general_shares, settings=settings or ()
        )
        trainer = _train_update(update, out, overwrite, device, context.obj, console)
        if is_database(memory):  # a corpus has no place for it
            note_learned(out, entries, update.change)
        if adapter:
            adapter_file = keep_adapter(out, run, adapter)
            console.print(f"translucid translate {run} --adapter {adapter}: {adapter_file}", soft_wrap=True)
        tune_trained(trainer, console)
        measure_trained(trainer, console)


def _train_update(
    update: MemoryUpdate, out: Path, overwrite: bool, device: str, command: list[str] | None, console: Console
) -> Trainer:
    """Train on the entries of a memory, and print the gain."""
    from translucid.training.experiment import prepared
    from translucid.training.memory_updates import remove_earlier_pairs
    from translucid.training.post_training import show_gain

    mixture = f"mixed with {', '.join(update.general)}" if update.general else "with nothing general mixed in"
    console.print(f"{update.pairs:,} new pairs, {update.held_out:,} of them held out, {mixture}", soft_wrap=True)
    with prepared(update.configuration, out, overwrite=overwrite, device=device, console=console, command=command) as (
        trainer,
        display,
    ):
        remove_earlier_pairs(out, update)
        trainer.fit(display)
    show_gain(trainer, console)
    return trainer
