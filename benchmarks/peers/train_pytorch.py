"""Plain training loops around other toolkits' modules.

    python train_pytorch.py marian|nn-transformer SIZE BATCHES SECONDS float32|bfloat16

The loop follows the tutorials: padded batches, all logits, PyTorch's cross-entropy with label smoothing, Adam.
"""

import sys
import time

import torch
from common import BATCHES, SIZES, START, Pair, load_pairs, measure, report, versions
from lesson import loss
from marian import marian, shape_of
from modules import Tutorial
from torch import Tensor

NAME, SIZE, HOW, SECONDS = sys.argv[1], SIZES[sys.argv[2]], sys.argv[3], float(sys.argv[4])
ROUNDED = sys.argv[5] == "bfloat16"
SHAPE = shape_of(SIZE)
PADDING = SHAPE.padding


def main() -> None:
    torch.manual_seed(1)
    model = (marian(SIZE) if NAME == "marian" else Tutorial(SHAPE)).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)

    def logits(source: Tensor, inputs: Tensor) -> Tensor:
        if NAME == "marian":
            return model(input_ids=source, attention_mask=source != PADDING, decoder_input_ids=inputs).logits
        return model(source, inputs)

    def step(batch: list[Pair]) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=ROUNDED):
            result = loss(logits, batch, padding=PADDING, first=PADDING if NAME == "marian" else START)
        optimizer.zero_grad()
        result.backward()
        optimizer.step()

    batches = BATCHES[HOW](load_pairs("train"), SIZE.tokens)
    started = time.perf_counter()
    result = measure(step, batches, SECONDS)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    extra = ["transformers"] if NAME == "marian" else []
    report(**result, parameters=parameters, seconds=time.perf_counter() - started, versions=versions("torch", *extra))


if __name__ == "__main__":
    main()
