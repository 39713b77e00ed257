"""The options of the corpus."""

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
"""A pattern for text without control characters and other invisible ones."""


class DataOptions(OptionGroup):
    """The sentence pairs or texts to learn from, and how they become tokens."""

    train: list[str] = Field(default_factory=list)
    """Training files: .tsv, .jsonl, .tmx, .po, .xliff or a Moses pair `name.{en,de}`, gzipped or not; for running text
    also .txt and others."""
    valid: list[str] = Field(default_factory=list)
    """Validation files; without any, up to 1,000 training pairs, or texts, are held out."""
    train_alignments: list[str] = Field(default_factory=list)
    """For training.guided_alignment: a file of word links for each file of `train`, one line `0-0 1-2` for each pair
    (source word first). Files without links of their own, as .jsonl files with the field `alignment` have, are linked
    by statistics."""
    synthetic: list[str] = Field(default_factory=list)
    """Training files whose sources were written by a model (`translucid data back-translate`); they get a tag."""
    target_text: list[str] = Field(default_factory=list)
    """Files with text of the target language alone, one text a line. The decoder learns it as a language model, with an
    empty source (Sennrich et al. 2016, section 3.1), so that a decoder initialised from a language model does not
    forget it (Ramachandran et al. 2017)."""
    mix: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    """Further training files, such as those of the general corpus in fine-tuning, and the share of each epoch that is
    drawn from them. The rest of an epoch is one pass over the other training files."""
    valid_general: list[str] = Field(default_factory=list)
    """Validation files for what the model could do before it was fine-tuned; see training.max_regression."""
    reverse: bool = False
    """Learn to translate from the target to the source of the files, also in evaluation; `synthetic` stays as it is."""
    images: list[str] = Field(default_factory=list)
    """Folders and .tar files with the captioned images; by default, the folders of the captions."""
    mirror: bool = False
    """Mirror half of the training images, another half in each epoch; not if captions distinguish left and right. For
    image encoders that are not frozen."""
    shift: int = Field(0, ge=0, le=1024)
    """Shift training images by up to this many pixels vertically and horizontally, differently in each epoch. For
    image encoders that are not frozen."""
    skip_bad: bool = False
    """Skip lines that are not sentence pairs, or not texts, and write them to bad-lines.jsonl in the run folder."""
    weights: list[Annotated[float, Field(gt=0)]] | None = None
    """The weight of each training corpus in an epoch, in any unit, such as [3, 1]: those of `train` first, then those
    of `synthetic` and of `target_text`. By default, the weights are the sizes."""
    temperature: float = Field(1.0, ge=1)
    """T of the weights size^(1/T) of the training corpora: above 1, small corpora are repeated more than large ones."""
    source_language: str | None = Field(None, pattern=_PRINTABLE)
    """The code of the source language of the files, such as `en`; for display, for splitting sentences, and to choose
    among the texts of a .tmx file."""
    target_language: str | None = Field(None, pattern=_PRINTABLE)
    """The code of the target language, such as `es`."""
    filter: Filter = Field(default_factory=Filter)
    """The filter of pairs."""
    tokenizer: TokenizerOptions = Field(default_factory=TokenizerOptions)
    """How text is cut into subwords."""
    max_tokens: int = Field(256, ge=2, le=1 << 14)
    """Training pairs with more tokens than this on either side are skipped."""
    subword_dropout: float = Field(0.0, ge=0, lt=1)
    """Cut the text into other subwords in each epoch (BPE-dropout, Provilkov et al. 2020). For small data, which is
    then kept in memory; learning takes longer (docs/results.md)."""

    fuzzy_matches: int = Field(0, ge=0, le=99)
    """The smallest similarity, in percent, of a match among the other training pairs from which the model learns: the
    pair is repeated with the translation of the match after its source (Bulte and Tezcan 2019). `translate --memory`
    then shows the model such matches. 50 is usual, 0 disables it; it needs a joint vocabulary."""
    placeholders: float = Field(0.0, ge=0, lt=1)
    """Above 0, the vocabulary gets pieces that stand for placeholders, tags, addresses and emoji. In training, they
    replace those that both sides of a pair have and, in this share of the other pairs, names and numbers that both
    sides have. Translation replaces them in the same way (docs/placeholders.md)."""
    terms: float = Field(0.0, ge=0, lt=1)
    """The share of training pairs in which some words are followed by the dictionary form of their translation, between
    reserved pieces: the model learns to apply and to inflect terms (docs/terminology.md). Which words translate each
    other is learned from the pairs. It needs the codes of both languages and a joint vocabulary."""

    @property
    def reserved(self) -> tuple[str, ...]:
        """The reserved pieces that the vocabulary must have."""
        pieces: list[str] = []
        if self.placeholders:
            pieces += PLACEHOLDERS
        if self.terms:
            pieces += TERM
        if self.fuzzy_matches:
            pieces.append(MATCH)
        return tuple(pieces)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the languages that the model reads and writes."""
        both = self.source_language, self.target_language
        return both[::-1] if self.reverse else both

    @property
    def chosen_languages(self) -> tuple[str | None, str | None] | None:
        """The codes of the languages that were chosen for a multilingual model; None for a model of a single pair."""
        return self.languages if self.tokenizer.languages else None

    def between(self, source: str | None, target: str | None) -> DataOptions:
        """Return the options with two other languages of a multilingual model; None leaves a language unchanged.

        A code is the model's, such as `spa_Latn`, or the usual one, such as `es`.

        Raises:
            UserError: the model has a single pair of languages, and it is another one.
        """
        known = self.tokenizer.languages
        changes = {}
        for side, code, before in zip(("source", "target"), (source, target), self.languages, strict=True):
            if code and known:
                code = find_code(code, known) or code
            if code in (None, before):
                continue
            if before and not known:
                what = f"the model has one {side} language, {before}, and {code} was asked for"
                raise UserError(what, fix=f"Leave --{side}-language out.")
            in_files = {"source": "target", "target": "source"}[side] if self.reverse else side
            changes[f"{in_files}_language"] = code
        return self.model_copy(update=changes)

    @model_validator(mode="after")
    def _fits_together(self) -> DataOptions:
        if self.weights and self.temperature != 1:
            raise ValueError("data.weights and data.temperature both say how corpora are mixed: give one of them")
        if sum(self.mix.values()) >= 1:
            raise ValueError("data.mix leaves nothing of an epoch to the training files: lower the shares")
        if self.fuzzy_matches and not self.tokenizer.joint:
            raise ValueError("data.fuzzy_matches needs data.tokenizer.joint: a source has words of both languages")
        if self.terms and not self.tokenizer.joint:
            raise ValueError("data.terms needs one vocabulary for both languages: set data.tokenizer.joint=true")
        if self.train_alignments and len(self.train_alignments) != len(self.train):
            alignments, files = len(self.train_alignments), len(self.train)
            raise ValueError(f"data.train_alignments names {alignments} files for {files} of data.train: give one each")
        if self.train_alignments and self.skip_bad:
            raise ValueError("data.train_alignments and data.skip_bad do not go together: lines must correspond")
        if self.subword_dropout and self.tokenizer.languages:
            raise ValueError("data.subword_dropout is not for models of many languages")
        return self
