"""The four special tokens of every vocabulary: one record of them, once with their ids and once as they are written."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class SpecialTokens(NamedTuple, Generic[Item]):
    """Something about each of the tokens that are no part of any text."""

    pad: Item
    """Fills up the shorter sentences of a batch; nothing looks at it."""
    unknown: Item
    """Stands for what no piece of the vocabulary can write."""
    start: Item
    """Begins every target: what a decoder is fed first."""
    end: Item
    """Ends every source and every target."""


SPECIAL = SpecialTokens(pad=0, unknown=1, start=2, end=3)
"""Ids: the first of each vocabulary that we learn; a model that comes from elsewhere may have others."""

SPELLED = SpecialTokens(pad="<pad>", unknown="<unk>", start="<s>", end="</s>")
"""How the vocabulary spells them, and CTranslate2, and every picture."""

TAG = "<bt>"
"""Begins a source that a model wrote (Caswell et al. 2019), in vocabularies that are learned with such sources."""
