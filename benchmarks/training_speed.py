"""Speed of a training step, and what each of our kernels gains: target tokens per second, as ratios in one run.

    python benchmarks/training_speed.py [--seconds 10]

All variants run in turn on the same synthetic batch, so that ratios stay valid on a machine whose speed drifts.
Variants: `ours`; `float32` (without bfloat16, which matters only on processors with the instructions); `plain linear`
(also all products with PyTorch's default library, which matters further only on AMD processors); `plain attention` (the
equation, with its weights); `plain dropout` (PyTorch's); `plain loss` (all logits at once); `plain` (all of these).
"""

import argparse
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from translucid.data.batching import Batch
from translucid.kernels import reference_mode
from translucid.kernels.devices import tune_cpu
from translucid.kernels.rounding import bfloat16_is_faster, rounded_products
from translucid.models.transformer import Transformer
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets
from translucid.training import objective

SIZES = {"tiny": (256, 16), "small": (200, 10), "base": (100, 20)}
"""Preset: sentences and tokens of a batch, about those of Multi30k and Tatoeba; *base* with fewer than by default."""


def step_of(preset: str) -> tuple[Callable[[], None], int]:
    """Return one training step of a preset, and its target tokens."""
    configuration = resolve(preset=preset)
    sentences, length = SIZES[preset]
    vocabulary = configuration.data.tokenizer.vocabulary
    torch.manual_seed(1)
    model = Transformer(vocabulary, vocabulary, configuration.model).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(4, vocabulary, (3, sentences, length))
    batch = Batch(*ids)

    def step() -> None:
        loss = objective.batch_loss(model, batch, 0.1)
        (loss.smoothed / loss.tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, sentences * length


VARIANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "ours": nullcontext,
    "float32": lambda: rounded_products(False),
    "plain linear": lambda: reference_mode("linear"),
    "plain attention": lambda: reference_mode("attention"),
    "plain dropout": lambda: reference_mode("dropout"),
    "plain loss": lambda: reference_mode("loss"),
    "plain": reference_mode,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="seconds per variant and preset")
    seconds = parser.parse_args().seconds
    tune_cpu()
    names = tuple(VARIANTS)
    print("| preset | " + " | ".join(f"{name}, tokens/s" for name in names) + " |")
    print("| --- |" + " --- |" * len(names))
    for preset in SIZES:
        assert preset in all_presets()
        step, tokens = step_of(preset)
        step()
        total_seconds, steps = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
        while min(total_seconds.values()) < seconds:
            for name in names:
                with rounded_products(bfloat16_is_faster(torch.device("cpu"))), VARIANTS[name]():
                    started = time.perf_counter()
                    step()
                    total_seconds[name] += time.perf_counter() - started
                    steps[name] += 1
        rates = {name: steps[name] * tokens / total_seconds[name] for name in names}
        cells = [f"{rate:,.0f} ({rate / rates['ours']:.2f} ×)" for rate in rates.values()]
        print(f"| {preset} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
