"""An explanation of a caption, shown on the image and as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from translucid.decoding.hypothesis import percent
from translucid.inspection.explain.explanation import Explanation, explain
from translucid.inspection.explain.faithfulness import Faithfulness, faithfulness, part_count, random_faithfulness
from translucid.inspection.explain.image_case import ImageCase, SuperpixelCase
from translucid.inspection.saliency_overlay import SaliencyOverlay

SHARE = 0.1
"""Of the parts of an image, the most important, which are left out or left alone to test an explanation."""
FINEST = 48
"""Rows and columns that a page is sent of what belongs to pixels, at most."""


def lit(case: ImageCase, found: Explanation) -> SaliencyOverlay:
    """Light up, for each word, the parts of the image that speak for it; beside it its probability and LIME's fit."""
    notes = [percent(math.exp(value)) for value in case.looked.log_probs]
    notes = [f"{note}, R² {fit:.2f}" for note, fit in zip(notes, found.fit, strict=True)] if found.fit else notes
    return SaliencyOverlay(case.pixels, found.target, notes, case.over(found.importance.clamp(min=0)), "depends on")


def record(found: Explanation, faithful: Mapping[str, Faithfulness]) -> dict[str, Any]:
    """Return plain values: words, parts, importance rounded to five decimals, fit and faithfulness."""
    return {
        "source": found.source,
        "target": found.target,
        "method": found.method,
        "importance": [[round(value, 5) for value in row] for row in found.importance.tolist()],
        "fit": [round(value, 4) for value in found.fit],
        "faithfulness": {name: score._asdict() for name, score in faithful.items()},
    }


def where(case: ImageCase) -> dict[str, Any]:
    """Return where the parts are: rows and columns of cells, or the number of each pixel's superpixel, row by row."""
    if isinstance(case, SuperpixelCase):
        return {"regions": case.regions.tolist()}
    return {"grid": list(case.grid)}


def why_lit_record(case: ImageCase, method: str) -> dict[str, Any]:
    """Return an explanation of a caption as a page shows it: importance [words][rows][columns], and how true it is."""
    found = explain(case, method, samples=200)
    k = part_count(SHARE, len(found.source))
    laid = case.over(found.importance)
    rows, columns = (-(-side // FINEST) for side in laid.shape[1:])  # every so many
    return {
        "method": method,
        "target": found.target,
        "importance": laid[:, rows // 2 :: rows, columns // 2 :: columns].round(4).tolist(),
        "share": SHARE,
        "fit": [round(x, 3) for x in found.fit],
        "faithfulness": faithfulness(case, found, k)._asdict(),
        "random": random_faithfulness(case, k)._asdict(),
    }
