"""Which language a text is in, among those that are served."""

from __future__ import annotations

from collections.abc import Sequence

from translucid.data.languages import short_code
from translucid.data.sentences import language_probabilities

SHORT, SURE = 12, 90.0
"""A text of fewer letters is in a language only if that has so many percent."""
ELSEWHERE = 0.5
"""Probability of a language that is not served, from which on a text is in none of those that are."""


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, the likeliest first.

    Args:
        text: any.
        languages: codes that come into question; those that the identifier does not know have probability 0.
    """
    return _among(_probabilities(text), languages)


def detect_sources(texts: Sequence[str], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the language to translate each text from, and how sure that is in percent.

    Where a text is too short to tell, or in a language that is not served, it is the first one, with 0 percent.

    Args:
        texts: any.
        languages: codes that come into question, at least one; the first is that of the model that is asked then.
    """
    found = []
    for text in texts:
        every = _probabilities(text)
        code, percent = _among(every, languages)[0]
        best = max(every, key=lambda one: every[one], default="")
        elsewhere = every.get(best, 0.0) >= ELSEWHERE and best not in map(short_code, languages)
        unsure = sum(map(str.isalpha, text)) < SHORT and percent < SURE
        found.append((languages[0], 0.0) if elsewhere or unsure else (code, percent))
    return found


def _probabilities(text: str) -> dict[str, float]:
    return language_probabilities(text[:2000]) if any(map(str.isalpha, text)) else {}


def _among(every: dict[str, float], languages: Sequence[str]) -> list[tuple[str, float]]:
    total = sum(every.get(short, 0.0) for short in set(map(short_code, languages))) or 1.0
    found = [(code, 100 * every.get(short_code(code), 0.0) / total) for code in languages]
    return sorted(found, key=lambda item: -item[1])
