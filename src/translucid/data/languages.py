"""Which language a text is in; py3langid knows, from a model that comes with it."""

from __future__ import annotations

from functools import cache
from typing import Any


def language_probabilities(text: str) -> dict[str, float]:
    """Return how likely a text is in each of 140 languages, by ISO 639 code; the first call takes a second."""
    return {code: float(probability) for code, probability in _identifier().rank(text)}


@cache
def _identifier() -> Any:
    from py3langid.langid import _load_identifier

    return _load_identifier(norm_probs=True)
