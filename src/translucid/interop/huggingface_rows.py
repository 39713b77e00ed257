"""Our vocabulary in the order of Hugging Face's tokenizers: which of our ids is which of their rows.

MarianTokenizer takes any order. That of the runs that we train stays; a model without a start embedding gets that of
OPUS: `</s>` and `<unk>` first, `<pad>`, with which its decoder begins, last. M2M100 and NLLB have Fairseq's order. Rows
that an import has added (`Vocabulary.add_unknown`) go: both tokenizers take what they don't know for `<unk>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLED
from translucid.interop.pieces import NEVER

if TYPE_CHECKING:
    from torch import Tensor

_CODES = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig
ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so
sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
"""
M2M100 = _CODES.split()
"""The languages of M2M100's tokenizer, which has their rows in this order behind those of the pieces."""


@dataclass(frozen=True)
class Rows:
    """A vocabulary in another order."""

    ids: list[int]
    """Which of our ids each row is."""
    names: list[str]
    """How it is written."""
    pad: int
    """The row of padding."""
    start: int
    """The row that the decoder is fed first."""
    end: int
    """The row of the end token."""

    @property
    def vocabulary(self) -> dict[str, int]:
        """The rows by name."""
        return {name: row for row, name in enumerate(self.names)}

    def row(self, our_id: int) -> int:
        """Return the row of one of our ids."""
        return self.ids.index(our_id)


def kept(embeddings: Tensor, bias: Tensor | None = None) -> int:
    """Return how many of our ids the model knows itself.

    Those behind them have been added by an import.

    Args:
        embeddings: [V, D].
        bias: of the logits [V]; none for a source that shares nothing with the target.
    """
    added = (embeddings == embeddings[SPECIAL.unknown]).all(1)
    if bias is not None:
        added &= bias == NEVER
    known = (~added).nonzero()
    return max(len(SPECIAL), int(known.max()) + 1)


def marian_rows(names: list[str], *, as_opus: bool) -> Rows:
    """Put the names of our ids in an order for MarianTokenizer.

    Args:
        names: of those ids that are kept.
        as_opus: whether the decoder begins with padding, as such a model's does, whose embedding is zero.
    """
    pad, unknown, _, end = SPELLED
    rest = [*range(len(SPECIAL), len(names))]
    pieces = [names[i] for i in rest]
    if as_opus:
        last = len(rest) + 2
        return Rows([SPECIAL.end, SPECIAL.unknown, *rest, SPECIAL.start], [end, unknown, *pieces, pad], last, last, 0)
    return Rows([*SPECIAL, *rest], [*SPELLED, *pieces], *(SPECIAL.pad, SPECIAL.start, SPECIAL.end))


def fairseq_rows(names: list[str], languages: list[str], *, same_start: bool) -> Rows:
    """Put the names of our ids in the order of M2M100 and NLLB: four special ones, pieces, languages, all else.

    Args:
        names: of those ids that are kept.
        languages: names of the rows that stand for a language.
        same_start: whether the decoder begins with the end token, as theirs do; else with `<s>`.

    Raises:
        UserError: M2M100's tokenizer has other languages.
    """
    pad, unknown, start, end = SPELLED
    told = {*languages}
    named = {name: i for i, name in enumerate(names) if i >= len(SPECIAL)}
    first = named.pop("<row 0>", None) if same_start else None
    if same_start and first is None:
        first = SPECIAL.pad  # nothing is ever fed or says it
    groups: list[list[int]] = [[], [], []]
    for name, i in named.items():
        groups[1 if name in told else 2 if name.startswith("<row ") else 0].append(i)
    if languages[0].startswith("__") and [names[i].strip("_") for i in groups[1]] != M2M100:
        what = f"knows {len(languages)} languages, and M2M100's tokenizer knows other ones"
        raise UserError(f"the model {what}", fix="Use --to ctranslate2.")
    begun = SPECIAL.start if first is None else first
    ids = [begun, SPECIAL.pad, SPECIAL.end, SPECIAL.unknown, *(i for group in groups for i in group)]
    written = [start, pad, end, unknown, *(names[i] for i in ids[len(SPECIAL) :])]
    return Rows(ids, written, 1, 2 if same_start else 0, 2)
