"""Detection of a text's language among the served languages, and translation from the detected languages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from bitext.languages import short_code
from translucid.data.sentences import language_probabilities
from translucid.serving.catalog import AnyServed, Catalog
from translucid.serving.texts import by_language

Result = TypeVar("Result")

SHORT, SURE = 12, 90.0
"""The language of a text with fewer letters counts as detected only with at least this percentage."""
ELSEWHERE = 0.5
"""If a language that is not served has at least this probability, the text is in none of the served ones."""


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
        most_probable = max(probabilities, key=lambda language: probabilities[language], default="")
        not_served = probabilities.get(most_probable, 0.0) >= ELSEWHERE and most_probable not in map(
            short_code, languages
        )
        is_unsure = sum(map(str.isalpha, text)) < SHORT and percent < SURE
        if not_served or is_unsure:
            code, percent = languages[0], 0.0
        detected.append((code, percent))
    return detected


async def translate_from_any(
    catalog: Catalog,
    texts: Sequence[str],
    source: str | None,
    target: str,
    translate: Callable[[AnyServed, list[str]], Awaitable[list[Result]]],
    unchanged: Callable[[str], Result],
) -> tuple[list[tuple[str, float]], list[Result]]:
    """Translate texts, each from its own language; return their languages and the results, in order.

    The languages are those of `detect_sources`; a source that is given has 100 percent.

    Args:
        catalog: the served models.
        texts: the texts.
        source: the language of all texts; that of each text is detected if None.
        target: the target language.
        translate: translates texts of one language.
        unchanged: returns the result of a text that is in the target language already.

    Raises:
        ApiError: 400, no model translates from a language to the target.
    """
    if source is None:
        languages = await run_in_threadpool(detect_sources, texts, catalog.candidates(target))
    else:
        languages = [(source, 100.0)] * len(texts)
    codes = [code for code, _ in languages]

    async def translate_language(code: str, batch: list[str]) -> list[Result]:
        if code == target and code in catalog.languages:
            return [unchanged(text) for text in batch]
        return await translate(catalog.find(code, target), batch)

    return languages, await by_language(texts, codes, translate_language)


def _probabilities(text: str) -> dict[str, float]:
    """Return the probabilities of all languages, by short code; none for a text without letters."""
    if not any(map(str.isalpha, text)):
        return {}
    return language_probabilities(text[:2000])  # enough to tell, and a limit to the time


def _among(probabilities: dict[str, float], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, renormalized over these languages."""
    short_codes = list(map(short_code, languages))
    total = sum(probabilities.get(short, 0.0) for short in set(short_codes)) or 1.0
    percentages = [100 * probabilities.get(short, 0.0) / total for short in short_codes]
    return sorted(zip(languages, percentages, strict=True), key=lambda item: -item[1])
