"""Live lessons on the model server, which accept the reader's own sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from translucid.lessons.lessons import LESSONS, Lesson
from translucid.lessons.pages import record_script, static_files
from translucid.lessons.recording import SENTENCE, record_of
from translucid.lessons.runs import Models
from translucid.lessons.serving import HEADERS, LESSONS_PATH, TRANSLATOR
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rate_limits import address_of
from translucid.serving.requests import Call, Fields, RequestContext, RequestTask
from translucid.serving.server_options import media_type_of

LONGEST = 120
"""The maximum number of characters of a sentence."""


class LessonFields(Fields):
    """A sentence for a lesson."""

    lesson: str
    q: str


@dataclass(frozen=True)
class Live:
    """The handlers; `routes` binds them to their paths."""

    models: Models
    context: RequestContext

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(include_in_schema=False)
        files = static_files([lesson for lesson in LESSONS if self.models.has(lesson)], TRANSLATOR)
        for name, text in {**files, "": files["index.html"]}.items():
            routes.api_route(LESSONS_PATH + name, methods=["GET", "HEAD"])(_static_answer(text, media_type_of(name)))
        routes.api_route(LESSONS_PATH + "records/{name}.js", methods=["GET", "HEAD"])(self.record)
        routes.post(LESSONS_PATH + "look")(self.look)
        return routes

    async def record(self, request: Request, name: str) -> Response:
        """Return the record of a lesson as a script."""
        lesson = _lesson_named(name)
        task = RequestTask(self.context, request, address_of(request))
        json_record = await task.run(lambda: record_of(self.models, lesson))
        return _static_answer(record_script(name, json_record), media_type_of("record.js"))()

    async def look(self, call: Call[LessonFields]) -> JSONResponse:
        """Return the record of a sentence in a lesson."""
        lesson, text = call.fields.lesson, " ".join(call.fields.q.split())
        if lesson not in SENTENCE or not self.models.has(_lesson_named(lesson)):
            raise ApiError(400, "Invalid request: this lesson takes no sentences here")
        if not 0 < len(text) <= LONGEST:
            raise ApiError(400, f"A sentence of 1 to {LONGEST} characters, please.")
        return JSONResponse(await call.task.run(lambda: SENTENCE[lesson](self.models, text)))


def _lesson_named(name: str) -> Lesson:
    for lesson in LESSONS:
        if lesson.name == name:
            return lesson
    raise ApiError(404, "There is no such lesson")


# A function of its own, as a closure in a loop would see the text of the last file.
def _static_answer(text: str, media_type: str) -> Callable[[], Response]:
    def answer() -> Response:
        return Response(text, media_type=media_type, headers=HEADERS)

    return answer
