"""`translucid export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from translucid.cli.arguments import pair_up
from translucid.ground.console import Console

ALLOWED_FALL = 0.2
"""BLEU that an exported model may cost."""


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[Literal["ctranslate2"], typer.Option("--to", help="The format.")] = "ctranslate2",
    quantization: Annotated[
        Literal["float32", "int8"], typer.Option(help="int8 weights take a quarter of the space.")
    ] = "float32",
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="FILES", help="Sentence pairs on which OUT must not cost 0.2 BLEU."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write a model for another engine. The tokenizer goes with it, as SentencePiece files.

    **Examples**

        translucid export runs/mine mine-ct2 --to ctranslate2

        translucid export runs/mine mine-ct2 --quantization int8 --check dev.tsv
    """
    from translucid.data.corpus import read_pairs
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.engines.ctranslate2.export import export_ctranslate2, refuse_to_lose
    from translucid.engines.trials import trials
    from translucid.engines.tuned import Tuned
    from translucid.ground.errors import UserError
    from translucid.translator import Translator

    console = Console(stderr=True)
    refuse_to_lose(out, overwrite)
    pairs = list(read_pairs(*pair_up(check))) if check else []
    if check and not pairs:
        raise UserError("holds no sentence pairs", file=check[0], fix="Check the file.")
    translator = Translator.load(run, "cpu", "torch")
    if pairs:
        ways = [Tuned(engine="torch"), Tuned(quantization=quantization)]
        tried = trials(translator.model, translator.tokenizer, pairs, DecodingOptions(beam=1), ways, {})
        ours, exported = (trial.bleu for trial in tried)
        compared = f"BLEU {ours:.2f} here, {exported:.2f} by CTranslate2 with {quantization}"
        console.print(f"{compared}, greedy, on {len(pairs):,} pairs")
        if ours - exported >= ALLOWED_FALL:
            other = "Export with --quantization float32, or leave" if quantization == "int8" else "Leave"
            fix = f"{other} out --check if that does not matter."
            raise UserError(f"{quantization} costs {ours - exported:.2f} BLEU", file=run, fix=fix)
    export_ctranslate2(translator.model, translator.tokenizer, out, quantization, overwrite=overwrite)
    console.print(f"written: {out}")
