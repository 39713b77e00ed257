"""The mathematics of attention: masks, scores, weights, context, heads."""

from translucid.attention.attend import attend, attend_fused, masked_softmax, scaled_dot_product
from translucid.attention.local import PredictiveWindow
from translucid.attention.masks import causal_mask, padding_mask, target_mask
from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.points import Point, at_positions, handling, points_of, recording
from translucid.attention.scores import Concat, Dot, General, Score

__all__ = [
    "Concat",
    "Dot",
    "General",
    "MultiHeadAttention",
    "Point",
    "PredictiveWindow",
    "Score",
    "at_positions",
    "attend",
    "attend_fused",
    "causal_mask",
    "handling",
    "masked_softmax",
    "padding_mask",
    "points_of",
    "recording",
    "scaled_dot_product",
    "target_mask",
]
