"""The API for inspection: attention, continuations, the beam search, explanations, layers, patching; figures as PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from translucid.api.pivot_translator import PivotTranslation
from translucid.api.translation import Translation
from translucid.api.translator import Translator
from translucid.data.document_context import Source
from translucid.decoding.decoding_options import length_limit
from translucid.decoding.maps import chosen_maps
from translucid.decoding.search import continuations
from translucid.ground.errors import UserError
from translucid.inspection.explain import Case, explain, explanation_record
from translucid.inspection.inspected import SIDES, Inspected, viewer_record
from translucid.inspection.patching import Patching
from translucid.inspection.rendering.html import beam_record
from translucid.inspection.words import WordMap, word_spans
from translucid.interop.web.export import model_record, refuse_other_models
from translucid.layers.variants import Method
from translucid.serving.catalog import AnyServed, Served, ServedPivot
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rendering import rendered
from translucid.serving.requests import Call, ContrastFields, Handlers, RequestContext, RequestTask
from translucid.serving.routes.inspection_fields import (
    MAX_INSPECTED,
    BeamFields,
    ContinueFields,
    LayersFields,
    LookFields,
    PatchFields,
    PatchingFields,
    PictureFields,
    SentenceFields,
    WeightsFields,
)
from translucid.serving.texts import detect, queue_sentences, sentences_of, split_texts
from translucid.terminology.matching import missing_terms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.api.loaded_model import LoadedModel
    from translucid.decoding.trace import BeamTrace

CHOICES = 8
"""The maximum number of continuations."""
TREES = 3
"""The maximum number of sentences whose beam search is returned."""
WIDEST = 6
"""The widest beam of these searches."""
MAX_SHARED = 16_000_000
"""The maximum number of weights of a model that a browser loads, a byte each."""


class InspectionRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def look(self, call: Call[LookFields]) -> Response:
        """Translate a text and return the attention of each sentence, with an explanation if requested."""
        fields, task, text, detected = call.fields, call.task, call.fields.q, None
        if fields.source == "auto":
            served, detected = await _detect(self.context, fields)
            if served.translator.has_formality:  # of another target, perhaps
                served = self.context.catalog.addressing(served, fields.formality or None)
        else:
            served = _find(self.context, fields)
        served = task.with_memory(served)
        header: dict[str, Any] = {"model": served.name, "source": served.source, "target": served.target}
        if detected is not None:
            header["detectedLanguage"] = {"language": served.source, "confidence": round(detected, 1)}
        if isinstance(served, ServedPivot):
            return await _look_at_steps(call, served, header)
        if served.memory and served.translator.loaded.adapter:
            header["adapter"] = served.memory.learned
        (layout,), known_translations = await split_texts(served, [text])
        if not layout.sentences:
            return JSONResponse(header | {"translation": text, "sentences": []})
        if fields.instead_of and len(layout.sentences) > 1:
            raise ApiError(400, "Invalid request: instead_of is for one sentence")
        targets = _targets(fields, len(layout.sentences))
        if fields.ablate:  # the translation memory has no translations without heads
            known_translations = {}
            ablated = await task.run(partial(served.translator.ablated, *fields.ablate))
            served = replace(served, translator=ablated)
        inspector = SentenceInspector(served, fields.explain, fields, fields.maps)
        sentences = sentences_of(served, [layout])
        translations: list[Any] = []
        if targets is None:
            translations = await _translate_unknown(task, served, sentences, known_translations)

        def answer() -> Response:
            if targets is None:
                rows = inspector.translated(sentences, known_translations, iter(translations))
            else:
                rows = inspector.with_targets(sentences, known_translations, targets)
            translation = layout.fill([row["text"] for row in rows])
            return rendered(header | {"translation": translation, "sentences": rows})

        return await task.run(answer)

    async def continue_prefix(self, call: Call[ContinueFields]) -> JSONResponse:
        """Return the most probable continuations of a prefix of the translation, which is a list of token ids."""
        served, prefix = find_model(self.context, call.fields), call.fields.prefix
        size = served.translator.tokenizer.target_size
        # The first four ids are those of special tokens; in Python, True is an int.
        if not all(isinstance(i, int) and not isinstance(i, bool) and 3 < i < size for i in prefix):
            raise ApiError(400, f"Invalid request: the ids of prefix are not between 4 and {size - 1}")
        return JSONResponse(await call.task.run(lambda: _continuations(served, call.fields.q, prefix)))

    async def beam(self, call: Call[BeamFields]) -> Response:
        """Return the trees of the beam searches of the first sentences."""
        served = find_model(self.context, call.fields)
        (layout,), _ = await split_texts(call.task.with_memory(served), [call.fields.q])
        sentences, translator = layout.sentences[:TREES], served.translator

        def answer() -> Response:
            return rendered(
                {"trees": [beam_tree(translator, translator.inspector.trace, sentence) for sentence in sentences]}
            )

        return await call.task.run(answer)

    async def layers(self, call: Call[LayersFields]) -> Response:
        """Return what each layer of the decoder predicts for each word of a translation, and each encoder layer."""
        fields, inspector = call.fields, find_model(self.context, call.fields).translator.inspector
        return await call.task.run(lambda: rendered(inspector.layers_details(fields.q, fields.translation)))

    async def patch(self, call: Call[PatchFields]) -> Response:
        """Return how much of the difference between two sentences the state of each layer at each word carries."""
        fields, translator = call.fields, find_model(self.context, call.fields).translator

        def answer() -> Response:
            patching = patched(fields, translator)
            translations = [fields.translation, translator.translate(patching.other, split=False).text]
            return rendered(patching.to_json() | {"translations": translations})

        return await call.task.run(answer)

    async def weights(self, call: Call[WeightsFields]) -> Response:
        """Return a model as the engine of the figure *Pass* reads it, if the operator shares models."""
        if not self.context.options.share_models:
            raise ApiError(403, "This server does not share its models: start it with --share-models")
        translator = find_model(self.context, call.fields).translator

        def answer() -> Response:
            decoding = translator.configuration.decoding
            count = sum(parameter.numel() for parameter in translator.model.parameters())
            if count > MAX_SHARED:
                what = f"this model has {count:,} weights; the figure computes with at most {MAX_SHARED:,} weights"
                raise UserError(what, fix="Export it with --to web.")
            refuse_other_models(translator.model, translator.tokenizer, decoding)
            longest = translator.pipeline.longest
            return rendered(model_record(translator.model, translator.tokenizer, decoding, longest))

        return await call.task.run(answer)

    async def picture(self, call: Call[PictureFields]) -> Response:
        """Draw a figure of a sentence and its translation."""
        translator = find_model(self.context, call.fields).translator
        return await pdf_response(call.task, lambda: _draw(translator, call.fields), call.fields.caption)


async def _look_at_steps(call: Call[LookFields], served: ServedPivot, header: dict[str, Any]) -> Response:
    """Translate a text through a pivot language, and return the attention of both steps."""
    fields, task = call.fields, call.task
    for name in ("translations", "ablate", "word", "instead_of"):
        if getattr(fields, name):
            raise ApiError(400, f"Invalid request: {name} is for one model. {_steps_of(served)}")
    (layout,), known_translations = await split_texts(served, [fields.q])
    sentences = sentences_of(served, [layout])
    translations = await _translate_unknown(task, served, sentences, known_translations)

    def answer() -> Response:
        pivot_translations = [translation for translation in translations if isinstance(translation, PivotTranslation)]
        rows = pivot_rows(layout.sentences, known_translations, pivot_translations)
        translation = layout.fill([row["text"] for row in rows])
        steps = pivot_steps(served, pivot_translations, fields.explain, fields.maps) if pivot_translations else []
        answer_fields = {"pivot": served.pivot, "translation": translation, "sentences": rows, "steps": steps}
        return rendered(header | answer_fields)

    return await task.run(answer)


async def _translate_unknown(
    task: RequestTask, served: AnyServed, sentences: Sequence[Source[str]], known_translations: Mapping[str, str]
) -> list[Any]:
    """Translate the sentences that the translation memory does not have; all of them are counted."""
    task.count(served, [sentence.text for sentence in sentences])
    unknown = [sentence for sentence in sentences if sentence.text not in known_translations]
    if not unknown:
        return []
    return await task.result(queue_sentences(task, served, unknown))


def _steps_of(served: ServedPivot) -> str:
    source, pivot, target = served.source, served.pivot, served.target
    return f"{source} to {target} is translated through {pivot}: inspect {source} to {pivot}, or {pivot} to {target}."


def find_model(context: RequestContext, fields: SentenceFields | WeightsFields) -> Served:
    """Return the translator that a request names.

    Raises:
        ApiError: 400, there is no such model, or there are two, with a pivot language between.
    """
    served = _find(context, fields)
    if isinstance(served, ServedPivot):
        raise ApiError(400, f"Invalid request: {_steps_of(served)}")
    return served


def _find(context: RequestContext, fields: SentenceFields | WeightsFields) -> AnyServed:
    served = context.catalog.find(fields.source, fields.target, fields.model or None)
    return context.catalog.addressing(served, fields.formality or None)


async def _detect(context: RequestContext, fields: SentenceFields) -> tuple[AnyServed, float]:
    """Detect the language of a text.

    Returns a translator, to the target and of the name of the request if possible, and the confidence in percent, which
    is 0 if the language is unknown.
    """
    catalog, target, name = context.catalog, fields.target, fields.model or None
    catalog.need_translators()
    source, confidence = catalog.models[0].pair[0], 0.0  # unless a source language is recognized
    for code, percent in await run_in_threadpool(detect, fields.q, catalog.languages):
        if percent > 0 and any(code in pairs.sources for pairs in catalog):
            source, confidence = code, percent
            break
    targets = catalog.targets(source)
    targets.remove(source)
    if targets and target not in targets:
        target = targets[0]
    try:
        return catalog.find(source, target, name), confidence
    except ApiError:  # the model of this name does not have the pair
        return catalog.find(source, target), confidence


def _targets(fields: LookFields, sentences: int) -> list[str] | None:
    """Return the translations in a request, one for each sentence, which are inspected in place of the model's own."""
    targets, limit = fields.translations, 2 * MAX_INSPECTED
    if targets is not None and (len(targets) != sentences or sum(map(len, targets)) > limit):
        raise ApiError(400, f"Invalid request: translations are not {sentences} texts of up to {limit} characters")
    return targets


