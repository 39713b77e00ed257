"""Target tokens per second of training: ours, and plain loops around other toolkits' modules."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import nn

from benchmarks.gpu.shapes import batches_of, epochs_of, marian, model_of, shape_of
from benchmarks.peers.modules import Tutorial
from translucid.data.batching import Batch
from translucid.ground.console import Console
from translucid.runs.configuration import Configuration
from translucid.training.hardware.precision import choose_precision
from translucid.training.records.record import Display
from translucid.training.trainer import Trainer

Update = Callable[[], int]
"""Makes an update and returns its target tokens."""
Builder = Callable[[Configuration, torch.device, str], Update]
"""From a configuration, a device and a precision to an update."""
WARM_UP = 25
"""Updates before the clock starts: the kernels of each kind of shape are loaded at their first use."""


def ours(configuration: Configuration, device: torch.device, precision: str) -> Update:
    """Return an update of our own trainer, from its batches in the background to its running average."""
    options = configuration.training.model_copy(update={"precision": precision})
    unused = cast(Any, SimpleNamespace())  # nothing is validated or saved here
    chosen_precision = choose_precision(options, device)
    trainer = Trainer(
        model_of(configuration), epochs_of(configuration), unused, unused, options, device, chosen_precision
    )
    updates, display = trainer._updates(), Display(Console(quiet=True))

    def update() -> int:
        """Do what `Trainer.fit` does for an update that is neither logged nor followed by a validation."""
        batches = next(updates)
        trainer._update(batches, 1e-4, display)
        trainer.progress.step += 1
        return sum(batch.target_tokens for batch in batches)

    return update


def packed(*settings: str) -> Builder:
    """Return a function to an update of our own trainer on packed batches, with other settings that are to be true."""

    def build(configuration: Configuration, device: torch.device, precision: str) -> Update:
        options = configuration.training.model_copy(update=dict.fromkeys(["packed", *settings], True))
        return ours(configuration.model_copy(update={"training": options}), device, precision)

    return build


def plain(model: nn.Module, configuration: Configuration, device: torch.device, precision: str) -> Update:
    """Return an update of the loop of tutorials: all logits, PyTorch's cross-entropy, Adam in one kernel."""
    model = model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    batches = batches_of(configuration)

    def logits(batch: Batch) -> torch.Tensor:
        if isinstance(model, Tutorial):
            return model(batch.source, batch.targets_in)
        mask = (batch.source != 0).long()
        return model(input_ids=batch.source, attention_mask=mask, decoder_input_ids=batch.targets_in).logits

    def update() -> int:
        host = next(batches)
        tokens = int((host.labels != 0).sum())
        batch = host.to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            predictions = logits(batch).flatten(0, 1).float()
            loss = nn.functional.cross_entropy(predictions, batch.labels.flatten(), ignore_index=0, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return tokens

    return update


BUILDERS: dict[str, Builder] = {
    "translucid": ours,
    "translucid, packed": packed(),
    "translucid, captured": packed("captured"),
    "translucid, captured and compiled": packed("captured", "compile"),
    # Without the hint PyTorch inspects the mask, which synchronizes with the GPU.
    "nn.Transformer": lambda configuration, *rest: plain(
        Tutorial(shape_of(configuration), causal_hint=True), configuration, *rest
    ),
    "MarianMTModel": lambda configuration, *rest: plain(marian(configuration), configuration, *rest),
}


def speed(update: Update, device: torch.device, seconds: float, *, warm_up: int) -> tuple[float, float]:
    """Return target tokens per second, and milliseconds per update, after some updates that do not count."""
    for _ in range(warm_up):
        update()
    finish(device)
    tokens, updates, started = 0, 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        tokens += update()
        updates += 1
    finish(device)
    elapsed = time.perf_counter() - started
    return tokens / elapsed, 1000 * elapsed / updates


def finish(device: torch.device) -> None:
    """Wait for the GPU to finish its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def synchronizations(action: Callable[[], object]) -> Counter[str]:
    """Return how often an action waited for the GPU, by source line."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waits = [warning for warning in caught if "synchronizing" in str(warning.message)]
    return Counter(f"{warning.filename.rpartition('translucid/')[2]}:{warning.lineno}" for warning in waits)


def kernels(action: Callable[[], object]) -> tuple[int, float]:
    """Return the number of kernels that an action launches, and their GPU time in milliseconds."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        action()
        torch.cuda.synchronize()
    # `profile.events()` builds a tree first, which takes minutes for the 14,000 kernels of a beam search.
    events = profile.profiler.kineto_results.events()
    kernel_events = [event for event in events if event.device_type() == torch.autograd.DeviceType.CUDA]
    return len(kernel_events), sum(event.duration_ns() for event in kernel_events) / 1e6
