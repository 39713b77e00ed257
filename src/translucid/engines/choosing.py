"""Which engine searches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.agreement import TOLERANCE, disagreement, refuse_disagreement
from translucid.engines.tuned import SHORTLIST, Tuned, load_tuned, save_tuned
from translucid.ground.errors import UserError
from translucid.kernels.devices import certainly_cpu, choose_device
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.engines.engine import Engine, TorchEngine

EngineName: TypeAlias = Literal["auto", "torch", "ctranslate2"]


def choose_engine(
    name: EngineName,
    run: RunFolder,
    configuration: Configuration,
    tokenizer: Tokenizer,
    own: Callable[[], TorchEngine],
    *,
    device: str = "auto",
    threads: int | None = None,
    listed: bool = True,
    adapter: str | None = None,
) -> Engine:
    """Return the engine of that name for a run; `auto` is CTranslate2 for a Transformer on a CPU, else our own.

    There it has been measured to be the faster one (docs/benchmarks.md), unless `translucid tune` has found otherwise.
    What it has found holds on a CPU, except that `torch` is our search with the whole vocabulary. PyTorch is not loaded
    where CTranslate2 does without.

    Args:
        name: what is wanted.
        run: where the model is.
        configuration: of the run.
        tokenizer: of the run.
        own: gives our own search, and loads the model for it.
        device: auto, cpu, cuda, cuda:1 or mps.
        threads: see `CTranslate2Engine`.
        listed: whether only pieces of a shortlist may be considered, if one was found; it holds for one pair of
            languages.
        adapter: the fingerprint of what the model that `own` gives wears, if anything.

    Raises:
        UserError: CTranslate2 is asked for and can't run the model, or not on that device, or computes something else;
            or the model is damaged.
    """
    if name == "torch":
        return own()
    where = "cpu" if certainly_cpu(device) else str(choose_device(device))
    if name == "auto" and where != "cpu":
        return own()
    if not where.startswith(("cpu", "cuda")):
        raise UserError(f"CTranslate2 does not run on {where}", fix="Use --engine torch, or --device cpu.")
    transformer = isinstance(configuration.model, TransformerOptions) and configuration.model.elmo is None
    tuned = load_tuned(run.path) or Tuned(engine="ctranslate2" if transformer else "torch")
    if not (listed and tuned.languages in (None, configuration.data.languages)):
        tuned = tuned.model_copy(update={"considered": "all pieces"})
    shortlist = run.path / SHORTLIST if tuned.considered != "all pieces" else None

    @cache
    def narrowed() -> TorchEngine:
        return own().narrowed(tuned.considered, shortlist, tokenizer)

    if name == "auto" and tuned.engine == "torch":
        return narrowed()
    from translucid.engines.ctranslate2.searching import CTranslate2Engine

    fast = CTranslate2Engine.of_run(
        run,
        configuration,
        tokenizer,
        narrowed,
        device=where,
        quantization=tuned.quantization,
        considered=tuned.considered,
        shortlist=shortlist,
        threads=threads,
        adapter=adapter,
    )
    if fast.difference <= TOLERANCE:
        return fast
    if name == "ctranslate2":
        refuse_disagreement(fast.difference, run.path)
    use_own(run.path, tuned, fast.difference)
    return narrowed()


def use_own(run: Path, tuned: Tuned, difference: float) -> None:
    """Remember that our own search translates, as CTranslate2 does not compute what the model does, and say so."""
    from translucid.ground.console import Console

    shortlist = run / SHORTLIST
    listed = shortlist.read_text(encoding="utf-8") if shortlist.exists() else None
    with suppress(OSError):  # a folder that can't be written to hears of it each time
        save_tuned(run, tuned.model_copy(update={"engine": "torch", "difference": difference}), listed)
    said = f"warning: {disagreement(difference)}. Our own search translates; translucid tune {run} compares again"
    Console(stderr=True).print(said, soft_wrap=True)
