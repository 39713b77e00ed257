"""What looks wrong in a translation, in its text and in its attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator


def text_warnings(translator: Translator, found: Translation) -> list[str]:
    """Return what looks wrong in a translation, each as `kind: what was seen`."""
    warnings = list(translator.pipeline.warnings(found.pieces))
    uses = translator.term_uses(found)
    warnings += [f"term not used: {use}" for use in uses if use.outcome == "missing"]
    words_of_terms: set[str] = set()
    for use in uses:
        words_of_terms.update(map(str.casefold, use.source.split()))
    familiarity = translator.loaded.familiarity(translator.languages, translator.tokenizer)
    for piece, best in found.parts:
        text = translator.pipeline.text(piece, best.tokens)
        ids, tokens = piece.ids[:-1], best.tokens
        warnings += translator.quality_checks.about(piece.text, ids, text, tokens, best.log_probability)
        warnings += familiarity.about(piece.text, ids, tokens, best.log_probability, words_of_terms)
    return list(dict.fromkeys(warnings))


def attention_warnings(translator: Translator, found: Translation) -> list[str]:
    """Return what looks wrong in the attention of a translation, if `tune --confidence` has fitted its limits."""
    limits = translator.estimator.detached if translator.estimator else None
    if not limits:
        return []
    warnings = []
    for part, inspected in zip(found.parts, found.inspected, strict=True):
        warnings += limits.about(translator.observer.watched(part, inspected))
    return list(dict.fromkeys(warnings))
