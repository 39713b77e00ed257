"""Looking inside a translator: forced decoding of given targets, word alignment, lenses, patching, beam search trees.

PyTorch computes all of it, except word alignments, which NumPy computes where PyTorch is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bitext.pair import Pair
from translucid.api.translation import call_options, text_list
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.inspection.word_weights import Floats, WordWeights
from translucid.inspection.words import content_pieces, word_spans
from translucid.kernels.machine import has_pytorch

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.decoding.maps import AlignmentLayer
    from translucid.decoding.pair_scores import PairScore
    from translucid.decoding.trace import BeamTrace
    from translucid.evaluation.report import ForcedScores
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.lens import DecoderLens, Lens, TunedLens
    from translucid.inspection.patching import Patching


INSPECTED = 256
"""The number of pairs that are inspected together."""


@dataclass(frozen=True)
class Inspector:
    """Looks inside the model of a translator; `Translator.inspector` returns one.

    A text is read by itself, or after the texts of `after`, for a run with document context.
    """

    translator: Translator
    before: tuple[tuple[int, ...], ...] = ()
    """The ids of the sentences before a text (`Piece.before`)."""

    def after(self, context: str | Sequence[str] | None) -> Inspector:
        """Return an inspector of texts that follow a text, or several in order; this one without a context.

        Raises:
            UserError: there is a context, and the run was trained without.
        """
        if context is None:
            return self
        refuse_without_context(self.translator)
        return replace(self, before=self.translator.pipeline.before(text_list(context)))

    @property
    def heads(self) -> dict[str, int]:
        """The number of heads of each of the model's attention maps, by name."""
        return self.translator.configuration.model.maps

    @property
    def has_cross_attention(self) -> bool:
        """Whether the model has cross-attention, without which there is no alignment."""
        return self.translator.configuration.model.has_cross_attention

    @property
    def has_contributions(self) -> bool:
        """Whether the model has contributions and norms: a Transformer, not an ensemble."""
        from translucid.inspection.contributions import has_contributions

        return has_contributions(self.translator.model)

    @property
    def alignment_layer(self) -> AlignmentLayer | None:
        """The alignment layer that `translucid tune alignments` has trained for this model, if there is one."""
        return self.translator.loaded.alignment_layer(self.translator.languages)

    @property
    def tuned_lens(self) -> TunedLens | None:
        """The tuned lens that `translucid tune lens` has trained for this model, if there is one."""
        return self.translator.loaded.tuned_lens(self.translator.languages)

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
        encoded = self.after(context).encoded(pairs)
        results = self.inspect_encoded(encoded, first=first, contributions=contributions)
        return [replace(result, words_read=self.words_read(*pair)) for result, pair in zip(results, pairs, strict=True)]

    def words_read(self, source: str, target: str) -> tuple[list[int], list[int]]:
        """Return how many words the tokenizer reads in each word of a source and of a target."""
        return self.translator.tokenizer.words_read(source), self.translator.tokenizer.words_read(
            target, of_target=True
        )

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        """Return pairs of texts as the model reads them."""
        pipeline, encoded = self.translator.pipeline, []
        for pair in pipeline.pairs(pairs):
            encoded.append(pair._replace(context=pipeline.joined(self.before, len(pair.source))))
        return encoded

    def inspect_encoded(
        self, pairs: Sequence[EncodedPair], *, first: int = 1, contributions: bool = False
    ) -> list[Inspected]:
        """Do the same as `inspect` for pairs that have been encoded."""
        self.refuse_too_long(pairs, first)
        return self.forced_decoding(pairs, contributions, with_context=True)

    def align(self, source: str, target: str) -> list[tuple[int, int]]:
        """Return the word alignment of a text and a translation from elsewhere, by forced decoding.

        It is empty if a text is too long for the model, or the model has no attention.
        """
        (pair,) = self.translator.pipeline.pairs([(source, target)])
        if not self.has_cross_attention or pair.longest > self.translator.pipeline.longest:
            return []
        (weights,) = self.word_weights([pair])
        weights = weights._replace(words_read=self.words_read(source, target))
        return weights.links(both=self.translator.configuration.alignment.both)

    def refuse_too_long(self, pairs: Sequence[EncodedPair], first: int = 1) -> None:
        """Check that the model has positions for all tokens of pairs, which may be longer than those in training.

        Raises:
            UserError: a pair is too long; `first` is the number of the first pair, for the message.
        """
        for number, pair in enumerate(pairs, first):
            if self.translator.model.max_length and pair.longest > self.translator.model.max_length:
                what = f"pair {number} has {pair.longest} tokens, the model takes {self.translator.model.max_length}"
                raise UserError(what, fix="Split it into sentences.")

    def forced_decoding(
        self, pairs: Sequence[EncodedPair], contributions: bool = False, *, with_context: bool = False
    ) -> list[Inspected]:
        """Do the same as `inspect` for pairs of ids.

        Args:
            pairs: ids of sources and targets, each after its context.
            contributions: as for `inspect`; they are also computed if the run reads word alignments from them.
            with_context: whether results include the positions of the context.
        """
        from translucid.inspection.forced_decoding import forced_decoding

        if self.translator.configuration.alignment.reads_contributions(self.alignment_layer is not None):
            contributions = contributions or self.has_contributions
        return forced_decoding(
            self.translator.model,
            self.translator.tokenizer,
            pairs,
            self.translator.device,
            layer=self.alignment_layer,
            run=self.translator.run,
            with_contributions=contributions,
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

        encoded = self.translator.pipeline.document_pairs(pairs)
        id_pairs = [pair.input_ids for pair in encoded if pair.longest <= self.translator.pipeline.longest]
        entropy, correct, tokens = forced_scores(
            self.translator.model,
            id_pairs,
            self.translator.device,
            on_batch=on_done,
            prefix_length=len(self.translator.tokenizer.target_opening),
        )
        forced = ForcedScores(perplexity(-entropy, tokens), correct / tokens, tokens) if tokens else None
        return forced, len(encoded) - len(id_pairs)

    def word_weights(self, pairs: Sequence[EncodedPair], options: AlignmentOptions | None = None) -> list[WordWeights]:
        """Return the weights between the words of each pair, by forced decoding.

        Args:
            pairs: ids of sources and targets, each after its context.
            options: how to read the attention; as the run says by default.

        Raises:
            UserError: without PyTorch, a text has more tokens than positions, or the model is not a Transformer.
        """
        translator = self.translator
        options = options or translator.configuration.alignment
        if has_pytorch():
            return self._weights_by_pytorch(pairs, options)
        loaded = translator.loaded
        transformer, layer = loaded.numpy_transformer, None
        if options.learned:
            layer = loaded.alignment_arrays(translator.languages)
        results = []
        for pair in pairs:
            forced = transformer.forced(*pair.input_ids)
            if layer is None:
                weights = transformer.weights(forced, options)
            else:
                weights = transformer.aligned(forced, pair.target, layer)
            only_content = layer is None and options.method == "content"
            results.append(_merge_pieces(translator.tokenizer, pair, weights[:, len(pair.context) :], only_content))
        return results

    def _weights_by_pytorch(self, pairs: Sequence[EncodedPair], options: AlignmentOptions) -> list[WordWeights]:
        from translucid.inspection.alignment import weights_of
        from translucid.inspection.forced_decoding import forced_decoding

        layer = self.alignment_layer if options.learned else None
        inspected = forced_decoding(
            self.translator.model,
            self.translator.tokenizer,
            pairs,
            self.translator.device,
            layer=layer,
            with_contributions=options.reads_contributions(layer is not None) and self.has_contributions,
        )
        return [weights_of(result, options) for result in inspected]

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
        return all_scored(score_pairs(self.translator.model, self.translator.pipeline, pairs, self.translator.device))

    def lens(
        self,
        source: str,
        target: str | None = None,
        *,
        tuned: bool | None = None,
        context: str | Sequence[str] | None = None,
    ) -> list[Lens]:
        """Return what each decoder layer predicts for each word of a translation, for each piece of the text.

        By default, `target` is the model's own translation, and a tuned lens is used if `tune lens` has trained one.
        `context` is the text before it, as for `translate`.

        Raises:
            UserError: the model is no Transformer, there is no tuned lens, or a text is too long.
        """
        import torch

        from translucid.inspection.lens import read_lens

        inspector, translator = self.after(context), self.translator
        tuned_lens = None if tuned is False else self.tuned_lens
        if tuned and tuned_lens is None:
            fix = "Train one with `fit_lens`."
            raise UserError("the run has no tuned lens", file=translator.run, fix=fix)
        if target is None:
            pairs = inspector._translation(translator, source).encoded
        else:
            pairs = inspector.encoded([(source, target)])
            self.refuse_too_long(pairs)
        lenses = []
        for pair in pairs:
            ids = torch.tensor([pair.input_ids[0]], device=translator.device)
            lenses.append(read_lens(translator.model, translator.tokenizer, ids, pair.target, pair.masked, tuned_lens))
        return lenses

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
        from translucid.inspection.lens import DecoderLens, reading_layer, state_points

        inspector, translator, model = self.after(context), self.translator, self.translator.model
        # Other engines have no attention points, which `reading_layer` needs.
        torch_translator = replace(translator, engine=translator.torch_engine)
        layers = list(state_points(model, "encoder"))
        options, first = call_options(translator.configuration, options, changes)
        translations = []
        for layer in layers:
            with reading_layer(model, layer):
                translation = inspector._translation(torch_translator, text, options, first, split=split)
                translations.append(translation.text)
        return DecoderLens(text, layers, translations)

    def layers_details(self, source: str, target: str) -> dict[str, Any]:
        """Return both lenses of a sentence and its translation as plain values, for pages.

        They are what `Lens.to_json` returns, and under `encoder` what `DecoderLens.to_json` returns.

        Raises:
            UserError: the model is no Transformer, or a text is too long.
        """
        (lens,) = self.lens(source, target)
        return {**lens.to_json(), "encoder": self.decoder_lens(source).to_json()}

    def page_details(self, source: str, target: str) -> dict[str, Any]:
        """Return those details of a sentence and its translation that apply to the model, as `page` takes them."""
        details: dict[str, Any] = {}
        with suppress(UserError):  # recurrent models have no layers that a lens applies to
            details["layers"] = self.layers_details(source, target)
        return details

    def patch(
        self,
        clean: str,
        other: str,
        words: tuple[str, str] | None = None,
        *,
        target: str | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
    ) -> Patching:
        """Return the share of the difference between two runs that each state carries, by layer and word.

        Args:
            clean: a sentence, CLEAN.
            other: a sentence, OTHER, which differs from CLEAN in what is examined.
            words: a word of the translation of CLEAN, and a word in its place, such as `("el", "la")`; by default, the
                first difference of both translations.
            target: a translation of CLEAN; the model's own by default.
            pairs: pairs of words (of CLEAN, of OTHER), counted from 0; by default, those of `pair_words`.

        Raises:
            UserError: the translation of CLEAN lacks the first word, words have no pair, or nothing differs.
        """
        from translucid.inspection.patching import patch

        translator = self.translator
        if target is None:
            target = translator.translate(clean, split=False).text
        other_target = None
        if words is None:
            other_target = translator.translate(other, split=False).text
        return patch(translator.model, translator.pipeline, (clean, other), (target, other_target), words, pairs)

    def contrasting_sentence(self, clean: str, target: str) -> str:
        """Return a sentence to compare with CLEAN: it differs in one word, and so does its translation, if possible.

        The new word is one that the model reads alike: their embeddings are near each other.

        Args:
            clean: a sentence, CLEAN.
            target: its translation.

        Raises:
            UserError: the model has no such sentence.
        """
        from translucid.inspection.patching import similar_sentences

        translator = self.translator
        sentences = similar_sentences(translator.model, translator.tokenizer, clean)
        translations = translator.translate(sentences, split=False, beam=1)
        words = target.split()
        best, best_rank = "", (2, 0)
        for sentence, translation in zip(sentences, translations, strict=True):
            other_words = translation.text.split()
            if other_words == words:
                continue
            differing = sum(first != second for first, second in zip(words, other_words, strict=False))
            rank = int(len(other_words) != len(words)), differing
            if rank < best_rank:
                best, best_rank = sentence, rank
        if not best:
            raise UserError(
                "no similar sentence with another translation was found", fix="Give one that differs in a word."
            )
        return best

    def trace(self, text: str, beam: int, context: str | Sequence[str] | None = None) -> BeamTrace:
        """Translate a text in one piece and return the tree of its beam search; `context` is the text before it.

        Raises:
            UserError: there is nothing to translate, or the text is longer than the model accepts in one piece.
        """
        translator = self.translator
        before = self.after(context).before
        (pieces,) = translator.pipeline.pieces([text], split=False)
        if len(pieces) != 1:
            raise UserError("a beam search is drawn for one sentence only", fix="Give a text that fits in one piece.")
        options = translator.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
        ids = [*translator.pipeline.joined(before, len(pieces[0].ids)), *pieces[0].ids]
        beam_trace, best = translator.torch_engine.traced(ids, options)
        masked = pieces[0].masked
        beam_trace.finish(best.with_end, lambda ids: masked.unmask_pieces(translator.tokenizer.target_pieces(ids)))
        return beam_trace

    def _translation(
        self,
        translator: Translator,
        text: str,
        options: DecodingOptions | None = None,
        first: int | None = None,
        *,
        split: bool = True,
    ) -> Translation:
        """Translate a text after the sentences before it."""
        (pieces,) = translator.pipeline.pieces([text], split=split)
        pieces = [replace(piece, before=(*self.before, *piece.before)) for piece in pieces]
        return next(translator.translate_pieces([text], [pieces], options, first=first))


def refuse_without_context(translator: Translator) -> None:
    """Check that a run was trained to read the sentences before a sentence.

    Raises:
        UserError: it was not.
    """
    if not translator.context:
        fix = "Leave the context out, or train a run with data.context."
        raise UserError("the run was trained without document context", file=translator.run, fix=fix)


def _refuse_one_pair(pairs: Sequence[object]) -> None:
    """Check that the argument is a list of pairs, not one pair: its letters would be mistaken for texts."""
    if isinstance(pairs, str) or any(isinstance(pair, str) for pair in pairs):
        raise TypeError("expected a list of pairs, not one pair: write [(source, target)]")


def _merge_pieces(tokenizer: Tokenizer, pair: EncodedPair, weights: Floats, only_content: bool) -> WordWeights:
    """Merge weights [T, S] between pieces: summed over a source word's pieces, averaged over a target word's.

    With `only_content`, those of content (`content_pieces`) are normalized first, and the others left out.
    """
    source, target, masked, _ = pair
    opening = len(tokenizer.source_opening), len(tokenizer.target_opening)
    source_pieces, target_pieces = tokenizer.source_labels(source), tokenizer.target_labels(target)
    if masked is not None:
        source_pieces = masked.unmask_pieces(tokenizer.source_labels(source, masked.text or None))
        target_pieces = masked.unmask_pieces(target_pieces)
    content = content_pieces(source_pieces, opening[0])
    if only_content and any(content):
        weights = weights * np.array(content, np.float32)
        weights = weights / weights.sum(1, keepdims=True).clip(min=1e-30)
    columns = word_spans(source_pieces, opening[0])[opening[0] : -1]
    rows = word_spans(target_pieces, opening[1])[opening[1] : -1]
    merged = np.zeros((len(rows), len(columns)), np.float32)
    for row, (_, row_start, row_end) in enumerate(rows):
        for column, (_, start, end) in enumerate(columns):
            merged[row, column] = weights[row_start:row_end, start:end].sum(1).mean()
    return WordWeights(columns, rows, merged)
