"""Activation patching by a translator, which writes the translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from translucid.inspection import patching

if TYPE_CHECKING:
    from translucid.api.translator import Translator


def patch(
    translator: Translator,
    clean: str,
    other: str,
    words: tuple[str, str] | None = None,
    *,
    target: str | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> patching.Patching:
    """Return the share of the difference between two runs that each state carries, layer by layer and word by word.

    Args:
        translator: the translator.
        clean: a sentence, CLEAN.
        other: a sentence, OTHER, which differs from CLEAN in what is examined.
        words: a word of the translation of CLEAN, and a word in its place, such as `("el", "la")`; by default, the
            first difference of both translations.
        target: a translation of CLEAN; the model's own by default.
        pairs: pairs of words (of CLEAN, of OTHER), counted from 0; by default, those of `pair_words`.

    Raises:
        UserError: the translation of CLEAN lacks the first word, words have no pair, or nothing differs.
    """
    if target is None:
        target = translator.translate(clean, split=False).text
    other_target = None
    if words is None:
        other_target = translator.translate(other, split=False).text
    return patching.patch(translator.model, translator.pipeline, (clean, other), (target, other_target), words, pairs)
