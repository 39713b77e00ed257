"""Names among the terms that the model has never learned: it reads a common name in their place.

A model that has to copy a name in many small pieces often breaks off, starts again, or loses the rest of the sentence.
So a name such as `Ana`, which the vocabulary has, or a placeholder that the model has learned to copy, stands in for
the name, and is replaced by the name, or its target, in the translation. If the translation does not have the stand-in
as often as it should, the next attempt uses a noun that many languages share, then other names, then the first name as
a constraint of the search, and the last one the unchanged sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from bitext.languages import script_of
from bitext.protected_spans import PLACEHOLDERS, Edit, StandIn, splice
from bitext.words import capitalized, unspaced, words_in, words_without_signs
from translucid.data.text_pipeline import Piece
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.hypothesis import Hypothesis
from translucid.ground.special import SPECIAL
from translucid.terminology.glossary import Term
from translucid.terminology.matching import Match, TermList, terms_in

FEW = 2
"""The largest number of pieces of a name that a model copies reliably."""
OTHER_NAMES = 1, 2, 3
"""The first of the usual names in each further attempt."""
USUAL_NAMES = (
    *("Ana", "David", "Laura", "Tom", "Daniel", "Martin", "Anna", "Marta", "Pedro", "Maria", "Luis", "Robert"),
    *("Carlos", "Elena", "Nina", "Max", "Irene", "Sonia", "Victor", "Eva", "Oscar", "Peter", "Paul", "Linda"),
)
USUAL_NOUNS = "hotel", "piano", "golf", "chocolate", "radio", "taxi", "hospital", "video", "club", "bar", "metro", "zoo"
"""Nouns that are the same in many languages."""

Search = Callable[[Sequence[Sequence[Piece]]], list[list[list[Hypothesis]]]]
"""Returns for each text the hypotheses of each of its pieces that has something to translate."""
Lost = tuple[int, int, int]
"""The number of a text, of one of its pieces among those that were searched for, and of that piece among all."""


class NameStandIns:
    """The stand-ins for the names in one term list, for one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, terms: TermList, language: str | None) -> None:
        """Use the model's `tokenizer`, a list of `terms` with names, and the code of the target `language`."""
        self.tokenizer, self.terms = tokenizer, terms
        # Languages of other scripts than Latin transcribe foreign names.
        self.transcribes_names = script_of(language or "") not in ("Latn", "")

    def search(
        self, texts: Sequence[Sequence[Piece]], search: Search, search_again: Callable[[TermList | None], Search]
    ) -> tuple[list[list[Piece]], list[list[list[Hypothesis]]]]:
        """Return the pieces of texts with the stand-ins of the last attempt, and the hypotheses of each.

        Args:
            texts: the pieces of each text.
            search: searches for all of them.
            search_again: returns a search for some of them, constrained by these terms if there are any.
        """
        model_pieces = [list(map(self._for_model, pieces)) for pieces in texts]
        nbest_lists = search(model_pieces)
        lost = self._lost(model_pieces, nbest_lists)
        word_lists = [self._nouns, *(self._names[start:] for start in OTHER_NAMES)]
        if self.transcribes_names:
            # A transcribed stand-in can't be recognized in the translation unless the search is forced to write it.
            word_lists = []
        no_words: list[str] = []
        for words in (*word_lists, self._names, no_words):
            if not lost:
                break
            pieces = [self._with_stand_ins(texts[i][k], words) or texts[i][k] for i, _, k in lost]
            is_forced = words is self._names
            retried = _search_lost(pieces, search_again, is_forced=is_forced)
            for (i, index, k), piece, hypotheses in zip(lost, pieces, retried, strict=True):
                model_pieces[i][k], nbest_lists[i][index] = piece, hypotheses
            # If nothing else was found, an extra name is better than one that the model has to spell.
            lost = self._lost(model_pieces, nbest_lists, allow_more=is_forced)
        return model_pieces, nbest_lists

    def _lost(
        self,
        model_pieces: Sequence[Sequence[Piece]],
        nbest_lists: Sequence[list[list[Hypothesis]]],
        *,
        allow_more: bool = False,
    ) -> list[Lost]:
        """Remove hypotheses that lack a stand-in, and return the pieces that have none left.

        Args:
            model_pieces: the pieces of each text.
            nbest_lists: the hypotheses of those that were searched for.
            allow_more: whether a translation may have stand-ins more often than the source.
        """
        lost = []
        for i, pieces in enumerate(model_pieces):
            searched = [k for k, piece in enumerate(pieces) if piece.ids]
            for index, k in enumerate(searched):
                complete = [
                    hypothesis
                    for hypothesis in nbest_lists[i][index]
                    if self._has_stand_ins(pieces[k], hypothesis, allow_more=allow_more)
                ]
                if complete:
                    nbest_lists[i][index] = complete
                else:
                    lost.append((i, index, k))
        return lost

    def _for_model(self, piece: Piece) -> Piece:
        """Return a piece with stand-ins for its names; one of nothing but names that stay is copied, not translated."""
        if not piece.ids:
            return piece
        matches = terms_in(self.terms, piece.masked.text)
        if not matches:
            return piece
        unchanged: set[int] = set()
        for match in matches:
            if _is_copied(match):
                unchanged.update(range(match.start, match.end))
        other_words = [word for word in words_without_signs(piece.masked.text) if word.start not in unchanged]
        if not piece.masked.parts and not other_words:
            return replace(piece, ids=[])
        stand_ins = self._names
        if self.tokenizer.has_placeholders:
            stand_ins = [*PLACEHOLDERS, *stand_ins]
        return self._with_stand_ins(piece, stand_ins) or piece

    def _with_stand_ins(self, piece: Piece, words: Sequence[str]) -> Piece | None:
        """Return a piece with some of the words in the place of its unfamiliar names; None if it has none."""
        masked = piece.masked
        matches = [match for match in terms_in(self.terms, masked.text) if self._is_unfamiliar(match)]
        lowered_text = masked.text.casefold()
        # A word that the text already has could not be distinguished from the stand-in.
        unused = (word for word in words if word.casefold() not in lowered_text)
        names: dict[str, StandIn] = {}
        edits = []
        for match in matches:
            if match.text not in names:
                word = next(unused, None)
                if word is None:
                    continue
                names[match.text] = StandIn(word, match.text, match.targets[0], is_term=True)
            word = names[match.text].word
            if not any(map(str.isalnum, masked.text[: match.start])):  # at the beginning of the sentence
                word = capitalized(word)
            edits.append(Edit(match.start, match.end, word))
        if not names:
            return None
        text = splice(masked.text, edits)
        (ids,) = self.tokenizer.encode_source([text])
        return replace(piece, ids=[*ids, SPECIAL.end], masked=masked._replace(text=text, names=tuple(names.values())))

    def _is_unfamiliar(self, match: Match) -> bool:
        """Whether a term is a name of many pieces or of unknown letters, which the model need not inflect."""
        if unspaced(match.text):
            return False
        # Terms are annotated for a model that was trained with them: it reads the target of a name.
        is_name = _is_copied(match) or (_is_name(match) and not self.tokenizer.marks_terms)
        if not is_name:
            return False
        ids = self.tokenizer.encode_source([match.text])[0][len(self.tokenizer.source_opening) :]
        return len(ids) > FEW or SPECIAL.unknown in ids

    @cached_property
    def _names(self) -> list[str]:
        return self._by_pieces(USUAL_NAMES)

    @cached_property
    def _nouns(self) -> list[str]:
        return self._by_pieces(USUAL_NOUNS)

    def _by_pieces(self, words: Sequence[str]) -> list[str]:
        """Return the words that are no terms, those with the fewest pieces first: the model knows them best."""
        words = [word for word in words if not self.terms.matches(word)]
        pieces = {}
        sides = zip(words, self.tokenizer.encode_source(words), self.tokenizer.encode_target(words), strict=True)
        for word, source, target in sides:
            pieces[word] = len(source) + len(target)
        return sorted(words, key=pieces.__getitem__)

    def _has_stand_ins(self, piece: Piece, hypothesis: Hypothesis, *, allow_more: bool) -> bool:
        """Whether a translation has each stand-in as often as the source piece, or more often if `allow_more`."""
        if not piece.masked.names:
            return True
        text = self.tokenizer.decode(hypothesis.tokens)
        for name in piece.masked.names:
            expected, actual = name.count(piece.masked.text), name.count(text)
            if actual < expected or (actual > expected and not allow_more):
                return False
        return True


