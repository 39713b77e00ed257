"""Corpora that we generate, and the plurals of their English nouns."""

from __future__ import annotations


def english_plural(singular: str) -> str:
    """Return the regular English plural."""
    if singular.endswith("y") and singular[-2] not in "aeou":
        return singular[:-1] + "ies"
    return singular + ("es" if singular.endswith(("ch", "sh", "s", "x")) else "s")
