"""`translucid export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from translucid.cli.arguments import RunArgument, SourceOption, TargetOption, pair_up
from translucid.engines import ALLOWED
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.engines.engine import TorchEngine


def export(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[
        Literal["ctranslate2", "onnx", "marian", "huggingface"],
        typer.Option("--to", help="The format; ONNX is for any translator, the others are for Transformers."),
    ] = "ctranslate2",
    quantization: Annotated[
        Literal["float32", "int8"], typer.Option(help="int8 weights take a quarter of the space.")
    ] = "float32",
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check", metavar="FILES", help=f"Sentence pairs on which OUT must not cost {ALLOWED} BLEU, or chrF."
        ),
    ] = None,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it is there.")] = False,
) -> None:
    """Export a model to another format: CTranslate2, Marian, Hugging Face or ONNX.

    **Examples**

        translucid export runs/mine mine-ct2 --to ctranslate2

        translucid export runs/mine mine-ct2 --quantization int8 --check dev.tsv

        translucid export runs/mine mine-onnx --to onnx

        translucid export runs/mine mine-marian --to marian

        translucid export runs/mine mine-hf --to huggingface

        translucid export runs/mine mine-onnx --to onnx --quantization int8 --check dev.tsv --overwrite
    """
    if to == "huggingface":
        languages = source_language, target_language
        _to_huggingface(run, out, languages, plain=quantization == "float32" and not check, overwrite=overwrite)
        return
    from translucid.api.translator import Translator
    from translucid.engines.trials import Comparison, greedy_texts
    from translucid.engines.tuned import Tuned
    from translucid.ground.errors import UserError
    from translucid.ground.paths import refuse_to_lose
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.run_folder import RunFolder

    console = Console(stderr=True)
    if to == "marian":
        from translucid.interop.marian_export import HOLDS, export_marian

        if check or quantization != "float32":
            raise UserError("--to marian writes float32 weights, which lose nothing", fix="Leave out the other option.")
    elif to == "onnx":
        from translucid.interop.onnx.export import HOLDS, export_onnx, refuse_without_packages

        refuse_without_packages()
    else:
        from translucid.engines.ctranslate2.convert import HOLDS, export_ctranslate2
    refuse_to_lose(out, overwrite, *HOLDS)
    configuration = RunFolder(run).configuration().between(source_language, target_language)
    pairs = list(pairs_of(configuration.data, *pair_up(check))) if check else []
    if check and not pairs:
        raise UserError("holds no sentence pairs", file=check[0], fix="Check the file.")
    translator = Translator.load(run, "cpu", "torch", source=source_language, target=target_language)
    model, tokenizer = translator.model, translator.tokenizer

    def judge(exported: list[str], engine: str) -> None:
        ours = greedy_texts(model, tokenizer, pairs, Tuned(engine="torch"))
        found = Comparison.of(ours, exported, pairs, quantization, configuration.data.languages[1])
        compared = f"{found.metric} {found.ours:.2f} here, {found.exported:.2f} by {engine} with {quantization}"
        console.print(f"{compared}, greedy, on {len(pairs):,} pairs")
        found.refuse_loss(run)

    def judge_folder(folder: Path) -> None:
        if pairs:
            from translucid.interop.onnx.running import exported_texts

            judge(exported_texts(folder, tokenizer, pairs, model.eos), "onnxruntime")

    if to != "onnx":  # which is written down from what the model computes
        _refuse_edited(translator.torch_engine, tokenizer, run)
    if to == "marian":
        export_marian(model, tokenizer, out, beam=configuration.decoding.beam, overwrite=overwrite)
    elif to == "onnx":
        with console.status("writing down what the model computes"):
            export_onnx(
                model,
                tokenizer,
                out,
                quantization,
                longest=translator.longest,
                languages=configuration.data.languages,
                overwrite=overwrite,
                check=judge_folder,
            )
    else:
        if pairs:
            judge(greedy_texts(model, tokenizer, pairs, Tuned(quantization=quantization)), "CTranslate2")
        export_ctranslate2(model, tokenizer, out, quantization, overwrite=overwrite)
    console.print(f"written: {out}")


def _to_huggingface(
    run: Path, out: Path, languages: tuple[str | None, str | None], *, plain: bool, overwrite: bool
) -> None:
    """Write all languages of a model; `plain`: neither another quantization nor a check was asked for."""
    from translucid.engines.engine import TorchEngine
    from translucid.ground.errors import UserError
    from translucid.interop.huggingface_export import export_huggingface
    from translucid.kernels.devices import choose_device
    from translucid.runs.run_folder import RunFolder

    if not plain:
        raise UserError(
            "--to huggingface writes float32 weights, which lose nothing", fix="Leave out the other option."
        )
    folder = RunFolder(run)
    configuration, tokenizer = folder.configuration().between(*languages), folder.tokenizer()
    model = folder.load_sequence_model(configuration, tokenizer)
    _refuse_edited(TorchEngine.of(model, tokenizer, choose_device("cpu")), tokenizer, run)
    kind = export_huggingface(model, tokenizer, configuration, out, overwrite=overwrite)
    Console(stderr=True).print(f"written: {out}, which `transformers` loads as {kind}")


def _refuse_edited(own: TorchEngine, tokenizer: Tokenizer, run: Path) -> None:
    """Check that a Transformer's equations are those that every other toolkit has.

    Raises:
        UserError: they were edited, so that what is exported would translate otherwise.
    """
    from translucid.engines.agreement import refuse_disagreement
    from translucid.engines.ctranslate2.searching import CTranslate2Engine
    from translucid.models.transformer import Transformer

    if isinstance(own.model, Transformer) and own.model.options.elmo is None:
        refuse_disagreement(CTranslate2Engine.difference_from(own, tokenizer), run)
