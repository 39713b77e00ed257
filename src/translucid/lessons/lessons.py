"""The eight lessons, in order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """A lesson, which is one page."""

    name: str
    title: str
    summary: str
    """The summary in the list of lessons."""
    code: tuple[str, ...]
    """The functions and classes whose source is shown, as `module:name`."""
    runs: tuple[str, ...] = ("demo",)
    """The names of the runs whose numbers the figure shows."""


LESSONS = (
    Lesson(
        "bottleneck",
        "Encoder, decoder, bottleneck",
        "One vector for a sentence of any length.",
        (
            "translucid.models.recurrent.encoder:RecurrentEncoder.forward",
            "translucid.models.recurrent.plain:PlainDecoder.forward",
        ),
        ("rnn-none", "rnn-bahdanau"),
    ),
    Lesson(
        "alignment",
        "Alignment scores by hand",
        "Dot, general and additive: three measures of how well two vectors match.",
        (
            "translucid.attention.scores:Dot.forward",
            "translucid.attention.scores:General.keys",
            "translucid.attention.scores:General.forward",
            "translucid.attention.scores:Concat.over",
        ),
        ("rnn-luong-dot", "rnn-luong-general", "rnn-bahdanau"),
    ),
    Lesson(
        "memory",
        "Queries, keys and values: a memory",
        "A lookup in a dictionary without exact matches.",
        ("translucid.attention.attend:attend",),
    ),
    Lesson(
        "masks",
        "Masks",
        "Positions that attention must ignore: padding and the future.",
        (
            "translucid.attention.masks:padding_mask",
            "translucid.attention.masks:causal_mask",
            "translucid.attention.masks:target_mask",
            "translucid.attention.attend:masked_softmax",
        ),
    ),
    Lesson(
        "positions",
        "Positions",
        "Waves that encode where a word is.",
        ("translucid.layers.positions:sinusoidal_positions",),
    ),
    Lesson(
        "heads",
        "Heads",
        "Several attentions in parallel, and what each contributes.",
        (
            "translucid.attention.multi_head:MultiHeadAttention.project",
            "translucid.attention.multi_head:MultiHeadAttention.attend_heads",
        ),
    ),
    Lesson(
        "scale",
        "Why divide by √d",
        "Long vectors make large scores, and large scores stop a model from learning.",
        (
            "translucid.attention.attend:scaled_dot_product",
            "translucid.attention.attend:masked_softmax",
        ),
    ),
    Lesson(
        "beam",
        "Beam search and greedy search",
        "The best next word does not always lead to the best sentence.",
        ("translucid.decoding.greedy:greedy_search", "translucid.decoding.beam:merge"),
    ),
)
