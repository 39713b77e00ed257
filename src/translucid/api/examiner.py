"""Inspection of a model: forced decoding of given targets, lenses, patching and the tree of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.api.loaded_run import LoadedRun
from translucid.api.translation import text_list, word_weights
from translucid.data.document_context import ContextOptions, sources_before
from translucid.data.text_pipeline import EncodedPair, TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.quality_checks import QualityChecks
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.runs.configuration import Configuration

if TYPE_CHECKING:
    import torch

    from translucid.api.translator import Translator
    from translucid.data.placeholders import Masked
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.decoding.maps import AlignmentLayer
    from translucid.decoding.pair_scores import PairScore
    from translucid.decoding.search import TorchEngine
    from translucid.decoding.trace import BeamTrace
    from translucid.evaluation.confidence import Estimator
    from translucid.evaluation.report import ForcedScores
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.lens import DecoderLens, Lens, TunedLens
    from translucid.inspection.patching import Patching
    from translucid.models.protocol import SequenceModel


INSPECTED = 256
"""The number of pairs that are inspected together."""


@dataclass(frozen=True, eq=False, repr=False)
class Examiner:
    """The methods of a translator that inspect its model, most of them by forced decoding."""

    loaded: LoadedRun
    """The model, and the files fitted to it."""
    configuration: Configuration
    """The configuration of the run, for the languages of this translator."""
    pipeline: TextPipeline
    """Converts texts to the model's input, and its output to texts."""

    @property
    def run(self) -> str:
        """The run folder."""
        return str(self.loaded.folder.path)

    @property
    def languages(self) -> Languages:
        """The codes of the source and target language, where known."""
        return self.configuration.data.languages

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, for its languages."""
        return self.pipeline.tokenizer

    @property
    def longest(self) -> int:
        """The largest number of source tokens, end token included, of a piece of text, as in training."""
        return self.pipeline.longest

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The PyTorch engine, which has the model."""
        return self.loaded.torch_engine_for(self.languages, self.tokenizer)

    @property
    def model(self) -> SequenceModel:
        """The model, in evaluation mode."""
        return self.torch_engine.model

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.torch_engine.device

    @property
    def alignment_layer(self) -> AlignmentLayer | None:
        """The alignment layer that `translucid tune --alignments` has trained for this model, if there is one."""
        return self.loaded.alignment_layer(self.languages)

    @property
    def estimator(self) -> Estimator | None:
        """The confidence estimator that `translucid tune --confidence` has fitted to this model, if there is one."""
        return self.loaded.confidence(self.languages)[0]

    @property
    def estimator_note(self) -> str:
        """The reason why a fitted estimator is ignored; "" if it is used or there is none."""
        return self.loaded.confidence(self.languages)[1]

    @property
    def tuned_lens(self) -> TunedLens | None:
        """The tuned lens that `translucid tune --lens` has trained for this model, if there is one."""
        return self.loaded.tuned_lens(self.languages)

    @cached_property
    def quality_checks(self) -> QualityChecks:
        """The checks of a translation that need no reference."""
        return QualityChecks(
            self.tokenizer, *self.languages, scripts=lambda: self.loaded.known_scripts, protected=self.protected
        )

    @property
    def heads(self) -> dict[str, int]:
        """The number of heads of each of the model's attention maps, by name."""
        return self.configuration.model.maps

    @property
    def has_confidence(self) -> bool:
        """Whether translations have a confidence."""
        return self.estimator is not None

    @property
    def has_placeholders(self) -> bool:
        """Whether the vocabularies have the pieces that stand for placeholders."""
        return self.tokenizer.has_placeholders

    @property
    def protected(self) -> tuple[str, ...]:
        """The patterns of parts that a translation must keep (`data.protected`)."""
        return tuple(self.configuration.data.protected)

    def lacks(self, character: str) -> bool:
        """Return whether the vocabulary of the source lacks a character."""
        return SPECIAL.unknown in self.tokenizer.encode_source([character])[0]

    def joins(self, start: str, end: str) -> bool:
        """Return whether two parts of a text are rather one word: together, they have fewer pieces than apart."""
        first, second, whole = map(len, self.tokenizer.encode_source([start, end, start + end]))
        return whole + len(self.tokenizer.source_opening) < first + second

    def can_look(self) -> bool:
        """Whether the model has cross-attention, without which there is no alignment."""
        return self.configuration.model.has_cross_attention

    @property
    def has_contributions(self) -> bool:
        """Whether the model has contributions and norms: a Transformer, not an ensemble."""
        from translucid.inspection.contributions import has_contributions

        return has_contributions(self.model)

    def inspect(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        first: int = 1,
        contributions: bool = False,
        context: str | Sequence[str] | None = None,
    ) -> list[Inspected]:
        """Return the attention and log-probabilities of given targets for given sources, by forced decoding.

        Args:
            pairs: pairs of texts.
            first: the number of the first pair, for messages.
            contributions: whether to compute the contributions of source and target prefix, and norms of attention.
            context: the text before each of the sources, or the texts, in order, for a run with data.context. Its words
                are part of the results (`Inspected.context`).

        Raises:
            TypeError: the argument is one pair.
            UserError: a text is longer than the model accepts in one piece, the model has no contributions, or the run
                was trained without context.
        """
        _refuse_one_pair(pairs)
        encoded, before = self.pipeline.pairs(pairs), self.sentences_before(context)
        results = self.inspect_encoded(encoded, first=first, contributions=contributions, before=before)
        return [replace(result, words_read=self.words_read(*pair)) for result, pair in zip(results, pairs, strict=True)]

    def words_read(self, source: str, target: str) -> tuple[list[int], list[int]]:
        """Return how many words the tokenizer reads in each word of a source and of a target."""
        return self.tokenizer.words_read(source), self.tokenizer.words_read(target, of_target=True)

    def inspect_encoded(
        self,
        pairs: Sequence[EncodedPair],
        *,
        first: int = 1,
        contributions: bool = False,
        before: Sequence[Sequence[int]] = (),
    ) -> list[Inspected]:
        """Do the same as `inspect` for pairs that the text pipeline has encoded; `before` is that of `Piece`."""
        self.refuse_too_long(pairs, first)
        ids = [pair.ids for pair in pairs]
        contexts = [self.pipeline.joined(before, len(pair.source)) for pair in pairs]
        masked = [pair.masked for pair in pairs]
        return self.forced_decoding(ids, masked, contributions, contexts, with_context=True)

    def align(self, source: str, target: str) -> list[tuple[int, int]]:
        """Return the word alignment of a text and a translation from elsewhere, by forced decoding.

        It is empty if a text is too long for the model, or the model has no attention.
        """
        (pair,) = self.pipeline.pairs([(source, target)])
        if not self.can_look() or pair.longest > self.longest:
            return []
        (weights,) = word_weights(self, [pair.ids], [pair.masked])
        weights = weights._replace(words_read=self.words_read(source, target))
        return weights.links(both=self.configuration.alignment.both)

    def refuse_too_long(self, pairs: Sequence[EncodedPair], first: int = 1) -> None:
        """Check that the model has positions for all tokens of pairs, which may be longer than those in training.

        Raises:
            UserError: a pair is too long; `first` is the number of the first pair, for the message.
        """
        for number, pair in enumerate(pairs, first):
            if self.model.max_length and pair.longest > self.model.max_length:
                what = f"pair {number} has {pair.longest} tokens, the model takes {self.model.max_length}"
                raise UserError(what, fix="Split it into sentences.")

    def forced_decoding(
        self,
        pairs: Sequence[tuple[list[int], list[int]]],
        masked: Sequence[Masked] = (),
        contributions: bool = False,
        before: Sequence[list[int]] = (),
        *,
        with_context: bool = False,
    ) -> list[Inspected]:
        """Do the same as `inspect` for pairs of ids, end tokens included.

        Args:
            pairs: ids of sources and targets.
            masked: the masked sources, for display.
            contributions: as for `inspect`; they are also computed if the run reads word alignments from them.
            before: the ids that the model reads before each source (`TextPipeline.context_ids`).
            with_context: whether results include the positions of these ids.
        """
        from translucid.inspection.forced_decoding import forced_decoding

        if self.configuration.alignment.reads_contributions(self.alignment_layer is not None):
            contributions = contributions or self.has_contributions
        return forced_decoding(
            self.model,
            self.tokenizer,
            pairs,
            self.device,
            layer=self.alignment_layer,
            run=self.run,
            masked=masked,
            with_contributions=contributions,
            before=before,
            with_context=with_context,
        )

    def inspect_all(
        self,
        pairs: Sequence[tuple[str, str]],
        on_done: Callable[[int], None] | None = None,
        *,
        contributions: bool = False,
    ) -> Iterator[Inspected]:
        """Do the same as `inspect` for any number of pairs, with the maps of `INSPECTED` in memory.

        `on_done`: called with the number of pairs after each batch.
        """
        for start in range(0, len(pairs), INSPECTED):
            batch = pairs[start : start + INSPECTED]
            yield from self.inspect(batch, first=start + 1, contributions=contributions)
            if on_done:
                on_done(len(batch))

    def forced_scores(
        self, pairs: Sequence[Pair], on_done: Callable[[int], None] | None = None
    ) -> tuple[ForcedScores | None, int]:
        """Return the perplexity and accuracy of given targets, and the number of pairs that are too long.

        The former is None if all are too long.

        Args:
            pairs: pairs of texts, each read after the sources before it in its document if the run has context.
            on_done: called with the number of finished pairs after each batch.
        """
        from translucid.decoding.pair_scores import forced_scores, perplexity
        from translucid.evaluation.report import ForcedScores

        encoded = self.pipeline.pairs(pairs)
        contexts = self.pipeline.contexts(pairs, encoded)
        id_pairs = []
        for context, pair in zip(contexts, encoded, strict=True):
            if pair.longest <= self.longest:
                id_pairs.append(([*context, *pair.source], pair.target))
        entropy, correct, tokens = forced_scores(
            self.model, id_pairs, self.device, on_batch=on_done, prefix_length=len(self.tokenizer.target_opening)
        )
        forced = ForcedScores(perplexity(-entropy, tokens), correct / tokens, tokens) if tokens else None
        return forced, len(encoded) - len(id_pairs)

    @overload
    def score(self, source: str, target: str) -> PairScore: ...
    @overload
    def score(self, source: list[str], target: list[str]) -> list[PairScore]: ...
    def score(self, source: str | list[str], target: str | list[str]) -> PairScore | list[PairScore]:
        """Return the probability of a given translation of a text, or of several.

        Raises:
            TypeError: one argument is a text, and the other a list.
            ValueError: the lists have different lengths.
            UserError: a source is blank, or a text is longer than the model accepts in one piece.
        """
        from translucid.decoding.pair_scores import all_scored, score_pairs

        if isinstance(source, str) and isinstance(target, str):
            return self.score([source], [target])[0]
        if isinstance(source, str) or isinstance(target, str):
            raise TypeError("one source is scored with one target, and a list of sources with a list of targets")
        if len(source) != len(target):
            raise ValueError(f"{len(source)} sources and {len(target)} targets: each source needs one target")
        pairs = list(zip(source, target, strict=True))
        return all_scored(score_pairs(self.model, self.pipeline, pairs, self.device))

    def refuse_without_context(self) -> None:
        """Check that the run was trained to read the sentences before a sentence.

        Raises:
            UserError: it was not.
        """
        if not self.context:
            fix = "Leave the context out, or train a run with data.context."
            raise UserError("the run was trained without document context", file=self.run, fix=fix)

    def sentences_before(self, context: str | Sequence[str] | None) -> tuple[tuple[int, ...], ...]:
        """Return the ids of the sentences of a context; see `Piece.before`.

        Raises:
            UserError: there is a context, and the run was trained without.
        """
        if context is None:
            return ()
        self.refuse_without_context()
        return self.pipeline.before(text_list(context))

    @property
    def context(self) -> ContextOptions | None:
        """How sentences are joined to those before them, if the model has learned that."""
        return self.pipeline.context

    def sources_before(self, pairs: Sequence[Pair]) -> list[list[str]] | None:
        """Return the sources before each pair in its document, for `stream`; None for a run without context."""
        return sources_before(pairs, self.context.max_sentences) if self.context else None

    def lens(
        self,
        source: str,
        target: str | None = None,
        *,
        tuned: bool | None = None,
        context: str | Sequence[str] | None = None,
    ) -> list[Lens]:
        """Return what each decoder layer predicts for each word of a translation, for each piece of the text.

        By default, `target` is the model's own translation, and a tuned lens is used if `tune --lens` has trained one.
        `context` is the text before it, as for `translate`.

        Raises:
            UserError: the model is no Transformer, there is no tuned lens, or a text is too long.
        """
        from translucid.api.lenses import lens

        return lens(_translator(self), source, target, tuned=tuned, before=self.sentences_before(context))

    def decoder_lens(
        self,
        text: str,
        options: DecodingOptions | None = None,
        *,
        split: bool = True,
        context: str | Sequence[str] | None = None,
        **changes: Any,
    ) -> DecoderLens:
        """Return the translations that the decoder writes from each layer of the encoder; arguments as for `translate`.

        Raises:
            UserError: the model is no Transformer, or an option has a wrong name or value.
        """
        from translucid.api.lenses import decoder_lens

        before = self.sentences_before(context)
        return decoder_lens(_translator(self), text, options, split=split, before=before, **changes)

    def patch(self, clean: str, other: str, words: tuple[str, str] | None = None, **options: Any) -> Patching:
        """Return which states carry the difference between two sentences; options are those of `api.patching.patch`."""
        from translucid.api.patching import patch

        return patch(_translator(self), clean, other, words, **options)

    def trace(self, text: str, beam: int, context: str | Sequence[str] | None = None) -> BeamTrace:
        """Translate a text in one piece and return the tree of its beam search; `context` is the text before it.

        Raises:
            UserError: there is nothing to translate, or the text is longer than the model accepts in one piece.
        """
        return trace(_translator(self), text, beam, self.sentences_before(context))


def _translator(examiner: Examiner) -> Translator:
    """Return the same object with its actual type: every examiner is a translator."""
    return cast("Translator", examiner)


def _refuse_one_pair(pairs: Sequence[object]) -> None:
    """Check that the argument is a list of pairs, not one pair: its letters would be mistaken for texts."""
    if isinstance(pairs, str) or any(isinstance(pair, str) for pair in pairs):
        raise TypeError("expected a list of pairs, not one pair: write [(source, target)]")


def trace(translator: Translator, text: str, beam: int, before: Sequence[Sequence[int]]) -> BeamTrace:
    """Translate a text in one piece and return the tree of its beam search; see `Translator.trace`."""
    (pieces,) = translator.pipeline.pieces([text], split=False)
    if len(pieces) != 1:
        raise UserError("a beam search is drawn for one sentence only", fix="Give a text that fits in one piece.")
    options = translator.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
    ids = [*translator.pipeline.joined(before, len(pieces[0].ids)), *pieces[0].ids]
    beam_trace, best = translator.torch_engine.traced(ids, options)
    masked = pieces[0].masked
    beam_trace.finish(best.with_end, lambda ids: masked.unmask_pieces(translator.tokenizer.target_pieces(ids)))
    return beam_trace
