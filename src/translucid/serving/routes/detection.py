"""Detection of a text's language among the served languages."""

from __future__ import annotations

from collections.abc import Sequence

from translucid.data.languages import short_code
from translucid.data.sentences import language_probabilities

SHORT, SURE = 12, 90.0
"""The language of a text of fewer letters only counts as detected from this percentage on."""
ELSEWHERE = 0.5
"""The probability of a language that is not served from which on a text is in none of the served ones."""


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, the most probable first.

    Args:
        text: the text.
        languages: the codes of the candidates; those that the language identifier does not know have probability 0.
    """
    return _among(_probabilities(text), languages)


def detect_sources(texts: Sequence[str], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return for each text the language from which to translate it, and its probability in percent.

    The language of a text that is too short, or in a language that is not served, is the first one, with 0 percent.

    Args:
        texts: the texts.
        languages: the codes of the candidates, at least one.
    """
    detected = []
    for text in texts:
        probabilities = _probabilities(text)
        code, percent = _among(probabilities, languages)[0]
        best = max(probabilities, key=lambda language: probabilities[language], default="")
        elsewhere = probabilities.get(best, 0.0) >= ELSEWHERE and best not in map(short_code, languages)
        unsure = sum(map(str.isalpha, text)) < SHORT and percent < SURE
        if elsewhere or unsure:
            code, percent = languages[0], 0.0
        detected.append((code, percent))
    return detected


def _probabilities(text: str) -> dict[str, float]:
    """Return the probabilities of all languages, by short code; none for a text without letters."""
    if not any(map(str.isalpha, text)):
        return {}
    return language_probabilities(text[:2000])  # enough to tell, and a limit to the time


def _among(probabilities: dict[str, float], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, renormalised over these languages."""
    shorts = list(map(short_code, languages))
    total = sum(probabilities.get(short, 0.0) for short in set(shorts)) or 1.0
    percentages = [100 * probabilities.get(short, 0.0) / total for short in shorts]
    return sorted(zip(languages, percentages, strict=True), key=lambda item: -item[1])
