"""Texts with marks, such as those of a document, translated with the marks kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from translucid.decoding.decoding_options import DecodingOptions
from translucid.documents.document import Target
from translucid.documents.marked import Marked
from translucid.documents.placing import placed
from translucid.translator import WINDOW, Translator


class SegmentTranslator:
    """Translates segments: what a person would hand in and get back."""

    def __init__(self, translator: Translator, options: DecodingOptions | None = None) -> None:
        """Put one together.

        Args:
            translator: for the texts.
            options: how to search; the run's own settings if not given.
        """
        self.translator, self.options = translator, options

    def stream(self, sources: Iterable[Marked], on_done: Callable[[int], None] | None = None) -> Iterator[Target]:
        """Translate any number of texts, in order.

        Args:
            sources: with their marks.
            on_done: called with the number of pieces done after each batch.
        """
        iterator = iter(sources)
        while window := list(islice(iterator, WINDOW)):
            texts = (source.text for source in window)
            for source, found in zip(window, self.translator.stream(texts, self.options, on_done=on_done), strict=True):
                links = found.alignment if source.marks and self.translator.can_look() else []
                yield Target(placed(source, found.text, links), doubts=tuple(found.warnings))
