"""The steps from texts to a model's input and back, in the same order for all callers.

    text -> sentences -> placeholders masked -> capitals in lower case -> terms and near matches added -> ids
        -> sentences before it added
    text <- sentences joined <- placeholders put back <- ids decoded

Joining is the inverse of segmentation, unmasking of masking, decoding of encoding. The tokenizer adds the pieces of a
language before the ids. Terms and near matches are for the model alone; `unmask` removes what is left of them from the
output. Add a new feature as a `TextStep` or as another method here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

from bitext.pair import Pair
from bitext.protected_spans import PlaceholderSyntax, is_non_translatable, kept_parts, with_patterns
from bitext.words import without_edges, without_invisible
from translucid.data.capitals import in_lower_case, put_in_capitals
from translucid.data.document_context import ContextOptions, Source, as_source, preceding
from translucid.data.placeholders import Masked
from translucid.data.sentences import split_sentences
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL


@dataclass(frozen=True)
class Piece:
    """A part of a text that is translated at once: the whole text, a sentence, or a part of a long sentence."""

    text: str
    """The source text of the piece."""
    ids: list[int]
    """The source tokens, end token included; empty if there is nothing to translate and the text is copied."""
    after: str
    """The text between this piece and the next one."""
    cut: int = 0
    """The number of tokens of the text or sentence from which the piece was cut, if it was too long; otherwise 0."""
    masked: Masked = field(default=Masked("", {}), repr=False)
    """The text that the ids encode, and the parts that its placeholders stand for."""
    before: tuple[tuple[int, ...], ...] = ()
    """The source tokens of the sentences before the piece that the model reads too, if it has document context."""
    in_capitals: bool = False
    """Whether the text is in capitals, which the translation gets too, and the ids encode its lower case."""


def translatable(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that the model translates."""
    return [piece for piece in pieces if piece.ids]


class EncodedPair(NamedTuple):
    """The ids of a source and of a translation of it, for forced decoding."""

    source: list[int]
    """The source ids, end token included."""
    target: list[int]
    """The target ids, end token included."""
    masked: Masked | None = None
    """The source text, to show it in place of placeholders and unknown pieces."""
    context: Sequence[int] = ()
    """The ids that the model reads before the source: the sentences before it in its document."""

    @property
    def ids(self) -> tuple[list[int], list[int]]:
        """The ids of both sides."""
        return self.source, self.target

    @property
    def input_ids(self) -> tuple[list[int], list[int]]:
        """The source ids that the model reads, with the context, and the target ids."""
        return [*self.context, *self.source], self.target

    @property
    def longest(self) -> int:
        """The number of tokens of the longer side."""
        return max(len(self.source), len(self.target))


class TextStep(Protocol):
    """A step that adds something for the model to a text, such as the translation of a term."""

    def apply(self, text: str, model_text: str) -> str:
        """Return the text that the model reads; `model_text` if there is nothing to add.

        Args:
            text: the masked source.
            model_text: the output of the step before.
        """


