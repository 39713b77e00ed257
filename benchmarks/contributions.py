"""What contributions cost: CPU time of an analysis with them, divided by that of raw attention weights.

    python -m benchmarks.contributions RUN [RUN ...] [--words 20]

For each model, one sentence pair of this many words is analyzed by forced decoding, in turn with and without
contributions; the median ratio of the repeats is printed, with the first and third quartile. One thread.
"""

from __future__ import annotations

import argparse
import time
from statistics import quantiles

import torch

from translucid import Translator

REPEATS = 31
SENTENCE = "I like soccer and also going to the beach and my friends like to play the guitar in the house ."


def seconds(translator: Translator, pair: tuple[str, str], contributions: bool) -> float:
    """Return the CPU time of one analysis."""
    begin = time.process_time()
    translator.inspector.inspect([pair], contributions=contributions)
    return time.process_time() - begin


def main() -> None:
    """Measure each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--words", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    words = SENTENCE.split()
    text = " ".join((words * (arguments.words // len(words) + 1))[: arguments.words])
    print("run\tsource pieces\ttarget pieces\tweights [ms]\tcontributions [ms]\tratio\tquartiles")
    for run in arguments.runs:
        translator = Translator.load(run, "cpu", "torch")
        pair = text, text
        (inspected,) = translator.inspector.inspect([pair], contributions=True)  # also warms up
        plain, full, ratios = [], [], []
        for _ in range(REPEATS):
            plain.append(seconds(translator, pair, contributions=False))
            full.append(seconds(translator, pair, contributions=True))
            ratios.append(full[-1] / plain[-1])
        low, median, high = quantiles(ratios, n=4)
        lengths = f"{len(inspected.source)}\t{len(inspected.target)}"
        times = f"{1000 * sorted(plain)[REPEATS // 2]:.1f}\t{1000 * sorted(full)[REPEATS // 2]:.1f}"
        print(f"{run}\t{lengths}\t{times}\t{median:.2f}\t{low:.2f}-{high:.2f}")


if __name__ == "__main__":
    main()
