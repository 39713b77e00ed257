"""The steps from texts to a model's input and back, in the same order for all callers.

    text -> sentences -> placeholders masked -> terms and near matches added -> ids -> sentences before it added
    text <- sentences joined <- placeholders put back <- ids decoded

Joining is the inverse of segmentation, unmasking of masking, decoding of encoding. The tokenizer adds the pieces of a
language before the ids. Terms and near matches are for the model alone; `unmask` removes what is left of them from the
output. A new feature is a `TextStep` or another method here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

from translucid.data.document_context import ContextOptions, preceding
from translucid.data.non_translatable import stands_alone
from translucid.data.placeholders import Masked
from translucid.data.readers.corpus import Pair
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
    """The number of tokens of the text or sentence that was too long and was therefore cut; 0 if it was not."""
    masked: Masked = field(default=Masked("", {}), repr=False)
    """The text that the ids encode, and the parts that its placeholders stand for."""
    before: tuple[tuple[int, ...], ...] = ()
    """The source tokens of the sentences before the piece that the model reads too, if it has document context."""


def translatable(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that the model translates."""
    return [piece for piece in pieces if piece.ids]


class EncodedPair(NamedTuple):
    """The ids of a source and of a translation of it, for forced decoding."""

    source: list[int]
    """The source ids, end token included."""
    target: list[int]
    """The target ids, end token included."""
    masked: Masked
    """The source text."""

    @property
    def ids(self) -> tuple[list[int], list[int]]:
        """The ids of both sides."""
        return self.source, self.target

    @property
    def longest(self) -> int:
        """The number of tokens of the longer side."""
        return max(len(self.source), len(self.target))


