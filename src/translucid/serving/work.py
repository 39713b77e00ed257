"""From a request's texts to translations: split, queued, awaited, put together again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from fastapi import Request

from translucid.serving.catalogue import Served
from translucid.serving.failures import ApiError
from translucid.serving.options import ServerOptions
from translucid.serving.text import Layout

Result = TypeVar("Result")


async def awaited(request: Request, future: Future[Result], seconds: float) -> Result:
    """Wait for a result as long as the client does, and no longer than allowed.

    Raises:
        ApiError: 503, it took too long, or the client has left.
    """
    wrapped = asyncio.wrap_future(future)
    end = asyncio.get_running_loop().time() + seconds
    try:
        while True:
            done, _ = await asyncio.wait({wrapped}, timeout=0.5)
            if done:
                return wrapped.result()
            if await request.is_disconnected():
                raise ApiError(503, "The client has left")
            if asyncio.get_running_loop().time() > end:
                raise ApiError(503, f"The translation took more than {seconds:g} seconds", retry_after=10)
    finally:
        if not wrapped.done():
            wrapped.cancel()


async def translate_texts(
    request: Request, served: Served, texts: Sequence[str], alternatives: int, options: ServerOptions
) -> list[list[str]]:
    """Return for each text its translation and up to so many different alternatives.

    Raises:
        ApiError: 503, there is no room, or it took too long.
    """
    layouts = [Layout.of(text, served.source) for text in texts]
    sentences = [sentence for layout in layouts for sentence in layout.sentences]
    if not sentences:
        return [[text] for text in texts]
    found = await awaited(request, served.batcher.submit(sentences, alternatives + 1), options.seconds)
    results, at = [], 0
    for layout in layouts:
        ours = found[at : at + len(layout.sentences)]
        at += len(ours)
        versions: list[str] = []
        for rank in range(alternatives + 1):
            # The k-th version has the k-th best of every sentence, or its best where there are fewer.
            filled = layout.fill([one.alternatives[rank if rank < len(one.alternatives) else 0] for one in ours])
            if filled not in versions:
                versions.append(filled)
        results.append(versions)
    return results
