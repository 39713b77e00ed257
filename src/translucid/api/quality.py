"""Quality estimation without references: confidence, probabilities of words, and the checks of a translation.

The figures of the search are used where it has them. CTranslate2 returns no log-probabilities of single tokens: forced
decoding computes them afterwards, as it does attention and passes with dropout.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from translucid.data.text_pipeline import EncodedPair, Piece, translatable
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.stages import Part, SearchStages
from translucid.evaluation.confidence import Estimator, Figures, Kind, Measurements
from translucid.evaluation.quality_checks import QualityChecks
from translucid.kernels.devices import preserve_random_state
from translucid.kernels.machine import has_pytorch

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.inspection.inspected import Inspected
    from translucid.models.protocol import SequenceModel

SEED = 1
"""The seed of the passes with dropout; each sentence starts with it, so that others in its batch do not matter."""


@dataclass(frozen=True)
class QualityEstimation:
    """Estimates the quality of the translations of a translator; `Translator.quality` returns one."""

    translator: Translator

    @property
    def stages(self) -> SearchStages:
        """The stages of a translation."""
        return self.translator.stages

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self.translator.tokenizer

    @property
    def estimator(self) -> Estimator | None:
        """The confidence estimator that `translucid tune confidence` has fitted to this model, if there is one."""
        return self.translator.loaded.confidence(self.translator.languages)[0]

    @property
    def estimator_note(self) -> str:
        """The reason why a fitted estimator is ignored; "" if it is used or there is none."""
        return self.translator.loaded.confidence(self.translator.languages)[1]

    @property
    def has_confidence(self) -> bool:
        """Whether translations have a confidence."""
        return self.estimator is not None

    @property
    def checks(self) -> QualityChecks:
        """The checks of a translation that need no reference."""
        translator = self.translator
        return QualityChecks(
            translator.tokenizer,
            *translator.languages,
            scripts=lambda: translator.loaded.known_scripts,
            protected=translator.protected,
        )

    def confidences(self, translations: Sequence[Translation]) -> list[float | None]:
        """Return the probability that each translation is good; for several sentences, that of the worst.

        It is None without an `estimator`, where nothing was translated, and where retrieval (`Translator.with_knn`) has
        changed the probabilities to which it was fitted. One call for many translations is faster.
        """
        if not (estimator := self.estimator):
            return [None] * len(translations)
        texts: list[list[Part]] = []
        for translation in translations:
            retrieved = any(hypothesis.judged.retrieved for _, hypothesis in translation.parts)
            texts.append([] if retrieved else translation.parts)
        # The model did not choose the terms of a glossary, so that its free translation counts.
        judged = [(piece, hypothesis.judged) for piece, hypothesis in chain.from_iterable(texts)]
        measurements = self.observed(judged, [estimator.kind], estimator.passes)
        values: Iterator[float] = iter(estimator(measurements).tolist())
        confidences: list[float | None] = []
        for parts in texts:
            confidences.append(min(islice(values, len(parts)), default=None))
        return confidences

    def assessed(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations with their `confidence`, computed together, not each when it is first read."""
        batch = list(translations)
        for translation, confidence in zip(batch, self.confidences(batch), strict=True):
            yield translation.assessed(confidence)

    @property
    def _prefix_length(self) -> int:
        """The number of target tokens that the model does not choose, such as a language token."""
        return len(self.tokenizer.target_opening)

    def observed(self, parts: Sequence[Part], kinds: Sequence[Kind], passes: int = 0) -> list[Measurements]:
        """Return the figures of translations.

        Args:
            parts: the pieces and their translations.
            kinds: the kinds of features; see `features.KINDS`.
            passes: the number of passes with dropout, for the kind `dropout`.
        """
        if "attention" in kinds:
            # The sources have no annotations.
            pipeline = self.stages.pipeline
            pairs = [pipeline.pair(piece, hypothesis.with_end) for piece, hypothesis in parts]
            measurements = list(map(self.with_attention, parts, self._inspected(pairs)))
        elif set(kinds) == {"search"}:
            measurements = [self._measurements(part, None) for part in parts]
        else:
            measurements = list(map(self._measurements, parts, self.token_log_probs(parts)))
        if "dropout" not in kinds:
            return measurements
        return [
            replace(sentence, dropout_log_probs=figures)
            for sentence, figures in zip(measurements, self._dropout_log_probs(parts, passes), strict=True)
        ]

    def with_attention(self, part: Part, inspected: Inspected) -> Measurements:
        """Return the figures of a translation, given the result of forced decoding."""
        attention = inspected.cross()[self._prefix_length :].double().numpy()
        if part[0].before:
            # Only the sentence itself counts, not the sentences that the model has read before it.
            attention = attention / np.maximum(attention.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
        log_probs = np.array(inspected.log_probs[self._prefix_length :], np.float64)
        return replace(self._measurements(part, log_probs), attention=attention)

    def _measurements(self, part: Part, log_probs: Figures | None) -> Measurements:
        piece, hypothesis = part
        return Measurements(
            piece.text,
            self.stages.pipeline.text(piece, hypothesis.tokens),
            len(hypothesis.tokens) + 1 - self._prefix_length,
            hypothesis.log_probability,
            log_probs,
            opening=len(self.tokenizer.source_opening),
        )

    def word_probabilities(self, translations: Sequence[Translation]) -> list[list[tuple[str, float]]]:
        """Return the words of each translation, each with the product of the probabilities of its pieces.

        The probability of a piece is that given the source and all pieces before it. Copied text has probability 1.
        """
        return self.words([(translation.pieces, translation.parts) for translation in translations])

    def words(self, texts: Sequence[tuple[Sequence[Piece], Sequence[Part]]]) -> list[list[tuple[str, float]]]:
        """Return the words of each text's translation, each with its probability.

        `texts`: the pieces of each text, and those of them that were translated, with their translations.
        """
        all_parts: list[Part] = []
        free_parts: list[Part] = []
        for _, parts in texts:
            all_parts += parts
            free_parts += [(piece, hypothesis.free) for piece, hypothesis in parts if hypothesis.free]
        scored_parts = zip(all_parts, self.token_log_probs(all_parts), strict=True)
        free_log_probs = iter(self.token_log_probs(free_parts))
        rows: list[list[tuple[str, float]]] = []
        for pieces, _ in texts:
            row: list[tuple[str, float]] = []
            continues = False
            for piece in pieces:
                if piece.ids:
                    (_, hypothesis), log_probs = next(scored_parts)
                    words = self._piece_words(piece, hypothesis, log_probs)
                    if hypothesis.free:
                        words = as_in_free(words, self._piece_words(piece, hypothesis.free, next(free_log_probs)))
                else:  # copied
                    words = [(word, 1.0) for word in piece.text.split()]
                if continues and row and words:  # its first word is a part of the word before it
                    word, probability = row.pop()
                    words[0] = word + words[0][0], probability * words[0][1]
                row += words
                continues = not piece.after
            rows.append(row)
        return rows

    def _piece_words(self, piece: Piece, hypothesis: Hypothesis, log_probs: Figures) -> list[tuple[str, float]]:
        """Return the words of a piece's translation, each with the product of the probabilities of its tokens."""
        from translucid.inspection.words import word_spans

        words: list[tuple[str, float]] = []
        for text, start, end in word_spans(self.tokenizer.target_labels(hypothesis.tokens[self._prefix_length :])):
            is_forced = hypothesis.forced.issuperset(range(self._prefix_length + start, self._prefix_length + end))
            probability = 1.0 if is_forced else float(np.exp(log_probs[start:end].sum()))
            # A placeholder may stand for several words.
            words += [(word, probability) for word in self.stages.pipeline.written(piece, text).split()]
        return words

    def token_log_probs(self, parts: Sequence[Part]) -> list[Figures]:
        """Return the log-probability of each target token [T], the end token's last, without a language token's."""
        unscored = [part for part in parts if not part[1].token_log_probabilities]
        forced = iter(self.stages.engine.forced(self.stages.pairs(unscored)))
        figures = []
        for _, hypothesis in parts:
            log_probs = hypothesis.token_log_probabilities
            # Forced decoding leaves out the tokens that the model does not choose, a search gives them 0.
            log_probs = log_probs[self._prefix_length :] if log_probs else next(forced)
            figures.append(np.array(log_probs, np.float64))
        return figures

    def token_log_probabilities(self, translation: Translation) -> list[list[tuple[str, float]]]:
        """Return the target pieces of each translation in the n-best list, each with its log-probability in nats.

        The pieces of the text's sentences follow one another, each sentence's end token included, but no language
        token. The figures are the model's own, by forced decoding.
        """
        translations = [alternative.hypotheses for alternative in translation.nbest]
        translated_pieces = translatable(translation.pieces)
        parts: list[Part] = []
        for hypotheses in translations:
            parts += zip(translated_pieces, hypotheses, strict=True)
        if not parts:
            return [[] for _ in translations]
        log_probs = iter(self._exact_log_probs(self.stages.pairs(parts)))
        rows = []
        for hypotheses in translations:
            row: list[tuple[str, float]] = []
            for hypothesis in hypotheses:
                tokens = self.tokenizer.target_pieces(hypothesis.with_end)[self._prefix_length :]
                row += zip(tokens, next(log_probs), strict=True)
            rows.append(row)
        return rows

    def _exact_log_probs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token by the model itself; without PyTorch, by the fast engine."""
        if not has_pytorch():
            return self.stages.engine.forced(pairs)
        results = self._inspected([EncodedPair(*pair) for pair in pairs], with_attention=False)
        return [inspected.log_probs[self._prefix_length :] for inspected in results]

    def _inspected(self, pairs: Sequence[EncodedPair], *, with_attention: bool = True) -> list[Inspected]:
        """Return the results of `forced_decoding`, with attention or only with log-probabilities."""
        from translucid.inspection.forced_decoding import forced_decoding

        engine = self.translator.torch_engine
        return forced_decoding(engine.model, self.tokenizer, pairs, engine.device, with_attention=with_attention)

    def _dropout_log_probs(self, parts: Sequence[Part], passes: int) -> list[Figures]:
        """Return the log-probability of each translation in each of N passes with dropout [N]."""
        import torch

        from translucid.decoding.pair_scores import pair_scores

        device, log_probs = self.translator.torch_engine.device, []
        with preserve_random_state(device):
            for pair in self.stages.pairs(parts):
                torch.manual_seed(SEED)
                scores = pair_scores(self._dropout_model, [pair] * passes, device, prefix_length=self._prefix_length)
                log_probs.append(np.array([score.log_probability for score in scores], np.float64))
        return log_probs

    @cached_property
    def _dropout_model(self) -> SequenceModel:
        """The model in training mode; a copy, as other threads may translate with the model meanwhile."""
        return copy.deepcopy(self.translator.torch_engine.model).train()


def as_in_free(words: Sequence[tuple[str, float]], free: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the words of a constrained translation; those of the free one too have their probability there.

    After a word that the model would not choose, it also finds the next words less probable.
    """
    texts, free_texts = [word for word, _ in words], [word for word, _ in free]
    probabilities = [probability for _, probability in words]
    for start, free_start, size in SequenceMatcher(None, texts, free_texts, autojunk=False).get_matching_blocks():
        probabilities[start : start + size] = [probability for _, probability in free[free_start : free_start + size]]
    return list(zip(texts, probabilities, strict=True))
