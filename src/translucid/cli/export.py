"""`translucid export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.engines import ALLOWED
from translucid.ground.atomic import refuse_overwrite
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.kernels.devices import choose_device
from translucid.models.kinds import resolved

if TYPE_CHECKING:
    from bitext.pair import Pair
    from translucid.api.translator import Translator
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.decoding.search import TorchEngine

Quantization = Literal["float32", "int8"]
_MEASURED = 1000
"""The number of sentence pairs on which the ranges of activations are measured."""


SINGLE_DIRECTION = ("marian", "firefox", "web")
"""The formats that multilingual models can't have."""
FIXED_EQUATIONS = ("ctranslate2", "marian", "web")
"""The formats of programs that compute a model by equations of their own."""
MARKERS = {
    "ctranslate2": "translucid.engines.ctranslate2.convert:MARKER",
    "firefox": "translucid.interop.firefox_export:MARKER",
    "marian": "translucid.interop.marian_export:MARKER",
    "onnx": "translucid.interop.onnx_export:MARKER",
    "web": "translucid.interop.web.export:MARKER",
}
"""The file by which a folder of a format is recognized, and may be replaced, and the name of its kind."""


def export(
    run: option.Run,
    out: Annotated[Path, Argument(metavar="OUT", help="The folder to write.")],
    to: Annotated[
        Literal["ctranslate2", "onnx", "marian", "huggingface", "firefox", "web"],
        Option(
            help="The format: ONNX for any translator, Firefox for SSRU students, a web page for Transformers and "
            "rnn-bahdanau, the others for Transformers."
        ),
    ] = "ctranslate2",
    quantization: Annotated[Quantization, Option(help="The weights; int8 takes a quarter of the space.")] = "float32",
    check: Annotated[list[str] | None, option.files(f"Pairs on which OUT may lose {ALLOWED} BLEU.")] = None,
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Export a model to another format: CTranslate2, Marian, Hugging Face, ONNX, Firefox or a web page.

    **Examples**

        translucid export runs/mine mine-ct2 --to ctranslate2

        translucid export runs/mine mine-ct2 --quantization int8 --check dev.tsv

        translucid export runs/mine mine-onnx --to onnx

        translucid export runs/mine mine-marian --to marian

        translucid export runs/mine mine-hf --to huggingface

        translucid export runs/student student-firefox --to firefox --check dev.tsv

        translucid export runs/demo demo-web --to web

        translucid export runs/mine mine-onnx --to onnx --quantization int8 --check dev.tsv --overwrite
    """
    from translucid.engines.ctranslate2.conventions import is_supported
    from translucid.runs.corpus_files import pairs_of

    languages = source_language, target_language
    if to in {"marian", "huggingface"} and (check or quantization != "float32"):
        raise UserError(f"--to {to} writes float32 weights, which lose nothing", fix="Leave out the other option.")
    if to == "huggingface":
        _to_huggingface(run, out, languages, overwrite)
        return
    # This is checked before the model is loaded.
    if to == "onnx":
        from translucid.engines.onnx.conventions import refuse_without_packages
        from translucid.interop.onnx_export import PURPOSE

        refuse_without_packages(PURPOSE)
    refuse_overwrite(out, overwrite, *resolved(MARKERS[to]))
    configuration = configuration_of(run)
    if to in SINGLE_DIRECTION and configuration.data.tokenizer.languages:
        what = f"is multilingual, and a folder of --to {to} has no language pieces"
        others = "huggingface, onnx or ctranslate2" if is_supported(configuration.model) else "onnx"
        raise UserError(what, file=run, fix=f"Use --to {others}.")
    # Pairs are read before the model, so that errors in them are reported at once.
    data = configuration.between(*languages).data
    pairs = list(pairs_of(data, *pair_up(check or [])))
    if check and not pairs:
        raise UserError("holds no sentence pairs", file=check[0], fix="Check the file.")
    translator = translator_of(run, languages, "cpu", "torch")
    if to in FIXED_EQUATIONS:
        refuse_edited(translator.torch_engine, translator.tokenizer, run)
    write = {
        "onnx": _to_onnx,
        "marian": _to_marian,
        "ctranslate2": _to_ctranslate2,
        "firefox": _to_firefox,
        "web": _to_web,
    }[to]
    write(_Request(run, out, quantization, translator, pairs, overwrite))
    Console(stderr=True).print(f"written: {out}")


@dataclass(frozen=True)
class _Request:
    """An export to a format of translation engines."""

    run: Path
    out: Path
    quantization: Quantization
    translator: Translator
    pairs: list[Pair]
    """The pairs of --check."""
    overwrite: bool

    def compare(self, exported: list[str], engine: str, quantization: Quantization | None = None) -> None:
        """Compare translations of the exported model with ours.

        Raises:
            UserError: they lose too much.
        """
        from translucid.engines.tuned import Tuned
        from translucid.engines.tuning import Comparison, greedy_texts

        translations = greedy_texts(self.translator.model, self.translator.tokenizer, self.pairs, Tuned(engine="torch"))
        target_language = self.translator.configuration.data.languages[1]
        quantization = quantization or self.quantization
        comparison = Comparison.of(translations, exported, self.pairs, quantization, target_language)
        scores = f"{comparison.metric} {comparison.original:.2f} here, {comparison.exported:.2f} by {engine}"
        Console(stderr=True).print(f"{scores} with {quantization}, greedy, on {len(self.pairs):,} pairs")
        comparison.refuse_loss(self.run)


def _to_marian(request: _Request) -> None:
    from translucid.interop.marian_export import export_marian

    translator = request.translator
    beam = translator.configuration.decoding.beam
    export_marian(translator.model, translator.tokenizer, request.out, beam=beam, overwrite=request.overwrite)


def _to_firefox(request: _Request) -> None:
    """Export with the ranges of activations on the pairs of --check, or else on the run's validation pairs."""
    from translucid.decoding.shortlist import read_shortlist
    from translucid.engines.tuned import Tuned, load_tuned
    from translucid.engines.tuning import greedy_texts
    from translucid.interop.firefox_export import export_firefox, input_factors, refuse_other_models, simulated
    from translucid.runs.corpus_files import pairs_of

    translator = request.translator
    model, tokenizer, data = translator.model, translator.tokenizer, translator.configuration.data
    refuse_other_models(model, tokenizer)
    pairs = request.pairs or list(pairs_of(data, *data.valid))
    if not pairs:
        raise UserError("Firefox's format needs the ranges of activations", fix="Give sentence pairs with --check.")
    encoded = translator.pipeline.pairs(pairs[:_MEASURED])
    factors = input_factors(model, [pair.ids for pair in encoded])
    if request.pairs:
        texts = greedy_texts(simulated(model, factors), tokenizer, pairs, Tuned(engine="torch"))
        request.compare(texts, "Firefox's arithmetic", "int8")
    tuned = load_tuned(request.run)
    file = tuned.shortlist(request.run) if tuned else None
    shortlist = read_shortlist(file, tokenizer) if file else None
    export_firefox(
        model,
        tokenizer,
        request.out,
        factors,
        languages=data.languages,
        shortlist=shortlist,
        overwrite=request.overwrite,
    )


def _to_web(request: _Request) -> None:
    from translucid.engines.tuned import Tuned
    from translucid.engines.tuning import greedy_texts
    from translucid.interop.web.export import refuse_other_models, rounded

    translator = request.translator
    refuse_other_models(translator.model, translator.tokenizer, translator.configuration.decoding)
    if request.pairs:
        texts = greedy_texts(rounded(translator.model), translator.tokenizer, request.pairs, Tuned(engine="torch"))
        request.compare(texts, "the web page", "int8")
    write_web_page(translator, request.run, request.out, request.overwrite)


def write_web_page(translator: Translator, run: Path, out: Path, overwrite: bool = False) -> None:
    """Write a folder with a page that translates in the browser.

    Raises:
        UserError: the page can't compute the model, or the folder exists already or can't be written.
    """
    from translucid.interop.web.export import export_web

    configuration = translator.configuration
    export_web(
        translator.model,
        translator.tokenizer,
        out,
        decoding=configuration.decoding,
        longest=translator.pipeline.longest,
        languages=configuration.data.languages,
        name=run.name,
        package_version=translator.loaded.folder.last_version(),
        overwrite=overwrite,
    )


def _to_onnx(request: _Request) -> None:
    """Export to ONNX, also with edited equations: the graph is traced from what the model computes."""
    from translucid.interop.onnx_export import export_onnx

    translator = request.translator

    # `export_onnx` calls it before the folder gets its name, so that a bad export leaves nothing behind.
    def check_folder(folder: Path) -> None:
        if request.pairs:
            from translucid.interop.onnx_export import exported_texts

            texts = exported_texts(folder, translator.tokenizer, request.pairs, translator.model.eos)
            request.compare(texts, "onnxruntime")

    with Console(stderr=True).status("writing down what the model computes"):
        export_onnx(
            translator.model,
            translator.tokenizer,
            request.out,
            request.quantization,
            longest=translator.pipeline.longest,
            languages=translator.configuration.data.languages,
            overwrite=request.overwrite,
            check=check_folder,
        )


def _to_ctranslate2(request: _Request) -> None:
    from translucid.engines.ctranslate2.convert import export_ctranslate2
    from translucid.engines.target_pieces import exported_languages
    from translucid.engines.tuned import Tuned
    from translucid.engines.tuning import greedy_texts
    from translucid.runs.run_folder import RunFolder

    model, tokenizer = request.translator.model, request.translator.tokenizer
    if request.pairs:
        texts = greedy_texts(model, tokenizer, request.pairs, Tuned(quantization=request.quantization))
        request.compare(texts, "CTranslate2")
    # Its attention is that of the head which guided alignment has taught, if there is one.
    alignment = request.translator.configuration.alignment
    layer = alignment.layer if alignment.layer is not None and alignment.head == 0 else -1
    export_ctranslate2(
        model,
        tokenizer,
        request.out,
        request.quantization,
        overwrite=request.overwrite,
        attention_layer=layer,
        extra_files=exported_languages(RunFolder(request.run), request.translator.configuration.data),
    )


def _to_huggingface(run: Path, out: Path, languages: tuple[str | None, str | None], overwrite: bool) -> None:
    """Export all languages of a model."""
    from translucid.decoding.search import TorchEngine
    from translucid.engines.target_pieces import exported_languages
    from translucid.interop.huggingface_export import export_huggingface
    from translucid.runs.run_folder import RunFolder
    from translucid.runs.tensor_file import read_header

    folder = RunFolder(run)
    configuration, tokenizer = folder.configuration().between(*languages), folder.tokenizer()
    model = folder.load_sequence_model(configuration, tokenizer)
    refuse_edited(TorchEngine.of(model, tokenizer, choose_device("cpu")), tokenizer, run)
    measures = read_header(folder.model_file)[1]
    kind = export_huggingface(
        model,
        tokenizer,
        configuration,
        out,
        measures=measures,
        overwrite=overwrite,
        extra_files=exported_languages(folder, configuration.data),
    )
    Console(stderr=True).print(f"written: {out}, which `transformers` loads as {kind}")


def refuse_edited(torch_engine: TorchEngine, tokenizer: Tokenizer, run: Path) -> None:
    """Check that a Transformer computes the same as it would in other toolkits.

    Raises:
        UserError: its equations were edited.
    """
    from translucid.engines.agreement import refuse_disagreement
    from translucid.engines.ctranslate2.conventions import is_supported
    from translucid.engines.ctranslate2.searching import CTranslate2Engine

    if is_supported(torch_engine.model.options):
        refuse_disagreement(CTranslate2Engine.difference_from(torch_engine, tokenizer), run)
