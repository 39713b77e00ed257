"""The interface of the engines that search for translations, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self, TypeAlias

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import BY_WORDS, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.agreement import TOLERANCE, disagreement, refuse_disagreement
from translucid.engines.ctranslate2.conventions import is_supported as ctranslate2_supports
from translucid.engines.onnx.conventions import is_installed as onnx_is_installed
from translucid.engines.onnx.conventions import is_supported as onnx_supports
from translucid.engines.tuned import SHORTLIST, Tuned, load_tuned, save_tuned
from translucid.ground.errors import UserError
from translucid.kernels.devices import certainly_cpu, choose_device
from translucid.kernels.machine import has_pytorch, require_pytorch
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.engines.ctranslate2.searching import CTranslate2Engine
    from translucid.engines.onnx.searching import OnnxEngine
    from translucid.runs.adapters import Adapter


class Engine(Protocol):
    """An engine that finds outputs for sentences of any length."""

    name: str
    device_type: str
    """The type of the device that it runs on: cpu, cuda or mps."""

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""

    def decode(self, request: SearchRequest[list[int]]) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each sentence, at least one, the best first.

        Raises:
            UserError: the model's log-probabilities are not finite.
        """

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token, in nats, by forced decoding.

        `pairs`: source and target ids, both with the end token. The prefix that all outputs share is left out.
        """


EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2", "onnx"]
TITLES = {"ctranslate2": "CTranslate2", "onnx": "the graph for ONNX Runtime"}
"""The engines in messages."""


def choose_engine(
    name: EngineName,
    run: RunFolder,
    configuration: Configuration,
    tokenizer: Tokenizer,
    torch_engine: Callable[[], TorchEngine],
    *,
    device: str = "auto",
    threads: int | None = None,
    use_shortlist: bool = True,
    pieces: Path | None = None,
    adapter: Adapter | None = None,
) -> Engine:
    """Return the engine for a run; `auto` is the fastest one that can run the model.

    On a CPU this is CTranslate2 for a Transformer, unless `translucid tune speed` has found otherwise. It is ONNX
    Runtime, if that is installed, for other models that it can run (docs/benchmarks.md). On a CUDA GPU it is PyTorch,
    with the precision and the captured steps that tuning has found there. The other results of tuning hold on a CPU,
    but the name `torch` always means the whole vocabulary in float32. PyTorch is not loaded where another engine
    suffices.

    Args:
        name: the name of the engine.
        run: the run folder.
        configuration: the configuration of the run.
        tokenizer: the tokenizer of the run.
        torch_engine: returns the PyTorch engine, and loads the model for it.
        device: auto, cpu, cuda, cuda:1 or mps.
        threads: the number of threads of a fast engine; one for each core by default.
        use_shortlist: whether a shortlist may be used; it holds for one pair of languages.
        pieces: the file of the pieces of the target language, if only these are candidates, as in `torch_engine`.
        adapter: the adapter that the PyTorch engine has, if any.

    Raises:
        UserError: the requested engine can't run the model, can't run on that device, or computes other numbers; or
            the model is damaged.
    """
    if name == "torch":
        require_pytorch("the engine torch")
        return torch_engine()
    resolved_device = _resolve_device(device)
    if name == "auto" and resolved_device != "cpu":
        known = load_tuned(run.path)
        if resolved_device == "mps" or known is None or known.gpu is None:
            return torch_engine()
        return torch_engine().fast(known.gpu.precision, captured=known.gpu.captured)
    if name == "ctranslate2" and not resolved_device.startswith(("cpu", "cuda")):
        raise UserError(
            f"CTranslate2 does not run on {resolved_device}", fix='Use `engine="torch"`, or `device="cpu"`.'
        )
    if name == "onnx" and resolved_device != "cpu":
        raise UserError(
            f"our graphs for ONNX Runtime do not run on {resolved_device}",
            fix='Use `engine="torch"`, or `device="cpu"`.',
        )
    tuned = _tuning_result(run, configuration, use_shortlist=use_shortlist)
    # The candidates of one direction are no result of tuning, so `use_torch` must not save them.
    settings = tuned
    if pieces:
        settings = tuned.model_copy(update={"considered": "target-language pieces", "pieces": pieces})

    # A fast engine calls this whenever it lacks a rule; the cache loads the model once.
    @cache
    def restricted() -> TorchEngine:
        return torch_engine().restricted(settings.considered, settings.shortlist(run.path), tokenizer)

    engine_name = tuned.engine if name == "auto" else name
    if engine_name == "torch" or not (engine_name == "onnx" or ctranslate2_supports(configuration.model)):
        require_pytorch(f"the model of {run.path}, which CTranslate2 does not support,")
    if engine_name == "torch":
        return restricted()
    fast_engine: CTranslate2Engine | OnnxEngine
    if engine_name == "onnx":
        from translucid.engines.onnx.searching import OnnxEngine

        try:
            fast_engine = OnnxEngine.of_run(
                run, configuration, tokenizer, restricted, settings, threads=threads, adapter=adapter
            )
        except UserError:
            if name == "onnx":
                raise
            return restricted()  # an edited equation may have no form in ONNX
    else:
        from translucid.engines.ctranslate2.searching import CTranslate2Engine

        fast_engine = CTranslate2Engine.of_run(
            run,
            configuration,
            tokenizer,
            restricted,
            settings,
            device=resolved_device,
            threads=threads,
            adapter=adapter,
        )
    if fast_engine.difference <= TOLERANCE:
        return fast_engine
    if name == engine_name:
        refuse_disagreement(fast_engine.difference, run.path, TITLES[engine_name])
    use_torch(run.path, tuned, fast_engine.difference, TITLES[engine_name])
    return restricted()


def _resolve_device(device: str) -> str:
    """Return the device on which an engine runs: cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: there is no such device.
    """
    if certainly_cpu(device):
        return "cpu"
    if not has_pytorch() and device.startswith("cuda"):
        from translucid.engines.ctranslate2.searching import refuse_missing_gpu

        refuse_missing_gpu(device)
        return device
    return str(choose_device(device))


def _tuning_result(run: RunFolder, configuration: Configuration, *, use_shortlist: bool) -> Tuned:
    """Return the result of `translucid tune speed`, or the defaults; without its shortlist where that does not hold."""
    tuned = load_tuned(run.path) or untuned(configuration.model)
    only_fast = not has_pytorch() and tuned.difference is None and ctranslate2_supports(configuration.model)
    if tuned.engine == "torch" and only_fast:
        tuned = tuned.model_copy(update={"engine": "ctranslate2"})
    if tuned.engine == "torch" and _onnx_is_faster(configuration.model, tuned):
        tuned = tuned.model_copy(update={"engine": "onnx"})
    if use_shortlist and tuned.languages in (None, configuration.data.languages):
        return tuned
    return tuned.model_copy(update={"considered": "all pieces"})


def untuned(options: object) -> Tuned:
    """Return the way to translate on a CPU before tuning, with a model of these options."""
    return Tuned(engine="ctranslate2" if ctranslate2_supports(options) else "torch")


def _onnx_is_faster(options: object, tuned: Tuned) -> bool:
    """Whether ONNX Runtime finds what our own search would find: it is then the faster one (docs/benchmarks.md)."""
    if ctranslate2_supports(options) or tuned.difference is not None or tuned.considered in BY_WORDS:
        return False
    return onnx_supports(options) and onnx_is_installed()


def use_torch(run: Path, tuned: Tuned, difference: float, engine: str = TITLES["ctranslate2"]) -> None:
    """Note in the run folder that PyTorch translates, since a fast engine computes other numbers, and warn about it."""
    from translucid.ground.console import Console

    shortlist = run / SHORTLIST
    content = shortlist.read_text(encoding="utf-8") if shortlist.exists() else None
    with suppress(OSError):  # in a read-only folder the warning is repeated each time
        save_tuned(run, tuned.model_copy(update={"engine": "torch", "difference": difference}), content)
    reason = disagreement(difference, engine)
    warning = f"warning: {reason}. Our own search translates; translucid tune speed {run} compares again"
    Console(stderr=True).print(warning, soft_wrap=True)
