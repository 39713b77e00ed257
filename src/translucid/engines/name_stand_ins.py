"""Names that are not to be translated and that the model has never learned: it reads a usual name in their place.

A model that has to copy a name which it can only spell in many small pieces often breaks off, begins anew, or loses the
rest of the sentence. So a name such as `Ana`, which the vocabulary has, or a piece that the model has learned to copy,
stands in for it, and the name is put back into the translation. If that does not come through as often as it should,
another name is tried, and then the sentence as it is, in which terms are forced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from translucid.data.cutting import Piece
from translucid.data.placeholders import name_pattern
from translucid.data.reserved import PLACEHOLDERS
from translucid.data.terms.matching import Match, TermList
from translucid.data.terms.words import unspaced, words_in
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.term_reader import terms_in
from translucid.ground.special import SPECIAL

FEW = 2
"""Pieces of a name that a model is trusted to copy, at most."""
ATTEMPTS = 2
"""With different names; after them the sentence is translated as it is."""
USUAL_NAMES = (
    *("Ana", "David", "Laura", "Tom", "Daniel", "Martin", "Anna", "Marta", "Pedro", "Maria", "Robert", "Nina", "Max"),
    *("Sonia", "Victor", "Eva", "Oscar", "Peter", "Paul", "Linda"),
)
"""They are the same in many languages."""

Search = Callable[[Sequence[Sequence[Piece]]], list[list[list[Hypothesis]]]]


class NameStandIns:
    """Of one vocabulary and one list of terms."""

    def __init__(self, tokenizer: Tokenizer, terms: TermList) -> None:
        """`tokenizer`: the model's; `terms`: those of them that are not translated are the names."""
        self.tokenizer, self.terms = tokenizer, terms

    def search(
        self, texts: Sequence[Sequence[Piece]], search: Search
    ) -> tuple[list[list[Piece]], list[list[list[Hypothesis]]]]:
        """Return the pieces of texts as the model has read them at last, and what was found for each.

        Args:
            texts: the pieces of each.
            search: returns for each text what was found for each of its pieces that has something to translate.
        """
        read = [[self._for_model(piece) for piece in pieces] for pieces in texts]
        found = search(read)
        for attempt in range(1, ATTEMPTS + 1):
            again: list[tuple[int, int, int]] = []
            pieces: list[list[Piece]] = []
            for i, each in enumerate(read):
                searched = [k for k, piece in enumerate(each) if piece.ids]
                for place, k in enumerate(searched):
                    complete = [one for one in found[i][place] if self._came_through(each[k], one)]
                    if complete:
                        found[i][place] = complete
                    else:
                        again.append((i, place, k))
                        original = texts[i][k]
                        other = self._stood_in(original, attempt) if attempt < ATTEMPTS else None
                        pieces.append([other or original])
            if not again:
                break
            for (i, place, k), (piece,), (hypotheses,) in zip(again, pieces, search(pieces), strict=True):
                read[i][k], found[i][place] = piece, hypotheses
        return read, found

    def _for_model(self, piece: Piece) -> Piece:
        """Return a piece with stand-ins for its names, if it has some; one that is nothing but names is left alone."""
        if not piece.ids:
            return piece
        names = [match for match in terms_in(self.terms, piece.hidden.text) if _stays(match)]
        if not names:
            return piece
        inside = {at for match in names for at in range(match.start, match.end)}
        rest = (word for word in words_in(piece.hidden.text) if word.start not in inside)
        if not piece.hidden.parts and not any(word.text.isalnum() for word in rest):
            return replace(piece, ids=[])
        return self._stood_in(piece, 0) or piece

    def _stood_in(self, piece: Piece, attempt: int) -> Piece | None:
        """Return a piece with other stand-ins for its names in each attempt; None if it has none to be stood in for."""
        hidden = piece.hidden
        matches = [match for match in terms_in(self.terms, hidden.text) if self._is_strange(match)]
        free = self._free(hidden.text, attempt)
        stand_ins: dict[str, str] = {}
        parts = []
        at = 0
        for match in matches:
            word = stand_ins.get(match.text) or next(free, None)
            if word is None:
                continue
            stand_ins[match.text] = word
            parts += [hidden.text[at : match.start], word]
            at = match.end
        if not stand_ins:
            return None
        text = "".join([*parts, hidden.text[at:]])
        names = tuple((word, name) for name, word in stand_ins.items())
        (ids,) = self.tokenizer.encode_source([text])
        return replace(piece, ids=[*ids, SPECIAL.end], hidden=hidden._replace(text=text, names=names))

    def _is_strange(self, match: Match) -> bool:
        """Whether a term is a name that is not translated, and that has many pieces or letters without any."""
        if not _stays(match) or unspaced(match.text):
            return False
        ids = self.tokenizer.encode_source([match.text])[0][len(self.tokenizer.source_opening) :]
        return len(ids) > FEW or SPECIAL.unknown in ids

    def _free(self, text: str, attempt: int) -> Iterator[str]:
        """Yield words that may stand in for the names of a text: first the pieces that the model has learned to copy.

        In each attempt they begin elsewhere.
        """
        if self.tokenizer.has_placeholders and not attempt:
            yield from (piece for piece in PLACEHOLDERS if piece not in text)
        names = [name for name in self._names if name not in text]
        yield from names[attempt:]

    @cached_property
    def _names(self) -> list[str]:
        """The usual names that are no terms, those of fewest pieces first, which the model knows best."""
        names = [name for name in USUAL_NAMES if not self.terms.matches(name)]
        sides = zip(self.tokenizer.encode_source(names), self.tokenizer.encode_target(names), strict=True)
        pieces = {name: len(source) + len(target) for name, (source, target) in zip(names, sides, strict=True)}
        return sorted(names, key=lambda name: pieces[name])

    def _came_through(self, piece: Piece, hypothesis: Hypothesis) -> bool:
        """Whether each stand-in of a piece is in a translation as often as in the source."""
        text = self.tokenizer.decode(hypothesis.tokens) if piece.hidden.names else ""
        for name, _ in piece.hidden.names:
            pattern = name_pattern([name])
            if len(pattern.findall(text)) != len(pattern.findall(piece.hidden.text)):
                return False
        return True


def _stays(match: Match) -> bool:
    """Whether what matches is not translated."""
    return match.targets == (match.text,)
