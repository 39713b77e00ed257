"""The options of the corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from bitext.languages import Languages, find_code
from bitext.protected_spans import PLACEHOLDERS
from bitext.user_patterns import bounded_pattern
from translucid.data.document_context import MAX_SENTENCES
from translucid.data.filtering import Filter
from translucid.data.readers.corpus import Direction
from translucid.data.tokenizing.pieces import MATCH, SEPARATOR, TERM
from translucid.data.tokenizing.tokenizer import TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.ground.special import FORMALITY
from translucid.runs.directions import (
    ANY_SOURCE,
    DirectedCorpus,
    LearnedDirections,
    includes,
    language_pieces,
    languages_of,
    missing_languages,
    model_code,
    readings,
    with_directions,
)

_PRINTABLE = r"^\P{C}*$"
"""A pattern for text without control characters and other invisible ones."""

ADDED_FOR_LANGUAGES = 2000
"""The default of `data.tokenizer.added` if a multilingual model gets a further language."""


class DataOptions(OptionGroup):
    """The sentence pairs or texts to learn from, and how they become tokens."""

    train: list[str] = Field(default_factory=list)
    """Training files: .tsv, .jsonl, .tmx, .po, .xliff or a Moses pair `name.{en,de}`, gzipped or not; for running text
    also .txt and others. The languages of a file may follow its name, as in `train.tsv:en-fr`. Files of several
    directions train one multilingual model (docs/multilingual.md)."""
    valid: list[str] = Field(default_factory=list)
    """Validation files; without any, up to 1,000 training pairs, or texts, are held out."""
    train_alignments: list[str] = Field(default_factory=list)
    """For training.guided_alignment and training.prefixes: a file of word links for each file of `train`, one line
    `0-0 1-2` for each pair (source word first). Files without links of their own, as .jsonl files with the field
    `alignment` have, are linked by statistics."""
    synthetic: list[str] = Field(default_factory=list)
    """Training files whose sources were written by a model (`translucid data back-translate`); they get a tag."""
    target_text: list[str] = Field(default_factory=list)
    """Files with text of the target language alone, one text a line. The decoder learns it as a language model, with an
    empty source (Sennrich et al. 2016, section 3.1), so that a decoder initialized from a language model does not
    forget it (Ramachandran et al. 2017)."""
    mix: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    """Further training files, such as those of the general corpus in fine-tuning, and the share of each epoch that is
    drawn from them. The rest of an epoch is one pass over the other training files."""
    valid_general: list[str] = Field(default_factory=list)
    """Validation files for what the model could do before it was fine-tuned; see training.max_regression. For a
    multilingual model, each direction of them is guarded."""
    reverse: bool = False
    """Learn to translate from the target to the source of the files, also in evaluation; `synthetic` stays as it is."""
    both_directions: bool = False
    """Learn to translate all files in both directions with one multilingual model, also in evaluation; `synthetic`
    stays as it is."""
    images: list[str] = Field(default_factory=list)
    """Folders and .tar files with the captioned images; by default, the folders of the captions."""
    mirror: bool = False
    """Mirror half of the training images, another half in each epoch; not if captions distinguish left and right. For
    image encoders that are not frozen."""
    shift: int = Field(0, ge=0, le=1024)
    """Shift training images by up to this many pixels vertically and horizontally, differently in each epoch. For
    image encoders that are not frozen."""
    seen_index: bool = True
    """Write hashes of the training sentences to seen.bin in the run folder, so that `evaluate` reports which sentences
    of a test set were in the training text (docs/cleaning.md). For translators."""
    skip_bad: bool = False
    """Skip lines that are not sentence pairs, or not texts, and write them to bad-lines.jsonl in the run folder."""
    weights: list[Annotated[float, Field(gt=0)]] | None = None
    """The weight of each training corpus in an epoch, in any unit, such as [3, 1]: those of `train` first, then those
    of `synthetic` and of `target_text`. By default, the weights are the sizes."""
    temperature: float = Field(1.0, ge=1)
    """T of the weights size^(1/T) of the training corpora, or of the directions of a multilingual model: above 1, small
    ones are repeated more than large ones (Arivazhagan et al. 2019)."""
    source_language: str | None = Field(None, pattern=_PRINTABLE)
    """The code of the source language of the files, such as `en`; for display, for splitting sentences, and to choose
    among the texts of a .tmx file."""
    target_language: str | None = Field(None, pattern=_PRINTABLE)
    """The code of the target language, such as `es`."""
    learned: dict[str, list[str]] = Field(default_factory=dict)
    """What the weights of a multilingual model have learned so far: the target languages of each source language. Each
    training adds those of its files; a run that is initialized from another inherits them. `*` stands for the sources
    of an imported model."""
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
    protected: list[str] = Field(default_factory=list, max_length=100)
    """Regular expressions of further parts that a translation must keep, such as `ACME-[0-9]+`, besides placeholders,
    tags and the like (docs/placeholders.md)."""
    terms: float = Field(0.0, ge=0, lt=1)
    """The share of training pairs in which some words are followed by the dictionary form of their translation, between
    reserved pieces: the model learns to apply and to inflect terms (docs/terminology.md). Which words translate each
    other is learned from the pairs. It needs the codes of both languages and a joint vocabulary."""

    context: int = Field(0, ge=0, le=MAX_SENTENCES)
    """The maximum number of sentences before a sentence, in its document, that the model reads with it
    (docs/context.md). Training draws from 0 to as many for each pair and epoch. Corpora say where documents begin: by a
    blank line, a column or key `document`, or in .tmx files by `x-document` or `tuid`."""

    formality: float = Field(0.0, ge=0, lt=1)
    """The share of the training pairs with a formal or informal target in which a control token before the source says
    so: `translate --formality` then chooses between *tú* and *usted*, *du* and *Sie*, *tu* and *vous*. Rules find out
    how a Spanish, German or French target addresses the reader; the key `formality` of a .jsonl file decides otherwise
    (docs/formality.md). 0.5 is usual, 0 disables it."""

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
        if self.context:
            pieces.append(SEPARATOR)
        if self.formality:
            pieces += FORMALITY.values()
        return tuple(pieces)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of the languages that the model reads and writes."""
        codes = self.source_language, self.target_language
        return codes[::-1] if self.reverse else codes

    @property
    def learned_directions(self) -> LearnedDirections:
        """The directions that the weights have learned, in this training and in those before."""
        return LearnedDirections(self.learned, marks_sources=self.tokenizer.marks_sources)

    def is_zero_shot(self, direction: Languages) -> bool:
        """Whether the model is multilingual and has not learned a direction."""
        return bool(self.learned) and direction not in self.learned_directions

    @property
    def corpus_directions(self) -> tuple[Direction, ...]:
        """The directions of the training corpora whose names have languages, without repetitions.

        These are the directions of the last training; see `learned_directions` for all.
        """
        corpora = []
        for name in (*self.train, *self.mix):
            corpora += self._readings(name, (None, None))
        corpora += self.corpora(self.synthetic, as_written=True)
        directions = []
        for corpus in corpora:
            source, target = corpus.direction
            if source and target and languages_of(corpus.name):
                directions.append((source, target))
        return tuple(dict.fromkeys(directions))

    @property
    def is_multilingual(self) -> bool:
        """Whether the files are of several directions."""
        return len(self.corpus_directions) > 1

    @property
    def corpus_weights(self) -> list[float] | None:
        """The weight of each training corpus in each of its directions, if `weights` is set."""
        if self.weights is None:
            return None
        names = iter(self.weights)
        weights = []
        for name, weight in zip(self.train, names, strict=False):
            weights += [weight] * len(self.corpora([name]))
        return [*weights, *names]

    @property
    def mixed_shares(self) -> list[float]:
        """The share of an epoch that each corpus of `mix` has in each of its directions."""
        shares = []
        for name, share in self.mix.items():
            count = len(self.corpora([name]))
            shares += [share / count] * count
        return shares

    @property
    def all_languages(self) -> list[str]:
        """The codes of all languages of a multilingual model."""
        learned = {*self.learned, *chain.from_iterable(self.learned.values())} - {ANY_SOURCE}
        return sorted({*self.tokenizer.languages, *chain.from_iterable(self.corpus_directions), *learned})

    @property
    def _chosen(self) -> Languages:
        """The languages of the model that are chosen, None where there is a choice."""
        source, target = self.languages
        model_codes = self.tokenizer.languages
        return source and model_code(source, model_codes), target and model_code(target, model_codes)

    def corpora(self, names: Iterable[str], *, as_written: bool = False) -> list[DirectedCorpus]:
        """Return the corpora that names of files stand for: one for each direction in which a file is read.

        If the languages of a multilingual model are chosen, files of other languages are left out.

        Args:
            names: the names of files.
            as_written: whether the options of the direction do not hold for them.
        """
        corpora = []
        for name in names:
            languages = languages_of(name, self.tokenizer.languages)
            if as_written and languages:
                corpora.append(DirectedCorpus(name, languages, swapped=False))
            elif as_written:
                corpora.append(DirectedCorpus(name, self.languages, swapped=False))
            else:
                corpora += self._readings(name, self._chosen)
        return [corpus._replace(documents=bool(self.context)) for corpus in corpora]

    @property
    def general_corpora(self) -> list[DirectedCorpus]:
        """The corpora of `valid_general`, in all directions of a multilingual model, also if one is trained alone."""
        chosen = (None, None) if self.tokenizer.languages else self._chosen
        return list(chain.from_iterable(self._readings(name, chosen) for name in self.valid_general))

    @property
    def validation_files(self) -> list[str]:
        """The files with validation pairs of the chosen languages: `valid`, or `valid_general` if only it has any."""
        if not self.tokenizer.languages:
            return self.valid
        for files in (self.valid, self.valid_general):
            if self.corpora(files):
                return files
        return []

    def _readings(self, name: str, chosen: Languages) -> list[DirectedCorpus]:
        """Return the corpora that the name of a file stands for, only those with the chosen languages."""
        languages = languages_of(name, self.tokenizer.languages)
        if languages is None:
            return [DirectedCorpus(name, self.languages, self.reverse)]
        both_directions = self.both_directions
        return readings(name, languages, chosen=chosen, reverse=self.reverse, both_directions=both_directions)

    @property
    def chosen_languages(self) -> tuple[str | None, str | None] | None:
        """The codes of the languages that were chosen for a multilingual model; None for a model of a single pair."""
        return self.languages if self.tokenizer.languages else None

    def of_files(self, names: Iterable[str]) -> DataOptions:
        """Return the options with no choice of languages if the names of files say which they have.

        The languages of a multilingual run are those that it translates between if no others are requested.
        """
        if not self.tokenizer.languages or not all(map(languages_of, names)):
            return self
        return self.model_copy(update=dict.fromkeys(self._language_keys))

    def between(self, source: str | None, target: str | None) -> DataOptions:
        """Return the options with two other languages of a multilingual model; None leaves a language unchanged.

        A code is the model's, such as `spa_Latn`, or the usual one, such as `es`.

        Raises:
            UserError: the model has a single pair of languages, and it is another one.
        """
        model_codes = self.tokenizer.languages and self.all_languages
        changes = {}
        sides = zip(("source", "target"), self._language_keys, (source, target), self.languages, strict=True)
        for side, key, code, current in sides:
            if code and model_codes:
                code = find_code(code, model_codes) or code
            if code in (None, current):
                continue
            if current and not model_codes:
                what = f"the model has one {side} language, {current}, and {code} was asked for"
                raise UserError(what, fix=f"Leave `{side}` out.")
            changes[key] = code
        return self.model_copy(update=changes)

    @model_validator(mode="after")
    def _languages_of_corpora(self) -> DataOptions:
        """Take the languages of the model from the names of its corpora."""
        names = [*self.train, *self.synthetic, *self.mix, *self.valid, *self.valid_general]
        if self.both_directions and self.reverse:
            raise ValueError("data.both_directions and data.reverse do not go together: leave one out")
        if self.both_directions or self.is_multilingual:
            for problem in self._problems_of_directions(names):
                raise ValueError(problem)
        self._set_languages(self.corpus_directions)
        for name in names:
            if not self.tokenizer.languages and not self.corpora([name]):
                chosen = " and ".join(filter(None, self._chosen))
                raise ValueError(f"{name} has other languages than the other files: {chosen}")
        self._set_learned()
        return self

    def _set_learned(self) -> None:
        """Add the directions of the training files to those that a multilingual model has learned."""
        if not self.tokenizer.languages:
            return
        learned: dict[str, list[str]] = self.learned
        if not learned and not self.train:  # an imported model
            learned = {ANY_SOURCE: sorted(self.tokenizer.languages)}
        directions = list(self.corpus_directions)
        source, target = self.languages
        if self.train and not directions and source and target:  # the names of the files have no languages
            directions.append((source, target))
        self.__dict__["learned"] = with_directions(learned, directions, marks_sources=self.tokenizer.marks_sources)

    def _set_languages(self, directions: Sequence[Direction]) -> None:
        """Set the languages of the model, as far as they are not set."""
        if not directions:
            return
        # The options are frozen for their users; here they are still being made.
        if self.is_multilingual or self.tokenizer.languages:
            self.__dict__["tokenizer"] = self._tokenizer_of(directions)
        sources, targets = map(set, zip(*directions, strict=True))
        # A language that all directions have needs no choice.
        for codes, key in zip((sources, targets), self._language_keys, strict=True):
            if len(codes) == 1 and getattr(self, key) is None:
                self.__dict__[key] = codes.pop()

    def _tokenizer_of(self, directions: Sequence[Direction]) -> TokenizerOptions:
        """Return the options of a tokenizer that has the pieces of all languages of the training text."""
        tokenizer = self.tokenizer
        languages = language_pieces(directions, tokenizer.languages, of_sources=tokenizer.marks_sources)
        changes: dict[str, Any] = {"languages": languages}
        is_extended = tokenizer.languages and len(languages) > len(tokenizer.languages)
        if is_extended and "added" not in tokenizer.model_fields_set:
            changes["added"] = ADDED_FOR_LANGUAGES
        return tokenizer.model_copy(update=changes)

    @property
    def _language_keys(self) -> tuple[str, str]:
        """The names of the options with the source and the target language of the model."""
        keys = "source_language", "target_language"
        return keys[::-1] if self.reverse else keys

    def _problems_of_directions(self, names: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with the options of a run with several directions."""
        yield from missing_languages(names)
        for name in ("target_text", "fuzzy_matches", "terms", "subword_dropout"):
            if getattr(self, name):
                yield f"data.{name} is for a single direction, and data.train has several: leave it out"
        if not all(includes(self._chosen, direction) for direction in self.corpus_directions):
            what = "data.source_language and data.target_language choose one of several directions: leave them out"
            what += ", or set them to null if a multilingual run has them from its import"
            yield f"{what}; a run with these languages alone gets no others, only a multilingual one does"
        if not self.valid and self.train:
            yield "several directions need validation files: give data.valid, or `valid=FILES:en-fr`"
        if not self.tokenizer.joint:
            yield "several directions need one vocabulary: set data.tokenizer.joint=true"
        pieces = self._tokenizer_of(self.corpus_directions).languages
        for corpus in self.corpora([*names]):
            codes = corpus.direction if self.tokenizer.marks_sources else corpus.direction[1:]
            for code in codes:
                if code not in pieces:
                    yield f"{corpus.name}: the model does not learn to write {code}, only {', '.join(pieces)}"

    @field_validator("protected")
    @classmethod
    def _is_fast(cls, patterns: list[str]) -> list[str]:
        """Refuse patterns that are invalid, or whose search may take very long."""
        for pattern in patterns:
            bounded_pattern(pattern)
        return patterns

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
            raise ValueError("data.subword_dropout is not for multilingual models")
        return self
