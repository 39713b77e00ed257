"""The terms in sources and in translations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translucid.data.text_pipeline import TextPipeline
from translucid.terminology.links import TermLink
from translucid.terminology.matching import Match, TermList, TermUse, terms_in

if TYPE_CHECKING:
    from translucid.api.translation import Translation


class TermReader:
    """Finds terms in sources and in translations."""

    pipeline: TextPipeline
    terms: TermList | None = None
    """The terms that translations have to use, if any."""

    def terms_in(self, text: str) -> list[Match]:
        """Return the terms in a text, in order."""
        return terms_in(self.terms, text) if self.terms else []

    def term_uses(self, translation: Translation) -> list[TermUse]:
        """Return the use of each term of a text in its translation, in order."""
        uses: list[TermUse] = []
        if self.terms:
            translated = iter(translation.parts)
            for piece in translation.pieces:
                text = piece.text  # a piece without words is copied
                if piece.ids:
                    _, hypothesis = next(translated)
                    text = self.pipeline.text(piece, hypothesis.tokens)
                uses += self.terms.uses(self.terms_in(piece.text), text)
        return uses

    def term_links(self, source: str, target: str) -> list[TermLink]:
        """Return the position of each term in a source together with that of its target in the translation."""
        if not self.terms:
            return []
        matches = self.terms_in(source)
        links = []
        for match, there in zip(matches, self.terms.occurrences(matches, target), strict=True):
            if there:
                links.append(TermLink((match.start, match.end), (there.start, there.end)))
        return links
