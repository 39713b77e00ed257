"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

EngineOption = Annotated[
    Literal["auto", "torch", "ctranslate2"],
    typer.Option("--engine", help="What searches: our own code, CTranslate2, or the faster one of those that can."),
]
