"""Train Hugging Face's MarianMT and translate validation sentences every minute: `python learn_marian.py MINUTES`.

Batches contain sentences of similar length; the schedule is warm-up, inverse square root, and a linear cooldown.
"""

import sys
import time

import torch
from common import END, PEAK, SENTENCES, SIZES, WARMUP, Pair, like_length_batches, load_pairs, report, text, vocabulary
from lesson import loss, padded
from marian import marian
from torch import Tensor, nn

SECONDS = 60 * float(sys.argv[1])
PIECES = vocabulary()
PADDING = len(PIECES) - 1
COOLDOWN = 0.3


def update(model: nn.Module, optimizer: torch.optim.Optimizer, batch: list[Pair]) -> None:
    def logits(source: Tensor, inputs: Tensor) -> Tensor:
        return model(input_ids=source, attention_mask=source != PADDING, decoder_input_ids=inputs).logits

    batch_loss = loss(logits, batch, padding=PADDING, first=PADDING)
    optimizer.zero_grad()
    batch_loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


@torch.inference_mode()
def translated(model: nn.Module, sources: list[list[int]]) -> list[str]:
    model.eval()
    texts = [""] * len(sources)
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    for first in range(0, len(order), 64):
        part = order[first : first + 64]
        ids = padded([sources[i] for i in part], PADDING)
        outputs = model.generate(input_ids=ids, attention_mask=ids != PADDING, num_beams=1, max_new_tokens=60)
        for i, row in zip(part, outputs.tolist(), strict=True):
            texts[i] = text([PIECES[j] for j in row if j not in (END, PADDING)])
    model.train()
    return texts


def main() -> None:
    torch.manual_seed(1)
    model = marian(SIZES["tiny"]).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=PEAK, betas=(0.9, 0.98), eps=1e-9)
    sources = [source for source, _ in load_pairs("valid", longest=1000)][:SENTENCES]
    batches = like_length_batches(load_pairs("train"), SIZES["tiny"].tokens)
    elapsed, due, started = 0.0, 60.0, time.perf_counter()
    for step, batch in enumerate(batches, 1):
        rate = PEAK * min(step / WARMUP, (WARMUP / step) ** 0.5)
        rate *= min(1.0, max(0.0, 1 - elapsed / SECONDS) / COOLDOWN)
        for group in optimizer.param_groups:
            group["lr"] = rate
        update(model, optimizer, batch)
        elapsed = time.perf_counter() - started
        if elapsed >= min(due, SECONDS):
            report(step=step, seconds=elapsed, texts=translated(model, sources))
            started += time.perf_counter() - started - elapsed  # translating is not counted
            due += 60
        if elapsed >= SECONDS:
            break


if __name__ == "__main__":
    main()
