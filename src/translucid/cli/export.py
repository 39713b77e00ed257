"""`translucid export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from translucid.cli.arguments import pair_up
from translucid.engines import ALLOWED
from translucid.ground.console import Console


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[Literal["ctranslate2"], typer.Option("--to", help="The format.")] = "ctranslate2",
    quantization: Annotated[
        Literal["float32", "int8"], typer.Option(help="int8 weights take a quarter of the space.")
    ] = "float32",
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="FILES", help=f"Sentence pairs on which OUT must not cost {ALLOWED} BLEU."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write a model for another engine. The tokenizer goes with it, as SentencePiece files.

    **Examples**

        translucid export runs/mine mine-ct2 --to ctranslate2

        translucid export runs/mine mine-ct2 --quantization int8 --check dev.tsv
    """
    from translucid.engines.ctranslate2.export import export_ctranslate2, refuse_to_lose
    from translucid.engines.trials import compare_export, refuse_loss
    from translucid.ground.errors import UserError
    from translucid.runs.corpora import pairs_of
    from translucid.runs.run_folder import RunFolder
    from translucid.translator import Translator

    console = Console(stderr=True)
    refuse_to_lose(out, overwrite)
    pairs = list(pairs_of(RunFolder(run).configuration().data, *pair_up(check))) if check else []
    if check and not pairs:
        raise UserError("holds no sentence pairs", file=check[0], fix="Check the file.")
    translator = Translator.load(run, "cpu", "torch")
    if pairs:
        ours, exported = compare_export(translator.model, translator.tokenizer, pairs, quantization)
        compared = f"BLEU {ours:.2f} here, {exported:.2f} by CTranslate2 with {quantization}"
        console.print(f"{compared}, greedy, on {len(pairs):,} pairs")
        refuse_loss(ours, exported, quantization, run)
    export_ctranslate2(translator.model, translator.tokenizer, out, quantization, overwrite=overwrite)
    console.print(f"written: {out}")
