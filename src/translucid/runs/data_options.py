"""What can be set about the corpus."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from translucid.data.filtering import Filter
from translucid.data.languages import find_code
from translucid.data.tokenizing.reserved import MATCH, PLACEHOLDERS, TERM
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup

_PRINTABLE = r"^\P{C}*$"
"""No control characters, nor others that are not seen."""


class DataOptions(OptionGroup):
    """Which sentence pairs or texts to learn from, and how they become tokens."""

    train: list[str] = Field(default_factory=list)
    """Training files: .tsv, .jsonl, .tmx, .po, .xliff or a Moses pair `name.{en,de}`, gz or not; of running text also
    .txt and others."""
    valid: list[str] = Field(default_factory=list)
    """Validation files; without any, up to 1,000 training pairs, or texts, are held out."""
    synthetic: list[str] = Field(default_factory=list)
    """Training files whose sources a model wrote (`translucid data back-translate`); each gets a tag in front."""
    target_text: list[str] = Field(default_factory=list)
    """Text of the target language alone, a text a line: the decoder learns it as a language model, from an empty source
    (Sennrich et al. 2016, section 3.1), so that it does not forget what it began with (Ramachandran et al. 2017)."""
    mix: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    """Further training files, such as those of the general corpus in fine-tuning, and what share of each epoch is drawn
    from them. The rest is `train` and the like, as large as they are: an epoch goes through them once."""
    valid_general: list[str] = Field(default_factory=list)
    """Validation files of what the model could do before it was fine-tuned; see training.max_regression."""
    reverse: bool = False
    """Learn from the target to the source of the files, those of evaluation too; `synthetic` is read as it stands."""
    images: list[str] = Field(default_factory=list)
    """Folders and .tar files with the images that captions are about; if not given, the folders of the captions."""
    mirror: bool = False
    """Let left and right change places in half of the training images, another half each epoch; not where captions tell
    left from right. For networks that are not frozen."""
    shift: int = Field(0, ge=0, le=1024)
    """Move training images by up to so many pixels up or down and left or right, in another way each epoch. For
    networks that are not frozen."""
    skip_bad: bool = False
    """Skip lines that are no sentence pairs, or no texts, and write them to bad-lines.jsonl in the run folder."""
    weights: list[Annotated[float, Field(gt=0)]] | None = None
    """What part of an epoch each training corpus is, in any unit, those of `train` first, then those of `synthetic`:
    and of `target_text`: [3, 1]; if not given, each as large as it is."""
    temperature: float = Field(1.0, ge=1)
    """T of the parts size^(1/T) of the training corpora: above 1, small ones are read more often than large ones."""
    source_language: str | None = Field(None, pattern=_PRINTABLE)
    """Code of the source language of the files, such as `en`; for display, for splitting sentences, and to choose among
    the texts of a .tmx."""
    target_language: str | None = Field(None, pattern=_PRINTABLE)
    """Code of the target language, such as `es`."""
    filter: Filter = Field(default_factory=Filter)
    """Which pairs are skipped."""
    tokenizer: TokenizerOptions = Field(default_factory=TokenizerOptions)
    """How text becomes pieces of words."""
    max_tokens: int = Field(256, ge=2, le=1 << 14)
    """Training pairs with more tokens than this on either side are skipped."""
    subword_dropout: float = Field(0.0, ge=0, lt=1)
    """Other segmentations of the text each epoch (BPE-dropout, Provilkov et al. 2020), for small data, which it holds
    in memory; learning then takes longer (docs/results.md)."""

    fuzzy_matches: int = Field(0, ge=0, le=99)
    """Percent from which on a match among the other training pairs is learned from: the pair comes a second time, with
    the match's translation behind its source (Bulte and Tezcan 2019). `translate --memory` then shows the model such
    matches. 50 is usual, 0 is none; for one vocabulary of both languages."""
    placeholders: float = Field(0.0, ge=0, lt=1)
    """Above 0, the vocabulary gets pieces that stand for placeholders, tags, addresses and emoji. Training puts them in
    the place of those that both sides of a pair have, and in this share of the other pairs in that of names and numbers
    that both sides have. What is translated is treated likewise (docs/placeholders.md)."""
    terms: float = Field(0.0, ge=0, lt=1)
    """In so large a share of the training pairs some words are followed by the dictionary form of their translation, in
    pieces that the vocabulary keeps for it: the model learns to apply terms and to inflect them (docs/terminology.md).
    Which words translate each other is learned from the pairs. Needs both languages' codes and a joint vocabulary."""

    @property
    def reserved(self) -> tuple[str, ...]:
        """Pieces that the vocabulary has to have for what is no word."""
        placeholders, terms = PLACEHOLDERS * bool(self.placeholders), TERM * bool(self.terms)
        return (*placeholders, *terms, *[MATCH] * bool(self.fuzzy_matches))

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of what the model reads and of what it writes."""
        both = self.source_language, self.target_language
        return both[::-1] if self.reverse else both

    def between(self, source: str | None, target: str | None) -> DataOptions:
        """Return the same with other languages of a model that has many; None leaves one as it is.

        Codes are the model's own, such as `spa_Latn`, or usual ones, such as `es`.

        Raises:
            UserError: it is a model of one pair of languages, and of another one.
        """
        wanted = {"source": source, "target": target}
        before = dict(zip(wanted, self.languages, strict=True))
        if known := self.tokenizer.languages:
            wanted = {side: code and (find_code(code, known) or code) for side, code in wanted.items()}
        changes = {side: code for side, code in wanted.items() if code not in (None, before[side])}
        if not known:
            for side, code in changes.items():
                if before[side]:
                    what = f"the model has one {side} language, {before[side]}, and {code} was asked for"
                    raise UserError(what, fix=f"Leave --{side}-language out.")
        if self.reverse:  # whose files have the source on the other side
            changes = {
                side: changes[other] for side, other in (("source", "target"), ("target", "source")) if other in changes
            }
        return self.model_copy(update={f"{side}_language": code for side, code in changes.items()})

    @model_validator(mode="after")
    def _one_way_of_mixing(self) -> DataOptions:
        if self.weights and self.temperature != 1:
            raise ValueError("data.weights and data.temperature both say how corpora are mixed: give one of them")
        if sum(self.mix.values()) >= 1:
            raise ValueError("data.mix leaves nothing of an epoch to the training files: lower the shares")
        return self

    @model_validator(mode="after")
    def _matches_in_one_vocabulary(self) -> DataOptions:
        if self.fuzzy_matches and not self.tokenizer.joint:
            raise ValueError("data.fuzzy_matches needs data.tokenizer.joint: a source has words of both languages")
        return self

    @model_validator(mode="after")
    def _terms_in_one_vocabulary(self) -> DataOptions:
        if self.terms and not self.tokenizer.joint:
            raise ValueError("data.terms needs one vocabulary for both languages: set data.tokenizer.joint=true")
        return self

    @model_validator(mode="after")
    def _one_way_of_opening(self) -> DataOptions:
        if self.subword_dropout and self.tokenizer.languages:
            raise ValueError("data.subword_dropout is not for models of many languages")
        return self
