"""Explanations of a model's words by methods other than attention, and the faithfulness of each."""

from translucid.inspection.explain.case import Case
from translucid.inspection.explain.contrast import Contrast, contrast
from translucid.inspection.explain.explanation import (
    METHODS,
    Explanation,
    Faithfulness,
    available_methods,
    compare_with_random,
    explain,
    faithfulness,
    part_count,
    random_faithfulness,
    refuse_method,
)

__all__ = [
    "METHODS",
    "Case",
    "Contrast",
    "Explanation",
    "Faithfulness",
    "available_methods",
    "compare_with_random",
    "contrast",
    "explain",
    "faithfulness",
    "part_count",
    "random_faithfulness",
    "refuse_method",
]
