"""Vocabulary pieces such as `⟦1⟧` and `⟦2⟧`, which stand for the parts of a text that a translation must not change.

A model with `data.placeholders` learns to copy them. Before it translates, each placeholder, tag, address and emoji of
the text is replaced by such a piece; afterwards, the original is restored. So the model never has to spell them. If a
part occurs twice, so does its piece. If a text has more different parts than there are pieces, the rest stay in the
text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from bitext.pair import Pair
from bitext.protected_spans import (
    PLACEHOLDERS,
    Edit,
    Part,
    PlaceholderSyntax,
    StandIn,
    Syntax,
    kept_parts,
    restored,
    splice,
    with_patterns,
)
from bitext.words import linked_words
from translucid.data.linked_pairs import edited
from translucid.data.tokenizing.pieces import RESERVED_PIECES
from translucid.ground.special import SPELLINGS

_PIECE = re.compile("|".join(sorted(RESERVED_PIECES)))
_WORD = re.compile(r"[^\W_]+(?:[-.'][^\W_]+)*")
_NAME_LENGTH = 3
"""Letters of a capitalized word that counts as a name if both sides have it."""
_EDGE_SHARE = 0.25
"""If no word of a pair can be replaced, this is the share of pairs in which a piece is put before or after both sides,
where emoji and addresses are in real texts."""
_ANOTHER_WORD = 0.3
"""The probability that a second word is replaced, and after it a third, and so on."""


class Masked(NamedTuple):
    """A text in which vocabulary pieces replace the parts that a translation must not change."""

    text: str
    """The text that the model reads."""
    parts: dict[str, str]
    """The part that each piece stands for."""
    names: tuple[StandIn, ...] = ()
    """The names that were replaced by other words."""
    syntax: Syntax = PlaceholderSyntax.prose
    """The syntax of the parts."""

    def unmask(self, text: str) -> str:
        """Return another text, such as the translation, with the parts in place of their pieces.

        Pieces that stand for nothing are removed, and so are the marks of terms and near matches.
        """
        text = restored(text, self.names)
        return _PIECE.sub(lambda match: self.parts.get(match[0], ""), text)

    def mask_target(self, text: str) -> str:
        """Return a translation with the pieces in place of the same parts; parts that the source lacks stay.

        >>> mask("Dear %s").mask_target("Estimado %s, hola {n}")
        'Estimado ⟦1⟧, hola {n}'
        """
        if not self.parts:
            return text
        pieces = {part: piece for piece, part in self.parts.items()}
        return _with_pieces(text, kept_parts(text, self.syntax), pieces)

    def unmask_pieces(self, pieces: Iterable[str]) -> list[str]:
        """Return vocabulary pieces with the parts in place of the pieces that stand for them.

        A part such as the tag `</s>` of a web page keeps its piece, because it would look like the end token.
        """
        parts_by_piece = {piece: part for piece, part in self.parts.items() if part not in SPELLINGS}
        return [parts_by_piece.get(piece, piece) for piece in pieces]

    def sizes(self, words: Iterable[str], *, in_source: bool = False) -> list[int]:
        """Return for each word of a masked text the number of words that it has when unmasked.

        `in_source` says whether the words are from the source, not from a translation.
        """
        masked = self
        if in_source:
            masked = self._replace(names=tuple(replace(name, target=name.source) for name in self.names))
        return [max(len(linked_words(masked.unmask(word))), 1) for word in words]


def mask(text: str, patterns: Sequence[str] = ()) -> Masked:
    """Replace the parts that a translation must keep by vocabulary pieces; `patterns`: those of a user for more parts.

    >>> mask("Dear %s, write to a@b.org or %s")[:2]
    ('Dear ⟦1⟧, write to ⟦2⟧ or ⟦1⟧', {'⟦1⟧': '%s', '⟦2⟧': 'a@b.org'})
    """
    syntax = with_patterns(PlaceholderSyntax.prose, patterns)
    parts = list(kept_parts(text, syntax))
    distinct = dict.fromkeys(_part_texts(parts))
    pieces = dict(zip(distinct, PLACEHOLDERS, strict=False))  # parts beyond the last piece stay in the text
    parts_by_piece = {piece: part for part, piece in pieces.items()}
    return Masked(_with_pieces(text, parts, pieces), parts_by_piece, syntax=syntax)


def masked_pairs(pairs: Iterable[Pair], share: float, seed: int, patterns: Sequence[str] = ()) -> Iterator[Pair]:
    """Yield pairs with pieces in place of the parts that both sides have.

    Args:
        pairs: the training text.
        share: the share of pairs without such parts in which words of both sides, such as names and numbers, are
            replaced. So a corpus without placeholders also teaches the model to copy pieces.
        seed: with the text of a pair, determines what is replaced; the order of the pairs does not matter.
        patterns: those of a user for further parts.
    """
    syntax = with_patterns(PlaceholderSyntax.prose, patterns)
    for pair in pairs:
        yield _masked_pair(pair, share, seed, syntax)


def _masked_pair(pair: Pair, share: float, seed: int, syntax: Syntax) -> Pair:
    source, target = pair.source, pair.target
    source_parts, target_parts = list(kept_parts(source, syntax)), list(kept_parts(target, syntax))
    common = _common_parts(source_parts, target_parts)
    if common:
        random = Random(f"{seed} {source}")
    else:
        random = Random(f"{seed} {source}\t{target}")
        if random.random() >= share or not source:
            return pair
        source_parts, target_parts = _words(source), _words(target)
        common = _sample_words(_common_parts(source_parts, target_parts), random)
        if not common:
            if random.random() < _EDGE_SHARE:
                return _with_edge_piece(pair, random)
            return pair
    # Most texts have one or two parts; a random choice trains all pieces equally.
    pieces = random.sample(PLACEHOLDERS, len(PLACEHOLDERS))
    pieces_by_part = dict(zip(common, pieces, strict=False))
    return edited(pair, _pieces_for(source_parts, pieces_by_part), _pieces_for(target_parts, pieces_by_part))


def _with_pieces(text: str, parts: Iterable[Part], pieces: Mapping[str, str]) -> str:
    """Return a text with a piece in place of each part that has one."""
    return splice(text, _pieces_for(parts, pieces))


def _pieces_for(parts: Iterable[Part], pieces: Mapping[str, str]) -> list[Edit]:
    """Return the edits that put a piece in place of each part that has one."""
    return [Edit(start, end, pieces[part]) for part, start, end in parts if part in pieces]


def _part_texts(parts: Iterable[Part]) -> list[str]:
    return [part for part, _, _ in parts]


def _common_parts(source: Iterable[Part], target: Iterable[Part]) -> list[str]:
    """Return the distinct parts that occur equally often in both sides, in the order of the source."""
    in_source, in_target = Counter(_part_texts(source)), Counter(_part_texts(target))
    return [part for part, count in in_source.items() if in_target[part] == count]


def _words(text: str) -> list[Part]:
    """Return the numbers of a text, and the words that may be names."""
    words = []
    for match in _WORD.finditer(text):
        word = match[0]
        may_be_name = word[0].isupper() and len(word) >= _NAME_LENGTH
        if may_be_name or word[0].isdigit():
            words.append((word, *match.span()))
    return words


def _sample_words(words: list[str], random: Random) -> list[str]:
    """Draw at least one word."""
    random.shuffle(words)
    count = 1
    while count < len(words) and random.random() < _ANOTHER_WORD:
        count += 1
    return words[:count]


def _with_edge_piece(pair: Pair, random: Random) -> Pair:
    piece = random.choice(PLACEHOLDERS)
    if random.random() < 0.5:
        prefix = [Edit(0, 0, f"{piece} ")]
        return edited(pair, prefix, prefix)
    source_end, target_end = len(pair.source), len(pair.target)
    suffix = f" {piece}"
    return edited(pair, [Edit(source_end, source_end, suffix)], [Edit(target_end, target_end, suffix)])