class TextStep(Protocol):
    """A step that adds something for the model to a text, such as the translation of a term."""

    def apply(self, text: str, shown: str) -> str:
        """Return the model's input; `shown` if there is nothing to add.

        Args:
            text: the masked source.
            shown: the output of the step before.
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
    context: ContextOptions | None = None
    """How a sentence is joined to those before it in its document, if the model has learned that."""

    def showing(self, *steps: TextStep) -> TextPipeline:
        """Return the pipeline with these steps after its other ones."""
        return replace(self, steps=(*self.steps, *steps))

    def pieces(
        self, texts: Sequence[str], *, split: bool, before: Sequence[Sequence[str]] | None = None
    ) -> list[list[Piece]]:
        """Return the pieces of each text in order; a blank text has none.

        Args:
            texts: the source texts.
            split: whether to cut texts into sentences, and to copy those that have nothing to translate; otherwise,
                only texts that are too long are cut.
            before: for each text, the texts before it in its document, for a model with document context.
        """
        pieces = self.pieces_of([self._parts(text, split=split) for text in texts], split=split)
        if not self.context:
            return pieces
        return self._with_context(texts, pieces, before or [()] * len(texts), split=split)

    def pieces_of(self, texts: Sequence[Sequence[tuple[str, str]]], *, split: bool) -> list[list[Piece]]:
        """Return the pieces of texts whose sentences are known, each with the white space after it; see `pieces`.

        They have no document context.
        """
        parts = []
        for sentences in texts:
            parts.append([(sentence, after, self.tokenizer.mask(sentence)) for sentence, after in sentences])
        # One call for all texts, because SentencePiece encodes them in several threads.
        masked_texts = [masked.text for _, _, masked in chain.from_iterable(parts)]
        encoded = iter(self.tokenizer.encode_source(masked_texts))
        pieces: list[list[Piece]] = []
        for of_text in parts:
            pieces.append([])
            for part, after, masked in of_text:
                ids = next(encoded)
                if split and stands_alone(part):
                    pieces[-1].append(Piece(part, [], after, masked=Masked(part, {})))
                elif len(ids) < self.longest:
                    pieces[-1].append(Piece(part, [*ids, SPECIAL.end], after, masked=masked))
                else:
                    pieces[-1] += self._cut(masked, ids, after, split=split)
        return pieces

    def read(self, pieces: Sequence[Piece]) -> list[list[int]]:
        """Return the ids that the model reads: those of the pieces, with the additions of the steps and the context.

        A step is skipped if its output would be too long for the model, or if the text has unknown pieces. The context
        is cut off at its front where it is too long.
        """
        read = []
        for piece in pieces:
            ids = self._shown(piece) if self.steps else piece.ids
            read.append([*self.context_ids(piece, len(ids)), *ids])
        return read

    def context_ids(self, piece: Piece, length: int | None = None) -> list[int]:
        """Return the ids before those of a piece, of which the model reads this many; by default, `piece.ids`."""
        return self.joined(piece.before, length or len(piece.ids))

    def joined(self, before: Sequence[Sequence[int]], length: int) -> list[int]:
        """Return the ids that the model reads before a sentence of this many tokens; `before` is that of `Piece`."""
        return self.context.context(before, length) if self.context and before else []

    def before(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Return the ids of the sentences of texts, for a sentence after them; see `Piece.before`."""
        sentences: list[tuple[int, ...]] = []
        for pieces in self.pieces_of([self._parts(text, split=True) for text in texts], split=True):
            sentences += self._sentences(pieces)
        return tuple(sentences)

    def text(self, piece: Piece, tokens: Sequence[int]) -> str:
        """Return the text of a translation of a piece, with its placeholders put back."""
        return piece.masked.unmask(self.tokenizer.decode(tokens))

    def join(self, pieces: Sequence[Piece], translations: Sequence[Sequence[int]]) -> str:
        """Return the translation of a whole text.

        Args:
            pieces: all pieces of the text.
            translations: the target tokens of those pieces that have ids.
        """
        remaining = iter(translations)
        written = []
        for piece in pieces:
            text = self.text(piece, next(remaining)) if piece.ids else piece.text
            written += [text, piece.after]
        return "".join(written).strip()

    def encode(self, source: str) -> Piece:
        """Return a source of any length as one piece."""
        masked = self.tokenizer.mask(source)
        (ids,) = self.tokenizer.encode_source([masked.text])
        return Piece(source, [*ids, SPECIAL.end], "", masked=masked)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        """Encode sources and their translations, each as one piece.

        The same vocabulary piece masks a part on both sides, as in the training data.
        """
        masked = [self.tokenizer.mask(source) for source, _ in pairs]
        targets = []
        for source, (_, target) in zip(masked, pairs, strict=True):
            targets.append(source.mask_target(target))
        source_ids = self.tokenizer.encode_source([source.text for source in masked])
        target_ids = self.tokenizer.encode_target(targets)
        encoded = []
        for source, of_source, of_target in zip(masked, source_ids, target_ids, strict=True):
            encoded.append(EncodedPair([*of_source, SPECIAL.end], [*of_target, SPECIAL.end], source))
        return encoded

    def contexts(self, pairs: Sequence[Pair], encoded: Sequence[EncodedPair]) -> list[list[int]]:
        """Return the ids that the model reads before the source of each pair: those of the pairs before it."""
        if not self.context:
            return [[] for _ in pairs]
        contexts = []
        for i, count in enumerate(preceding(pair.document for pair in pairs)):
            before = [pair.source[:-1] for pair in encoded[i - min(count, self.context.most) : i]]
            contexts.append(self.context.context(before, len(encoded[i].source)))
        return contexts

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
        first = 0
        while (left := len(ids) - first) > limit:
            parts = -(-left // limit)
            cut = -(-left // parts)
            # Cut before the last word that begins in the second half of the part.
            pieces = self.tokenizer.source_pieces(ids[first : first + cut + 1])
            for place in range(cut, max(cut // 2, 1) - 1, -1):
                if pieces[place].startswith(SPACE):
                    cut = place
                    break
            chunks.append(ids[first : first + cut])
            first += cut
        return [*chunks, ids[first:]]

    def _parts(self, text: str, *, split: bool) -> list[tuple[str, str]]:
        """Return the parts of a text, each with the white space after it."""
        if not text.strip():
            return []
        return split_sentences(text, self.language) if split else [(text, "")]

    def _with_context(
        self, texts: Sequence[str], pieces: Sequence[list[Piece]], before: Sequence[Sequence[str]], *, split: bool
    ) -> list[list[Piece]]:
        """Return pieces with the sentences before each: those of its own text and those of the texts before it."""
        assert self.context
        known = dict(zip(texts, map(self._sentences, pieces), strict=True))
        others = [text for text in dict.fromkeys(chain.from_iterable(before)) if text not in known]
        of_others = self.pieces_of([self._parts(text, split=split) for text in others], split=split)
        known |= zip(others, map(self._sentences, of_others), strict=True)
        joined = []
        for text, of_text, earlier in zip(texts, pieces, before, strict=True):
            sentences: list[tuple[int, ...]] = []
            for earlier_text in earlier:
                sentences += known[earlier_text]
            first = len(sentences)
            sentences += known[text]
            for i, piece in enumerate(of_text, first):
                of_text[i - first] = replace(piece, before=tuple(sentences[max(i - self.context.most, 0) : i]))
            joined.append(of_text)
        return joined

    def _sentences(self, pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
        """Return the ids of pieces without end tokens, also of those that are copied."""
        sentences = []
        for piece in pieces:
            ids = piece.ids[:-1] or self.tokenizer.encode_source([piece.text])[0]
            sentences.append(tuple(ids))
        return sentences

    def _cut(self, masked: Masked, ids: list[int], after: str, *, split: bool) -> list[Piece]:
        """Cut a text that is too long into its sentences, and sentences that are too long between words."""
        cut = len(ids) + 1
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
                of_chunk = masked._replace(text=text)
                pieces.append(Piece(masked.unmask(text), [*source, SPECIAL.end], gap, cut, of_chunk))
        return pieces

    def _shown(self, piece: Piece) -> list[int]:
        """Return the ids of a piece with the additions of the steps."""
        shown, ids = piece.masked.text, piece.ids
        if SPECIAL.unknown in ids:
            return ids
        for step in self.steps:
            longer = step.apply(piece.masked.text, shown)
            if longer == shown:
                continue
            (encoded,) = self.tokenizer.encode_source([longer])
            if len(encoded) < self.longest:
                shown, ids = longer, [*encoded, SPECIAL.end]
        return ids
