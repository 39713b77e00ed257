"""How text becomes pieces of words."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from translucid.ground.option_group import OptionGroup


class TokenizerOptions(OptionGroup):
    """How text becomes pieces of words."""

    kind: Literal["bpe", "unigram"] = "bpe"
    """Byte-pair encoding (Sennrich et al. 2016) or a unigram language model over pieces (Kudo 2018)."""
    vocabulary: int = Field(8000, ge=5, le=1_000_000)
    """Pieces in the vocabulary, four special ones included; for each language unless `joint`."""
    joint: bool = True
    """One model and vocabulary for both languages, or one each."""
    shared_ids: bool = False
    """Of an imported model: one each, and the same pieces have the same ids."""
    coverage: float = Field(1.0, ge=0.98, le=1)
    """Share of the text's characters that get a piece, the rarest become unknown; 0.9995 for Chinese or Japanese."""
    normalisation: Literal["adaptive", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "adaptive"
    """What is done to characters first: Unicode NFKC; `nmt` tidies spaces and control characters, `cf` lower-cases.
    `adaptive` is `nmt_nfkc`, but leaves alone the characters that the text has often and that are part of its spelling,
    such as ², … and º, full-width punctuation, or the zero-width non-joiner of Persian (docs/training.md)."""
    sample: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """Learn from at most this many pairs, drawn at random from the training data: more take memory, change little."""
    languages: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    """Of an imported model with many languages: by code, the piece that stands for the language."""
    told: Literal["target in the source", "each on its own side"] = "target in the source"
    """Where such a piece stands in front: that of the target language before the source (Marian), or each language's
    before its own text (M2M100 and NLLB)."""
    added: int = Field(0, ge=0, le=100_000)
    """Of what begins as another run: so many more pieces, at most, for words that come often in the training text and
    that the vocabulary cuts into three or more; a word's embedding begins as the mean of theirs."""
