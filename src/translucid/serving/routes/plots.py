"""Figures of one sentence as PDF, the same that the Python code on the page draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import Response

from translucid.decoding.maps import chosen_maps
from translucid.inspection.explain import explain
from translucid.inspection.explain.case import Case
from translucid.inspection.inspected import SIDES, Inspected
from translucid.inspection.words import WordMap
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import (
    choice_field,
    contrast_fields,
    method_field,
)
from translucid.serving.language_pairs import Served
from translucid.serving.queue.request_context import Handlers
from translucid.serving.routes.inspection import beam_of, heads_field, patch_fields, read_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from translucid.serving.queue.request_context import RequestTask

VIEWS = ("map", "heads", "beam", "why", "layers", "patching")
"""The figures of a sentence: one map as ribbons, all heads of a kind, the tree of the beam search, an explanation, the
predictions of each layer, activation patching.
"""
KINDS = ("cross", "encoder", "decoder", "rollout", "norms", "contributions")
"""The kinds of maps of a sentence."""


class PlotRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def picture(self, request: Request) -> Response:
        """Draw a figure of a sentence and its translation."""
        (fields, task, served, source), target = await read_pair(self.context, request)
        view, kind = choice_field(fields, "view", VIEWS), choice_field(fields, "kind", KINDS, "cross")
        return await pdf_response(task, lambda: _draw(served, source, target, view, kind, fields))


async def pdf_response(task: RequestTask, figure: Callable[[], Figure]) -> Response:
    """Answer with a figure as PDF."""

    def pdf() -> bytes:
        from translucid.inspection.plots.saving import rendered

        return rendered(figure(), "pdf")

    return Response(await task.run(pdf), media_type="application/pdf")


def _draw(served: Served, source: str, target: str, view: str, kind: str, fields: dict[str, Any]) -> Figure:
    from translucid.inspection.plots import draw_attention, draw_beam, draw_lens, draw_patching, draw_ribbons

    translator = served.translator
    if heads := heads_field(fields):
        translator = translator.ablated(*heads)
    if view == "layers":
        (lens,) = translator.inspector.lens(source, target)
        return draw_lens(lens)
    if view == "patching":
        return draw_patching(patch_fields(fields).of(translator, source, target))
    if view == "beam":
        return draw_beam(translator.inspector.trace(source, beam_of(translator)))
    if view == "why":
        method = method_field(fields, "method", "erasure")
        case = Case(translator.model, translator.pipeline, source, target)
        explanation = explain(contrast_fields(fields, method).of(case) or case, method, samples=200)
        weights = explanation.importance / explanation.importance.abs().max().clamp(min=1e-9)
        return draw_ribbons(WordMap(explanation.source, explanation.target, weights))
    (inspected,) = translator.inspector.inspect([(source, target)], contributions=kind in ("norms", "contributions"))
    if view == "heads":
        return draw_attention(inspected, kind)
    words = _map(inspected, kind, _number(fields, "layer"), _number(fields, "head"))
    if kind not in SIDES:
        return draw_ribbons(words, inspected.word_log_probs())
    return draw_ribbons(words)


def _map(inspected: Inspected, kind: str, layer: int | None, head: int | None) -> WordMap:
    """Return one map between words.

    Raises:
        UserError: there is no such map.
    """
    if kind == "rollout":
        chosen_maps(inspected.heads)  # raises the error if the model has no attention
        return inspected.words(inspected.rollout())
    if kind == "cross":
        return inspected.words(inspected.cross(layer, head))
    if kind == "norms":
        return inspected.words(inspected.cross(layer, head, method="norms"))
    if kind == "contributions":
        return inspected.words(inspected.cross(layer, head, method="contributions"))
    return inspected.word_map(chosen_maps(inspected.heads, kind, layer or 0, head)[0], head)


def _number(fields: dict[str, Any], name: str) -> int | None:
    """Return the number of a layer or head, None if the field is missing.

    Raises:
        ApiError: 400, the field is no number.
    """
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ApiError(400, f"Invalid request: {name} is not a number")
