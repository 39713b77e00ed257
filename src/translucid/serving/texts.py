"""The translation of a request's texts: their languages detected, split into sentences, queued, awaited, joined again.

HTML and XML are translated as documents.

Runs with document context also read the sentences and segments before those of a request.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool

from bitext.cancellation import between_steps
from bitext.documents.document import Document, RetrievedWord, Segment, Target, read_document
from bitext.documents.tag_projection import readable
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xml_fragment import Elements, XmlFragment
from bitext.languages import short_code
from bitext.protected_spans import PlaceholderSyntax, with_patterns
from translucid.api.pivot_translator import AnyTranslation, AnyTranslator
from translucid.api.segment_translator import SegmentTranslator, complete_alternatives
from translucid.api.translation import Translation
from translucid.data.document_context import Source, lines_before
from translucid.data.formality import formality_warnings
from translucid.data.sentences import language_probabilities, split_sentences
from translucid.ground.errors import UserError
from translucid.serving.catalog import AnyServed, ServedPivot
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import as_server_errors, in_chunks, options_for, translate
from translucid.serving.requests import RequestTask, off_the_loop
from translucid.terminology.matching import missing_terms

LONGEST = 2000
"""The maximum number of characters in a sentence; a longer one is cut, between words if it has any."""
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True)
class Layout:
    """A text split into sentences; its white space and line breaks stay as they are."""

    sentences: list[str]
    """The sentences, which are translated."""
    between: list[str]
    """White space before the first sentence, between two, and after the last: one more than sentences."""

    @classmethod
    def of(cls, text: str, language: str, is_in_memory: Callable[[str], bool] = lambda part: False) -> Layout:
        """Split a text into sentences.

        Args:
            text: the text.
            language: its code.
            is_in_memory: returns whether a translation memory has the whole text or line, which is then not split.
        """
        stripped = text.strip()
        if stripped and is_in_memory(stripped):
            start = text.index(stripped)
            return cls([stripped], [text[:start], text[start + len(stripped) :]])
        sentences: list[str] = []
        between: list[str] = []
        gap = ""  # the white space since the last sentence
        position = 0
        for line in _LINE.finditer(text):
            start = line.start() + len(line[0]) - len(line[0].lstrip())
            gap += text[position:start]
            position = line.end()
            content = text[start:position].rstrip()
            if content and is_in_memory(content):
                parts = [(content, text[start + len(content) : position])]
            else:
                parts = split_sentences(text[start:position], language)
            for sentence, after in _cut(parts):
                if sentence:
                    sentences.append(sentence)
                    between.append(gap)
                    gap = ""
                gap += after
        return cls(sentences, [*between, gap + text[position:]])

    def fill(self, translations: Sequence[str]) -> str:
        """Return the text with translations in place of the sentences."""
        parts = [self.between[0]]
        for translation, space in zip(translations, self.between[1:], strict=True):
            parts += [translation, space]
        return "".join(parts)


def _cut(sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Cut sentences that are too long for a model, at a space in the second half of the limit if there is one."""
    for sentence, after in sentences:
        start = 0
        while len(sentence) - start > LONGEST:
            space = sentence.rfind(" ", start + LONGEST // 2, start + LONGEST)
            if space < 0:
                yield sentence[start : start + LONGEST], ""
                start += LONGEST
            else:
                yield sentence[start:space], " "
                start = space + 1
        yield sentence[start:], after


def sentences_of(
    served: AnyServed, layouts: Iterable[Layout], context: str = "", max_length: int | None = None
) -> list[Source[str]]:
    """Return the sentences of texts; for a run with document context, with those before each in its text.

    `context`: the text before each of the texts; `max_length`: the largest number of characters of a translation.
    """
    sources: list[Source[str]] = []
    options = served.translator.context
    for layout in layouts:
        if not options:
            sources += [Source(sentence, (), max_length) for sentence in layout.sentences]
            continue
        sentences = [context, *layout.sentences] if context else layout.sentences
        for i in range(len(sentences) - len(layout.sentences), len(sentences)):
            before = tuple(sentences[max(i - options.max_sentences, 0) : i])
            sources.append(Source(sentences[i], before, max_length))
    return sources


def segment_sources(served: AnyServed, segments: Sequence[Segment], context: str = "") -> list[Source[TaggedText]]:
    """Return the sources of segments; for a run with document context, with the texts before each in its document.

    `context`: the text before the document.
    """
    options = served.translator.context
    if not options:
        return [Source(segment.source, max_length=segment.longest) for segment in segments]
    texts = [readable(segment.source).text for segment in segments]
    sources = []
    for segment, before in zip(
        segments, lines_before(texts, options.max_sentences, [context] if context else []), strict=True
    ):
        sources.append(Source(segment.source, tuple(before), segment.longest))
    return sources


Result = TypeVar("Result")

SHORT = 600
"""The maximum length of a request that is translated in a batch with others; longer ones go to the worker pool."""


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
        numbers = [i for i, text_code in enumerate(codes) if text_code == code]
        results |= zip(numbers, await translate(code, [texts[i] for i in numbers]), strict=True)
    return [results[i] for i in range(len(texts))]


def queue_sentences(
    task: RequestTask, served: AnyServed, sources: Sequence[Source[str]], nbest: int = 1
) -> Future[list[AnyTranslation]]:
    """Queue sentences of one request for translation.

    Raises:
        ApiError: 503, the queue is full.
    """
    # A long request in the batches would delay the short ones of all other clients.
    if sum(len(source.text) for source in sources) <= SHORT:
        return served.batcher.submit(task, served.translator, sources, nbest)
    return task.context.worker_pool.submit(task, lambda: translate(served.translator, sources, nbest))


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


def request_warnings(served: AnyServed, texts: Sequence[str], translations: Sequence[str]) -> list[str]:
    """Return a warning for each term that a translation lacks, and for another form of address than the requested one.

    Called in the worker pool.
    """
    warnings: list[str] = []
    for text, translation in zip(texts, translations, strict=True):
        between_steps()
        warnings += missing_terms(served.translator.terms, text, translation)
        warnings += formality_warnings(served.translator.formality, (served.source, served.target), text, translation)
    return warnings


def translated(served: AnyServed, sources: Iterable[Source[TaggedText]], nbest: int = 1) -> Iterator[Target]:
    """Translate texts with tags, in small parts, between which other requests may have their turn."""
    recall = served.recall
    options = options_for(served.translator, nbest)
    segments = SegmentTranslator(served.translator, options, recall, retrieved_words=served.retrieves)
    for chunk in in_chunks(sources, lambda source: len(source.text.text)):
        between_steps()
        with as_server_errors():
            targets = list(segments.stream(chunk))
        yield from targets


def fill(served: AnyServed, documents: Sequence[Document], text_before: str = "") -> list[TextTranslation]:
    """Translate short documents, such as HTML or XML of a request; called in the worker pool.

    The retrieved words are numbered in the text of each document without markup. `text_before`: the text before each
    document, for a run with document context.
    """
    sources: list[Source[TaggedText]] = []
    for document in documents:
        sources += segment_sources(served, document.segments, text_before)
    # Together, so that documents of one sentence share batches.
    targets = translated(served, sources)
    filled = []
    for document in documents:
        document_targets = list(islice(targets, len(document.segments)))
        text = document.filled(dict(enumerate(document_targets))).decode("utf-8-sig")
        confidence = _lowest(target.confidence for target in document_targets)
        retrieved, words = list[RetrievedWord](), 0
        for target in document_targets:
            retrieved += [word._replace(position=words + word.position) for word in target.retrieved]
            words += len(target.marked.text.split())
        origin = _origin(target.origin for target in document_targets)
        filled.append(TextTranslation([text], confidence, origin, tuple(retrieved)))
    return filled


Origin = Literal["model", "memory", "person", "mixed"]
"""The origin of a translation; `mixed`: its sentences have several, as some are from the translation memory."""


class TextTranslation(NamedTuple):
    """The translation of a text, or of a sentence."""

    versions: list[str]
    """The translation, then different alternatives."""
    confidence: float | None = None
    """The lowest confidence of a sentence, if there are any: if requested, and the run has a quality estimator."""
    origin: Origin = "model"
    retrieved: tuple[RetrievedWord, ...] = ()
    """The words that the memory has changed or supported, if the translator retrieves."""


async def split_texts(
    served: AnyServed, texts: Sequence[str], *, whole: bool = False
) -> tuple[list[Layout], dict[str, str]]:
    """Split texts into sentences, and look these up in the client's translation memory: exact matches only.

    A text or a line that the memory has as a whole is not split, and with `whole`, no text is: a limit of its length is
    for all of its sentences. Returns the texts, and the translations of sentences that the memory has.
    """
    recall = served.recall
    known_translations: dict[str, str] = {}

    def look_up(passage: str) -> bool:
        if recall and passage not in known_translations and (match := recall.replacement(passage)):
            known_translations[passage] = match.target
        return passage in known_translations

    def work() -> list[Layout]:
        kept_whole = look_up if not whole else lambda text: True
        layouts = [Layout.of(text, served.source, kept_whole) for text in texts]
        for layout in layouts:
            for sentence in layout.sentences:
                look_up(sentence)
        return layouts

    if recall:
        return await run_in_threadpool(work), known_translations  # the memory is a file, and a disk may be slow
    return await off_the_loop(sum(map(len, texts)), work), known_translations


async def translate_texts(
    task: RequestTask,
    served: AnyServed,
    texts: Sequence[str],
    alternatives: int = 0,
    *,
    with_confidence: bool = False,
    context: str = "",
    max_length: int | None = None,
) -> list[TextTranslation]:
    """Return the translation of each text, with this many different alternatives if there are, and its confidence.

    Exact matches of the client's translation memory come first; the model's translations are alternatives to them. A
    run with document context reads the `context` before each text. A translation has at most `max_length` characters,
    or is the shortest one found.

    Raises:
        ApiError: 503, the queue is full, or the translation took too long.
        ClientLeft: the client has disconnected.
    """
    task.count(served, texts)
    layouts, known_translations = await split_texts(served, texts, whole=max_length is not None)
    sentences = sentences_of(served, layouts, context, max_length)
    to_translate = sentences
    if not alternatives:
        to_translate = [sentence for sentence in sentences if sentence.text not in known_translations]
    model_translations: dict[Source[str], TextTranslation] = {}
    if to_translate:
        translations = await _translate_sentences(
            task, served, to_translate, alternatives, with_confidence=with_confidence
        )
        model_translations = dict(zip(to_translate, translations, strict=True))
    size = sum(map(len, texts))
    return await off_the_loop(
        size, lambda: _filled(layouts, _merge_known(sentences, known_translations, model_translations), alternatives)
    )


async def _translate_sentences(
    task: RequestTask, served: AnyServed, sentences: Sequence[Source[str]], alternatives: int, *, with_confidence: bool
) -> list[TextTranslation]:
    """Translate sentences; where the model lost a placeholder or a number, again with other placeholder strategies."""
    size = sum(len(sentence.text) for sentence in sentences)
    translations = await task.result(queue_sentences(task, served, sentences, alternatives + 1))
    syntax = with_patterns(PlaceholderSyntax.message, served.translator.protected)
    sources = [Source(TaggedText(text, syntax=syntax), before, limit) for text, before, limit in sentences]
    complete = await off_the_loop(size, lambda: list(map(complete_alternatives, sources, translations)))
    incomplete = [i for i, translation in enumerate(translations) if translation.text not in complete[i][:1]]
    retranslated: list[Target] = []
    if incomplete:
        retry_sources = [sources[i] for i in incomplete]
        retranslated = await task.run(lambda: list(translated(served, retry_sources, alternatives + 1)))
    confidences: list[float | None] = [None] * len(translations)
    if with_confidence:
        confidences = await task.run(lambda: _confidences(served.translator, translations))
    retrieved: list[tuple[RetrievedWord, ...]] = [()] * len(translations)
    if served.retrieves:
        retrieved = await task.run(lambda: list(map(retrieved_words_of, translations)))
    results = [
        TextTranslation(versions, confidence, retrieved=words)
        for versions, confidence, words in zip(complete, confidences, retrieved, strict=True)
    ]
    for i, target in zip(incomplete, retranslated, strict=True):
        results[i] = _from_target(target, complete[i])
    return results


def retrieved_words_of(translation: AnyTranslation) -> tuple[RetrievedWord, ...]:
    """Return the words that the memory has changed or supported; called in the worker pool."""
    between_steps()
    return tuple(translation.retrieved) if isinstance(translation, Translation) else ()


def _confidences(translator: AnyTranslator, translations: Sequence[AnyTranslation]) -> list[float | None]:
    return [translation.confidence for translation in translator.quality.assessed(translations)]


def _merge_known(
    sentences: Sequence[Source[str]],
    known_translations: Mapping[str, str],
    model_translations: Mapping[Source[str], TextTranslation],
) -> list[TextTranslation]:
    """Return the translation of each sentence; those that the translation memory has come before those of the model."""
    results = []
    for sentence in sentences:
        text = sentence.text
        if text not in known_translations:
            results.append(model_translations[sentence])
            continue
        versions = [known_translations[text]]
        if sentence in model_translations:
            versions += model_translations[sentence].versions
        results.append(TextTranslation(list(dict.fromkeys(versions)), None, "memory"))
    return results


def _from_target(target: Target, complete: Sequence[str]) -> TextTranslation:
    """Return a sentence that was translated again, its alternatives, and finally those of the first translation."""
    versions = [target.marked.full_text]
    versions += [alternative.full_text for alternative in target.alternatives]
    versions += complete
    words = versions[0].split()
    retrieved = tuple(word for word in target.retrieved if words[word.position : word.position + 1] == [word.word])
    return TextTranslation(list(dict.fromkeys(versions)), target.confidence, retrieved=retrieved)


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
        confidence = _lowest(sentence.confidence for sentence in text_sentences)
        origin, retrieved = _origin(row.origin for row in text_sentences), _retrieved_in(layout, text_sentences)
        results.append(TextTranslation(list(versions), confidence, origin, retrieved))
    return results


def _retrieved_in(layout: Layout, sentences: Sequence[TextTranslation]) -> tuple[RetrievedWord, ...]:
    """Return the words of a text that the memory has changed or supported, with their positions in the text."""
    words: list[RetrievedWord] = []
    text = ""
    for space, sentence in zip(layout.between, sentences, strict=False):
        text += space
        first = len(f"{text}x".split()) - 1  # without white space before it, a sentence continues a word
        words += [word._replace(position=first + word.position) for word in sentence.retrieved]
        text += sentence.versions[0]
    return tuple(words)


def _lowest(confidences: Iterable[float | None]) -> float | None:
    return min((confidence for confidence in confidences if confidence is not None), default=None)


def _origin(origins: Iterable[Origin]) -> Origin:
    """Return the origin of a text with sentences of these origins."""
    distinct = set(origins) or {"model"}
    return "mixed" if len(distinct) > 1 else distinct.pop()


def _version(sentence: TextTranslation, rank: int) -> str:
    """Return the sentence's part of a text's k-th version: its own k-th, or its best if it has fewer."""
    return sentence.versions[rank if rank < len(sentence.versions) else 0]


async def translate_tagged(
    task: RequestTask, served: AnyServed, texts: Sequence[str], elements: Elements | None = None, context: str = ""
) -> list[TextTranslation]:
    """Translate HTML (whole pages or fragments) or XML fragments; everything but the text stays as it is.

    Args:
        task: the task of the request.
        served: the translator.
        texts: texts with tags, each of which is a short document.
        elements: describes the elements of XML; None for HTML.
        context: the text before each text, for a run with document context.

    Raises:
        UserError: a text can't be parsed.
        ApiError: 400, XML can't be parsed; 503, the server is busy, or the translation took too long.
        ClientLeft: the client has disconnected.
    """

    def read(text: str) -> Document:
        if elements is not None:
            return _fragment(text, elements)
        # The byte order mark overrides an encoding that the page declares.
        return read_document("text.html", BOM_UTF8 + text.encode(), (served.source, served.target))

    task.count(served, texts)
    return await task.run(lambda: fill(served, list(map(read, texts)), context))


def _fragment(text: str, elements: Elements) -> XmlFragment:
    try:
        return XmlFragment(text, elements)
    except UserError as error:
        raise ApiError(400, f"Tag handling parsing failed, please check input: {error}") from error


FEW_LETTERS, SURE = 12, 90.0
"""The language of a text with fewer letters counts as detected only with at least this percentage."""
ELSEWHERE = 0.5
"""If a language that is not served has at least this probability, the text is in none of the served ones."""


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, the most probable first.

    Args:
        text: the text.
        languages: the codes of the candidates; those that the language identifier does not know have probability 0.
    """
    return _among(_probabilities(text), languages)


def detect_sources(texts: Sequence[str], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return for each text the language from which to translate it, and its probability in percent.

    The language of a text that is too short, or in a language that is not served, is the first one, with 0 percent.

    Args:
        texts: the texts.
        languages: the codes of the candidates, at least one.
    """
    detected = []
    for text in texts:
        probabilities = _probabilities(text)
        code, percent = _among(probabilities, languages)[0]
        most_probable = max(probabilities, key=lambda language: probabilities[language], default="")
        not_served = probabilities.get(most_probable, 0.0) >= ELSEWHERE and most_probable not in map(
            short_code, languages
        )
        is_unsure = sum(map(str.isalpha, text)) < FEW_LETTERS and percent < SURE
        if not_served or is_unsure:
            code, percent = languages[0], 0.0
        detected.append((code, percent))
    return detected


async def translate_from_any(
    task: RequestTask,
    texts: Sequence[str],
    source: str | None,
    target: str,
    translate: Callable[[AnyServed, list[str]], Awaitable[list[Result]]],
    unchanged: Callable[[str], Result],
) -> tuple[list[tuple[str, float]], list[Result]]:
    """Translate texts, each from its own language; return their languages and the results, in order.

    The languages are those of `detect_sources`; a source that is given has 100 percent.

    Args:
        task: the task of the request.
        texts: the texts.
        source: the language of all texts; that of each text is detected if None.
        target: the target language.
        translate: translates texts of one language.
        unchanged: returns the result of a text that is in the target language already.

    Raises:
        ApiError: 400, no model translates from a language to the target.
    """
    catalog = task.context.catalog
    if source is None:
        languages = await run_in_threadpool(detect_sources, texts, catalog.candidates(target))
    else:
        languages = [(source, 100.0)] * len(texts)
    codes = [code for code, _ in languages]

    async def translate_language(code: str, batch: list[str]) -> list[Result]:
        if code == target and code in catalog.languages:
            return [unchanged(text) for text in batch]
        return await translate(task.with_memory(catalog.find(code, target)), batch)

    return languages, await by_language(texts, codes, translate_language)


def _probabilities(text: str) -> dict[str, float]:
    """Return the probabilities of all languages, by short code; none for a text without letters."""
    if not any(map(str.isalpha, text)):
        return {}
    return language_probabilities(text[:2000])  # enough to tell, and a limit to the time


def _among(probabilities: dict[str, float], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Return the languages with their probabilities in percent, renormalized over these languages."""
    short_codes = list(map(short_code, languages))
    total = sum(probabilities.get(short, 0.0) for short in set(short_codes)) or 1.0
    percentages = [100 * probabilities.get(short, 0.0) / total for short in short_codes]
    return sorted(zip(languages, percentages, strict=True), key=lambda item: -item[1])
