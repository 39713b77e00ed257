"""The rows of an answer of /look, one for each sentence: the attention of a translation and an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from translucid.api.pivot_translator import PivotTranslation
from translucid.api.translation import Translation
from translucid.ground.errors import UserError
from translucid.inspection.explain.case import Case
from translucid.inspection.explain.faithfulness import explanation_record
from translucid.inspection.html import SIDES, viewer_record
from translucid.inspection.inspected import Inspected
from translucid.serving.edge.incoming import ContrastFields
from translucid.serving.language_pairs import Served, ServedPivot

MAX_INSPECTED = 500
"""The maximum number of characters in a text that is inspected; attention maps grow with the square of its length."""
MAPS = ("cross", "all", "contributions")
"""The maps of a sentence: cross-attention; also self-attention; or also norms and contributions."""


@dataclass(frozen=True)
class SentenceInspector:
    """Returns the rows of an answer, one for each sentence; called in the worker pool."""

    served: Served
    method: str
    """The method of the explanations; "" for none."""
    contrasted: ContrastFields
    """The word that is contrasted with another one."""
    maps: str
    """Which of `MAPS` are included."""

    @property
    def contributions(self) -> bool:
        """Whether contributions are included."""
        return self.maps == "contributions"

    def translated(
        self,
        sentences: Sequence[str],
        before: Sequence[Sequence[str]],
        known_translations: Mapping[str, str],
        translations: Iterator[Translation],
    ) -> list[dict[str, Any]]:
        """Return rows of the model's translations, and of those that the translation memory has.

        `before` are the sentences before each sentence, for a run with document context.
        """
        rows = []
        for sentence, context in zip(sentences, before, strict=True):
            if sentence in known_translations:
                rows.append(self._memory_row(sentence, known_translations[sentence], context))
            else:
                rows.append(self.model_row(next(translations)))
        return rows

    def with_targets(
        self,
        sentences: Sequence[str],
        before: Sequence[Sequence[str]],
        known_translations: Mapping[str, str],
        targets: Sequence[str],
    ) -> list[dict[str, Any]]:
        """Return rows of translations in the request."""
        rows = []
        for source, context, target in zip(sentences, before, targets, strict=True):
            origin = "memory" if known_translations.get(source) == target else "model"
            rows.append(self._forced_row(source, target, context) | {"origin": origin})
        return rows

    def model_row(self, translation: Translation) -> dict[str, Any]:
        """Return the row of a translation of the model."""
        inspections = translation.inspect(contributions=self.contributions, with_context=True)
        pieces = []
        for inspected, (piece, hypothesis) in zip(inspections, translation.parts, strict=True):
            record = self._piece_record(inspected, hypothesis.tokens)
            if hypothesis.free:
                (words,) = self.served.translator.observer.words([([piece], [(piece, hypothesis)])])
                if len(words) == len(inspected.target_words) - 1:
                    record["judged_probabilities"] = [round(probability, 4) for _, probability in words]
            pieces.append(record)
        row = _row(translation.source, translation.text, pieces)
        row["warnings"] = [*translation.warnings, *translation.attention_warnings]
        if self.served.translator.estimator:
            row["confidence"] = translation.confidence
        row["origin"] = "model"
        if translation.parts:
            self._explain(row, translation.parts[0][0].before)
        return row

    def _forced_row(self, source: str, target: str, context: Sequence[str]) -> dict[str, Any]:
        """Return the row of a translation that is not the model's own, by forced decoding."""
        translator = self.served.translator
        (pair,) = translator.pipeline.pairs([(source, target)])
        before = translator.pipeline.before(context)
        (inspected,) = translator.inspect_encoded([pair], contributions=self.contributions, before=before)
        row = _row(source, target, [self._piece_record(inspected, pair.target[:-1])])
        self._explain(row, before)
        return row

    def _memory_row(self, source: str, target: str, context: Sequence[str]) -> dict[str, Any]:
        """Return the row of a translation from the memory; without attention if it is too long for the model."""
        row = _row(source, target, [])
        if len(target) <= 2 * MAX_INSPECTED:
            with suppress(UserError):
                row = self._forced_row(source, target, context)
        return row | {"origin": "memory", "warnings": self.served.translator.missing_terms(source, target)}

    def _piece_record(self, inspected: Inspected, tokens: Sequence[int]) -> dict[str, Any]:
        """Return the attention of a piece of a sentence, and the ids of the tokens of each word."""
        record = viewer_record(inspected, sides=SIDES if self.maps == "all" else ()) if inspected.layers else {}
        ids = [*tokens, self.served.translator.model.eos]
        record["tokens"] = [ids[start:end] for _, start, end in inspected.target_spans]
        return record

    def _explain(self, row: dict[str, Any], before: Sequence[Sequence[int]]) -> None:
        """Add an explanation to a row, if it is requested and there are words."""
        if self.method and row["text"].strip():
            translator = self.served.translator
            case = Case(translator.model, translator.pipeline, row["source_text"], row["text"], before)
            row["explanation"] = explanation_record(self.contrasted.of(case) or case, self.method)


def _row(source: str, target: str, pieces: list[dict[str, Any]]) -> dict[str, Any]:
    return {"source_text": source, "text": target, "pieces": pieces, "warnings": [], "confidence": None}


def pivot_rows(
    sentences: Sequence[str], known_translations: Mapping[str, str], translations: Sequence[PivotTranslation]
) -> list[dict[str, Any]]:
    """Return rows of translations through a pivot language, without attention, and of those that the memory has."""
    rows = []
    pivot_translations = iter(translations)
    for sentence in sentences:
        if sentence in known_translations:
            rows.append(_row(sentence, known_translations[sentence], []) | {"origin": "memory"})
            continue
        translation = next(pivot_translations)
        row = _row(sentence, translation.text, []) | {"origin": "model"}
        row |= {"warnings": translation.warnings, "confidence": translation.confidence}
        rows.append(row)
    return rows


def pivot_steps(
    served: ServedPivot, translations: Sequence[PivotTranslation], method: str, maps: str
) -> list[dict[str, Any]]:
    """Return both steps of translations through a pivot language, each as an answer of /look for its languages."""
    steps = []
    first_steps = [translation.first for translation in translations]
    second_steps = [translation.second for translation in translations]
    for step, step_translations in ((served.first, first_steps), (served.second, second_steps)):
        inspector = SentenceInspector(step, method, ContrastFields("", None), maps)
        rows = [inspector.model_row(translation) for translation in step_translations]
        text = " ".join(row["text"] for row in rows)
        header = {"model": step.name, "source": step.source, "target": step.target}
        steps.append(header | {"translation": text, "sentences": rows})
    return steps
