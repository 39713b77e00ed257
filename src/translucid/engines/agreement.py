"""Whether a fast engine computes what the model computes.

CTranslate2 has equations of its own. A model whose attention somebody has edited would be converted without an error
and translated with the original equation. So the two are compared when a model is converted.
"""

from __future__ import annotations

import hashlib
import math
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import translucid
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.engines.engine import Engine

TOLERANCE = 0.02
"""Nats between the log-probabilities of a token, in the mean of a sentence. Rounding of float32 makes under 0.001."""
LENGTHS = 1, 3, 6, 12, 24, 48
"""Of the sentences that are compared, in pieces: an edit may change short or long ones alone."""
_EQUATIONS = "attention", "kernels", "layers", "models"
"""Packages that decide what a model computes."""


def largest_difference(own: Engine, other: Engine, tokenizer: Tokenizer, longest: int) -> float:
    """Return by how many nats the log-probabilities of two engines differ, in the sentence where they differ most.

    Both are made to write the same random pieces for the same random pieces: that needs no corpus, and any edit of an
    equation shows there.

    Args:
        own: our search.
        other: another engine with the same model, the whole vocabulary and float32 weights.
        tokenizer: the model's.
        longest: source tokens that the model takes, end token included.
    """
    drawn = random.Random(1)
    sizes = tokenizer.source_size, tokenizer.target_size
    openings = tokenizer.source_opening, tokenizer.target_opening
    pairs = []
    for length in LENGTHS:
        count = min(length, longest - 1 - max(map(len, openings)))
        source, target = (
            [*opening, *(drawn.randrange(len(SPECIAL), size) for _ in range(count)), SPECIAL.end]
            for opening, size in zip(openings, sizes, strict=True)
        )
        pairs.append((source, target))
    both = zip(own.forced(pairs), other.forced(pairs), strict=True)
    return max(_mean_difference(mine, theirs) for mine, theirs in both)


def disagreement(difference: float) -> str:
    """Say what such a difference means, in a line."""
    return (
        f"CTranslate2 does not compute what this model computes (log-probabilities differ by {difference:.2f} "
        "a token): its attention or another equation was edited"
    )


def refuse_disagreement(difference: float, run: Path) -> None:
    """Compare a difference with what rounding may make.

    Raises:
        UserError: it is larger.
    """
    if not difference <= TOLERANCE:
        raise UserError(disagreement(difference), file=run, fix="Use --engine torch, or export it --to onnx.")


@cache
def equations_digest() -> str:
    """Return a fingerprint of the code of all equations: what was converted before an edit does not hold after it."""
    root = Path(translucid.__file__).parent
    found = hashlib.sha256()
    for package in _EQUATIONS:
        for file in sorted((root / package).rglob("*.py")):
            found.update(file.read_bytes())
    return found.hexdigest()


def _mean_difference(mine: list[float], theirs: list[float]) -> float:
    if not all(map(math.isfinite, mine)):  # the weights are damaged, which our search reports by itself
        return 0.0
    differences = [abs(one - other) for one, other in zip(mine, theirs, strict=True)]
    return sum(differences) / len(differences)