@dataclass(frozen=True)
class TextPipeline:
    """All steps between texts and one model."""

    tokenizer: Tokenizer
    longest: int
    """The most source tokens that the model reads at once, end token included."""
    language: str | None = None
    """The code of the source language, if known."""
    steps: tuple[TextStep, ...] = ()
    """The steps that add something to the text, in order."""
    protected: tuple[str, ...] = ()
    """The patterns of a user for parts that a translation must keep."""
    context: ContextOptions | None = None
    """How a sentence is joined to those before it in its document, if the model has learned that."""

    def with_steps(self, *steps: TextStep) -> TextPipeline:
        """Return the pipeline with these steps after its other ones."""
        return replace(self, steps=(*self.steps, *steps))

    def mask(self, text: str) -> Masked:
        """Return a text with pieces in place of the parts that its translation must keep."""
        return self.tokenizer.mask(text, self.protected)

    def pieces(self, texts: Sequence[str | Source[str]], *, split: bool) -> list[list[Piece]]:
        """Return the pieces of each text in order; a blank text has none.

        Args:
            texts: the source texts; a model with document context also reads the texts before each `Source`.
            split: whether to cut texts into sentences, and to copy those that have nothing to translate; otherwise,
                only texts that are too long are cut.
        """
        sources = list(map(as_source, texts))
        parts = [self._parts(source.text, split=split) for source in sources]
        if not self.context:
            return self.pieces_of(self._with_edges(parts) if split else parts, split=split)
        return self._with_context(sources, self.pieces_of(parts, split=split), split=split)

    def pieces_of(self, texts: Sequence[Sequence[tuple[str, str]]], *, split: bool) -> list[list[Piece]]:
        """Return the pieces of texts whose sentences are known, each with the white space after it; see `pieces`.

        They have no document context.
        """
        syntax = with_patterns(PlaceholderSyntax.prose, self.protected)
        parts = []
        for sentences in texts:
            parts.append([(sentence, after, self._masked(sentence, split=split)) for sentence, after in sentences])
        # One call for all texts, because SentencePiece encodes them in several threads.
        masked_texts = [masked.text for _, _, masked in chain.from_iterable(parts)]
        lower_case = in_lower_case(masked_texts, self.tokenizer, self.language, syntax) if split else {}
        styles = {text: style for text, (_, style) in lower_case.items()}
        model_texts = [lower_case[text][0] if text in lower_case else text for text in masked_texts]
        encoded = iter(zip(model_texts, self.tokenizer.encode_source(model_texts), strict=True))
        pieces: list[list[Piece]] = []
        for text_parts in parts:
            pieces.append([])
            for part, after, masked in text_parts:
                text, ids = next(encoded)
                in_capitals = styles.get(masked.text) == "capitals"
                masked = masked._replace(text=text)
                if split and is_non_translatable(part, syntax):
                    pieces[-1].append(Piece(part, [], after, masked=Masked(part, {})))
                elif len(ids) < self.longest:
                    pieces[-1].append(Piece(part, [*ids, SPECIAL.end], after, masked=masked, in_capitals=in_capitals))
                else:
                    for piece in self._cut(masked, ids, after, split=split):
                        pieces[-1].append(replace(piece, in_capitals=in_capitals))
        return pieces

    def sentence(self, text: str) -> list[Piece]:
        """Return the pieces of a text that is one sentence; see `pieces`. They have no document context."""
        parts = [[(text, "")]]
        return self.pieces_of(parts if self.context else self._with_edges(parts), split=True)[0]

    def inputs(self, pieces: Sequence[Piece]) -> list[list[int]]:
        """Return the ids that the model reads: those of the pieces, with the additions of the steps and the context.

        A step is skipped if its output would be too long for the model, or if the text has unknown pieces. A context
        that is too long is cut off at the front.
        """
        inputs = []
        for piece in pieces:
            ids = self.with_additions(piece) if self.steps else piece.ids
            inputs.append([*self.context_ids(piece, len(ids)), *ids])
        return inputs

    def context_ids(self, piece: Piece, length: int | None = None) -> list[int]:
        """Return the context ids of a piece, for an input of `length` tokens; by default, that of `piece.ids`."""
        return self.joined(piece.before, length or len(piece.ids))

    def joined(self, before: Sequence[Sequence[int]], length: int) -> list[int]:
        """Return the context ids of a sentence of `length` tokens; `before` is as in `Piece`."""
        return self.context.context(before, length) if self.context and before else []

    def before(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the ids of the sentences of texts that precede a sentence, as in `Piece.before`."""
        sentences: list[tuple[int, ...]] = []
        for pieces in self.pieces_of([self._parts(text, split=True) for text in texts], split=True):
            sentences += self._sentences(pieces)
        return tuple(sentences)

    def text(self, piece: Piece, tokens: Sequence[int]) -> str:
        """Return the text of a translation of a piece, with its placeholders put back."""
        return self.written(piece, self.tokenizer.decode(tokens))

    def written(self, piece: Piece, text: str) -> str:
        """Return what the model wrote for a piece, with its placeholders put back, in capitals if the piece is."""
        text = piece.masked.unmask(text)
        return put_in_capitals(text, piece.masked.syntax) if piece.in_capitals else text

    def join(self, pieces: Sequence[Piece], translations: Sequence[Sequence[int]]) -> str:
        """Return the translation of a whole text, given its pieces and the target tokens of those that have ids."""
        remaining = iter(translations)
        written = []
        for piece in pieces:
            text = self.text(piece, next(remaining)) if piece.ids else piece.text
            written += [text, piece.after]
        return "".join(written).strip()

    def encode(self, source: str) -> Piece:
        """Return a source of any length as one piece."""
        masked = self.mask(source)
        (ids,) = self.tokenizer.encode_source([masked.text])
        return Piece(source, [*ids, SPECIAL.end], "", masked=masked)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        """Encode sources and their translations, each as one piece.

        The same vocabulary piece masks a part on both sides, as in the training data.
        """
        masked = [self.mask(source) for source, _ in pairs]
        targets = []
        for source, (_, target) in zip(masked, pairs, strict=True):
            targets.append(source.mask_target(target))
        source_ids = self.tokenizer.encode_source([source.text for source in masked])
        target_ids = self.tokenizer.encode_target(targets)
        encoded = []
        for source, source_tokens, target_tokens in zip(masked, source_ids, target_ids, strict=True):
            encoded.append(EncodedPair([*source_tokens, SPECIAL.end], [*target_tokens, SPECIAL.end], source))
        return encoded

    def short_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Encode sources and their translations, and return the ids of those pairs that are not too long."""
        return [pair.ids for pair in self.pairs(pairs) if pair.longest <= self.longest]

    def document_pairs(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        """Encode pairs, each after the sources before it in its document if the model has document context."""
        encoded = self.pairs(pairs)
        if not self.context:
            return encoded
        in_context = []
        for i, count in enumerate(preceding(pair.document for pair in pairs)):
            before = [pair.source[:-1] for pair in encoded[i - min(count, self.context.max_sentences) : i]]
            in_context.append(encoded[i]._replace(context=self.joined(before, len(encoded[i].source))))
        return in_context

    def pair(self, piece: Piece, target: list[int]) -> EncodedPair:
        """Return a piece, without the additions of the steps, and target ids, end token included."""
        return EncodedPair(piece.ids, target, piece.masked, self.context_ids(piece))

    def warnings(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """Yield a warning for each text or sentence that was too long for the model."""
        for tokens in dict.fromkeys(piece.cut for piece in pieces if piece.cut):
            yield f"long: {tokens} tokens are more than the model takes ({self.longest}), translated in pieces"

    def chunks(self, ids: list[int]) -> list[list[int]]:
        """Cut ids that are too long for the model into parts of similar length, between words if possible.

        `ids` are without the tokens of `source_opening`, for which the parts leave room.
        """
        limit = self.longest - 1 - len(self.tokenizer.source_opening)
        chunks = []
        start = 0
        while (remaining := len(ids) - start) > limit:
            parts = -(-remaining // limit)
            cut = -(-remaining // parts)
            # Cut before the last word that begins in the second half of the part.
            pieces = self.tokenizer.source_pieces(ids[start : start + cut + 1])
            for position in range(cut, max(cut // 2, 1) - 1, -1):
                if pieces[position].startswith(SPACE):
                    cut = position
                    break
            chunks.append(ids[start : start + cut])
            start += cut
        return [*chunks, ids[start:]]

    def _parts(self, text: str, *, split: bool) -> list[tuple[str, str]]:
        """Return the parts of a text, each with the white space after it."""
        if not text.strip():
            return []
        return split_sentences(text, self.language) if split else [(text, "")]

    def _masked(self, sentence: str, *, split: bool) -> Masked:
        """Return a masked sentence, without invisible characters unless the text must reach the model unchanged."""
        masked = self.mask(sentence)
        return masked._replace(text=without_invisible(masked.text)) if split else masked

    def _with_edges(self, texts: Sequence[Sequence[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
        """Return sentences, each with the white space after it, without the signs at their ends that the model lacks.

        These signs, such as bullets, become parts of their own, which are copied.
        """
        signs = sorted(_edge_signs(chain.from_iterable(texts)))
        unknown = set[str]()
        for sign, ids in zip(signs, self.tokenizer.encode_source(signs), strict=True):
            if SPECIAL.unknown in ids:
                unknown.add(sign)
        if not unknown:
            return [list(sentences) for sentences in texts]
        results: list[list[tuple[str, str]]] = []
        for sentences in texts:
            results.append([])
            for sentence, after in sentences:
                results[-1] += self._cut_edges(sentence, after, unknown)
        return results

    def _cut_edges(self, sentence: str, after: str, unknown: Collection[str]) -> list[tuple[str, str]]:
        """Return a sentence and the unknown signs at its ends, each with the white space after it."""
        start, end = without_edges(sentence, unknown.__contains__)
        # Parts that the model has learned to copy, and parts that continue in the sentence, stay in it.
        for _, part_start, part_end in kept_parts(sentence, with_patterns(PlaceholderSyntax.prose, self.protected)):
            if part_start < start and (part_end > start or self.tokenizer.has_placeholders):
                start = part_start
            if part_end > end and (part_start < end or self.tokenizer.has_placeholders):
                end = max(end, part_end)
        parts: list[tuple[str, str]] = []
        space = ""  # the white space after the part before
        for text in reversed((sentence[:start], sentence[start:end], sentence[end:])):
            if part := text.strip():
                parts.insert(0, (part, text[len(text.rstrip()) :] + (space if parts else after)))
                space = text[: len(text) - len(text.lstrip())]
        return parts

    def _with_context(
        self, sources: Sequence[Source[str]], pieces: Sequence[list[Piece]], *, split: bool
    ) -> list[list[Piece]]:
        """Return pieces with the sentences before each, from its own text and from the texts before it."""
        assert self.context
        texts = [source.text for source in sources]
        sentences_by_text = dict(zip(texts, map(self._sentences, pieces), strict=True))
        earlier_texts = chain.from_iterable(source.before for source in sources)
        other_texts = [text for text in dict.fromkeys(earlier_texts) if text not in sentences_by_text]
        other_pieces = self.pieces_of([self._parts(text, split=split) for text in other_texts], split=split)
        sentences_by_text |= zip(other_texts, map(self._sentences, other_pieces), strict=True)
        result = []
        for source, text_pieces in zip(sources, pieces, strict=True):
            sentences: list[tuple[int, ...]] = []
            for earlier_text in source.before:
                sentences += sentences_by_text[earlier_text]
            start = len(sentences)
            sentences += sentences_by_text[source.text]
            for i, piece in enumerate(text_pieces, start):
                text_pieces[i - start] = replace(
                    piece, before=tuple(sentences[max(i - self.context.max_sentences, 0) : i])
                )
            result.append(text_pieces)
        return result

    def _sentences(self, pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
        """Return the ids of pieces without end tokens, also of those that are copied."""
        sentences = []
        for piece in pieces:
            ids = piece.ids[:-1] or self.tokenizer.encode_source([piece.text])[0]
            sentences.append(tuple(ids))
        return sentences

    def _cut(self, masked: Masked, ids: list[int], after: str, *, split: bool) -> list[Piece]:
        """Cut a text that is too long into its sentences, and sentences that are too long between words."""
        token_count = len(ids) + 1
        sentences, encoded = [(masked.text, after)], [ids]
        if not split:  # the text is not cut into sentences yet
            sentences = split_sentences(masked.text, self.language)
            encoded = self.tokenizer.encode_source([sentence for sentence, _ in sentences])
        opening = list(self.tokenizer.source_opening)
        pieces = []
        for (_, after_sentence), sentence_ids in zip(sentences, encoded, strict=True):
            chunks = self.chunks(sentence_ids[len(opening) :])
            gaps = [" "] * (len(chunks) - 1) + [after_sentence]
            for chunk, gap in zip(chunks, gaps, strict=True):
                source = [*opening, *chunk]
                text = self.tokenizer.decode_source(source)
                chunk_masked = masked._replace(text=text)
                pieces.append(Piece(masked.unmask(text), [*source, SPECIAL.end], gap, token_count, chunk_masked))
        return pieces

    def with_additions(self, piece: Piece) -> list[int]:
        """Return the ids of a piece with the additions of the steps."""
        model_text, ids = piece.masked.text, piece.ids
        if SPECIAL.unknown in ids:
            return ids
        for step in self.steps:
            extended = step.apply(piece.masked.text, model_text)
            if extended == model_text:
                continue
            (encoded,) = self.tokenizer.encode_source([extended])
            if len(encoded) < self.longest:
                model_text, ids = extended, [*encoded, SPECIAL.end]
        return ids


def _edge_signs(sentences: Iterable[tuple[str, str]]) -> set[str]:
    """Return the signs at the ends of sentences, each of which comes with the white space after it."""
    signs = set[str]()
    for sentence, _ in sentences:
        start, end = without_edges(sentence, lambda sign: True)
        signs.update(filter(str.strip, sentence[:start] + sentence[end:]))
    return signs
