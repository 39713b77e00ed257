"""A text cut into what a model translates in one go: its sentences, and parts of those that are too long for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from translucid.data.non_translatable import stands_alone
from translucid.data.placeholders import Hidden
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
    hidden: Hidden = field(default=Hidden("", {}), repr=False)
    """The text as the model reads it, and what its placeholders stand for."""


class Cutter:
    """Cuts texts for one model."""

    def __init__(self, tokenizer: Tokenizer, longest: int, language: str | None) -> None:
        """`longest`: source tokens that the model takes in one go, end token included; `language`: code, if known."""
        self.tokenizer, self.longest, self.language = tokenizer, longest, language

    def pieces(self, texts: Sequence[str], *, split: bool) -> list[list[Piece]]:
        """Return the pieces of each text in order; a blank text has none.

        Args:
            texts: any.
            split: cut them into sentences, and leave what has nothing to translate to no model; otherwise only a text
                that is too long is cut.
        """
        parts = [
            [(part, after, self.tokenizer.hidden(part)) for part, after in self._parts(text, split=split)]
            for text in texts
        ]
        encoded = iter(self.tokenizer.encode_source([hidden.text for of_text in parts for _, _, hidden in of_text]))
        found: list[list[Piece]] = []
        for of_text in parts:
            found.append([])
            for part, after, hidden in of_text:
                ids = next(encoded)
                if split and stands_alone(part):
                    found[-1].append(Piece(part, [], after, hidden=Hidden(part, {})))
                elif len(ids) < self.longest:
                    found[-1].append(Piece(part, [*ids, SPECIAL.end], after, hidden=hidden))
                else:
                    found[-1] += self._cut(hidden, ids, after, split=split)
        return found

    def warnings(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """Say what was too long for the model."""
        for tokens in dict.fromkeys(piece.cut for piece in pieces if piece.cut):
            yield f"long: {tokens} tokens are more than the model takes ({self.longest}), translated in pieces"

    def _parts(self, text: str, *, split: bool) -> list[tuple[str, str]]:
        """Return parts of a text, each with the white space after it."""
        if not text.strip():
            return []
        return split_sentences(text, self.language) if split else [(text, "")]

    def _cut(self, hidden: Hidden, ids: list[int], after: str, *, split: bool) -> list[Piece]:
        """Cut what is too long: a text first into its sentences, a sentence between words."""
        cut = len(ids) + 1
        if not split:
            sentences = split_sentences(hidden.text, self.language)
            encoded = self.tokenizer.encode_source([sentence for sentence, _ in sentences])
        else:
            sentences, encoded = [(hidden.text, after)], [ids]
        pieces = []
        for (_, behind), whole in zip(sentences, encoded, strict=True):
            opening = list(self.tokenizer.source_opening)
            chunks = [opening + chunk for chunk in self.chunks(whole[len(opening) :])]
            gaps = [" "] * (len(chunks) - 1) + [behind]
            for chunk, gap in zip(chunks, gaps, strict=True):
                text = self.tokenizer.decode_source(chunk)
                of_chunk = hidden._replace(text=text)
                pieces.append(Piece(hidden.shown(text), [*chunk, SPECIAL.end], gap, cut, of_chunk))
        return pieces

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
