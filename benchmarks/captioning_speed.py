"""Speed of training and captioning, compared with the training loop of public tutorials in plain PyTorch.

    python benchmarks/captioning_speed.py [--rounds 6]

Both train the soft attention of Xu et al. 2015 at width 512, in turn, on the same synthetic grids of 7 x 7 cells with
1,280 features: 32 images with five captions of 6 to 20 tokens each, vocabulary 3,000. In the tutorials, each caption is
a row with a copy of its grid, captions are sorted by length, the batch shrinks as they end, and every step computes the
projection of the grid and the output layer again. Afterwards our model writes captions with beam 5, from grids and from
pixels.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from translucid.captions.captioner import decode_images
from translucid.captions.options import CaptionerOptions, ImageEncoderOptions
from translucid.data.batching import Batch
from translucid.decoding.decoding_options import DecodingOptions
from translucid.kernels.devices import configure_process
from translucid.models.build import build_model
from translucid.runs.training_options import TrainingOptions
from translucid.training.objective import batch_loss
from translucid.training.optimizer import Optimizer
from translucid.training.weights import trainable

IMAGES, CAPTIONS, CELLS, FEATURES, WIDTH, VOCABULARY = 32, 5, 49, 1280, 512, 3000


class Tutorial(nn.Module):
    """A decoder as tutorials write it."""

    def __init__(self) -> None:
        super().__init__()
        self.of_cells, self.of_state, self.energy = (
            nn.Linear(FEATURES, WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, 1),
        )
        self.embedding, self.cell = nn.Embedding(VOCABULARY, WIDTH), nn.LSTMCell(WIDTH + FEATURES, WIDTH)
        self.first = nn.ModuleList(nn.Linear(FEATURES, WIDTH) for _ in range(2))
        self.gate, self.output = nn.Linear(WIDTH, FEATURES), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, cells: Tensor, targets: Tensor, lengths: list[int]) -> Tensor:
        """Return the loss per token of captions [N, T], longest first, for grids [N, S, F]."""
        h, c = (linear(cells.mean(1)) for linear in self.first)
        embedded, losses, weights = (
            self.embedding(targets),
            [],
            cells.new_zeros(len(cells), max(lengths), cells.size(1)),
        )
        for t in range(max(lengths) - 1):
            n = sum(length > t + 1 for length in lengths)
            hidden = F.relu(self.of_cells(cells[:n]) + self.of_state(h[:n])[:, None])
            alpha = self.energy(hidden)[..., 0].softmax(1)
            context = torch.sigmoid(self.gate(h[:n])) * (cells[:n] * alpha[..., None]).sum(1)
            h, c = self.cell(torch.cat([embedded[:n, t], context], 1), (h[:n], c[:n]))
            losses.append(F.cross_entropy(self.output(F.dropout(h, 0.5)), targets[:n, t + 1], reduction="sum"))
            weights[:n, t] = alpha
        return sum(losses) / (sum(lengths) - len(lengths)) + ((1 - weights.sum(1)) ** 2).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    configure_process()
    torch.manual_seed(1)
    grids = torch.randn(IMAGES, CELLS, FEATURES).relu()
    lengths = sorted(torch.randint(6, 21, (IMAGES * CAPTIONS,)).tolist(), reverse=True)
    targets = torch.zeros(len(lengths), max(lengths) + 1, dtype=torch.long)
    for row, length in enumerate(lengths):
        targets[row, 0], targets[row, 1 : length + 1] = 2, torch.randint(4, VOCABULARY, (length,))
    tokens = sum(lengths)

    tutorial = Tutorial()
    adam = torch.optim.Adam(tutorial.parameters(), 4e-4)
    copies = grids.repeat_interleave(CAPTIONS, 0)

    def train_tutorial() -> None:
        adam.zero_grad()
        tutorial(copies, targets, [length + 1 for length in lengths]).backward()
        adam.step()

    image_encoder = ImageEncoderOptions(network="efficientnet-lite0", size=224, stride=32, frozen=True)
    options = CaptionerOptions(image_encoder=image_encoder, width=WIDTH, attention="soft")
    batch = Batch(grids, targets[:, :-1] * (targets[:, 1:] > 0), targets[:, 1:])
    batch.targets_in[:, 0] = 2
    variants = {"tutorial": train_tutorial}
    for order in ("look-first", "read-first"):
        model = build_model(options.model_copy(update={"order": order}), VOCABULARY, VOCABULARY).train()
        optimizer = Optimizer(TrainingOptions(), model, trainable(model), bfloat16=False)

        def train_ours(model: object = model, optimizer: Optimizer = optimizer) -> None:
            (batch_loss(model, batch, 0.1).smoothed / tokens).backward()  # type: ignore[arg-type]
            optimizer.step(4e-4)

        variants[f"caption-soft, {order}"] = train_ours
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, run_step in variants.items():
            started = time.perf_counter()
            run_step()
            if number:
                rates[name].append(tokens / (time.perf_counter() - started))
    base = rates["tutorial"]
    print(f"{torch.get_num_threads()} threads; target tokens per second in training, median of {rounds} rounds in turn")
    for name, measured in rates.items():
        ratio = statistics.median(rate / base_rate for rate, base_rate in zip(measured, base, strict=True))
        print(f"{name:28} {statistics.median(measured):8,.0f}   {ratio:.2f} x the tutorial")

    model.eval()
    search = DecodingOptions(beam=5, max_length_ratio=0, max_length_extra=12, min_length=10)
    cached = [np.asarray(grid) for grid in grids.half()]
    pixels = np.random.default_rng(1).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    for what, images in (("32 images from kept grids", cached), ("one image from its pixels", [pixels])):
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            decode_images(model, images, search)
            times.append(time.perf_counter() - started)
        best = statistics.median(times)
        print(f"beam 5, 10 to 12 tokens, {what}: {len(images) / best:,.1f} images/s, {1000 * best:,.0f} ms")


if __name__ == "__main__":
    main()
