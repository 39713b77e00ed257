"""The eight lessons, in order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """One page."""

    name: str
    title: str
    summary: str
    """For the list of all lessons."""
    code: tuple[str, ...]
    """The functions and classes that are shown, as `module:name`; see `Excerpt.of`."""
    runs: tuple[str, ...] = ("demo",)
    """Whose numbers its figure shows."""


LESSONS = (
    Lesson(
        "bottleneck",
        "Encoder, decoder, bottleneck",
        "A sentence squeezed into one vector, however long it is.",
        (
            "translucid.models.recurrent.encoder:RecurrentEncoder.forward",
            "translucid.models.recurrent.plain:PlainDecoder.forward",
        ),
        ("rnn-none", "rnn-bahdanau"),
    ),
    Lesson(
        "alignment",
        "Alignment scores by hand",
        "Dot, general and additive: three ways to say how well two vectors match.",
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
        "Looking something up in a dictionary that has no exact entries.",
        ("translucid.attention.attend:attend",),
    ),
    Lesson(
        "masks",
        "Masks",
        "What may not be looked at: the future, and what is not there.",
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
        "Waves that say where a word stands.",
        ("translucid.layers.positions:sinusoidal_positions",),
    ),
    Lesson(
        "heads",
        "Heads",
        "Several looks at once, and what each is good for.",
        (
            "translucid.attention.multi_head:MultiHeadAttention.project",
            "translucid.attention.multi_head:MultiHeadAttention.look",
        ),
    ),
    Lesson(
        "scale",
        "Why divide by √d",
        "Long vectors make large scores, and large scores make a model that can't learn.",
        (
            "translucid.attention.attend:scaled_dot_product",
            "translucid.attention.attend:masked_softmax",
        ),
    ),
    Lesson(
        "beam",
        "Beam search against greedy",
        "The best next word is not always the beginning of the best sentence.",
        ("translucid.decoding.greedy:greedy_search", "translucid.decoding.beam:merge"),
    ),
)
