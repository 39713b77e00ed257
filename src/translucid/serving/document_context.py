"""The sentences and segments before those of a request, for runs with document context."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from bitext.documents.document import Segment
from bitext.documents.tag_projection import readable
from translucid.data.document_context import lines_before
from translucid.serving.language_pairs import AnyServed
from translucid.serving.layout import Layout


def sentences_before(served: AnyServed, layouts: Iterable[Layout], context: str = "") -> list[tuple[str, ...]]:
    """Return the sentences before each sentence of its text; none for a run without document context.

    `context`: the text before each of the texts.
    """
    before: list[tuple[str, ...]] = []
    options = served.translator.context
    for layout in layouts:
        if not options:
            before += [()] * len(layout.sentences)
            continue
        sentences = [context, *layout.sentences] if context else layout.sentences
        for i in range(len(sentences) - len(layout.sentences), len(sentences)):
            before.append(tuple(sentences[max(i - options.max_sentences, 0) : i]))
    return before


def unknown_sentences(
    served: AnyServed, layout: Layout, known_translations: Container[str]
) -> tuple[list[str], list[tuple[str, ...]] | None]:
    """Return the sentences of a text that are not known, and the sentences before each of them, if they are read."""
    sentences, before = [], []
    for sentence, context in zip(layout.sentences, sentences_before(served, [layout]), strict=True):
        if sentence not in known_translations:
            sentences.append(sentence)
            before.append(context)
    return sentences, before if served.translator.context else None


def segments_before(served: AnyServed, segments: Sequence[Segment], context: str = "") -> list[list[str]] | None:
    """Return the texts before each segment of its document; None for a run without document context.

    `context`: the text before the document.
    """
    options = served.translator.context
    if not options:
        return None
    texts = [readable(segment.source).text for segment in segments]
    return lines_before(texts, options.max_sentences, [context] if context else [])
