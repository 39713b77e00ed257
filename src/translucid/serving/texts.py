"""The translation of a request's texts: split into sentences, queued, awaited, and joined again; HTML as documents."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool

from translucid.api.pivot_translator import AnyTranslation, AnyTranslator
from translucid.api.segment_translator import SegmentTranslator
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.data.sentences import split_sentences
from translucid.documents.document import Document, Target
from translucid.documents.kinds import read_document
from translucid.documents.placeholders import PlaceholderStrategy
from translucid.documents.tagged_text import TaggedText
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.memory.recall import Recall
from translucid.serving.edge.failures import as_server_errors
from translucid.serving.language_pairs import AnyServed, ServedPivot
from translucid.serving.queue.batcher import in_chunks, options_for, translate
from translucid.serving.queue.request_context import RequestContext, RequestTask, off_the_loop

Result = TypeVar("Result")

SHORT = 600
"""The most characters of a request that is translated in a batch with others; longer ones go to the worker pool."""
LONGEST = 2000
"""The most characters of a sentence; a longer one is cut, between words if it has any."""
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Layout:
    """A text split into sentences; its white space and line breaks stay as they are."""

    sentences: list[str]
    """The sentences, which are translated."""
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str, stays_whole: Callable[[str], bool] = lambda part: False) -> Layout:
        """Split a text into sentences.

        Args:
            text: the text.
            language: its code.
            stays_whole: whether the text, or a line of it, is not split, because a translation memory has all of it.
        """
        whole = text.strip()
        if whole and stays_whole(whole):
            start = text.index(whole)
            return cls([whole], [text[:start], text[start + len(whole) :]])
        sentences: list[str] = []
        between: list[str] = []
        gap = ""  # the white space since the last sentence
        at = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap += text[at:start]
            at = line.end()
            content = text[start:at].rstrip()
            if content and stays_whole(content):
                parts = [(content, text[start + len(content) : at])]
            else:
                parts = split_sentences(text[start:at], language)
            for sentence, after in _cut(parts):
                if sentence:
                    sentences.append(sentence)
                    between.append(gap)
                    gap = ""
                gap += after
        return cls(sentences, [*between, gap + text[at:]])

    def fill(self, translations: Sequence[str]) -> str:
        """Return the text with translations in place of the sentences."""
        parts = [self.between[0]]
        for translation, after in zip(translations, self.between[1:], strict=True):
            parts += [translation, after]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut sentences that are too long for a model, at a space in the second half of the limit if there is one."""
    for sentence, after in sentences:
        at = 0
        while len(sentence) - at > LONGEST:
            space = sentence.rfind(" ", at + LONGEST // 2, at + LONGEST)
            if space < 0:
                yield sentence[at : at + LONGEST], ""
                at += LONGEST
            else:
                yield sentence[at:space], " "
                at = space + 1
        yield sentence[at:], after


async def by_language(
    texts: Sequence[str], codes: Sequence[str], translate: Callable[[str, list[str]], Awaitable[list[Result]]]
) -> list[Result]:
    """Translate texts in several languages, those of a language together, and return the results in order.

    Args:
        texts: the texts.
        codes: the language of each text.
        translate: translates texts of one language, whose code is its first argument.
    """
    results: dict[int, Result] = {}
    for code in dict.fromkeys(codes):
        numbers = [i for i, other in enumerate(codes) if other == code]
        results |= zip(numbers, await translate(code, [texts[i] for i in numbers]), strict=True)
    return [results[i] for i in range(len(texts))]


def begin(task: RequestTask, served: AnyServed, texts: Sequence[str], nbest: int = 1) -> Future[list[AnyTranslation]]:
    """Queue sentences of one request for translation.

    Raises:
        ApiError: 503, the queue is full.
    """
    # A long request in the batches would delay the short ones of all other clients.
    if sum(map(len, texts)) <= SHORT:
        return served.batcher.submit(task, served.translator, texts, nbest)
    return task.context.worker_pool.submit(task, lambda: translate(served.translator, texts, nbest))


def with_terminology(served: AnyServed, terms: Mapping[str, str]) -> AnyServed:
    """Return a translator that applies terms, with the same model and queue.

    Raises:
        UserError: a term is invalid, or a pivot language is between the languages of the terms.
    """
    if not terms:
        return served
    if isinstance(served, ServedPivot):
        what = f"{served.source} to {served.target} is translated through {served.pivot}, where no glossary applies"
        raise UserError(
            what, fix=f"Translate {served.source} to {served.pivot}, then {served.pivot} to {served.target}."
        )
    return replace(served, translator=served.translator.with_terms(terms.items()))


def translated(
    context: RequestContext, served: AnyServed, sources: Iterable[TaggedText], nbest: int = 1
) -> Iterator[Target]:
    """Translate texts with tags, in small parts, between which other requests may have their turn."""
    segments = SegmentTranslator(served.translator, options_for(served.translator, nbest), _recall(context, served))
    for part in in_chunks(sources, lambda source: len(source.text)):
        between_steps()
        with as_server_errors():
            targets = list(segments.stream(part))
        yield from targets


def _recall(context: RequestContext, served: AnyServed) -> Recall | None:
    """Return the server's translation memory if it is of a translator's languages."""
    return context.memory.recall(served.source, served.target) if context.memory else None


def fill(context: RequestContext, served: AnyServed, documents: Sequence[Document]) -> list[bytes]:
    """Translate short documents, such as HTML or XML of a request; called in the worker pool."""
    sources: list[TaggedText] = []
    for document in documents:
        sources += [segment.source for segment in document.segments]
    targets = translated(context, served, sources)  # together, so that documents of a sentence share batches
    filled = []
    for document in documents:
        document_targets = islice(targets, len(document.segments))
        filled.append(document.filled(dict(enumerate(document_targets))))
    return filled


Origin = Literal["model", "memory", "mixed"]
"""The origin of a translation; `mixed`: some of its sentences are from the translation memory."""


class TextTranslation(NamedTuple):
    """The translation of a text, or of a sentence."""

    versions: list[str]
    """The translation, then different alternatives."""
    confidence: float | None = None
    """The lowest confidence of a sentence, if there are any: if requested, and the run has a quality estimator."""
    origin: Origin = "model"


async def split_texts(
    context: RequestContext, served: AnyServed, texts: Sequence[str]
) -> tuple[list[Layout], dict[str, str]]:
    """Split texts into sentences, and look these up in the server's translation memory: exact matches only.

    A text or a line that the memory has as a whole is not split. Returns the texts, and the translations of sentences
    that the memory has.
    """
    recall = _recall(context, served)
    known: dict[str, str] = {}

    def look_up(part: str) -> bool:
        if recall and part not in known and (match := recall.used(part)):
            known[part] = match.target
        return part in known

    def work() -> list[Layout]:
        layouts = [Layout.of(text, served.source, look_up) for text in texts]
        for layout in layouts:
            for sentence in layout.sentences:
                look_up(sentence)
        return layouts

    if recall:
        return await run_in_threadpool(work), known  # the memory is a file, and a disk may be slow
    return await off_the_loop(sum(map(len, texts)), work), known


async def translate_texts(
    task: RequestTask, served: AnyServed, texts: Sequence[str], alternatives: int = 0, *, sure: bool = False
) -> list[TextTranslation]:
    """Return the translation of each text, with this many different alternatives if there are, and its confidence.

    Exact matches of the server's translation memory come first; the model's translations are alternatives to them.

    Raises:
        ApiError: 503, the queue is full, or the translation took too long.
        ClientLeft: the client has disconnected.
    """
    layouts, known = await split_texts(task.context, served, texts)
    sentences: list[str] = []
    for layout in layouts:
        sentences += layout.sentences
    for_model = sentences if alternatives else [sentence for sentence in sentences if sentence not in known]
    by_model: dict[str, TextTranslation] = {}
    if for_model:
        translations = await _by_model(task, served, for_model, alternatives, sure=sure)
        by_model = dict(zip(for_model, translations, strict=True))
    size = sum(map(len, texts))
    return await off_the_loop(size, lambda: _filled(layouts, _with_known(sentences, known, by_model), alternatives))


async def _by_model(
    task: RequestTask, served: AnyServed, sentences: Sequence[str], alternatives: int, *, sure: bool
) -> list[TextTranslation]:
    """Translate sentences; where the model lost a placeholder or a number, again with other placeholder strategies."""
    size = sum(map(len, sentences))
    translations = await task.result(begin(task, served, sentences, alternatives + 1))
    sources = [TaggedText(sentence, syntax=PlaceholderSyntax.message) for sentence in sentences]
    complete = await off_the_loop(size, lambda: list(map(_complete, sources, translations)))
    incomplete = [i for i, best in enumerate(translations) if best.text not in complete[i][:1]]
    again: list[Target] = []
    if incomplete:
        retried = [sources[i] for i in incomplete]
        again = await task.run(lambda: list(translated(task.context, served, retried, alternatives + 1)))
    confidences: list[float | None] = [None] * len(translations)
    if sure:
        confidences = await task.run(lambda: _confidences(served.translator, translations))
    results = list(map(TextTranslation, complete, confidences))
    for i, target in zip(incomplete, again, strict=True):
        results[i] = _of_target(target, complete[i])
    return results


def _confidences(translator: AnyTranslator, translations: Sequence[AnyTranslation]) -> list[float | None]:
    return [translation.confidence for translation in translator.assessed(translations)]


def _with_known(
    sentences: Sequence[str], known: Mapping[str, str], by_model: Mapping[str, TextTranslation]
) -> list[TextTranslation]:
    """Return the translation of each sentence; those that the translation memory has come before those of the model."""
    results = []
    for sentence in sentences:
        if sentence not in known:
            results.append(by_model[sentence])
            continue
        versions = [known[sentence]]
        if sentence in by_model:
            versions += by_model[sentence].versions
        results.append(TextTranslation(list(dict.fromkeys(versions)), None, "memory"))
    return results


def _complete(source: TaggedText, translation: AnyTranslation) -> list[str]:
    """Return the alternatives that have everything that must stay, such as placeholders and numbers."""
    strategy = PlaceholderStrategy.first(source)
    return [text for text in translation.alternatives if strategy.after(text) is None]


def _of_target(target: Target, complete: Sequence[str]) -> TextTranslation:
    """Return a sentence that was translated again, its alternatives, and at last those of the first translation."""
    versions = [target.marked.whole]
    versions += [alternative.whole for alternative in target.alternatives]
    versions += complete
    return TextTranslation(list(dict.fromkeys(versions)), target.confidence)


def _filled(
    layouts: Sequence[Layout], sentences: Sequence[TextTranslation], alternatives: int
) -> list[TextTranslation]:
    """Join the translations of sentences to those of texts."""
    results, remaining = [], iter(sentences)
    for layout in layouts:
        text_sentences = list(islice(remaining, len(layout.sentences)))
        versions: dict[str, None] = {}
        for rank in range(alternatives + 1):
            versions[layout.fill([_version(sentence, rank) for sentence in text_sentences])] = None
        confidence = min(
            (sentence.confidence for sentence in text_sentences if sentence.confidence is not None), default=None
        )
        origins = {sentence.origin for sentence in text_sentences} or {"model"}
        results.append(TextTranslation(list(versions), confidence, "mixed" if len(origins) > 1 else origins.pop()))
    return results


def _version(sentence: TextTranslation, rank: int) -> str:
    """Return the sentence's part of a text's k-th version: its own k-th, or its best if it has fewer."""
    return sentence.versions[rank if rank < len(sentence.versions) else 0]


async def translate_tagged(
    task: RequestTask, served: AnyServed, texts: Sequence[str], read: Callable[[str], Document]
) -> list[str]:
    """Translate texts with tags, each as a short document; everything but the text stays as it is.

    Args:
        task: the task of the request.
        served: the translator.
        texts: texts with tags.
        read: parses a text.

    Raises:
        UserError: a text can't be parsed.
        ApiError: 503, the server is busy, or the translation took too long.
        ClientLeft: the client has disconnected.
    """
    documents = await task.run(lambda: fill(task.context, served, list(map(read, texts))))
    return [document.decode("utf-8-sig") for document in documents]


async def translate_html(task: RequestTask, served: AnyServed, texts: Sequence[str]) -> list[str]:
    """Translate HTML, whole pages or fragments; raises the errors of `translate_tagged`."""
    languages = served.source, served.target

    def read(text: str) -> Document:  # the byte order mark overrides an encoding that the page declares
        return read_document("text.html", BOM_UTF8 + text.encode(), languages)

    return await translate_tagged(task, served, texts, read)
