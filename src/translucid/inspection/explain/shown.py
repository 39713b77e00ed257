"""An explanation of a caption, shown on the image and as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from translucid.decoding.hypothesis import percent
from translucid.inspection.explain.explanation import Explanation
from translucid.inspection.explain.faithfulness import Faithfulness
from translucid.inspection.explain.image_case import ImageCase, SuperpixelCase
from translucid.inspection.lit_image import LitImage


def lit(case: ImageCase, found: Explanation) -> LitImage:
    """Light up, for each word, the parts of the image that speak for it; beside it its probability and LIME's fit."""
    notes = [percent(math.exp(value)) for value in case.looked.log_probs]
    notes = [f"{note}, R² {fit:.2f}" for note, fit in zip(notes, found.fit, strict=True)] if found.fit else notes
    return LitImage(case.pixels, found.target, notes, case.over(found.importance.clamp(min=0)), "depends on")


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
