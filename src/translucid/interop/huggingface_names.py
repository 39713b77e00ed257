"""Hugging Face's names of the weights of our blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Side = Literal["encoder", "decoder"]
SIDES: tuple[Side, Side] = ("encoder", "decoder")


def block_names(side: Side, layer: int | str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield our names of the linear layers and norms of a block, each with theirs, whose rows are joined in ours."""
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
    """Return our name and Hugging Face's name of the norm behind all blocks, if there is one."""
    return f"{side}_norm", f"model.{side}.layer_norm"
