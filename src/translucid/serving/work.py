"""From a request's texts to translations: split, queued, awaited, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from fastapi import Request

from translucid.serving.batcher import translate
from translucid.serving.catalogue import Served
from translucid.serving.desk import Desk, off_the_loop
from translucid.serving.errand import Errand
from translucid.serving.text import Layout
from translucid.translation import Translation

SHORT = 600
"""Characters of a request that is translated together with others; longer ones take turns in the workshop."""


def begin(
    desk: Desk, errand: Errand, served: Served, texts: Sequence[str], nbest: int = 1
) -> Future[list[Translation]]:
    """Have some sentences of one request translated.

    Raises:
        ApiError: 503, there is no room.
    """
    if sum(map(len, texts)) <= SHORT:
        return served.batcher.submit(errand, texts, nbest)
    return desk.workshop.submit(errand, lambda: translate(served.translator, texts, nbest))


async def translate_texts(
    desk: Desk, errand: Errand, request: Request, served: Served, texts: Sequence[str], alternatives: int
) -> list[list[str]]:
    """Return for each text its translation and up to so many different alternatives.

    Raises:
        ApiError: 503, there is no room, or it took too long.
        ClientLeft: nobody waits.
    """
    size = sum(map(len, texts))
    layouts = await off_the_loop(size, lambda: [Layout.of(text, served.source) for text in texts])
    sentences = [sentence for layout in layouts for sentence in layout.sentences]
    if not sentences:
        return [[text] for text in texts]
    found = await errand.result(request, begin(desk, errand, served, sentences, alternatives + 1))
    return await off_the_loop(size, lambda: _filled(layouts, found, alternatives))


def _filled(layouts: Sequence[Layout], found: Sequence[Translation], alternatives: int) -> list[list[str]]:
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
