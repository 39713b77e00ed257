"""The translation of HTML and XML texts in requests: each is a short document."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence

from fastapi import Request

from translucid.documents.document import Document
from translucid.documents.kinds import read_document
from translucid.serving.language_pairs import Served
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.queue.request_task import RequestTask
from translucid.serving.texts import fill


async def translate_tagged(
    context: RequestContext,
    task: RequestTask,
    request: Request,
    served: Served,
    texts: Sequence[str],
    read: Callable[[str], Document],
) -> list[str]:
    """Translate texts with tags; everything but the text stays as it is.

    Args:
        context: the context of the server.
        task: the task of the request.
        request: the request.
        served: the translator.
        texts: texts with tags.
        read: parses a text.

    Raises:
        UserError: a text can't be parsed.
        ApiError: 503, the server is busy, or the translation took too long.
        ClientLeft: the client has disconnected.
    """
    work = context.worker_pool.submit(task, lambda: fill(context, served, list(map(read, texts))))
    return [document.decode("utf-8-sig") for document in await task.result(request, work)]


async def translate_html(
    context: RequestContext, task: RequestTask, request: Request, served: Served, texts: Sequence[str]
) -> list[str]:
    """Translate HTML, whole pages or fragments; raises the errors of `translate_tagged`."""
    languages = served.source, served.target

    def read(text: str) -> Document:  # the byte order mark overrides an encoding that the page declares
        return read_document("text.html", BOM_UTF8 + text.encode(), languages)

    return await translate_tagged(context, task, request, served, texts, read)
