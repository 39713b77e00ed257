"""Terminology constraints of a search: the target of each term, in the pieces in which a model may write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.words import unspaced
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import Match

if TYPE_CHECKING:
    from translucid.decoding.constraints import Edges, Wanted


MOST = 8
"""Other forms of a word among which a search chooses, at most: more take time."""


class TermForms:
    """Of one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, others: Callable[[str], list[str]] = lambda target: []) -> None:
        """`tokenizer`: the model's; `others`: gives other forms of a target, which will do as well."""
        self.tokenizer, self.others = tokenizer, others
        self._known: dict[str, list[tuple[tuple[int, ...], bool]]] = {}

    @cached_property
    def edges(self) -> Edges:
        """Where words begin and end."""
        import torch

        from translucid.decoding.constraints import Edges

        pieces = self.tokenizer.target_vocabulary
        goes_on = [piece[:1].isalnum() and not unspaced(piece[:1]) for piece in pieces]
        opens = [not piece[-1:].isalnum() or unspaced(piece[-1:]) for piece in pieces]
        goes_on[: len(SPECIAL)] = opens[: len(SPECIAL)] = [False] * len(SPECIAL)
        return Edges(torch.tensor(goes_on), torch.tensor(opens))

    def wanted(self, matches: Sequence[Match], instead: Sequence[Sequence[int]]) -> list[Wanted]:
        """Return what a translation is to have; a term that the vocabulary can't write is left out.

        A term that stands in a source several times is wanted as often.

        Args:
            matches: in a source.
            instead: of each, the tokens with which begins what the model says for it; see `Form`.
        """
        from translucid.decoding.constraints import Form, Wanted

        together: dict[tuple[tuple[str, ...], bool, bool], list[Sequence[int]]] = {}
        for match, tokens in zip(matches, instead, strict=True):
            together.setdefault((match.targets, match.exact, match.inflects), []).append(tokens)
        found = []
        for (targets, exact, inflects), each in together.items():
            said = list(dict.fromkeys(chain(*each)))
            forms = [
                Form(*form, instead=tuple(tokens))
                for target in targets
                for text, tokens in self._texts(target, said, exact)
                for form in self._forms(text)
            ]
            for other in chain.from_iterable(map(self.common, targets)) if inflects else ():
                text, tokens = next(self._texts(other, said, exact=False))
                forms += [Form(*form, instead=tuple(tokens)) for form in self._forms(text)[:1]]
            if forms:
                found.append(Wanted(tuple(dict.fromkeys(forms)), len(each)))
        return found

    def common(self, target: str) -> list[str]:
        """Return other forms of a target; of many, those of fewest pieces, which are the most frequent ones."""
        known = [form for form in self.others(target) if self._forms(form)]
        return sorted(known, key=lambda form: len(self._forms(form)[0][0]))[:MOST]

    def _texts(self, target: str, said: list[int], exact: bool) -> Iterator[tuple[str, list[int]]]:
        """Yield a target, and how it stands where a sentence begins, each with what it may stand instead of."""
        capital = target[:1].upper() + target[1:]
        if exact or capital == target:
            yield target, said
            return
        great = [
            token for token, piece in zip(said, self.tokenizer.target_pieces(said), strict=True) if _capital(piece)
        ]
        yield target, [token for token in said if token not in great]
        yield capital, great

    def _forms(self, text: str) -> list[tuple[tuple[int, ...], bool]]:
        """Return the pieces of a text behind a space, and those right behind a sign, if they are told apart."""
        if text not in self._known:
            opening = len(self.tokenizer.target_opening)
            spaced, behind = (ids[opening:] for ids in self.tokenizer.encode_target([text, f"({text}"]))
            forms = [(tuple(spaced), False)]
            pieces = self.tokenizer.target_pieces(behind)
            wanted = "".join(self.tokenizer.target_pieces(spaced)).removeprefix(SPACE)
            for i in range(1, len(pieces)):
                if "".join(pieces[i:]) == wanted:
                    forms.append((tuple(behind[i:]), True))
                    break
            self._known[text] = [form for form in forms if form[0] and SPECIAL.unknown not in form[0]]
        return self._known[text]


def _capital(piece: str) -> bool:
    """Whether the first letter of a piece is one."""
    return next((character.isupper() for character in piece if character.isalpha()), False)
