"""The record of the lesson on document context: a translation with the previous sentence and without it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from translucid.api.translator import Translator
from translucid.decoding.pair_scores import pair_scores
from translucid.ground.errors import UserError
from translucid.lessons.models import Models
from translucid.lessons.state_recording import SEPARATOR

Record = dict[str, Any]
PASSAGES = {
    ("I saw a lamp.", "It's beautiful."): ("Es bonita.", "Es bonito."),
    ("I saw an umbrella.", "It's beautiful."): ("Es bonito.", "Es bonita."),
    ("My son has a drawer.", "It was empty."): ("Estaba vacío.", "Estaba vacía."),
    ("I have a bottle.", "It's black."): ("Es negra.", "Es negro."),
}
"""The previous sentence and the sentence that is translated; its right translation, and a wrong one."""


def context_sentence(models: Models, text: str) -> Record:
    """Return the translations of a sentence with the previous sentence and without it, and log-odds.

    The log-odds compare two translations: for passages of the lesson, the right and the wrong one; for others, the
    translations with the previous sentence and without it.

    Raises:
        UserError: the text is not two sentences.
    """
    previous, separator, sentence = (part.strip() for part in text.partition(SEPARATOR))
    if not (separator and previous and sentence):
        raise UserError("this lesson reads two sentences", fix=f"Put {SEPARATOR} between them.")
    translator = models.context
    contexts: list[list[str]] = [[previous], []]
    translations = []
    for context in contexts:
        translations.append(translator.translate(sentence, beam=1, split=False, context=" ".join(context)).text)
    compared = PASSAGES.get((previous, sentence), tuple(translations))
    odds = [round(log_odds(translator, context, sentence, compared), 4) for context in contexts]
    return {
        "text": f"{previous} {SEPARATOR} {sentence}",
        "before": previous,
        "sentence": sentence,
        "compared": list(compared),
        "translations": translations,
        "log_odds": odds,
    }


def log_odds(translator: Translator, previous: Sequence[str], sentence: str, translations: Sequence[str]) -> float:
    """Return log p(y | previous, sentence) - log p(y' | previous, sentence) for two translations y and y', in nats."""
    pipeline, rows = translator.pipeline, []
    for pair in pipeline.pairs([*product([sentence], translations)]):
        context = pipeline.joined(pipeline.before(previous), len(pair.source))
        rows.append(([*context, *pair.source], pair.target))
    prefix_length = len(translator.tokenizer.target_opening)
    first, second = pair_scores(translator.model, rows, translator.device, prefix_length=prefix_length)
    return first.log_probability - second.log_probability


def context(models: Models) -> Record:
    """Return the passages of the lesson."""
    return {"sentences": [context_sentence(models, f" {SEPARATOR} ".join(passage)) for passage in PASSAGES]}
