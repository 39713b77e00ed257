"""The machine's peak performance: matrix products and memory bandwidth, in the same run as everything else."""

import statistics
import time
from collections.abc import Callable

import torch
from common import report, versions


def rate(action: Callable[[], object], work: float, seconds: float = 1.5) -> float:
    """Return the median work per second."""
    action()
    rates, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        action()
        rates.append(work / (time.perf_counter() - started))
    return statistics.median(rates)


def main() -> None:
    limits = {}
    for name, (m, k, n) in {
        "large": (2048, 2048, 2048),
        "feed-forward of tiny": (4096, 128, 256),
        "output of tiny": (4096, 128, 10000),
        "feed-forward of base": (2048, 512, 2048),
    }.items():
        a, b, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
        limits[f"{name}, {m}×{k}×{n}"] = rate(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), 2e-9 * m * k * n)
        if name.startswith("feed-forward"):
            half = [tensor.bfloat16() for tensor in (a, b, out)]
            limits[f"{name}, of bfloat16"] = rate(lambda h=half: torch.mm(*h[:2], out=h[2]), 2e-9 * m * k * n)
    big, copy = torch.randn(1 << 26), torch.empty(1 << 26)
    gigabytes = rate(lambda: copy.copy_(big), 2 * 4e-9 * big.numel())
    report(gflops=limits, memory_gb=gigabytes, threads=torch.get_num_threads(), versions=versions("torch"))


if __name__ == "__main__":
    main()
