"""The options of a tokenizer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from translucid.ground.option_group import OptionGroup


class TokenizerOptions(OptionGroup):
    """How text is segmented into subwords."""

    kind: Literal["bpe", "unigram"] = "bpe"
    """Byte-pair encoding (Sennrich et al. 2016), or a unigram language model over pieces (Kudo 2018)."""
    vocabulary: int = Field(8000, ge=5, le=1_000_000)
    """The number of pieces in the vocabulary, including four special ones; for each language unless `joint`."""
    joint: bool = True
    """Whether both languages share one model and vocabulary; otherwise, each has its own."""
    shared_ids: bool = False
    """For imported models: each language has its own model, but the same pieces have the same ids."""
    coverage: float = Field(1.0, ge=0.98, le=1)
    """The share of the text's characters that get a piece; the rarest become unknown. Use 0.9995 for Chinese or
    Japanese."""
    normalisation: Literal["adaptive", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "adaptive"
    """The normalisation of characters: Unicode NFKC; `nmt` also tidies spaces and control characters, `cf` lower-cases.
    `adaptive` is `nmt_nfkc`, but leaves alone characters that are frequent in the text and part of its spelling, such
    as ², … and º, full-width punctuation, or the zero-width non-joiner of Persian (docs/training.md)."""
    sample: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The vocabulary is learned from at most this many random training pairs; more take memory and change little."""
    languages: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    """The piece that stands for each language of a multilingual model, by its code; a training with several directions
    sets it."""
    language_pieces: Literal["source-side", "both-sides"] = "source-side"
    """Where these pieces are put: that of the target language before the source (Johnson et al. 2017, our training and
    Marian), or that of each language before its own text (M2M100 and NLLB)."""
    added: int = Field(0, ge=0, le=100_000)
    """For fine-tuning: the most pieces that are added for words that are frequent in the training text and that the
    vocabulary cuts into three or more; the embedding of a word starts as the mean of theirs. If the files have
    languages that a multilingual model lacks, they are subwords of these languages, by default 2,000
    (docs/multilingual.md)."""

    @property
    def marks_sources(self) -> bool:
        """Whether the source language has a piece too, not only the target language."""
        return self.language_pieces == "both-sides"
