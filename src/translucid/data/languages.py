"""Codes of languages, such as `en`, `pt-BR` and `zh_TW`."""

from __future__ import annotations

from typing import TypeAlias

Languages: TypeAlias = tuple[str | None, str | None]
"""Codes of the source and of the target language, as far as they are known."""


def parts(code: str) -> list[str]:
    """Return the parts of a code in lower case: the language, then its script or region."""
    return code.lower().replace("_", "-").split("-")


def same_language(one: str, other: str) -> bool:
    """Whether two codes can be of one language: one that names no region stands for all of them.

    >>> same_language("en", "en_US"), same_language("zh-CN", "zh-TW")
    (True, False)
    """
    a, b = parts(one), parts(other)
    return a == b or (a[0] == b[0] and 1 in (len(a), len(b)))
