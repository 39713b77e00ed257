"""`translucid import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import SourceOption, TargetOption
from translucid.ground.console import Console


def import_model(
    given: Annotated[
        Path, typer.Argument(metavar="FOLDER|FILE", help="What somebody else has made; its kind is told by itself.")
    ],
    out: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to make.")],
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
) -> None:
    """Import a model of another toolkit as a run: MarianMT, M2M100 and NLLB of Hugging Face, or CTranslate2.

    Use the run like any other: translate, look, explain, evaluate, serve, train --init-from. It writes what the model
    writes where it comes from. Nothing of the folder is executed or unpickled.

    **Examples**

        translucid import opus-mt-en-es runs/opus --source-language en --target-language es

        translucid import m2m100_418M runs/m2m

        translucid import opus-mt-en-es-ct2 runs/opus

        translucid translate runs/m2m --source-language en --target-language es "Good morning"
    """
    from translucid.interop.importing import import_model as importing

    console = Console(stderr=True)
    with console.status("reading the model"):
        found, configuration = importing(
            given, out, source_language=source_language, target_language=target_language, overwrite=overwrite
        )
    tokenizer = configuration.data.tokenizer
    console.print(f"{found.kind}: {found.parameters / 1e6:.1f}M parameters, vocabulary of {tokenizer.vocabulary:,}")
    if tokenizer.languages:
        console.print(f"{len(tokenizer.languages)} languages: {', '.join(sorted(tokenizer.languages))}", soft_wrap=True)
    console.print(f"written: {out}")
