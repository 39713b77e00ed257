"""What running the decoder's recurrence over all words at once gains: target tokens per second, as ratios in one run.

    python benchmarks/recurrent_speed.py [--seconds 10]

Variants of the preset rnn-luong-general run in turn on the same synthetic batch: `fused`, the default; `word by word`,
the same equations in a loop; and `input feeding` and `bahdanau`, which need the loop. Measured for the whole training
step, and for the decoder only, forward and backward.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from translucid.data.batching import Batch
from translucid.kernels.devices import tune_cpu
from translucid.models.model_options import RecurrentOptions
from translucid.models.recurrent import LuongDecoder, RecurrentModel
from translucid.training.objective import batch_loss

VOCABULARY, SENTENCES, LENGTH = 8000, 128, 16


class WordByWord(LuongDecoder):
    """The same decoder as a loop."""

    def forward(self, x, state):
        """As `LuongDecoder.forward` without input feeding."""
        cells, features = state.cells, []
        for i, word in enumerate(x.unbind(1)):
            hidden, cells = self.recurrence.step(word, cells)
            features.append(self._attend(hidden[:, None], state, i))
        return torch.cat(features, 1), state.after(x.size(1), cells)


def model_of(**options) -> RecurrentModel:
    torch.manual_seed(1)
    return RecurrentModel(VOCABULARY, VOCABULARY, RecurrentOptions(width=256, **options)).train()


def models() -> dict[str, RecurrentModel]:
    fused, loop = model_of(), model_of()
    weights = loop.decoder.state_dict()
    loop.decoder = WordByWord(loop.options)
    loop.decoder.load_state_dict(weights)
    return {
        "fused": fused,
        "word by word": loop,
        "input feeding": model_of(input_feeding=True),
        "bahdanau": model_of(attention="bahdanau", cell="gru"),
    }


def step_of(model: RecurrentModel, batch: Batch, whole: bool) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    memory = model.encode(batch.source)
    state = model.start(replace(memory, states=memory.states.detach(), first=tuple(c.detach() for c in memory.first)))
    state = replace(state, keys=state.keys.detach())
    embedded = torch.randn(SENTENCES, LENGTH, 256, requires_grad=True)

    def step() -> None:
        if whole:
            loss = batch_loss(model, batch, 0.1)
            (loss.smoothed / loss.tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            model.decoder(embedded, state)[0].sum().backward()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="seconds per variant")
    seconds = parser.parse_args().seconds
    tune_cpu()
    ids = torch.randint(4, VOCABULARY, (3, SENTENCES, LENGTH))
    batch = Batch(*ids)
    variants = models()
    print("| | " + " | ".join(f"{name}, tokens/s" for name in variants) + " |")
    print("| --- |" + " ---: |" * len(variants))
    for part, whole in (("decoder alone", False), ("whole training step", True)):
        steps = {name: step_of(model, batch, whole) for name, model in variants.items()}
        for step in steps.values():
            step()
        total_seconds, count = dict.fromkeys(steps, 0.0), dict.fromkeys(steps, 0)
        while min(total_seconds.values()) < seconds:
            for name, step in steps.items():
                started = time.perf_counter()
                step()
                total_seconds[name] += time.perf_counter() - started
                count[name] += 1
        rates = {name: count[name] * SENTENCES * LENGTH / total_seconds[name] for name in steps}
        cells = [f"{rate:,.0f} ({rate / rates['word by word']:.1f} ×)" for rate in rates.values()]
        print(f"| {part} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
