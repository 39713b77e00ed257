"""The choice of the engine that searches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.agreement import TOLERANCE, disagreement, refuse_disagreement
from translucid.engines.ctranslate2.conventions import is_supported
from translucid.engines.tuned import SHORTLIST, Tuned, load_tuned, save_tuned
from translucid.ground.errors import UserError
from translucid.kernels.devices import certainly_cpu, choose_device
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.engines.engine import Engine

EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2"]


def choose_engine(
    name: EngineName,
    run: RunFolder,
    configuration: Configuration,
    tokenizer: Tokenizer,
    torch_engine: Callable[[], TorchEngine],
    *,
    device: str = "auto",
    threads: int | None = None,
    listed: bool = True,
    adapter: str | None = None,
) -> Engine:
    """Return the engine for a run; `auto` is CTranslate2 for a Transformer on a CPU, and PyTorch otherwise.

    CTranslate2 is the faster one there (docs/benchmarks.md), unless `translucid tune` has found otherwise. The results
    of `tune` hold on a CPU, but the name `torch` always means the whole vocabulary. PyTorch is not loaded where
    CTranslate2 suffices.

    Args:
        name: the name of the engine.
        run: the run folder.
        configuration: the configuration of the run.
        tokenizer: the tokenizer of the run.
        torch_engine: returns the PyTorch engine, and loads the model for it.
        device: auto, cpu, cuda, cuda:1 or mps.
        threads: the number of threads of CTranslate2; one for each core by default.
        listed: whether a shortlist may be used; it holds for one pair of languages.
        adapter: the fingerprint of the adapter that the PyTorch engine has, if any.

    Raises:
        UserError: CTranslate2 was requested but can't run the model, can't run on that device, or computes other
            numbers; or the model is damaged.
    """
    if name == "torch":
        return torch_engine()
    where = "cpu" if certainly_cpu(device) else str(choose_device(device))
    if name == "auto" and where != "cpu":
        return torch_engine()
    if not where.startswith(("cpu", "cuda")):
        raise UserError(f"CTranslate2 does not run on {where}", fix="Use --engine torch, or --device cpu.")
    tuned = _tuning_result(run, configuration, listed=listed)

    # CTranslate2 asks for this engine whenever a rule is beyond it: the model is loaded once.
    @cache
    def narrowed() -> TorchEngine:
        return torch_engine().narrowed(tuned.considered, tuned.shortlist(run.path), tokenizer)

    if name == "auto" and tuned.engine == "torch":
        return narrowed()
    from translucid.engines.ctranslate2.searching import CTranslate2Engine

    fast = CTranslate2Engine.of_run(
        run, configuration, tokenizer, narrowed, tuned, device=where, threads=threads, adapter=adapter
    )
    if fast.difference <= TOLERANCE:
        return fast
    if name == "ctranslate2":
        refuse_disagreement(fast.difference, run.path)
    use_torch(run.path, tuned, fast.difference)
    return narrowed()


def _tuning_result(run: RunFolder, configuration: Configuration, *, listed: bool) -> Tuned:
    """Return the result of `translucid tune`, or the defaults; without its shortlist where that does not hold."""
    tuned = load_tuned(run.path)
    if tuned is None:
        tuned = Tuned(engine="ctranslate2" if is_supported(configuration.model) else "torch")
    if listed and tuned.languages in (None, configuration.data.languages):
        return tuned
    return tuned.model_copy(update={"considered": "all pieces"})


def use_torch(run: Path, tuned: Tuned, difference: float) -> None:
    """Note in the run folder that PyTorch translates, since CTranslate2 computes other numbers, and warn about it."""
    from translucid.ground.console import Console

    shortlist = run / SHORTLIST
    listed = shortlist.read_text(encoding="utf-8") if shortlist.exists() else None
    with suppress(OSError):  # in a read-only folder the warning is repeated each time
        save_tuned(run, tuned.model_copy(update={"engine": "torch", "difference": difference}), listed)
    warning = f"warning: {disagreement(difference)}. Our own search translates; translucid tune {run} compares again"
    Console(stderr=True).print(warning, soft_wrap=True)
