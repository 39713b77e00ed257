"""Translations in the wrong language, as multilingual models write (Zhang et al. 2020, arXiv 2004.11867)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bitext.languages import short_code
from translucid.data.sentences import language_probabilities

LONGEST = 2000
"""The number of leading characters of a text by which its language is identified."""


def identified(text: str, languages: Collection[str]) -> str | None:
    """Return the most probable of some languages; None for a text without letters.

    Args:
        text: the text.
        languages: codes without scripts and regions. The choice is among these, because identification among all
            languages takes many short sentences for a language that the model does not write.
    """
    if not any(map(str.isalpha, text)):
        return None
    probabilities = language_probabilities(text[:LONGEST])
    return max(sorted(languages), key=lambda code: probabilities.get(code, 0.0))


def off_target_rate(texts: Iterable[str], target: str, languages: Iterable[str]) -> float | None:
    """Return the share of texts that are in another language of a model than the target language.

    Texts without letters do not count. Languages that differ only in their script or region count as one.

    Args:
        texts: translations, or references.
        target: the code of the target language.
        languages: the codes of all languages of the model.

    Returns:
        The rate from 0 to 1; None if the target language can't be identified, or no text has letters.
    """
    target_code, identifiable = short_code(target), language_probabilities("a")
    candidates = {code for code in map(short_code, languages) if code in identifiable} | {target_code}
    if target_code not in identifiable:
        return None
    codes = [identified(text, candidates) for text in texts]
    identified_codes = [code for code in codes if code]
    if not identified_codes:
        return None
    return sum(code != target_code for code in identified_codes) / len(identified_codes)
