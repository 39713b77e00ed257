"""Cost of a training step of the preset lm-lstm compared with PyTorch's LSTM: forward and backward, one thread.

    python benchmarks/language_speed.py [--rounds 7]

The variants run in turn on the same synthetic window of 64 rows of 70 tokens: two `torch.nn.LSTM` of the preset's sizes
on given vectors; PyTorch's whole model (embedding, LSTMs, projection to 8,000 pieces, cross-entropy) without dropout;
and ours with all its dropout, in float32 and, on processors with the instructions, in bfloat16. No variant includes the
optimizer step. The script prints the median, minimum and maximum of the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.data.batching import Batch
from translucid.kernels.rounding import bfloat16_is_faster, mixed_precision
from translucid.language.running_text import StreamLoss
from translucid.language.scores import empty_source
from translucid.models.build import build_model
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import resolve

ROWS, WINDOW, VOCABULARY = 64, 70, 8000
CPU = torch.device("cpu")


class Torchs(nn.Module):
    """A model of the same size from PyTorch's modules."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.lstms = nn.ModuleList([nn.LSTM(width, hidden), nn.LSTM(hidden, width)])
        self.output = nn.Linear(width, VOCABULARY)
        self.output.weight = self.embedding.weight

    def run(self, x: Tensor) -> Tensor:
        """[T, B, D] -> [T, B, D]."""
        for lstm in self.lstms:
            x, _ = lstm(x)
        return x


def variants() -> dict[str, Callable[[], Tensor]]:
    """Return a loss function for each variant."""
    model = resolve(preset="lm-lstm").model
    torch_model = Torchs(model.width, model.hidden)
    ids = torch.randint(4, VOCABULARY, (ROWS, WINDOW + 1))
    vectors = torch.randn(WINDOW, ROWS, model.width, requires_grad=True)
    window = Batch(empty_source(ROWS), ids[:, :-1], ids[:, 1:])

    def full_model() -> Tensor:
        x = torch_model.run(torch_model.embedding(ids[:, :-1].t()))
        return F.cross_entropy(torch_model.output(x).flatten(0, 1), ids[:, 1:].t().flatten())

    def ours(rounded: bool) -> Callable[[], Tensor]:
        built: SequenceModel = build_model(model, VOCABULARY, VOCABULARY).train()
        loss_of = StreamLoss(built)

        def loss() -> Tensor:
            with mixed_precision(CPU, enabled=rounded):
                loss_value = loss_of(window)
            return loss_value.smoothed / loss_value.tokens

        return loss

    losses = {
        "torch.nn.LSTM alone": lambda: torch_model.run(vectors).sum(),
        "PyTorch's whole model": full_model,
        "lm-lstm, float32": ours(False),
    }
    return losses | ({"lm-lstm, bfloat16": ours(True)} if bfloat16_is_faster(CPU) else {})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(1)
    losses = variants()
    seconds: dict[str, list[float]] = {name: [] for name in losses}
    for number in range(rounds + 1):
        for name, loss in losses.items():
            started = time.process_time()
            loss().backward()
            if number:  # the first round warms up
                seconds[name].append(time.process_time() - started)
    base = statistics.median(seconds["torch.nn.LSTM alone"])
    for name, times in seconds.items():
        middle = statistics.median(times)
        rate = ROWS * WINDOW / middle
        print(
            f"{name:24} {1000 * middle:6.0f} ms ({1000 * min(times):.0f} to {1000 * max(times):.0f}), "
            f"{middle / base:.2f} x, {rate:,.0f} tokens/s"
        )


if __name__ == "__main__":
    main()
