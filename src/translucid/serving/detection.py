"""Which language a text is in; py3langid knows, from a model that comes with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, the likeliest first.

    Args:
        text: any.
        languages: codes that come into question; those that the identifier does not know have probability 0.
    """
    if not any(character.isalpha() for character in text):
        return [(code, 0.0) for code in languages]
    known = {code: code.split("-")[0].lower() for code in languages}
    probability = dict(_identifier().rank(text[:2000]))
    total = sum(probability.get(short, 0.0) for short in set(known.values())) or 1.0
    found = [(code, 100 * float(probability.get(short, 0.0)) / total) for code, short in known.items()]
    return sorted(found, key=lambda item: -item[1])


@cache
def _identifier() -> Any:
    from py3langid.langid import _load_identifier

    return _load_identifier(norm_probs=True)
