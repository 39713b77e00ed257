"""Texts with tags in requests: each is a short document of its own."""

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
    """Translate texts with tags in them, all else kept.

    Args:
        context: of the server.
        task: whose texts they are.
        request: likewise.
        served: translates.
        texts: with their tags.
        read: takes one apart.

    Raises:
        UserError: one can't be read.
        ApiError: 503, there is no room, or it took too long.
        ClientLeft: nobody waits.
    """
    work = context.worker_pool.submit(task, lambda: fill(context, served, [read(text) for text in texts]))
    return [found.decode("utf-8-sig") for found in await task.result(request, work)]


async def translate_html(
    context: RequestContext, task: RequestTask, request: Request, served: Served, texts: Sequence[str]
) -> list[str]:
    """Translate HTML, whole pages or fragments; errors as of `translate_tagged`."""
    languages = served.source, served.target

    def read(text: str) -> Document:  # the mark says that it is UTF-8, whatever it says itself
        return read_document("text.html", BOM_UTF8 + text.encode(), languages)

    return await translate_tagged(context, task, request, served, texts, read)
