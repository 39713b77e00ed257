"""Plain training loops around modules that others ship.

    python train_pytorch.py marian|nn-transformer SIZE BATCHES SECONDS float32|bfloat16

The loop is that of the tutorials: padded batches, all logits, PyTorch's cross-entropy with label smoothing, Adam.
"""

import math
import sys
import time

import torch
from common import BATCHES, SIZES, START, Pair, load_pairs, measure, report, versions, vocabulary
from lesson import loss
from torch import Tensor, nn

NAME, SIZE, HOW, SECONDS = sys.argv[1], SIZES[sys.argv[2]], sys.argv[3], float(sys.argv[4])
ROUNDED = sys.argv[5] == "bfloat16"
ENTRIES = len(vocabulary())
PADDING = ENTRIES - 1


class Tutorial(nn.Module):
    """torch.nn.Transformer with sinusoidal positions and tied embeddings."""

    def __init__(self) -> None:
        super().__init__()
        s = SIZE
        self.embedding = nn.Embedding(ENTRIES, s.width, padding_idx=PADDING)
        angle = torch.arange(512)[:, None] * torch.exp(torch.arange(0, s.width, 2) * (-math.log(1e4) / s.width))
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(s.dropout)
        self.transformer = nn.Transformer(
            s.width, s.heads, s.layers, s.layers, s.feed_forward, s.dropout, batch_first=True
        )
        self.output = nn.Linear(s.width, ENTRIES)
        self.output.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * math.sqrt(SIZE.width) + self.positions[: ids.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PADDING
        future = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        states = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.output(states)


def build() -> nn.Module:
    if NAME != "marian":
        return Tutorial()
    from marian import marian  # which only this peer's environment can import

    return marian(SIZE)


def main() -> None:
    torch.manual_seed(1)
    model = build().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)

    def logits(source: Tensor, inputs: Tensor) -> Tensor:
        if NAME == "marian":
            return model(input_ids=source, attention_mask=source != PADDING, decoder_input_ids=inputs).logits
        return model(source, inputs)

    def step(batch: list[Pair]) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=ROUNDED):
            found = loss(logits, batch, padding=PADDING, first=PADDING if NAME == "marian" else START)
        optimizer.zero_grad()
        found.backward()
        optimizer.step()

    batches = BATCHES[HOW](load_pairs("train"), SIZE.tokens)
    started = time.perf_counter()
    found = measure(step, batches, SECONDS)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    extra = ["transformers"] if NAME == "marian" else []
    report(**found, parameters=parameters, seconds=time.perf_counter() - started, versions=versions("torch", *extra))


if __name__ == "__main__":
    main()
