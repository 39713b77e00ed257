"""An explanation of a caption, as a saliency overlay and as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from translucid.decoding.hypothesis import percent
from translucid.inspection.explain.explanation import Explanation, explain
from translucid.inspection.explain.faithfulness import Faithfulness, faithfulness, part_count, random_faithfulness
from translucid.inspection.explain.image_case import ImageCase, SuperpixelCase
from translucid.inspection.plain_values import plain, rounded
from translucid.inspection.saliency_overlay import SaliencyOverlay

SHARE = 0.1
"""The share of an image's parts, the most important ones, that are left out or left alone to measure faithfulness."""
FINEST = 48
"""The most rows and columns of importance that a page receives."""


def lit(case: ImageCase, explanation: Explanation) -> SaliencyOverlay:
    """Return the parts of the image that support each word; its notes are its probability and LIME's fit."""
    notes = [percent(math.exp(value)) for value in case.looked.log_probs]
    if explanation.fit:
        for i, fit in enumerate(explanation.fit):
            notes[i] += f", R² {fit:.2f}"
    support = case.over(explanation.importance.clamp(min=0))
    return SaliencyOverlay(case.pixels, explanation.target, notes, support, "depends on")


def record(explanation: Explanation, faithful: Mapping[str, Faithfulness]) -> dict[str, Any]:
    """Return plain values: words, parts, importance rounded to five decimals, fit and faithfulness."""
    return {
        "source": explanation.source,
        "target": explanation.target,
        "method": explanation.method,
        "importance": plain(explanation.importance, 5),
        "fit": rounded(explanation.fit, 4),
        "faithfulness": {name: score._asdict() for name, score in faithful.items()},
    }


def where(case: ImageCase) -> dict[str, Any]:
    """Return the positions of the parts: rows and columns of cells, or the number of each pixel's superpixel."""
    if isinstance(case, SuperpixelCase):
        return {"regions": case.regions.tolist()}
    return {"grid": list(case.grid)}


def why_lit_record(case: ImageCase, method: str) -> dict[str, Any]:
    """Return an explanation of a caption for a page: importance [words][rows][columns], and its faithfulness."""
    explanation = explain(case, method, samples=200)
    k = part_count(SHARE, len(explanation.source))
    importance = case.over(explanation.importance)
    # A sample from the middle of each step, so that superpixels need not be sent pixel by pixel.
    down, across = -(-importance.shape[1] // FINEST), -(-importance.shape[2] // FINEST)
    return {
        "method": method,
        "target": explanation.target,
        "importance": importance[:, down // 2 :: down, across // 2 :: across].round(4).tolist(),
        "share": SHARE,
        "fit": rounded(explanation.fit, 3),
        "faithfulness": faithfulness(case, explanation, k)._asdict(),
        "random": random_faithfulness(case, k)._asdict(),
    }
