"""From a request's texts to translations: taken apart into sentences, queued, awaited, put together again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from translucid.api.segment_translator import SegmentTranslator
from translucid.api.translation import Translation
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.data.sentences import split_sentences
from translucid.documents.document import Document, Target
from translucid.documents.placeholders import PlaceholderStrategy
from translucid.documents.tagged_text import TaggedText
from translucid.ground.cancellation import between_steps
from translucid.serving.edge.failures import no_request_to_blame
from translucid.serving.language_pairs import Served
from translucid.serving.queue.batcher import in_chunks, options_for, translate
from translucid.serving.queue.request_context import RequestContext, off_the_loop
from translucid.serving.queue.request_task import RequestTask

SHORT = 600
"""Characters of a request that is translated together with others; longer ones take turns in the worker_pool."""
LONGEST = 2000
"""Characters of what is translated as one sentence, at most; a longer one is cut between words where it has some."""
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Layout:
    """A text of any shape: its sentences are translated, its white space and line breaks stay as they are."""

    sentences: list[str]
    """What is to be translated."""
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str, stays_whole: Callable[[str], bool] = lambda part: False) -> Layout:
        """Take a text apart.

        Args:
            text: any.
            language: its code.
            stays_whole: whether the text, or a line of it, is not cut into sentences, as a memory has all of it.
        """
        whole = text.strip()
        if whole and stays_whole(whole):
            start = text.index(whole)
            return cls([whole], [text[:start], text[start + len(whole) :]])
        sentences: list[str] = []
        between: list[str] = []
        gap: list[str] = []  # the white space since the last sentence, in parts
        at = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap.append(text[at:start])
            at = line.end()
            content = text[start:at].rstrip()
            if content and stays_whole(content):
                parts = [(content, text[start + len(content) : at])]
            else:
                parts = split_sentences(text[start:at], language)
            for sentence, after in _cut(parts):
                if sentence:
                    sentences.append(sentence)
                    between.append("".join(gap))
                    gap.clear()
                gap.append(after)
        gap.append(text[at:])
        return cls(sentences, [*between, "".join(gap)])

    def fill(self, translations: list[str]) -> str:
        """Put translations into the places of the sentences."""
        parts = [self.between[0]]
        for translation, after in zip(translations, self.between[1:], strict=True):
            parts += [translation, after]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut what is too long to be a sentence."""
    for sentence, after in sentences:
        at = 0
        while len(sentence) - at > LONGEST:
            space = sentence.rfind(" ", at + LONGEST // 2, at + LONGEST)
            end = at + LONGEST if space < 0 else space
            yield sentence[at:end], "" if space < 0 else " "
            at = end + (space >= 0)
        yield sentence[at:], after


def begin(
    context: RequestContext, task: RequestTask, served: Served, texts: Sequence[str], nbest: int = 1
) -> Future[list[Translation]]:
    """Have some sentences of one request translated.

    Raises:
        ApiError: 503, there is no room.
    """
    if sum(map(len, texts)) <= SHORT:
        return served.batcher.submit(task, served.translator, texts, nbest)
    return context.worker_pool.submit(task, lambda: translate(served.translator, texts, nbest))


def with_terminology(served: Served, terms: Mapping[str, str]) -> Served:
    """Return a translator that applies terms, with the same model and queue.

    Raises:
        UserError: there is something wrong with the terms.
    """
    return replace(served, translator=served.translator.with_terms(terms.items())) if terms else served


def translated(
    context: RequestContext, served: Served, sources: Iterable[TaggedText], nbest: int = 1
) -> Iterator[Target]:
    """Translate texts with their marks, in small parts, between which others may have their turn."""
    recall = context.memory.recall(served.source, served.target) if context.memory else None
    segments = SegmentTranslator(served.translator, options_for(served.translator, nbest), recall)
    for part in in_chunks(sources, lambda source: len(source.text)):
        between_steps()
        with no_request_to_blame():
            targets = list(segments.stream(part))
        yield from targets


def fill(context: RequestContext, served: Served, documents: Sequence[Document]) -> list[bytes]:
    """Translate short documents, such as HTML or XML of a request; in the worker_pool."""
    targets = translated(context, served, [segment.source for document in documents for segment in document.segments])
    filled = []
    for document in documents:
        count = len(document.segments)
        filled.append(document.filled(dict(enumerate(islice(targets, count)))))
    return filled


Origin = Literal["model", "memory", "mixed"]
"""Where a translation is from; `mixed`: some of its sentences are from the memory."""


class Answered(NamedTuple):
    """What comes back for a text."""

    versions: list[str]
    """Its translation, and others that are different."""
    confidence: float | None = None
    """Of the sentence that is least sure, if that was asked for and the run can tell."""
    origin: Origin = "model"


class TakenApart(NamedTuple):
    """Texts as they are translated."""

    layouts: list[Layout]
    known: dict[str, str]
    """The translations of those sentences that a memory has."""


async def take_apart(context: RequestContext, served: Served, texts: Sequence[str]) -> TakenApart:
    """Take texts apart into sentences, and look these up in the server's memory, exactly.

    A text or a line that the memory has as a whole stays whole.
    """
    recall = context.memory.recall(served.source, served.target) if context.memory else None
    if recall is None:
        size = sum(map(len, texts))
        layouts = await off_the_loop(size, lambda: [Layout.of(text, served.source) for text in texts])
        return TakenApart(layouts, {})
    known: dict[str, str] = {}

    def look_up(part: str) -> bool:
        if part not in known and (match := recall.used(part)):
            known[part] = match.target
        return part in known

    def work() -> TakenApart:
        layouts = [Layout.of(text, served.source, look_up) for text in texts]
        for layout in layouts:
            for sentence in layout.sentences:
                look_up(sentence)
        return TakenApart(layouts, known)

    return await run_in_threadpool(work)  # a disk may be slow


async def translate_texts(
    context: RequestContext,
    task: RequestTask,
    request: Request,
    served: Served,
    texts: Sequence[str],
    alternatives: int = 0,
    *,
    sure: bool = False,
) -> list[Answered]:
    """Return for each text its translation and up to so many different alternatives; and how sure it is, if asked.

    What the server's memory has is taken from there, and the model's own translations are alternatives to it.

    Raises:
        ApiError: 503, there is no room, or it took too long.
        ClientLeft: nobody waits.
    """
    layouts, known = await take_apart(context, served, texts)
    sentences = [sentence for layout in layouts for sentence in layout.sentences]
    asked = [sentence for sentence in sentences if alternatives or sentence not in known]
    answers: list[Answered] = []
    if asked:
        answers = await _by_model(context, task, request, served, asked, alternatives, sure=sure)
    every = list(_with_known(sentences, known, asked, answers))
    size = sum(map(len, texts))
    return await off_the_loop(size, lambda: _filled(layouts, every, alternatives, sure=sure))


async def _by_model(
    context: RequestContext,
    task: RequestTask,
    request: Request,
    served: Served,
    sentences: Sequence[str],
    alternatives: int,
    *,
    sure: bool,
) -> list[Answered]:
    """Translate sentences; those of whose placeholders one is missing a second time, in another way."""
    size = sum(map(len, sentences))
    found = await task.result(request, begin(context, task, served, sentences, alternatives + 1))
    sources = [TaggedText(sentence, syntax=PlaceholderSyntax.message) for sentence in sentences]
    kept = await off_the_loop(size, lambda: list(map(_complete, sources, found)))
    again: dict[int, Target] = {}
    if lost := [i for i, one in enumerate(found) if one.text not in kept[i][:1]]:
        wanted = [sources[i] for i in lost]
        mending = context.worker_pool.submit(task, lambda: list(translated(context, served, wanted, alternatives + 1)))
        mended: list[Target] = await task.result(request, mending)
        again = dict(zip(lost, mended, strict=True))
    confidences: list[float | None] = [None] * len(found)
    if sure:
        work = context.worker_pool.submit(task, lambda: served.translator.confidences(found))
        confidences = await task.result(request, work)
    return [
        _of_target(again[i], kept[i]) if i in again else Answered(kept[i], confidence)
        for i, confidence in enumerate(confidences)
    ]


def _with_known(
    sentences: Sequence[str], known: Mapping[str, str], asked: Sequence[str], answers: Sequence[Answered]
) -> Iterator[Answered]:
    """Yield what came of each sentence, those that the memory has included.

    Args:
        sentences: all of them.
        known: the memory's translations.
        asked: those that the model has translated, in the same order.
        answers: what came of these.
    """
    left = iter(zip(asked, answers, strict=True))
    ahead = next(left, None)
    for sentence in sentences:
        answer = Answered([])
        if ahead and ahead[0] == sentence:
            answer, ahead = ahead[1], next(left, None)
        if sentence in known:
            versions = dict.fromkeys([known[sentence], *answer.versions])
            answer = Answered([*versions], None, "memory")
        yield answer


def _complete(source: TaggedText, found: Translation) -> list[str]:
    """Return the translations in which everything is that has to be, such as placeholders and numbers."""
    way = PlaceholderStrategy.first(source)
    return [text for text in found.alternatives if way.after(text) is None]


def _of_target(target: Target, kept: Sequence[str]) -> Answered:
    """Return a sentence that was translated again, and other translations, those of the first time last."""
    versions = [target.marked.whole, *(other.whole for other in target.alternatives), *kept]
    return Answered(list(dict.fromkeys(versions)), target.confidence)


def _filled(
    layouts: Sequence[Layout], sentences: Sequence[Answered], alternatives: int, *, sure: bool
) -> list[Answered]:
    """Put sentences together to texts."""
    results, at = [], 0
    for layout in layouts:
        ours = sentences[at : at + len(layout.sentences)]
        at += len(ours)
        versions: list[str] = []
        for rank in range(alternatives + 1):
            # The k-th version has the k-th best of every sentence, or its best where there are fewer.
            filled = layout.fill([one.versions[rank if rank < len(one.versions) else 0] for one in ours])
            if filled not in versions:
                versions.append(filled)
        told = [one.confidence for one in ours if one.confidence is not None] if sure else []
        results.append(Answered(versions, min(told, default=None), origin_of([one.origin == "memory" for one in ours])))
    return results


def origin_of(from_memory: Sequence[bool]) -> Origin:
    """Return where a text is from whose sentences are from the memory or not."""
    if not any(from_memory):
        return "model"
    return "memory" if all(from_memory) else "mixed"