def _continuations(served: Served, text: str, prefix: list[int]) -> list[dict[str, Any]]:
    """Return the most probable continuations of a prefix, each with the word after it."""
    translator = served.translator
    tokenizer, model = translator.tokenizer, translator.model
    piece = translator.pipeline.encode(text)
    if model.max_length and len(piece.ids) > model.max_length:
        raise ApiError(400, "Invalid request: the text is too long for this model")
    options, opening = translator.configuration.decoding, len(tokenizer.target_opening)
    prefix = [*tokenizer.target_opening, *prefix]
    if len(prefix) > length_limit(len(piece.ids) - 1, options, model.max_length):
        raise ApiError(400, "Invalid request: prefix is longer than a translation of this text may be")
    source = torch.tensor([piece.ids], device=translator.device)
    starts = translator.torch_engine.word_starts
    rows = []
    for hypothesis in continuations(model, source, prefix, CHOICES, options, starts, opening):
        pieces = piece.masked.unmask_pieces(tokenizer.target_labels(hypothesis.tokens))
        rows.append(
            {
                "next": first_word(pieces[len(prefix) :]),
                "probability": hypothesis.token_log_probabilities[len(prefix)],
                "text": translator.pipeline.text(piece, hypothesis.tokens),
                "tokens": hypothesis.tokens[opening:],
            }
        )
    return rows


