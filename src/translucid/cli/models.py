"""`translucid models`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def models(
    keys: Annotated[bool, typer.Option("--keys", help="List every key that can be set, with its default.")] = False,
) -> None:
    """List the presets that `translucid train --model NAME` takes.

    **Examples**

        translucid models

        translucid models --keys | grep training
    """
    console = Console()
    if keys:
        _print_keys(console)
        return
    from translucid.training.configuration import resolve
    from translucid.training.presets import PRESETS

    table = Table(box=None, pad_edge=False)
    for column in ("name", "for", "model", "vocabulary", "training"):
        table.add_column(column, overflow="fold")
    for name, preset in PRESETS.items():
        c = resolve(preset=name)
        m, t = c.model, c.training
        shape = f"{m.encoder_layers}+{m.decoder_layers} layers, width {m.width}, {m.heads} heads, dropout {m.dropout}"
        limit = f"{t.max_minutes:g} minutes" if t.max_minutes else f"{t.max_steps:,} steps"
        training = f"{t.batch_tokens:,} tokens a batch, rate {t.learning_rate:g}, {limit}"
        table.add_row(f"[bold]{name}[/]", preset.suits, shape, f"{c.data.tokenizer.vocabulary:,}", training)
    console.print(table)


def _print_keys(console: Console) -> None:
    from pydantic import BaseModel

    from translucid.training.configuration import Configuration

    def walk(options: type[BaseModel], prefix: str) -> None:
        for name, field in options.model_fields.items():
            inner: Any = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                walk(inner, f"{prefix}{name}.")
            elif prefix:
                default = field.get_default(call_default_factory=True)
                console.print(f"[bold]{prefix}{name}[/]={default}", highlight=False)
                console.print(f"    {field.description}", highlight=False, markup=False)

    walk(Configuration, "")