def _is_copied(match: Match) -> bool:
    """Whether a term is kept as it is in translations."""
    return match.targets == (match.text,)


def _is_name(match: Match) -> bool:
    """Whether a term is a name with a target: the list says so, or all of its words begin with capitals."""
    (term, *others) = match.terms
    if others or not term.target[:1].isupper():
        return False
    if term.part_of_speech == "name":
        return True
    return all(word.text[0].isupper() for word in words_in(term.source) if word.text.isalpha())


def _search_lost(
    pieces: Sequence[Piece], search_again: Callable[[TermList | None], Search], *, is_forced: bool
) -> list[list[Hypothesis]]:
    """Return the hypotheses of pieces that were lost, found by one search for all pieces with the same constraints."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, piece in enumerate(pieces):
        stand_ins: list[str] = []
        if is_forced:
            stand_ins += [name.word for name in piece.masked.names]
        groups.setdefault(tuple(stand_ins), []).append(number)
    nbest_lists: list[list[Hypothesis]] = [[]] * len(pieces)
    for words, numbers in groups.items():
        terms = None
        if words:
            terms = TermList(Term(word, "", case=True) for word in words)
        results = search_again(terms)([[pieces[number]] for number in numbers])
        for number, (hypotheses,) in zip(numbers, results, strict=True):
            nbest_lists[number] = hypotheses
    return nbest_lists
