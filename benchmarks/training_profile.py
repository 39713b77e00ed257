"""Which PyTorch operators a training step spends its time on, as Markdown; `train --profile` shows its parts.

    python benchmarks/training_profile.py [--model tiny] [--steps 10]

The batch is synthetic, as in training_speed.py; shares are of the step's time, both threads together.
"""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile
from training_speed import SIZES, step_of

from translucid.kernels.devices import tune_cpu
from translucid.kernels.rounding import bfloat16_is_faster, rounded_products
from translucid.training.profile import CountedProducts, product_limit

KINDS = {
    "matrix products (linear layers, output, their gradients)": ("aten::mm", "aten::addmm"),
    "attention, both ways: products and softmax": ("bmm", "softmax", "masked_fill", "scaled_dot_product", "_Products"),
    "copies: bytes to dropout masks, heads side by side, factors rounded": ("aten::copy_", "randint", "random_"),
    "element by element: add, multiply, ReLU": (
        "aten::add",
        "aten::mul",
        "aten::sub",
        "aten::div",
        "threshold",
        "clamp",
    ),
    "softmax of the loss": ("aten::exp", "aten::amax"),
    "sums: gradients of biases": ("aten::sum",),
    "layer normalization, both ways": ("layer_norm",),
    "embeddings, gathers, scatters": ("embedding", "index", "gather", "scatter"),
    "optimizer": ("adam", "Adam", "foreach", "lerp"),
}
OTHERS = "everything else, Python included"


def kind_of(operator: str) -> str:
    """Return the first kind that has a part of the operator's name."""
    for kind, parts in KINDS.items():
        if any(part in operator for part in parts):
            return kind
    return OTHERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="tiny", choices=[*SIZES])
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    tune_cpu()
    step, tokens = step_of(arguments.model)
    device = torch.device("cpu")
    bfloat16 = bfloat16_is_faster(device)
    with rounded_products(bfloat16):
        with CountedProducts() as products:
            step()
        for _ in range(2):
            step()
        with profile(activities=[ProfilerActivity.CPU]) as measured:
            for _ in range(arguments.steps):
                step()
    times = {event.key: event.self_cpu_time_total for event in measured.key_averages()}
    total = sum(times.values())
    shares: dict[str, float] = dict.fromkeys([*KINDS, OTHERS], 0.0)
    for name, time_spent in times.items():
        shares[kind_of(name)] += time_spent / total
    milliseconds = total / 1000 / arguments.steps
    print(f"`{arguments.model}`, {tokens:,} target tokens, {milliseconds:.0f} ms per step\n")
    speed, limit = products.operations / milliseconds / 1e6, product_limit(device, bfloat16=bfloat16) / 1e9
    print(f"matrix products: {speed:.0f} GFLOP/s, {speed / limit:.0%} of the {limit:.0f} of a large product\n")
    print("| | share |\n| --- | ---: |")
    for kind, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"| {kind} | {100 * share:.0f} % |")
    print("\n| operator | share | calls per step |\n| --- | ---: | ---: |")
    for event in sorted(measured.key_averages(), key=lambda event: -event.self_cpu_time_total)[:12]:
        share = 100 * event.self_cpu_time_total / total
        print(f"| `{event.key}` | {share:.1f} % | {event.count / arguments.steps:.0f} |")


if __name__ == "__main__":
    main()