def first_word(pieces: Sequence[str]) -> str:
    """Return the first word that pieces make up; "" if there are none."""
    words = word_spans(pieces)
    return words[0][0] if words else ""


def beam_of(model: Translator | LoadedModel) -> int:
    """Return the width of the beam of a model, or one that is not too wide for the page."""
    return min(model.configuration.decoding.beam, WIDEST)


def beam_tree(model: Translator | LoadedModel, trace: Callable[[Any, int], BeamTrace], source: Any) -> dict[str, Any]:
    """Return the tree of the beam search for a source, given the function that traces one."""
    options, beam = model.configuration.decoding, beam_of(model)
    record = beam_record(trace(source, beam), beam, model.tokenizer, options.length_penalty)
    return record | {"own": options.beam}


def patched(fields: PatchingFields, translator: Translator) -> Patching:
    """Patch the sentence OTHER, or one that the model offers, by the states of `q`, whose translation is known."""
    other = fields.other or translator.inspector.contrasting_sentence(fields.q, fields.translation)
    return translator.inspector.patch(fields.q, other, fields.words, target=fields.translation)


@dataclass(frozen=True)
class SentenceInspector:
    """Returns the rows of an answer, one for each sentence; called in the worker pool."""

    served: Served
    method: str
    """The method of the explanations; "" for none."""
    contrasted: ContrastFields
    """The word that is contrasted with another one."""
    maps: str
    """Which maps are included: `cross`, `all` or `contributions`."""

    @property
    def contributions(self) -> bool:
        """Whether contributions are included."""
        return self.maps == "contributions"

    def translated(
        self,
        sentences: Sequence[Source[str]],
        known_translations: Mapping[str, str],
        translations: Iterator[Translation],
    ) -> list[dict[str, Any]]:
        """Return rows of the model's translations, and of those that the translation memory has."""
        rows = []
        for sentence in sentences:
            if sentence.text in known_translations:
                rows.append(self._memory_row(sentence, known_translations[sentence.text]))
            else:
                rows.append(self.model_row(next(translations)))
        return rows

    def with_targets(
        self, sentences: Sequence[Source[str]], known_translations: Mapping[str, str], targets: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return rows of translations in the request."""
        rows = []
        for source, target in zip(sentences, targets, strict=True):
            origin = "memory" if known_translations.get(source.text) == target else "model"
            rows.append(self._forced_row(source, target) | {"origin": origin})
        return rows

    def model_row(self, translation: Translation) -> dict[str, Any]:
        """Return the row of a translation of the model."""
        inspections = translation.inspect(contributions=self.contributions, with_context=True)
        pieces = []
        for inspected, (piece, hypothesis) in zip(inspections, translation.parts, strict=True):
            record = self._piece_record(inspected, hypothesis.tokens)
            if hypothesis.free:
                (words,) = self.served.translator.quality.words([([piece], [(piece, hypothesis)])])
                if len(words) == len(inspected.target_words) - 1:
                    record["judged_probabilities"] = [round(probability, 4) for _, probability in words]
            pieces.append(record)
        row = _row(translation.source, translation.text, pieces)
        row["warnings"] = [*translation.warnings, *translation.attention_warnings]
        if self.served.translator.quality.estimator:
            row["confidence"] = translation.confidence
        row["origin"] = "model"
        if senses := [use.record() for use in translation.terms if use.sense]:
            row["senses"] = senses
        if self.served.retrieves:
            row["retrieved"] = [word.record() for word in translation.retrieved]
        if translation.parts:
            self._explain(row, translation.parts[0][0].before)
        return row

    def _forced_row(self, source: Source[str], target: str) -> dict[str, Any]:
        """Return the row of a translation that is not the model's own, by forced decoding."""
        inspector = self.served.translator.inspector.after(source.before or None)
        (pair,) = inspector.encoded([(source.text, target)])
        (inspected,) = inspector.inspect_encoded([pair], contributions=self.contributions)
        row = _row(source.text, target, [self._piece_record(inspected, pair.target[:-1])])
        self._explain(row, inspector.before)
        return row

    def _memory_row(self, source: Source[str], target: str) -> dict[str, Any]:
        """Return the row of a translation from the memory; without attention if it is too long for the model."""
        row = _row(source.text, target, [])
        if len(target) <= 2 * MAX_INSPECTED:
            with suppress(UserError):
                row = self._forced_row(source, target)
        warnings = missing_terms(self.served.translator.terms, source.text, target)
        return row | {"origin": "memory", "warnings": warnings}

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
            row["explanation"] = explanation_record(self.contrasted.contrast(case) or case, self.method)


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
        inspector = SentenceInspector(step, method, ContrastFields(), maps)
        rows = [inspector.model_row(translation) for translation in step_translations]
        text = " ".join(row["text"] for row in rows)
        header = {"model": step.name, "source": step.source, "target": step.target}
        steps.append(header | {"translation": text, "sentences": rows})
    return steps


async def pdf_response(task: RequestTask, figure: Callable[[], Figure], caption: str = "") -> Response:
    """Answer with a figure as PDF, which carries a caption as its subject."""

    def pdf() -> bytes:
        from translucid.inspection.plots import rendered

        return rendered(figure(), "pdf", caption=caption)

    return Response(await task.run(pdf), media_type="application/pdf")


def _draw(translator: Translator, fields: PictureFields) -> Figure:
    from translucid.inspection.plots import draw_attention, draw_beam, draw_lens, draw_patching, draw_ribbons

    source, target, view, kind = fields.q, fields.translation, fields.view, fields.kind
    if fields.ablate:
        translator = translator.ablated(*fields.ablate)
    if view == "layers":
        (lens,) = translator.inspector.lens(source, target)
        return draw_lens(lens)
    if view == "patching":
        return draw_patching(patched(fields, translator))
    if view == "beam":
        return draw_beam(translator.inspector.trace(source, beam_of(translator)))
    if view == "why":
        case = Case(translator.model, translator.pipeline, source, target)
        explanation = explain(fields.contrast(case) or case, fields.method, samples=200)
        weights = explanation.importance / explanation.importance.abs().max().clamp(min=1e-9)
        return draw_ribbons(WordMap(explanation.source, explanation.target, weights))
    (inspected,) = translator.inspector.inspect([(source, target)], contributions=kind in ("norms", "contributions"))
    if view == "heads":
        return draw_attention(inspected, kind)
    words = _map(inspected, kind, fields.layer, fields.head)
    if kind not in SIDES:
        return draw_ribbons(words, inspected.word_log_probs())
    return draw_ribbons(words)


def _map(inspected: Inspected, kind: str, layer: int | None, head: int | None) -> WordMap:
    """Return one map between words."""
    if kind == "rollout":
        chosen_maps(inspected.heads)  # raises the error if the model has no attention
        return inspected.words(inspected.rollout())
    if kind == "cross":
        return inspected.words(inspected.cross(layer, head))
    if kind in get_args(Method):
        return inspected.cross_words(layer, head, cast(Method, kind))
    return inspected.word_map(chosen_maps(inspected.heads, kind, layer or 0, head)[0], head)
