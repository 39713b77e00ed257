"""Warnings about the text and the attention of a translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator


def text_warnings(translator: Translator, translation: Translation) -> list[str]:
    """Return the warnings about the text of a translation, each as `kind: details`."""
    warnings = list(translator.pipeline.warnings(translation.pieces))
    uses = translator.term_uses(translation)
    words_of_terms: set[str] = set()
    for use in uses:
        if use.outcome == "missing":
            warnings.append(f"term not used: {use}")
        words_of_terms.update(map(str.casefold, use.source.split()))
    familiarity = translator.loaded.familiarity(translator.languages, translator.tokenizer)
    for piece, best in translation.parts:
        text = translator.pipeline.text(piece, best.tokens)
        ids, tokens = piece.ids[:-1], best.tokens
        warnings += translator.quality_checks.about(piece.text, ids, text, tokens, best.log_probability)
        warnings += familiarity.about(piece.text, ids, tokens, best.log_probability, words_of_terms)
    return list(dict.fromkeys(warnings))


def attention_warnings(translator: Translator, translation: Translation) -> list[str]:
    """Return the warnings about the attention of a translation; none unless `tune --confidence` has fitted limits."""
    estimator = translator.estimator
    if not estimator or not estimator.detached:
        return []
    warnings = []
    for part, inspected in zip(translation.parts, translation.inspected, strict=True):
        warnings += estimator.detached.about(translator.observer.with_attention(part, inspected))
    return list(dict.fromkeys(warnings))
