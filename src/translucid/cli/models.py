"""`translucid models`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from rich.text import Text
from typer import Option

from translucid.cli.flags import with_flags
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.runs.training_options import TrainingOptions


def models(
    keys: Annotated[bool, Option("--keys", help="List every setting with its default and its values.")] = False,
) -> None:
    """List the presets of `translucid train --model` and the recipes of `translucid train`.

    **Examples**

        translucid models

        translucid models --keys | grep training
    """
    console = Console()
    if keys:
        _print_keys(console)
        return
    from translucid.runs.configuration import resolve
    from translucid.runs.presets import all_presets, recipes

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("for")
    table.add_column("model")
    for name, preset in all_presets().items():
        configuration = resolve(preset=name)
        vocabulary, limit = configuration.data.tokenizer.vocabulary, _limit(configuration.training)
        shape = f"{configuration.model.summary}; vocabulary {vocabulary:,}; {limit}"
        table.add_row(Text(name, "bold"), with_flags(preset.purpose), shape)
    console.print(table)
    table = Table(box=None, pad_edge=False)
    table.add_column("recipe", no_wrap=True)
    table.add_column("what it is")
    for name, file in recipes().items():
        table.add_row(Text(name, "bold"), file.read_text(encoding="utf-8").split("\n")[0].strip("# "))
    console.print()
    console.print(table)


def _limit(training: TrainingOptions) -> str:
    """Return when a training ends."""
    if training.max_minutes:
        return f"{training.max_minutes:g} minutes"
    if training.max_epochs:
        return f"{training.max_epochs} epochs"
    return f"{training.max_steps:,} steps"


def _print_keys(console: Console) -> None:
    """Print all keys: in paragraphs for people, in lines of tab-separated columns for programs."""
    from translucid.runs.keys import keys

    if not console.is_terminal:  # for grep and cut
        for key in keys():
            # The columns: `key=default`, the allowed values, the kind of model that has the key, the description.
            print(f"{key.name}={key.default}", key.allowed, key.choice, " ".join(key.description.split()), sep="\t")
        return
    choice = ""
    for key in keys():
        if key.choice and key.choice != choice:
            console.print(Text.assemble((f"\n{key.choice}", "bold"), " has these:"))
        choice = key.choice
        console.print(Text.assemble((key.name, "bold"), f"={key.default}  ", (key.allowed, "dim")))
        console.print(f"    {key.description}")
