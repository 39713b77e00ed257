"""`translucid import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from translucid.cli import option
from translucid.ground.console import Console


def import_model(
    model_path: Annotated[
        Path,
        Argument(
            metavar="FOLDER|FILE|hf:OWNER/NAME",
            help="A model of another toolkit; its format is detected. hf:OWNER/NAME@REVISION names a revision.",
        ),
    ],
    out: Annotated[Path, Argument(metavar="RUN", help="The run folder to make.")],
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    tokenizer: Annotated[
        Path | None,
        Option(
            metavar="FILE|pieces",
            help="For a CTranslate2 folder without tokenizer: a SentencePiece model, or that texts are pieces.",
        ),
    ] = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Import a model of another toolkit as a run: MarianMT, M2M100 and NLLB of Hugging Face, CTranslate2, or PyTorch.

    Use the run like any other: translate, look, explain, evaluate, serve, train --init-from. It has the same output as
    in the other toolkit. Nothing in the folder is executed or unpickled. hf:OWNER/NAME downloads a model from the
    Hugging Face Hub first: weights in safetensors and the files of its tokenizer.

    **Examples**

        translucid import opus-mt-en-es runs/opus --source-language en --target-language es

        translucid import hf:Helsinki-NLP/opus-mt-en-de runs/opus-de

        translucid import m2m100_418M runs/m2m

        translucid import opus-mt-en-es-ct2 runs/opus

        translucid import tutorial.yaml runs/tutorial

        translucid translate runs/m2m --source-language en --target-language es "Good morning"
    """
    from translucid.interop.importing import import_model as importing

    console = Console(stderr=True)
    with console.status("reading the model"):
        imported, configuration = importing(
            model_path,
            out,
            source_language=source_language,
            target_language=target_language,
            tokenizer=tokenizer,
            overwrite=overwrite,
        )
    options = configuration.data.tokenizer
    console.print(f"{imported.kind}: {imported.parameters / 1e6:.1f}M parameters, vocabulary of {options.vocabulary:,}")
    if options.languages:
        console.print(f"{len(options.languages)} languages: {', '.join(sorted(options.languages))}", soft_wrap=True)
    if imported.guesses:
        console.print("not in the description, so this is a guess:")
        for guess in imported.guesses:
            console.print(f"  {guess}", soft_wrap=True, markup=False, highlight=False)
    if imported.shortlist:
        sources = len(imported.shortlist.by_source)
        console.print(
            f"shortlist: candidates of {sources:,} source pieces; --engine torch considers all pieces", soft_wrap=True
        )
    for note in imported.notes:
        console.print(note, soft_wrap=True)
    console.print(f"written: {out}")
