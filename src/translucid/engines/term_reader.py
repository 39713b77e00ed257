"""What becomes of terms in translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.terminology.links import TermLink
from translucid.terminology.matching import Match, TermList, TermUse, terms_in

if TYPE_CHECKING:
    from translucid.decoding.hypothesis import Hypothesis


class Translated(Protocol):
    """A text, cut into pieces, and what was found for those that the model has translated."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """All of them."""

    @property
    def parts(self) -> Sequence[tuple[Piece, Hypothesis]]:
        """Those that the model has translated."""


class TermReader:
    """Finds terms in sources and in translations."""

    pipeline: TextPipeline
    terms: TermList | None = None
    """The terms that translations have to use; None if there are none."""

    def terms_in(self, text: str) -> list[Match]:
        """Return the terms in a text, in order."""
        return terms_in(self.terms, text) if self.terms else []

    def term_uses(self, found: Translated) -> list[TermUse]:
        """Return what became of the terms of a text, in order."""
        uses: list[TermUse] = []
        if self.terms:
            translated = iter(found.parts)
            for piece in found.pieces:
                text = piece.text
                if piece.ids:
                    text = self.pipeline.text(piece, next(translated)[1].tokens)
                uses += self.terms.uses(self.terms_in(piece.text), text)
        return uses

    def term_links(self, source: str, target: str) -> list[TermLink]:
        """Return where the terms of a source stand in it and in a translation."""
        matches = self.terms_in(source)
        found = self.terms.occurrences(matches, target) if self.terms else []
        links = []
        for match, there in zip(matches, found, strict=True):
            if there:
                links.append(TermLink((match.start, match.end), (there.start, there.end)))
        return links
