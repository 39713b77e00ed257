"""Claim 6: why dot products are scaled, and whether the scale should be learned.

    python benchmarks/claims/scale.py [--seeds 5] [--quick]

First without training: how peaked is softmax(g q k^T) over 32 random keys, and how much gradient passes through it?
Then a lookup task: 32 keys, each with one of 10 labels as its value, and a query that is a noisy copy of one of the
keys. Query and key are projected to width d and compared by the dot product with a scale g that is 1, 1 / sqrt(d), or
learned (from either start). The label is predicted from the context, so that, as in translation, the projections get
gradients only through the softmax. How often is the label correct after a fixed number of updates?

--quick uses one seed and few updates; its figures are written to the current folder.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from common import DOCS, mean_interval, show, table, write
from torch import Tensor, nn

from translucid.attention import Dot, attend

WIDTHS = [4, 16, 64, 256, 1024]
KEYS = 32
LABELS = 10
CONTENT = 16
"""Width of the content of queries and keys."""
SCALES = {
    "1": lambda width: Dot(),
    "1/√d": lambda width: frozen(Dot(scaled=True, initial_scale=1 / math.sqrt(width))),
    "learned, from 1": lambda width: Dot(scaled=True, initial_scale=1.0),
    "learned, from 1/√d": lambda width: Dot(scaled=True, initial_scale=1 / math.sqrt(width)),
}
COMMAND = "python benchmarks/claims/scale.py"


def frozen(module: Dot) -> Dot:
    """A constant scale."""
    return module.requires_grad_(False)


class Lookup(nn.Module):
    """Project, compare, read, and predict the label."""

    def __init__(self, width: int, score: Dot) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(CONTENT, width, bias=False) for _ in range(2))
        for linear in (self.query, self.key):  # components of variance 1, as the paper assumes
            nn.init.normal_(linear.weight, std=1 / math.sqrt(CONTENT))
        self.score = score
        self.name = nn.Linear(LABELS, LABELS)

    def forward(self, query: Tensor, key: Tensor, labels: Tensor) -> Tensor:
        """Return logits [B, labels] for queries [B, content] to keys [B, n_k, content] with labels [B, n_k]."""
        value = F.one_hot(labels, LABELS).float()
        context, _ = attend(self.query(query)[:, None], self.key(key), value, score=self.score)
        return self.name(context[:, 0])


def saturation(width: int, scaled: bool) -> tuple[float, float, float]:
    """Return the mean of the largest weight, of the entropy in nats, and of the gradient's norm at the scores."""
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(2000, n, width, generator=generator) for n in (1, KEYS))
    scores = (query @ key.transpose(1, 2))[:, 0] / (math.sqrt(width) if scaled else 1)
    weights = scores.softmax(-1)
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
    return weights.amax(-1).mean().item(), entropy.mean().item(), jacobian.flatten(1).norm(dim=1).mean().item()


def learned(name: str, width: int, seed: int, updates: int) -> tuple[float, float]:
    """Train a lookup; return its accuracy in percent, and the final scale."""
    torch.manual_seed(seed)
    model = Lookup(width, SCALES[name](width))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)

    def draw(count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rows, right = torch.arange(count), torch.randint(KEYS, (count,))
        key, labels = torch.randn(count, KEYS, CONTENT), torch.randint(LABELS, (count, KEYS))
        return key[rows, right] + 0.5 * torch.randn(count, CONTENT), key, labels, labels[rows, right]

    for _ in range(updates):
        *inputs, labels = draw(64)
        loss = F.cross_entropy(model(*inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    *inputs, labels = draw(2000)
    with torch.no_grad():
        accuracy = (model(*inputs).argmax(-1) == labels).float().mean().item()
    return 100 * accuracy, 1.0 if model.score.scale is None else model.score.scale.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="one seed, 20 updates, figures not written to docs")
    arguments = parser.parse_args()
    seeds, updates, docs = arguments.seeds, arguments.updates, DOCS
    if arguments.quick:
        seeds, updates, docs = 1, 20, Path()
    torch.set_num_threads(1)
    peaks, accuracy, scales = {}, {}, {}
    for scaled in (False, True):
        peaks[scaled] = [saturation(width, scaled) for width in WIDTHS]
    for name in SCALES:
        accuracy[name], scales[name] = [], []
        for width in WIDTHS:
            runs = [learned(name, width, seed, updates) for seed in range(1, seeds + 1)]
            accuracy[name].append(mean_interval([right for right, _ in runs]))
            scales[name].append(mean_interval([scale for _, scale in runs])[0])
    write("6-scale.md", page(peaks, accuracy, scales, seeds, updates), docs)
    draw_widths(peaks, accuracy, docs / "6-scale.png")


def page(peaks: dict, accuracy: dict, scales: dict, seeds: int, updates: int) -> str:
    """Return the page of claim 6."""
    before, after, ends = [], [], []
    for i, width in enumerate(WIDTHS):
        label = f"{width:,}"
        before.append([label, *(f"{figure:.3f}" for figure in (*peaks[False][i], *peaks[True][i]))])
        after.append([label, *(show(*accuracy[name][i]) for name in SCALES)])
        ends.append([label, *(f"{scales[name][i]:.3f}" for name in SCALES)])
    head = ["d", *(f"{what}, {scale}" for scale in ("g = 1", "g = 1/√d") for what in ("peak", "entropy", "gradient"))]
    return f"""# Claim 6: without scaling, dot-product attention saturates as d grows

Random queries and {KEYS} random keys of variance 1, without training: the largest weight, the entropy (at most
{math.log(KEYS):.2f} nats) and the norm of the gradient through the softmax. Without scaling, the weights become one-hot
and the gradient vanishes. With scaling, nothing depends on d.

{table(head, before)}
A lookup among {KEYS} keys, trained for {updates} updates with Adam, with a loss on the retrieved value only: percent of
2,000 queries that retrieve the right one of {LABELS} labels, by the scale g. {seeds} seeds; ± is the 95 % interval of
the mean over seeds.

{table(["d", *SCALES], after)}
The scale after training:

{table(["d", *SCALES], ends)}
![Saturation and accuracy by width](6-scale.png)

To reproduce: `{COMMAND}`
"""


def draw_widths(peaks: dict, accuracy: dict, file: Path) -> None:
    """Plot the gradient without training (left) and the accuracy after training (right)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for scaled, label in ((False, "g = 1"), (True, "g = 1/√d")):
        left.plot(WIDTHS, [gradient for _, _, gradient in peaks[scaled]], marker="o", label=label)
    left.set(xscale="log", xlabel="d", ylabel="norm of the gradient through the softmax", ylim=0)
    for name, values in accuracy.items():
        right.errorbar(
            WIDTHS, [m for m, _ in values], [h for _, h in values], marker="o", label=f"g: {name}", capsize=3
        )
    right.set(xscale="log", xlabel="d", ylabel="right label retrieved, %", ylim=(0, 100))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
