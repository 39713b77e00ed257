"""Pictures of what is to be seen of one sentence or image, as PDF: the same that the page's lines of Python draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from translucid.decoding.maps import chosen_maps
from translucid.inspection.explain import explain
from translucid.inspection.explain.case import Case
from translucid.inspection.inspected import Inspected
from translucid.inspection.words import WordMap
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import method_field, number_field, text_field
from translucid.serving.language_pairs import Served
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.routes.inspection import LOOKED, WIDEST, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from translucid.api.captioner import Captioner
    from translucid.data.images.pixels import Picture
    from translucid.serving.queue.request_task import RequestTask

VIEWS = ("map", "heads", "beam", "why")
"""What is drawn: one map as ribbons, all heads of a kind, the tree of the beam search, an explanation as ribbons."""
OF_CAPTIONS = VIEWS
"""Of an image: it is lit for each word, in one way, in all ways, by what the word depends on; and the tree."""


@dataclass(frozen=True)
class PlotRoutes:
    """The handlers; `routes` binds them to their paths."""

    context: RequestContext

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["looking inside"], responses=schemas.ERRORS)
        routes.post("/picture", openapi_extra=schemas.PICTURE, response_class=Response)(self.picture)
        routes.post("/caption/picture", openapi_extra=schemas.CAPTION_PICTURE, response_class=Response)(self.lit)
        return routes

    async def picture(self, request: Request) -> Response:
        """Draw what is to be seen of a sentence and a translation of it."""
        fields, task, served, source, _ = await read_text(self.context, request)
        target = text_field(fields, "translation")
        view = text_field(fields, "view")
        if view not in VIEWS:
            raise ApiError(400, f"Invalid request: view is none of {', '.join(VIEWS)}")
        if not source.strip() or not target.strip() or len(target) > 2 * LOOKED:
            raise ApiError(400, f"Invalid request: there are no texts, or translation has over {2 * LOOKED} characters")

        return await self._drawn(request, task, lambda: _draw(served, source, target, view, fields))

    async def lit(self, request: Request) -> Response:
        """Draw what is to be seen of an image and a caption of it."""
        self.context.catalogue.captioner()  # before megabytes are read
        fields, image, task = await self.context.image(request)
        captioner = self.context.catalogue.captioner(text_field(fields, "model", "") or None).model
        caption = text_field(fields, "caption").strip()
        view = text_field(fields, "view")
        if view not in OF_CAPTIONS:
            raise ApiError(400, f"Invalid request: view is none of {', '.join(OF_CAPTIONS)}")
        if not caption or len(caption) > LOOKED:
            raise ApiError(400, f"Invalid request: there is no caption, or it has over {LOOKED} characters")
        layer, head = (number_field(fields, name, 0, 999) if name in fields else None for name in ("layer", "head"))
        method = method_field(fields, "method", "erasure", images=True)

        def figure() -> Figure:
            if view == "why":
                return _draw_why(captioner, captioner.picture(image, "image"), caption, method)
            return _draw_lit(captioner, captioner.picture(image, "image"), caption, view, layer, head)

        return await self._drawn(request, task, figure)

    async def _drawn(self, request: Request, task: RequestTask, figure: Callable[[], Figure]) -> Response:
        def pdf() -> bytes:
            from translucid.inspection.plots.saving import rendered

            return rendered(figure(), "pdf")

        return Response(
            await task.result(request, self.context.worker_pool.submit(task, pdf)), media_type="application/pdf"
        )


def _draw(served: Served, source: str, target: str, view: str, fields: dict[str, Any]) -> Figure:
    from translucid.inspection.plots import draw_attention, draw_beam, draw_ribbons

    translator = served.translator
    if view == "beam":
        return draw_beam(translator.trace(source, min(translator.configuration.decoding.beam, WIDEST)))
    if view == "why":
        method = method_field(fields, "method", "erasure")
        why = explain(Case(translator.model, translator.pipeline, source, target), method, samples=200)
        weights = why.importance / why.importance.abs().max().clamp(min=1e-9)
        return draw_ribbons(WordMap(why.source, why.target, weights))
    (seen,) = translator.inspect([(source, target)])
    kind = text_field(fields, "kind", "cross")
    if view == "heads":
        return draw_attention(seen, kind)
    words = _map(seen, kind, _place(fields, "layer"), _place(fields, "head"))
    return draw_ribbons(words, seen.word_log_probs() if kind in ("cross", "rollout") else ())


def _draw_lit(
    captioner: Captioner, picture: Picture, caption: str, view: str, layer: int | None, head: int | None
) -> Figure:
    from translucid.inspection.attention_result_html import sections_of
    from translucid.inspection.plots import draw_beam, draw_lit, draw_lit_rows
    from translucid.inspection.saliency_overlay import SaliencyOverlay

    if view == "beam":
        return draw_beam(captioner.trace(picture, min(captioner.configuration.decoding.beam, WIDEST)))
    looked = captioner.inspect(picture, caption)
    if view == "heads":
        return draw_lit_rows(sections_of(looked))
    return draw_lit(SaliencyOverlay.of(looked, layer, head))


def _draw_why(captioner: Captioner, picture: Picture, caption: str, method: str) -> Figure:
    from translucid.inspection.explain.image_case import image_case
    from translucid.inspection.explain.shown import lit
    from translucid.inspection.plots import draw_lit

    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, caption, captioner.grid)
    return draw_lit(lit(case, explain(case, method, samples=200)))


def _map(seen: Inspected, kind: str, layer: int | None, head: int | None) -> WordMap:
    if kind == "rollout":
        chosen_maps(seen.heads)
        return seen.words(seen.rollout())
    if kind == "cross":
        return seen.words(seen.cross(layer, head))
    return seen.word_map(chosen_maps(seen.heads, kind, layer or 0, head)[0], head)


def _place(fields: dict[str, Any], name: str) -> int | None:
    """Return the number of a layer or head, None if none is said.

    Raises:
        ApiError: 400, it is something else.
    """
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ApiError(400, f"Invalid request: {name} is not a number")
