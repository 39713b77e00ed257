"""`translucid export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from translucid.cli.files import pair_up

ALLOWED_FALL = 0.2
"""BLEU that 8-bit weights may cost."""


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[Literal["ctranslate2"], typer.Option("--to", help="The format.")] = "ctranslate2",
    quantization: Annotated[
        Literal["float32", "int8"], typer.Option(help="int8 weights take a quarter of the space.")
    ] = "float32",
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="FILES", help="Sentence pairs on which int8 must not cost 0.2 BLEU."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write a model for another engine. The tokenizer goes with it, as SentencePiece files.

    **Examples**

        translucid export runs/mine mine-ct2 --to ctranslate2

        translucid export runs/mine mine-ct2 --quantization int8 --check dev.tsv
    """
    from translucid.data.corpus import read_pairs
    from translucid.decoding.options import DecodingOptions
    from translucid.errors import UserError
    from translucid.interop.ctranslate2.export import export_ctranslate2
    from translucid.interop.trials import trials
    from translucid.interop.tuned import Tuned
    from translucid.translator import Translator

    console = Console(stderr=True, highlight=False)
    pairs = list(read_pairs(*pair_up(check))) if check else []
    if check and not pairs:
        raise UserError("holds no sentence pairs", file=check[0], fix="Check the file.")
    translator = Translator.load(run, "cpu", "torch")
    if quantization == "int8" and pairs:
        ways = [Tuned(), Tuned(quantization="int8")]
        tried = trials(translator.model, translator.tokenizer, pairs, DecodingOptions(beam=1), ways, {})
        full, small = (trial.bleu for trial in tried)
        console.print(f"BLEU {full:.1f} with float32, {small:.1f} with int8, on {len(pairs):,} pairs")
        if full - small >= ALLOWED_FALL:
            fix = "Export with --quantization float32, or without --check if that is worth the space."
            raise UserError(f"int8 costs {full - small:.1f} BLEU", file=run, fix=fix)
    export_ctranslate2(translator.model, translator.tokenizer, out, quantization, overwrite=overwrite)
    console.print(f"written: {out}")
