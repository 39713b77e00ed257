"""What Hugging Face calls the weights of the blocks that we have too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Side = Literal["encoder", "decoder"]
SIDES: tuple[Side, Side] = ("encoder", "decoder")


def block_names(side: Side, layer: int | str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield our names of the linear layers and norms of a block, each with those whose rows stand in it in a column."""
    theirs, ours = f"model.{side}.layers.{layer}", f"{side}.{layer}"
    attentions = [("self_attention", "self_attn"), ("cross_attention", "encoder_attn")][: 1 + (side == "decoder")]
    for place, (mine, other) in enumerate(attentions):
        yield f"{ours}.{mine}.query", (f"{theirs}.{other}.q_proj",)
        yield f"{ours}.{mine}.key_value", (f"{theirs}.{other}.k_proj", f"{theirs}.{other}.v_proj")
        yield f"{ours}.{mine}.output", (f"{theirs}.{other}.out_proj",)
        yield f"{ours}.residuals.{place}.norm", (f"{theirs}.{other}_layer_norm",)
    yield f"{ours}.feed_forward.inner", (f"{theirs}.fc1",)
    yield f"{ours}.feed_forward.outer", (f"{theirs}.fc2",)
    yield f"{ours}.residuals.{len(attentions)}.norm", (f"{theirs}.final_layer_norm",)


def last_norm(side: Side) -> tuple[str, str]:
    """Return our name of the norm behind all blocks, where there is one, and that of Hugging Face."""
    return f"{side}_norm", f"model.{side}.layer_norm"
