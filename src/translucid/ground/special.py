"""The four special tokens of every vocabulary: a record of their ids, and one of their spellings; control tokens."""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

Item = TypeVar("Item")


class SpecialTokens(NamedTuple, Generic[Item]):
    """One value, such as an id, for each of the tokens that are part of no text."""

    pad: Item
    """Fills up the shorter sentences of a batch; masks exclude it from attention."""
    unknown: Item
    """Stands for characters that no piece of the vocabulary contains."""
    start: Item
    """Begins every target: the first input of a decoder."""
    end: Item
    """Ends every source and every target."""


SPECIAL = SpecialTokens(pad=0, unknown=1, start=2, end=3)
"""The ids, which are the first of each vocabulary that we learn; an imported model may have others."""

SPELLINGS = SpecialTokens(pad="<pad>", unknown="<unk>", start="<s>", end="</s>")
"""The spellings in our vocabularies, in CTranslate2 and in all figures."""

TAG = "<bt>"
"""The first token of back-translated sources (Caswell et al. 2019), in vocabularies that are learned with them."""

Formality: TypeAlias = Literal["formal", "informal"]
FORMALITY: dict[Formality, str] = {"formal": "<formal>", "informal": "<informal>"}
"""The control token before a source that asks for a form of address in the translation (Sennrich et al. 2016,
"Controlling politeness", section 3), in vocabularies that are learned with `data.formality`."""
