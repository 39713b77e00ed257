"""Texts to what a model reads, and back: one step for each feature, in one order, whoever asks.

    text -> sentences -> placeholders masked -> terms and near matches shown -> ids
    text <- sentences joined <- placeholders put back <- ids decoded

`segment` has `join` as its inverse, `mask` has `unmask`, encoding has decoding; what names a language stands before the
ids, as the tokenizer says. What is shown besides the text is for the model alone, and `unmask` removes what is left of
it. A feature adds a step here: a `TextStep`, or one of the methods below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

from translucid.data.non_translatable import stands_alone
from translucid.data.placeholders import Masked
from translucid.data.sentences import split_sentences
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL

MOST_PIECES = 1 << 32
"""Pieces of one text are numbered below it."""


@dataclass(frozen=True)
class Piece:
    """A part of a text that is translated in one go: the whole text, a sentence, or part of a long one."""

    text: str
    """Of the source."""
    ids: list[int]
    """Source tokens, end token included; none if it is no text for the model and stays as it is."""
    after: str
    """What stands between it and the next piece."""
    cut: int = 0
    """Tokens of the text or sentence that it is a part of, if that was too long; else 0."""
    masked: Masked = field(default=Masked("", {}), repr=False)
    """The text that the ids encode, and what its placeholders stand for."""


class EncodedPair(NamedTuple):
    """A source and a given translation of it, as a model reads them and is made to write them."""

    source: list[int]
    """Ids, end token included."""
    target: list[int]
    masked: Masked
    """The source."""

    @property
    def ids(self) -> tuple[list[int], list[int]]:
        """Of both."""
        return self.source, self.target

    @property
    def longest(self) -> int:
        """Tokens of the longer side."""
        return max(len(self.source), len(self.target))


class TextStep(Protocol):
    """Shows a model something besides its text, such as how to translate a term."""

    def apply(self, text: str, shown: str) -> str:
        """Return what the model reads; `shown` if there is nothing to add.

        Args:
            text: the masked source.
            shown: what the steps before have made of it.
        """


@dataclass(frozen=True)
class TextPipeline:
    """All that stands between texts and one model."""

    tokenizer: Tokenizer
    longest: int
    """Source tokens that the model takes in one go, end token included."""
    language: str | None = None
    """Code of the source language, if known."""
    steps: tuple[TextStep, ...] = ()
    """What shows the model something besides the text, the first one first."""

    def showing(self, *steps: TextStep) -> TextPipeline:
        """Return the same with these steps behind its own."""
        return replace(self, steps=(*self.steps, *steps))

    def pieces(self, texts: Sequence[str], *, split: bool) -> list[list[Piece]]:
        """Return the pieces of each text in order; a blank text has none.

        Args:
            texts: any.
            split: cut them into sentences, and leave what has nothing to translate to no model; otherwise only a text
                that is too long is cut.
        """
        parts = [self._masked_parts(text, split=split) for text in texts]
        # One call for all texts: SentencePiece encodes them in several threads.
        masked_texts = [masked.text for _, _, masked in chain.from_iterable(parts)]
        encoded = iter(self.tokenizer.encode_source(masked_texts))
        found: list[list[Piece]] = []
        for of_text in parts:
            found.append([])
            for part, after, masked in of_text:
                ids = next(encoded)
                if split and stands_alone(part):
                    found[-1].append(Piece(part, [], after, masked=Masked(part, {})))
                elif len(ids) < self.longest:
                    found[-1].append(Piece(part, [*ids, SPECIAL.end], after, masked=masked))
                else:
                    found[-1] += self._cut(masked, ids, after, split=split)
        return found

    def read(self, pieces: Sequence[Piece]) -> list[list[int]]:
        """Return the ids that the model reads: those of the pieces, with what the steps show besides.

        A step is left out where the model could not take what is longer then, or does not know the text itself.
        """
        if not self.steps:
            return [piece.ids for piece in pieces]
        return [self._shown(piece) for piece in pieces]

    def text(self, piece: Piece, tokens: Sequence[int]) -> str:
        """Return the text of a translation of a piece, its placeholders put back."""
        return piece.masked.unmask(self.tokenizer.decode(tokens))

    def join(self, pieces: Sequence[Piece], translations: Sequence[Sequence[int]]) -> str:
        """Return the translation of a whole text, given the tokens of those pieces that the model has translated."""
        coming = iter(translations)
        written = []
        for piece in pieces:
            text = self.text(piece, next(coming)) if piece.ids else piece.text
            written += [text, piece.after]
        return "".join(written).strip()

    def encode(self, source: str) -> Piece:
        """Return a source in one piece, of any length."""
        masked = self.tokenizer.mask(source)
        (ids,) = self.tokenizer.encode_source([masked.text])
        return Piece(source, [*ids, SPECIAL.end], "", masked=masked)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        """Encode sources with given translations, in one piece each.

        What both have is masked by the same piece of the vocabulary, as the model has learned to write it.
        """
        masked = [self.tokenizer.mask(source) for source, _ in pairs]
        targets = [one.mask_target(target) for one, (_, target) in zip(masked, pairs, strict=True)]
        sources = self.tokenizer.encode_source([one.text for one in masked])
        encoded = zip(sources, self.tokenizer.encode_target(targets), masked, strict=True)
        return [EncodedPair([*source, SPECIAL.end], [*target, SPECIAL.end], one) for source, target, one in encoded]

    def warnings(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """Say what was too long for the model."""
        for tokens in dict.fromkeys(piece.cut for piece in pieces if piece.cut):
            yield f"long: {tokens} tokens are more than the model takes ({self.longest}), translated in pieces"

    def chunks(self, ids: list[int]) -> list[list[int]]:
        """Cut ids, without an opening, that are too long for the model into equal parts, between words if possible."""
        limit = self.longest - 1 - len(self.tokenizer.source_opening)
        chunks = []
        first = 0
        while (left := len(ids) - first) > limit:
            parts = -(-left // limit)
            cut = -(-left // parts)
            pieces = self.tokenizer.source_pieces(ids[first : first + cut + 1])
            starts = [i for i in range(cut // 2, cut + 1) if i and pieces[i].startswith(SPACE)]
            cut = starts[-1] if starts else cut
            chunks.append(ids[first : first + cut])
            first += cut
        return [*chunks, ids[first:]]

    def _masked_parts(self, text: str, *, split: bool) -> list[tuple[str, str, Masked]]:
        """Return parts of a text, each with the white space after it, and masked."""
        if not text.strip():
            return []
        parts = split_sentences(text, self.language) if split else [(text, "")]
        return [(part, after, self.tokenizer.mask(part)) for part, after in parts]

    def _cut(self, masked: Masked, ids: list[int], after: str, *, split: bool) -> list[Piece]:
        """Cut what is too long: a text first into its sentences, a sentence between words."""
        cut = len(ids) + 1
        if not split:
            sentences = split_sentences(masked.text, self.language)
            encoded = self.tokenizer.encode_source([sentence for sentence, _ in sentences])
        else:
            sentences, encoded = [(masked.text, after)], [ids]
        pieces = []
        for (_, behind), whole in zip(sentences, encoded, strict=True):
            opening = list(self.tokenizer.source_opening)
            chunks = [opening + chunk for chunk in self.chunks(whole[len(opening) :])]
            gaps = [" "] * (len(chunks) - 1) + [behind]
            for chunk, gap in zip(chunks, gaps, strict=True):
                text = self.tokenizer.decode_source(chunk)
                of_chunk = masked._replace(text=text)
                pieces.append(Piece(masked.unmask(text), [*chunk, SPECIAL.end], gap, cut, of_chunk))
        return pieces

    def _shown(self, piece: Piece) -> list[int]:
        """Return the ids of a piece with what the steps show."""
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
