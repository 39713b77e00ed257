"""Translate texts with tags, such as the segments of a document, and keep the tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from bitext.documents.document import NearMatch, RetrievedWord, Target
from bitext.documents.kept_elements import with_edges, with_separate_words
from bitext.documents.placeholders import PlaceholderStrategy, lost_and_invented_doubts
from bitext.documents.tag_projection import Links, readable
from bitext.documents.tagged_text import TaggedText
from bitext.languages import short_code
from bitext.memory.match import Match
from bitext.memory.translation_memory import Recall
from bitext.words import count_characters
from translucid.api.pivot_translator import AnyTranslation, AnyTranslator
from translucid.api.translation import Translation
from translucid.api.translator import WINDOW, Translator
from translucid.data.document_context import Source, as_source
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.iteration import batched
from translucid.memory.augmenting import MatchAnnotation
from translucid.terminology.matching import certain_links, linked_terms, missing_terms

CAPITAL_NOUNS = frozenset({"de", "lb", "gsw", "bar", "nds"})
"""Languages in which any word may begin with a capital."""


class SegmentTranslator:
    """Translates segments, the parts of a document that a translator works on."""

    def __init__(
        self,
        translator: AnyTranslator,
        options: DecodingOptions | None = None,
        recall: Recall | None = None,
        *,
        near_matches: bool = False,
        retrieved_words: bool = False,
    ) -> None:
        """Translate segments with a translator.

        Args:
            translator: translates the texts.
            options: how to search; the run's own settings by default.
            recall: a translation memory whose matches replace translations; none by default.
            near_matches: whether to return near matches of the memory with each translation.
            retrieved_words: whether to return the words that a memory has changed or supported (`Translator.with_knn`).
        """
        # With a pivot language, neither model knows both languages of the memory.
        if recall and isinstance(translator, Translator):
            translator = shown_matches(translator, recall)
        self.translator = translator
        self.options, self.recall, self.near_matches = options, recall, near_matches
        self.retrieved_words = retrieved_words

    def stream(
        self, sources: Iterable[TaggedText | Source[TaggedText]], on_done: Callable[[int], None] | None = None
    ) -> Iterator[Target]:
        """Translate any number of texts, in order.

        Args:
            sources: the texts with their tags, or sources with the texts before them.
            on_done: called with the number of finished texts after each batch.
        """
        for window in batched(map(self._prepared, sources), WINDOW):
            matches = self._matches(window)
            unmatched = [source for source, match in zip(window, matches, strict=True) if not match]
            strategies, translations = self._translate(unmatched, on_done)
            # The confidences of all texts are computed together, which is faster than one by one.
            results = zip(strategies, self.translator.quality.assessed(translations), strict=True)
            for source, match in zip(window, matches, strict=True):
                if match:
                    yield self._from_memory(source.text, match.target)
                else:
                    yield self._from_model(source.text, *next(results))

    def _prepared(self, source: TaggedText | Source[TaggedText]) -> Source[TaggedText]:
        """Return a text with the patterns of parts that its translation must keep, and with separate words."""
        prepared = as_source(source)
        protected = prepared.text.protecting(self.translator.protected)
        return prepared._replace(text=with_separate_words(protected, self.translator.tokenizer.joins))

    def _matches(self, sources: Sequence[Source[TaggedText]]) -> list[Match | None]:
        """Return for each text the match of the memory that replaces its translation, if there is one."""
        if not self.recall:
            return [None] * len(sources)
        return [self.recall.replacement(readable(source.text).text) for source in sources]

    def _translate(
        self, sources: Sequence[Source[TaggedText]], on_done: Callable[[int], None] | None
    ) -> tuple[list[PlaceholderStrategy], list[AnyTranslation]]:
        """Translate texts; those that lose placeholders are translated again with another strategy."""
        pieces = self.translator.has_placeholders
        strategies: dict[int, PlaceholderStrategy] = {}
        translations: dict[int, AnyTranslation] = {}
        lacks = cache(self.translator.tokenizer.lacks)
        pending: dict[int, PlaceholderStrategy] = {}
        for i, source in enumerate(sources):
            pending[i] = PlaceholderStrategy.first(with_edges(source.text, lacks), pieces=pieces)
        while pending:
            texts = [_for_model(sources[i], strategy) for i, strategy in pending.items()]
            batch = self.translator.stream(texts, self.options, on_done=on_done)
            failed = {}
            for (i, strategy), translation in zip(pending.items(), batch, strict=True):
                strategies[i], translations[i] = strategy, translation
                next_strategy = strategy.after(translation.text)
                if next_strategy:
                    failed[i] = next_strategy
            pending = failed
            on_done = None  # the texts have been counted
        # Both are in the order of the sources: the first attempt adds all of them, later ones replace values.
        return list(strategies.values()), list(translations.values())

    def _from_model(self, source: TaggedText, strategy: PlaceholderStrategy, translation: AnyTranslation) -> Target:
        """Return a translation with the tags and placeholders of its source, and with its warnings."""
        links: Links = []
        warnings = list(translation.warnings)
        if strategy.source.marks and self.translator.inspector.has_cross_attention:
            # Warnings about attention need the same extra pass through the model as the links.
            links = translation.word_weights
            if links:
                warnings += translation.attention_warnings
        tagged = strategy.target(translation.text, links)
        if short_code(self.translator.languages[1] or "") not in CAPITAL_NOUNS:
            tagged = strategy.continued(tagged)
        doubts = []
        for warning in warnings:
            # A placeholder may have stood in for another one, and its length for that of another: only the restored
            # text counts, below and in `Target.within`.
            if warning.partition(":")[0] not in ("lost", "invented", "length"):
                doubts.append(strategy.restored(warning))
        doubts += [*lost_and_invented_doubts(source, tagged), *strategy.doubts]
        alternatives = tuple(self._alternatives(strategy, translation))
        words: list[RetrievedWord] = []
        if self.retrieved_words and isinstance(translation, Translation):
            words = [word._replace(word=strategy.restored(word.word)) for word in translation.retrieved]
        near = self._near(source)
        return Target(tagged, "model", translation.confidence, tuple(doubts), near, alternatives, tuple(words))

    def _alternatives(self, strategy: PlaceholderStrategy, translation: AnyTranslation) -> Iterator[TaggedText]:
        """Yield the other translations that have all placeholders."""
        for text in translation.alternatives[1:]:
            if strategy.after(text) is None:
                yield strategy.target(text, self._links(strategy.source, text))

    def _from_memory(self, source: TaggedText, target: str) -> Target:
        """Return a translation from the memory with the tags and placeholders of its source."""
        strategy = PlaceholderStrategy.of_pair(source, target)
        tagged = strategy.target(target, self._links(strategy.source, target))
        # A person may have written a number in words.
        doubts = [*lost_and_invented_doubts(source, tagged, numbers=False), *strategy.doubts]
        doubts += missing_terms(self.translator.terms, readable(source).text, target)
        return Target(tagged, origin="memory", doubts=tuple(doubts))

    def _links(self, source: TaggedText, target: str) -> Links:
        """Return the word links to a translation from elsewhere, if the source has tags to project."""
        if not source.marks:
            return []
        text = readable(source).text
        links = certain_links(self.translator.inspector.align(text, target))
        return sorted(linked_terms(self.translator.terms, links, text, target))

    def _near(self, source: TaggedText) -> tuple[NearMatch, ...]:
        """Return the near matches of a segment in the memory, if requested."""
        if not (self.recall and self.near_matches):
            return ()
        matches = self.recall.suggestions(readable(source).text)
        return tuple(NearMatch(match.percent, match.entry.source, match.target) for match in matches)


def _for_model(source: Source[TaggedText], strategy: PlaceholderStrategy) -> Source[str]:
    """Return what the model translates, with a limit that leaves room for what is restored."""
    limit = source.max_length
    if limit is not None:
        limit = max(limit - count_characters(source.text.text) + count_characters(strategy.text), 0)
    return Source(strategy.text, source.before, limit)


def complete_alternatives(source: Source[TaggedText], translation: AnyTranslation) -> list[str]:
    """Return the alternatives of a text that have everything that must stay, such as placeholders and numbers."""
    strategy = PlaceholderStrategy.first(source.text)
    return [text for text in translation.alternatives if strategy.after(text) is None]


def shown_matches(translator: Translator, recall: Recall) -> Translator:
    """Return a translator whose model reads near matches, if it was trained with them (data.fuzzy_matches)."""
    threshold = translator.configuration.data.fuzzy_matches
    annotation = MatchAnnotation(recall.memory, threshold)
    if not threshold or annotation in translator.pipeline.steps:
        return translator
    return translator.with_steps(annotation)
