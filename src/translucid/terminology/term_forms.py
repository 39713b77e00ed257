"""Terminology constraints of a search: the target of each term, in the pieces in which a model may write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from bitext.words import capitalized, unspaced
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import Match

if TYPE_CHECKING:
    from translucid.decoding.constrained_decoding import Edges, RequiredPhrase


MOST = 8
"""The largest number of other forms of a word that a search may choose from; more would be slow."""


class TermForms:
    """The forms of terms in the pieces of one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, other_forms: Callable[[str], list[str]] = lambda target: []) -> None:
        """Start without forms; `other_forms` returns other forms of a target, which satisfy a constraint too."""
        self.tokenizer, self.other_forms = tokenizer, other_forms
        self._forms_by_text: dict[str, list[tuple[tuple[int, ...], bool]]] = {}

    @cached_property
    def edges(self) -> Edges:
        """The pieces at which words begin and end."""
        import torch

        from translucid.decoding.constrained_decoding import Edges

        pieces = self.tokenizer.target_vocabulary
        continues_word = [piece[:1].isalnum() and not unspaced(piece[:1]) for piece in pieces]
        opens_word = [not piece[-1:].isalnum() or unspaced(piece[-1:]) for piece in pieces]
        continues_word[: len(SPECIAL)] = opens_word[: len(SPECIAL)] = [False] * len(SPECIAL)
        return Edges(torch.tensor(continues_word), torch.tensor(opens_word))

    def constraints(self, matches: Sequence[Match], instead: Sequence[Sequence[int]]) -> list[RequiredPhrase]:
        """Return the constraints for a translation; a term that the vocabulary cannot write has none.

        A term that occurs several times in a source must occur as often in the translation.

        Args:
            matches: the terms of a source.
            instead: for each, the first tokens of the model's own translations of it, as in `Form`.
        """
        from translucid.decoding.constrained_decoding import Form, RequiredPhrase

        # Equal terms make one constraint with a count.
        groups: dict[tuple[tuple[str, ...], bool, bool], list[Sequence[int]]] = {}
        for match, tokens in zip(matches, instead, strict=True):
            groups.setdefault((match.targets, match.exact, match.inflects), []).append(tokens)
        constraints = []
        for (targets, exact, inflects), token_lists in groups.items():
            first_tokens = list(dict.fromkeys(chain(*token_lists)))
            forms: dict[Form, None] = {}
            for target in targets:
                for text, tokens in self._texts(target, first_tokens, exact):
                    for form in self._forms(text):
                        forms[Form(*form, instead=tuple(tokens))] = None
            if inflects:
                for inflected in chain.from_iterable(map(self.common, targets)):
                    text, tokens = next(self._texts(inflected, first_tokens, exact=False))
                    forms[Form(*self._forms(text)[0], instead=tuple(tokens))] = None
            if forms:
                constraints.append(RequiredPhrase(tuple(forms), len(token_lists)))
        return constraints

    def common(self, target: str) -> list[str]:
        """Return other forms of a target; of many, those of fewest pieces, which are the most frequent."""
        writable = list(filter(self._forms, self.other_forms(target)))
        return sorted(writable, key=lambda form: len(self._forms(form)[0][0]))[:MOST]

    def _texts(self, target: str, first_tokens: list[int], exact: bool) -> Iterator[tuple[str, list[int]]]:
        """Yield a target, and the target with a capital for the beginning of a sentence.

        Each comes with the first tokens that it may replace: the capitalized target replaces capitalized tokens.
        """
        capital = capitalized(target)
        if exact or capital == target:
            yield target, first_tokens
            return
        plain, capitals = [], []
        for token, piece in zip(first_tokens, self.tokenizer.target_pieces(first_tokens), strict=True):
            if _is_capitalized(piece):
                capitals.append(token)
            else:
                plain.append(token)
        yield target, plain
        yield capital, capitals

    def _forms(self, text: str) -> list[tuple[tuple[int, ...], bool]]:
        """Return the pieces of a text after a space, and those after a punctuation mark if they differ."""
        if text not in self._forms_by_text:
            opening = len(self.tokenizer.target_opening)
            spaced, after_bracket = (ids[opening:] for ids in self.tokenizer.encode_target([text, f"({text}"]))
            forms = [(tuple(spaced), False)]
            pieces = self.tokenizer.target_pieces(after_bracket)
            # The pieces after the bracket, unless one piece has both the bracket and letters.
            letters = "".join(self.tokenizer.target_pieces(spaced)).removeprefix(SPACE)
            for i in range(1, len(pieces)):
                if "".join(pieces[i:]) == letters:
                    forms.append((tuple(after_bracket[i:]), True))
                    break
            self._forms_by_text[text] = [form for form in forms if form[0] and SPECIAL.unknown not in form[0]]
        return self._forms_by_text[text]


def _is_capitalized(piece: str) -> bool:
    return next(filter(str.isalpha, piece), "").isupper()
