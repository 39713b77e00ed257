"""Texts with marks, such as those of a document, translated with the marks kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from translucid.api.translation import Translation
from translucid.api.translator import WINDOW, Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.documents.document import NearMatch, Target
from translucid.documents.placeholders import PlaceholderStrategy, lost_and_invented_doubts
from translucid.documents.tag_projection import readable
from translucid.documents.tagged_text import TaggedText
from translucid.documents.word_links import Links
from translucid.memory.augmenting import MatchAnnotation
from translucid.memory.recall import Recall
from translucid.terminology.links import with_term_links


class SegmentTranslator:
    """Translates segments: what a person would hand in and get back."""

    def __init__(
        self,
        translator: Translator,
        options: DecodingOptions | None = None,
        recall: Recall | None = None,
        *,
        near_matches: bool = False,
    ) -> None:
        """Put one together.

        Args:
            translator: for the texts.
            options: how to search; the run's own settings if not given.
            recall: a memory whose entries stand in the place of translations; none if not given.
            near_matches: whether translations come with what the memory has that is like their sources.
        """
        self.translator = shown_matches(translator, recall) if recall else translator
        self.options, self.recall, self.near_matches = options, recall, near_matches

    def stream(self, sources: Iterable[TaggedText], on_done: Callable[[int], None] | None = None) -> Iterator[Target]:
        """Translate any number of texts, in order.

        Args:
            sources: with their marks.
            on_done: called with the number of pieces done after each batch.
        """
        iterator = iter(sources)
        while window := list(islice(iterator, WINDOW)):
            known = [self.recall.used(readable(source).text) if self.recall else None for source in window]
            asked = [source for source, match in zip(window, known, strict=True) if not match]
            ways = self._translated(asked, on_done)
            translated = zip(
                (way for way, _ in ways), self.translator.assessed(found for _, found in ways), strict=True
            )
            for source, match in zip(window, known, strict=True):
                if match:
                    yield self._from_memory(source, match.target)
                else:
                    yield self._from_model(source, *next(translated))

    def _translated(
        self, sources: Sequence[TaggedText], on_done: Callable[[int], None] | None
    ) -> list[tuple[PlaceholderStrategy, Translation]]:
        """Translate texts, and those whose placeholders have not come through in another way, until they have."""
        pieces = self.translator.tokenizer.has_placeholders
        waiting = {i: PlaceholderStrategy.first(source, pieces=pieces) for i, source in enumerate(sources)}
        done: dict[int, tuple[PlaceholderStrategy, Translation]] = {}
        while waiting:
            texts = [way.text for way in waiting.values()]
            translations = self.translator.stream(texts, self.options, on_done=on_done)
            done |= {i: (way, found) for (i, way), found in zip(waiting.items(), translations, strict=True)}
            coming = {i: done[i][0].after(done[i][1].text) for i in waiting}
            waiting = {i: way for i, way in coming.items() if way}
            on_done = None  # which has been told of all of them
        return [done[i] for i in range(len(sources))]

    def _from_model(self, source: TaggedText, way: PlaceholderStrategy, found: Translation) -> Target:
        """Return a translation with the marks and placeholders of its source, and what looks wrong in it."""
        links = found.word_weights if way.source.marks and self.translator.can_look() else []
        marked = way.target(found.text, links)
        warnings = [*found.warnings, *(found.attention_warnings if links else [])]
        # What the translator has missed may only have stood in; what counts is in the text that comes out.
        seen = [way.restored(doubt) for doubt in warnings if doubt.partition(":")[0] not in ("lost", "invented")]
        doubts = (*seen, *lost_and_invented_doubts(source, marked), *way.doubts)
        others = tuple(self._alternatives(way, found))
        return Target(marked, "model", found.confidence, doubts, self._near(source), others)

    def _alternatives(self, way: PlaceholderStrategy, found: Translation) -> Iterator[TaggedText]:
        """Yield the other translations in which everything is that has to be."""
        for text in found.alternatives[1:]:
            if way.after(text) is None:
                yield way.target(text, self._links(way.source, text))

    def _from_memory(self, source: TaggedText, target: str) -> Target:
        way = PlaceholderStrategy.of_pair(source, target)
        marked = way.target(target, self._links(way.source, target))
        # A person may have written a number in words.
        doubts = tuple(lost_and_invented_doubts(source, marked, numbers=False))
        return Target(marked, origin="memory", doubts=(*doubts, *way.doubts))

    def _links(self, source: TaggedText, target: str) -> Links:
        """Return the links to a translation that the model has not made, if there are marks to place by them."""
        if not source.marks:
            return []
        text = readable(source).text
        links = [(s, t, 1.0) for s, t in links_between(self.translator, text, target)]
        return with_term_links(links, text, target, self.translator.term_links(text, target))

    def _near(self, source: TaggedText) -> tuple[NearMatch, ...]:
        """Return what the memory has that is like a segment, if that is wanted."""
        found = self.recall.shown(readable(source).text) if self.recall and self.near_matches else []
        return tuple(NearMatch(match.percent, match.entry.source, match.target) for match in found)


def shown_matches(translator: Translator, recall: Recall) -> Translator:
    """Return a translator whose model sees near matches, if it was trained to make use of them (data.fuzzy_matches)."""
    least = translator.configuration.data.fuzzy_matches
    step = MatchAnnotation(recall.memory, least)
    return translator.showing(step) if least and step not in translator.pipeline.steps else translator


def links_between(translator: Translator, source: str, target: str) -> list[tuple[int, int]]:
    """Return the word alignment of a text and a translation that the model has not made; none of a long one.

    Of a model without attention there is none either.
    """
    from translucid.inspection.alignment import read_alignment

    (pair,) = translator.pipeline.pairs([(source, target)])
    if not translator.can_look() or pair.longest > translator.longest:
        return []
    (seen,) = translator.inspect_encoded([pair])
    return list(read_alignment(seen, translator.configuration.alignment))
