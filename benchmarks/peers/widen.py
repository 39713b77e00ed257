"""A model of the size of *base* that translates exactly like a trained *tiny* one: `python widen.py RUN OUT`.

Translation speed does not depend on the values of the weights, only on the output lengths; but training *base* takes
hours. So each feature of *tiny* is repeated (Net2Net, Chen et al. 2016, arXiv 1511.05641, with equal shares): weights
that read copies are divided by the number of copies, and additional layers write zeros.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import torch
from common import SIZES
from torch import Tensor, nn

from translucid.layers.positions import sinusoidal_positions
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.run_folder import RunFolder


class Widening:
    """From one width, number of heads and width of the feed-forward networks to larger ones."""

    def __init__(self, old: TransformerOptions, new: TransformerOptions) -> None:
        self.features = torch.arange(new.width) % old.width  # the old feature that each new one copies
        self.inner = torch.arange(new.feed_forward) % old.feed_forward
        size, old_size = new.width // new.heads, old.width // old.heads
        heads = torch.arange(new.heads) % old.heads
        self.heads = (heads[:, None] * old_size + torch.arange(size) % old_size).flatten()
        # A head's products add up size / old_size copies, and are divided by sqrt(size).
        self.query = math.sqrt(old_size / size)

    def linear(self, old: nn.Linear, new: nn.Linear, reads: Tensor, writes: Tensor, scale: float = 1.0) -> None:
        share = old.in_features / len(reads)
        new.weight.data = old.weight.data[writes][:, reads] * share * scale
        new.bias.data = old.bias.data[writes] * scale

    def norm(self, old: Any, new: Any) -> None:
        new.weight.data, new.bias.data = old.weight.data[self.features], old.bias.data[self.features]

    def attention(self, old: Any, new: Any) -> None:
        self.linear(old.query, new.query, self.features, self.heads, self.query)
        rows = torch.cat([self.heads, self.heads + old.query.out_features])
        self.linear(old.key_value, new.key_value, self.features, rows)
        self.linear(old.output, new.output, self.heads, self.features)

    def block(self, old: Any, new: Any) -> None:
        self.attention(old.self_attention, new.self_attention)
        if hasattr(old, "cross_attention"):
            self.attention(old.cross_attention, new.cross_attention)
        self.linear(old.feed_forward.inner, new.feed_forward.inner, self.features, self.inner)
        self.linear(old.feed_forward.outer, new.feed_forward.outer, self.inner, self.features)
        for before, after in zip(old.residuals, new.residuals, strict=True):
            self.norm(before.norm, after.norm)


def silence(block: Any) -> None:
    """Make a residual block add nothing to its input."""
    sublayers = [block.self_attention.output, block.feed_forward.outer]
    for layer in [*sublayers, *([block.cross_attention.output] if hasattr(block, "cross_attention") else [])]:
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)


def normalize_last(blocks: Any, real: int) -> None:
    """Make the post-norm blocks after the first `real` ones return their input.

    Their norms change nothing in what has been normalized, but would in what has then been scaled and shifted: so the
    gain and bias of the last norm of the real blocks go to the last norm of all.
    """
    norms = [residual.norm for block in blocks[real - 1 :] for residual in block.residuals]
    first = len(blocks[0].residuals) - 1  # the last norm of the last real block
    norms[-1].load_state_dict(norms[first].state_dict())
    for norm in norms[first:-1]:
        norm.reset_parameters()


def widened(model: Any, new: TransformerOptions) -> Any:
    """Return a model of another size that computes what `model`, one with sinusoids, computes."""
    old = model.options
    wide: Any = build_model(new, len(model.source_embedding.tokens.weight), len(model.output.weight)).eval()
    widening = Widening(old, new)
    for before, after in ((model.encoder, wide.encoder), (model.decoder, wide.decoder)):
        for i, block in enumerate(after):
            widening.block(before[min(i, len(before) - 1)], block)
            if i >= len(before):
                silence(block)
    for side in ("source_embedding", "target_embedding"):
        tokens = getattr(model, side).tokens.weight.data[:, widening.features]
        getattr(wide, side).tokens.weight.data = tokens * math.sqrt(old.width / new.width)
        table = sinusoidal_positions(new.max_length, old.width)[:, widening.features]
        getattr(wide, side).positions.table.data = table
    if old.norm == "pre":
        widening.norm(model.encoder_norm, wide.encoder_norm)
        widening.norm(model.decoder_norm, wide.decoder_norm)
    else:
        normalize_last(wide.encoder, len(model.encoder))
        normalize_last(wide.decoder, len(model.decoder))
    widening.linear(model.output, wide.output, widening.features, torch.arange(len(model.output.weight)))
    return wide


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    run, out, size = RunFolder(arguments.run), RunFolder(arguments.out), SIZES["base"]
    configuration, tokenizer = run.configuration(), run.tokenizer()
    model: Any = run.load_model(configuration, tokenizer)
    shape = {"width": size.width, "heads": size.heads, "feed_forward": size.feed_forward}
    shape |= {"encoder_layers": size.layers, "decoder_layers": size.layers, "positions": "learned"}
    options = model.options.model_copy(update={**shape, "tie_output": False})
    wide = widened(model, options)
    source, target = torch.tensor([[5, 6, 7, 8, 9, 3]]), torch.tensor([[2, 9, 8, 7]])
    with torch.inference_mode():
        torch.testing.assert_close(wide(source, target), model(source, target), rtol=0, atol=1e-3)
    out.begin(configuration.model_copy(update={"model": options}), tokenizer)
    out.save_model(wide, tokenizer, {})


if __name__ == "__main__":
    main()
