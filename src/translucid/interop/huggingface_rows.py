"""Our vocabulary in the order of Hugging Face's tokenizers.

MarianTokenizer accepts any order. Runs that we train keep theirs; a model without a start embedding gets the order of
OPUS: `</s>` and `<unk>` first, and last `<pad>`, with which its decoder begins. M2M100 and NLLB have Fairseq's order.
Rows that an import has added (`Vocabulary.add_unknown`) are removed: both tokenizers replace unknown pieces by `<unk>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.interop.pieces import NEVER

_CODES = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig
ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so
sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
"""
M2M100 = _CODES.split()
"""The languages of M2M100's tokenizer, which expects their rows in this order after those of the pieces."""


@dataclass(frozen=True)
class Rows:
    """A vocabulary in another order."""

    ids: list[int]
    """Our id of each row."""
    names: list[str]
    """The piece of each row."""
    pad: int
    """The row of padding."""
    start: int
    """The row of the decoder's first input."""
    end: int
    """The row of the end token."""

    @property
    def vocabulary(self) -> dict[str, int]:
        """The rows by name."""
        return {name: row for row, name in enumerate(self.names)}


def original_size(embeddings: Tensor, bias: Tensor | None = None) -> int:
    """Return the number of ids that the model had originally; those after them were added by an import.

    Args:
        embeddings: [V, D].
        bias: the bias of the logits [V]; None for a source that shares nothing with the target.
    """
    # An import gives these pieces a copy of the unknown row, and a logit that they never reach.
    added = (embeddings == embeddings[SPECIAL.unknown]).all(1)
    if bias is not None:
        added &= bias == NEVER
    original = (~added).nonzero()
    return max(len(SPECIAL), int(original.max()) + 1)


def marian_rows(names: list[str], *, as_opus: bool) -> Rows:
    """Put our ids into an order for MarianTokenizer.

    Args:
        names: the pieces of those ids that are kept.
        as_opus: whether the decoder begins with padding, whose embedding is zero, as in models of OPUS.
    """
    pad, unknown, _, end = SPELLINGS
    piece_ids = [*range(len(SPECIAL), len(names))]
    pieces = [names[i] for i in piece_ids]
    if as_opus:
        pad_row = len(piece_ids) + 2
        return Rows(
            [SPECIAL.end, SPECIAL.unknown, *piece_ids, SPECIAL.start], [end, unknown, *pieces, pad], pad_row, pad_row, 0
        )
    return Rows([*SPECIAL, *piece_ids], [*SPELLINGS, *pieces], *(SPECIAL.pad, SPECIAL.start, SPECIAL.end))


def fairseq_rows(names: list[str], languages: list[str], *, same_start: bool) -> Rows:
    """Put our ids into the order of M2M100 and NLLB: four special tokens, pieces, languages, all others.

    Args:
        names: the pieces of those ids that are kept.
        languages: the pieces that stand for a language.
        same_start: whether the decoder begins with the end token, as theirs does; otherwise with `<s>`.

    Raises:
        UserError: M2M100's tokenizer has other languages.
    """
    pad, unknown, start, end = SPELLINGS
    ids_by_name = {name: i for i, name in enumerate(names) if i >= len(SPECIAL)}
    start_id = SPECIAL.start
    if same_start:
        # The model never uses the row of `<s>`: an import calls it `<row 0>`, otherwise padding takes its place.
        start_id = ids_by_name.pop("<row 0>", SPECIAL.pad)
    language_names = {*languages}
    pieces, language_ids, other_ids = [], [], []
    for name, i in ids_by_name.items():
        if name in language_names:
            language_ids.append(i)
        elif name.startswith("<row "):
            other_ids.append(i)
        else:
            pieces.append(i)
    if languages[0].startswith("__") and [names[i].strip("_") for i in language_ids] != M2M100:
        what = f"knows {len(languages)} languages, and M2M100's tokenizer knows other ones"
        raise UserError(f"the model {what}", fix="Use --to ctranslate2.")
    row_ids = [*pieces, *language_ids, *other_ids]
    ids = [start_id, SPECIAL.pad, SPECIAL.end, SPECIAL.unknown, *row_ids]
    row_names = [start, pad, end, unknown, *[names[i] for i in row_ids]]
    return Rows(ids, row_names, 1, 2 if same_start else 0, 2)
