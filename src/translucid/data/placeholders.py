"""Pieces of the vocabulary that stand for what no translation may change: `⟦1⟧`, `⟦2⟧` and so on.

A model with `data.placeholders` learns to copy them. Before it translates, each placeholder, tag, address and emoji of
the text is replaced by one of them, and afterwards put back; the model never has to spell them. A part that a text
has twice has the same piece twice; a text with more different parts than pieces keeps the others as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from translucid.data.non_translatable import kept_parts
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.reserved import EVERY, PLACEHOLDERS
from translucid.ground.special import SPELLED

_PIECE = re.compile("|".join(sorted(EVERY)))
_WORD = re.compile(r"[^\W_]+(?:[-.'][^\W_]+)*")
_NAME = 3
"""Letters of a word with a capital that is a name, if both sides have it."""
_AT_AN_END = 0.25
"""Where no word of a pair can be replaced, a piece is put before or behind both sides in this share of the cases, as
emoji and addresses stand in real texts."""
_SECOND = 0.3
"""How often a second word is replaced, and a third after it."""


class NameStandIn(NamedTuple):
    """A usual name or noun that stands for another one in a text; see `engines/name_stand_ins.py`."""

    word: str
    """What the model reads."""
    source: str
    """The name itself."""
    target: str
    """The name in the translation."""


class Masked(NamedTuple):
    """A text in which pieces of the vocabulary stand for what no translation may change."""

    text: str
    """As the model reads it."""
    parts: dict[str, str]
    """By piece, what it stands for."""
    names: tuple[NameStandIn, ...] = ()
    """What stands for names."""

    def unmask(self, text: str) -> str:
        """Return another text, such as the translation, with the parts in the place of their pieces.

        A piece that stands for nothing is left out, and so are the marks of terms and near matches.
        """
        if self.names:
            names = {name.word.casefold(): name.target for name in self.names}
            pattern = name_pattern([name.word for name in self.names])
            text = pattern.sub(lambda found: names[found[0].casefold()], text)
        return _PIECE.sub(lambda found: self.parts.get(found[0], ""), text) if _PIECE.search(text) else text

    def mask_target(self, text: str) -> str:
        """Return a given translation with the same pieces in the place of the same parts; what is only there stays.

        >>> mask("Dear %s").mask_target("Estimado %s, hola {n}")
        'Estimado ⟦1⟧, hola {n}'
        """
        if not self.parts:
            return text
        pieces = {part: piece for piece, part in self.parts.items()}
        return _with_pieces(text, kept_parts(text), pieces)

    def unmask_pieces(self, pieces: Iterable[str]) -> list[str]:
        """Return pieces of the vocabulary with the parts in the place of those that stand for one.

        The tag `</s>` of a web page must not be taken for the end token: such a part is not shown.
        """
        shown = {piece: part for piece, part in self.parts.items() if part not in SPELLED}
        return [shown.get(piece, piece) for piece in pieces]

    def sizes(self, words: Iterable[str], *, of_source: bool = False) -> list[int]:
        """Return for each word of a masked text how many words it is when its parts are shown.

        `of_source`: whether they are those of the source, and not of a translation.
        """
        masked = self
        if of_source:
            masked = self._replace(names=tuple(name._replace(target=name.source) for name in self.names))
        return [max(len(masked.unmask(word).split()), 1) for word in words]


def name_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds words that stand by themselves; they may have a capital where a sentence begins."""
    either = (f"(?i:{re.escape(word[:1])}){re.escape(word[1:])}" for word in words)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(either)})(?![^\W_])")


def mask(text: str) -> Masked:
    """Put pieces in the place of what a translation must keep.

    >>> mask("Dear %s, write to a@b.org or %s")
    Masked(text='Dear ⟦1⟧, write to ⟦2⟧ or ⟦1⟧', parts={'⟦1⟧': '%s', '⟦2⟧': 'a@b.org'})
    """
    found = list(kept_parts(text))
    distinct = dict.fromkeys(part for part, _, _ in found)
    pieces = dict(zip(distinct, PLACEHOLDERS, strict=False))  # a part beyond the last piece stays as it is
    return Masked(_with_pieces(text, found, pieces), {piece: part for part, piece in pieces.items()})


def masked_pairs(pairs: Iterable[Pair], share: float, seed: int) -> Iterator[Pair]:
    """Yield pairs with pieces in the place of the parts that both sides have.

    Args:
        pairs: the training text.
        share: of the pairs without such parts, in which words that both sides have, such as names and numbers, are
            replaced likewise, so that a corpus without placeholders teaches to copy the pieces too.
        seed: which, with the text of the pair: what is yielded does not depend on the order of the pairs.
    """
    for pair in pairs:
        yield _masked_pair(pair, share, seed)


def _masked_pair(pair: Pair, share: float, seed: int) -> Pair:
    source, target = pair.source, pair.target
    parts = [list(kept_parts(text)) for text in (source, target)]
    both = _in_both(*parts)
    random = None
    if not both:
        random = Random(f"{seed} {source}\t{target}")
        if random.random() >= share or not source:
            return pair
        parts = [_words(text) for text in (source, target)]
        both = _some(_in_both(*parts), random)
        if not both:
            return _at_an_end(pair, random) if random.random() < _AT_AN_END else pair
    # All pieces are learned alike, though most texts have one or two parts.
    pieces = (random or Random(f"{seed} {source}")).sample(PLACEHOLDERS, len(PLACEHOLDERS))
    order = dict(zip(both, pieces, strict=False))
    return pair._replace(
        source=_with_pieces(source, parts[0], order),
        target=_with_pieces(target, parts[1], order),
    )


_Found = Sequence[tuple[str, int, int]]
"""Parts, each with the places of its first character and of the one behind it."""


def _with_pieces(text: str, found: Iterable[tuple[str, int, int]], pieces: Mapping[str, str]) -> str:
    """Return a text with a piece in the place of each part that has one."""
    written = []
    at = 0
    for part, first, after in found:
        if part in pieces:
            written += [text[at:first], pieces[part]]
            at = after
    return "".join([*written, text[at:]])


def _in_both(source: _Found, target: _Found) -> list[str]:
    """Return the different parts that stand in both sides equally often, in the order of the source."""
    counts = [[part for part, _, _ in side] for side in (source, target)]
    return [part for part in dict.fromkeys(counts[0]) if counts[0].count(part) == counts[1].count(part)]


def _words(text: str) -> list[tuple[str, int, int]]:
    """Return the words that may be names, and the numbers."""
    found = ((match[0], *match.span()) for match in _WORD.finditer(text))
    return [one for one in found if one[0][0].isdigit() or (one[0][0].isupper() and len(one[0]) >= _NAME)]


def _some(words: list[str], random: Random) -> list[str]:
    """Draw one word, sometimes more."""
    random.shuffle(words)
    count = 1
    while count < len(words) and random.random() < _SECOND:
        count += 1
    return words[:count]


def _at_an_end(pair: Pair, random: Random) -> Pair:
    piece = random.choice(PLACEHOLDERS)
    if random.random() < 0.5:
        return pair._replace(source=f"{piece} {pair.source}", target=f"{piece} {pair.target}")
    return pair._replace(source=f"{pair.source} {piece}", target=f"{pair.target} {piece}")
