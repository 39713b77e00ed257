"""The place in a translation at which a model chooses between two words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.words import word_spans

MARKS = ".,;:!?…»”\"')]"
"""Marks that may follow a word of the translation directly."""


class WordChoice(NamedTuple):
    """Two words that may follow the same target prefix. They are told apart by their first different pieces.

    The prefix ends before these pieces, so that it includes those that both words begin with. The log-odds of the words
    are those of the two pieces, because the log-probabilities of common pieces cancel out.
    """

    words: tuple[str, str]
    prefix: list[int]
    """The ids of the target before the pieces, without the start token."""
    pieces: tuple[int, int]
    """The ids of the two pieces."""


def choices(tokenizer: Tokenizer, target: Sequence[int], words: tuple[str, str]) -> list[WordChoice]:
    """Return the choice between two words at each place where a translation has the first.

    Args:
        tokenizer: the tokenizer of the model.
        target: ids of the translation, end token included.
        words: a word of the translation, without a mark that follows it, and one or more words in its place.

    Raises:
        UserError: the translation lacks the first word, no piece tells the words apart, or the vocabulary lacks
            characters of the other.
    """
    word, replacement = words
    opening = len(tokenizer.target_opening)
    spans = word_spans(tokenizer.target_pieces(target), opening)[opening:-1]
    (ids,) = tokenizer.encode_target([replacement])
    if SPECIAL.unknown in ids:
        raise UserError(f"the vocabulary lacks characters of {replacement!r}", fix="Choose another word.")
    word_choices = []
    for text, start, _ in spans:
        if word in (text, text.rstrip(MARKS)):
            word_choices.append(_choice(words, target, [*target[:start], *ids[opening:]]))
    if not word_choices:
        translation = " ".join(text for text, _, _ in spans)
        raise UserError(f"the translation lacks the word {word!r}", fix=f"Choose a word of {translation!r}.")
    return word_choices


def first_difference(tokenizer: Tokenizer, target: Sequence[int], other: Sequence[int]) -> WordChoice:
    """Return the choice at the first difference of two translations: ids, end tokens included.

    Raises:
        UserError: the translations are the same.
    """
    if list(target) == list(other):
        raise UserError("both sentences have the same translation", fix="Give two words: --words a/b.")
    position = _common_length(target, other)
    opening = len(tokenizer.target_opening)
    words = []
    for ids in (target, other):
        spans = word_spans(tokenizer.target_pieces(ids), opening)
        words += [text for text, start, end in spans if start <= position < end]
    return _choice((words[0], words[1]), target, other)


def _choice(words: tuple[str, str], target: Sequence[int], other: Sequence[int]) -> WordChoice:
    position = _common_length(target, other)
    if position == len(other):
        what = f"{words[0]!r} begins with the pieces of {words[1]!r}, so that no piece tells them apart"
        raise UserError(what, fix=f"Give the word that follows {words[1]!r} too.")
    return WordChoice(words, list(target[:position]), (target[position], other[position]))


def _common_length(target: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(target, other, strict=False)))
