"""Pairs of words of two similar sentences, and pairs of their pieces."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from translucid.ground.errors import UserError


def pair_words(clean: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the words of two sentences, as positions (in `clean`, in `other`).

    Sentences of the same number of words are paired by position. Otherwise equal words are paired, and between them
    different words, if there are as many on both sides. Inserted and deleted words have no pair.

    Raises:
        UserError: different words are in the place of more or fewer words.
    """
    if len(clean) == len(other):
        return [(i, i) for i in range(len(clean))]
    pairs: list[tuple[int, int]] = []
    for change, start, end, other_start, other_end in SequenceMatcher(None, clean, other, False).get_opcodes():
        if change in ("insert", "delete"):
            continue
        if end - start != other_end - other_start:
            unpaired = " ".join(clean[start:end]), " ".join(other[other_start:other_end])
            what = (
                f"the sentences have different numbers of words: {unpaired[0]!r} is to be paired with {unpaired[1]!r}"
            )
            fix = "Give pairs of words as 0-0 1-2 with --pairs (`pairs` in Python), or sentences of as many words."
            raise UserError(what, fix=fix)
        pairs += zip(range(start, end), range(other_start, other_end), strict=True)
    return pairs


def read_pairs(text: str) -> list[tuple[int, int]]:
    """Read pairs of words, `0-0 1-2`, counted from 0.

    Raises:
        UserError: the text has another format.
    """
    pairs = []
    for pair in text.split():
        clean, _, other = pair.partition("-")
        if not (clean.isdecimal() and other.isdecimal()):
            raise UserError(f"{pair!r} is no pair of words", fix="Write 0-0 1-2, counted from 0, CLEAN's word first.")
        pairs.append((int(clean), int(other)))
    return pairs


def pair_pieces(clean: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
    """Pair the pieces of two words: a position in `clean` for each position in `other`.

    If the words have different numbers of pieces, their first and last pieces are paired, and those between in
    proportion. For a word of one piece, it is the last piece of the other word, which the encoder has read as a whole.

    Args:
        clean: the first piece of a word, and the piece after its last.
        other: the same for the word that gets its states.

    >>> pair_pieces((0, 3), (5, 7)), pair_pieces((0, 3), (5, 6))
    ([(0, 5), (2, 6)], [(2, 5)])
    """
    (start, end), (other_start, other_end) = clean, other
    steps = other_end - other_start - 1
    if not steps:
        return [(end - 1, other_start)]
    return [(start + round(i * (end - start - 1) / steps), other_start + i) for i in range(steps + 1)]
