"""A tokenizer: text to subword ids and back with SentencePiece (Kudo and Richardson 2018), learned from text.

It has one or two models for two languages. The first four ids are those of `ground.special`. No text yields padding,
start or end: `<s>` in a sentence is three ordinary characters. The tag of synthetic pairs is a control symbol too: only
`tag` returns its id.
"""

from __future__ import annotations

import copy
import hashlib
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import sentencepiece
from pydantic import Field

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from bitext.reading import read_at_most
from bitext.words import count_characters, linked_words
from translucid.data.filtering import reservoir_sample
from translucid.data.placeholders import Masked, mask
from translucid.data.tokenizing.normalization import ADAPTIVE, BASE, QUIET, Characters, described, normalizer_without
from translucid.data.tokenizing.pieces import RESERVED_PIECES, SPACE, TERM, ListedPieces, named_pieces, sanitized
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.ground.special import FORMALITY, SPECIAL, SPELLINGS, TAG, Formality


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
    normalization: Literal["adaptive", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "adaptive"
    """The normalization of characters: Unicode NFKC; `nmt` also tidies spaces and control characters, `cf` lower-cases.
    `adaptive` is `nmt_nfkc`, but leaves alone characters that are frequent in the text and part of its spelling, such
    as ², … and º, full-width punctuation, or the zero-width non-joiner of Persian (docs/training.md)."""
    sample: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The vocabulary is learned from at most this many random training pairs; more take memory and change little."""
    languages: dict[str, str] = Field(default_factory=dict, max_length=10_000)
    """The piece that stands for each language of a multilingual model, by its code; a training with several directions
    sets it. In imported models, several pieces may stand for a language, separated by spaces."""
    language_pieces: Literal["source-side", "both-sides"] = "source-side"
    """Where these pieces are put: that of the target language before the source (Johnson et al. 2017, our training and
    Marian), or that of each language before its own text (M2M100 and NLLB)."""
    source_start: bool = False
    """Every source begins with the start token; for imported models."""
    added: int = Field(0, ge=0, le=100_000)
    """For fine-tuning: the most pieces that are added for words that are frequent in the training text and that the
    vocabulary cuts into three or more; the embedding of a word starts as the mean of theirs. If the files have
    languages that a multilingual model lacks, they are subwords of these languages, by default 2,000
    (docs/multilingual.md)."""

    @property
    def marks_sources(self) -> bool:
        """Whether the source language has a piece too, not only the target language."""
        return self.language_pieces == "both-sides"


# Sums of floats depend on the number of threads; with a fixed number, all machines learn the same unigram model.
_LEARNING_THREADS = 8
_TOO_LARGE = re.compile(r"too high.*<= (\d+)")
"""SentencePiece's message that the vocabulary is too large for the text, with the largest possible size."""
_TOO_SMALL = re.compile(r"smaller than required_chars.*vs (\d+)")
"""SentencePiece's message that the vocabulary is too small for all characters, with the smallest possible size."""


@dataclass(frozen=True)
class Learning:
    """The learning of a vocabulary for one side of a corpus, or for both, with arguments of `Tokenizer.learn`."""

    text_name: str
    """The name of the text in messages."""
    options: TokenizerOptions
    reserved: Sequence[str]
    flexible: bool
    tell: Callable[[str], None]

    def model(self, texts: Sequence[str], *, tagged: bool) -> bytes:
        """Return a SentencePiece model.

        Raises:
            UserError: there is no text, or the vocabulary is larger or smaller than the text allows.
        """
        size, rule = self.options.vocabulary, self._normalization(texts)
        try:
            return self._trained(texts, size, rule, tagged)
        except RuntimeError as error:
            possible_size = _possible_size(str(error))
            if not self.flexible or possible_size is None:
                raise _user_error(str(error), size, self.text_name) from error
        reason = "too small for its single characters"
        if possible_size < size:
            reason = "larger than it supports"
        self.tell(f"{self.text_name} gets a vocabulary of {possible_size:,}: the preset's, {size:,}, is {reason}")
        try:
            return self._trained(texts, possible_size, rule, tagged)
        except RuntimeError as error:
            raise _user_error(str(error), possible_size, self.text_name) from error

    def _trained(self, texts: Sequence[str], size: int, rule: Mapping[str, Any], tagged: bool) -> bytes:
        model = io.BytesIO()
        controls = [*([TAG] if tagged else []), *self.options.languages.values()]
        symbols: list[str] = []
        for piece in self.reserved:
            (controls if piece in FORMALITY.values() else symbols).append(piece)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=map(sanitized, texts),
            model_writer=model,
            model_type=self.options.kind,
            vocab_size=size,
            character_coverage=self.options.coverage,
            pad_id=SPECIAL.pad,
            unk_id=SPECIAL.unknown,
            bos_id=SPECIAL.start,
            eos_id=SPECIAL.end,
            unk_surface="⁇",
            control_symbols=controls,
            user_defined_symbols=symbols,
            max_sentence_length=1 << 16,
            num_threads=_LEARNING_THREADS,
            minloglevel=QUIET,
            **rule,
        )
        return model.getvalue()

    def _normalization(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return SentencePiece's arguments for the normalization, and tell the user what it changes."""
        characters, rule = Characters(), self.options.normalization
        for text in texts:
            characters.add(text)
        if changed := characters.changed(rule):
            advice = "" if rule == ADAPTIVE else "; data.tokenizer.normalization=adaptive keeps what is often there"
            self.tell(f"normalization ({rule}) changes characters of {self.text_name}: {described(changed)}{advice}")
        if rule != ADAPTIVE:
            return {"normalization_rule_name": rule}
        preserved = characters.preserved()
        if not preserved:
            return {"normalization_rule_name": BASE}
        counts = {character: characters.counts[character] for character in preserved}
        self.tell(f"normalization ({rule}) leaves alone in {self.text_name}: {described(counts)}")
        return {"normalizer": normalizer_without(preserved)}


def _possible_size(message: str) -> int | None:
    """Return the size that SentencePiece's error message says to be possible, None if it names none."""
    match = _TOO_LARGE.search(message) or _TOO_SMALL.search(message)
    return int(match[1]) if match else None


def _user_error(message: str, vocabulary: int, text_name: str) -> Exception:
    """Return the error that explains SentencePiece's error message to the user."""
    if "sentences_.empty()" in message:
        return UserError(f"there is nothing to learn a vocabulary from: {text_name} is empty", fix="Check data.train.")
    if match := _TOO_LARGE.search(message):
        reason = f"larger than {text_name} supports, at most {match[1]}"
        fix = f"Set data.tokenizer.vocabulary={match[1]} or less."
    elif match := _TOO_SMALL.search(message):
        reason = f"smaller than {text_name} needs for its single characters, at least {match[1]}"
        fix = f"Set data.tokenizer.vocabulary={match[1]} or more, or a lower data.tokenizer.coverage."
    else:
        return RuntimeError(f"SentencePiece failed: {message}")
    return UserError(f"a vocabulary of {vocabulary} is {reason}", fix=fix)


LARGEST = 1 << 26
"""The most bytes of a SentencePiece file: a model with a million pieces has half as many."""

MAX_UNKNOWN_LENGTH = 100
"""The most characters that a model may write for an unknown piece; ours write three, `⁇` between spaces."""

_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Tokenizer:
    """A SentencePiece model for each language, or one for both if it is `joint`."""

    joint: bool
    """Whether both languages share one model."""
    source_size: int
    """The number of pieces in the source vocabulary."""
    target_size: int
    """The number of pieces in the target vocabulary."""
    threads: int = -1
    """The number of threads that encode many texts; -1 is the number of cores."""
    source_opening: Sequence[int] = ()
    """Ids before every source, such as that of a language."""
    target_opening: Sequence[int] = ()
    """Ids before every target."""
    formality: Formality | None = None
    """The form of address that the control token in `source_opening` asks for, if there is one."""

    def __init__(self, source: bytes, target: bytes | None = None) -> None:
        """Wrap serialized SentencePiece models; without `target`, `source` is the model of both languages.

        Raises:
            ValueError: these are not SentencePiece models, or their special ids are not ours.
        """
        self.joint = target is None
        self._models, self._source = {"tokenizer": source}, _processor(source)
        self._target = self._source
        if target is not None:
            self._models, self._target = {"source": source, "target": target}, _processor(target)
        self.source_size: int = self._source.get_piece_size()
        self.target_size: int = self._target.get_piece_size()

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes, ...], dict[str, Any]]:
        """Pickle the bytes of the models, because SentencePiece's objects can't be sent to another process."""
        openings = {"source_opening": self.source_opening, "target_opening": self.target_opening}
        return Tokenizer, tuple(self._models.values()), {**openings, "formality": self.formality}

    def between(self, source: str | None, target: str | None, options: TokenizerOptions) -> Tokenizer:
        """Return a tokenizer that puts the start token and the pieces of languages before texts, as the options say.

        Args:
            source: the code of the source language; ignored if only the target language has a piece.
            target: the code of the target language.
            options: the options of the tokenizer; without `languages`, there are no such pieces.

        Raises:
            UserError: a language is not given, or there is no piece for it.
        """
        if not options.languages and not options.source_start:
            return self
        tokenizer = copy.copy(self)
        tokenizer.formality = None
        start = [SPECIAL.start] if options.source_start else []
        tokenizer.source_opening, tokenizer.target_opening = start, ()
        if options.languages and options.marks_sources:
            tokenizer.source_opening = [*start, *_language_ids(source, options.languages, self._source, "source")]
            tokenizer.target_opening = _language_ids(target, options.languages, self._target, "target")
        elif options.languages:
            tokenizer.source_opening = [*start, *_language_ids(target, options.languages, self._source, "target")]
        return tokenizer

    def with_formality(self, formality: Formality | None) -> Tokenizer:
        """Return a tokenizer that puts the control token of this formality before sources, after their language.

        The vocabulary must have the token; None stands for no token.
        """
        if formality == self.formality:
            return self
        tokenizer, opening = copy.copy(self), list(self.source_opening)
        if self.formality:
            opening.pop()
        if formality:
            opening.append(self.source_id(FORMALITY[formality]))
        tokenizer.source_opening, tokenizer.formality = opening, formality
        return tokenizer

    @classmethod
    def learn(
        cls,
        pairs: Iterable[Pair],
        options: TokenizerOptions,
        *,
        seed: int,
        tagged: bool = False,
        reserved: Sequence[str] = (),
        flexible: bool = False,
        tell: Callable[[str], None] = lambda line: None,
    ) -> Tokenizer:
        """Learn the vocabulary from sentence pairs; the same arguments give the same model.

        Args:
            pairs: the text.
            options: the options of the tokenizer.
            seed: determines the sample of a large text.
            tagged: whether the source vocabulary gets a `tag`.
            reserved: reserved pieces of the vocabularies (`data/tokenizing/pieces.py`).
            flexible: whether the vocabulary may have another size if the text does not support the configured one.
            tell: called with messages about another size, and about characters that normalization changes.

        Raises:
            UserError: there is no text, or the vocabulary is larger or smaller than the text allows.
        """
        sample = reservoir_sample(pairs, options.sample, seed)
        if options.joint:
            texts = list(chain.from_iterable(sample))
            learning = Learning("the training text", options, reserved, flexible, tell)
            return cls(learning.model(texts, tagged=tagged))
        models = []
        for side in Pair._fields:
            learning = Learning(f"the {side} text", options, reserved, flexible, tell)
            texts = [getattr(pair, side) for pair in sample]
            models.append(learning.model(texts, tagged=tagged and side == "source"))
        return cls(*models)

    @classmethod
    def paired(cls, source: Tokenizer, target: Tokenizer) -> Tokenizer:
        """Return the source side of one tokenizer with the target side of another; joint if both models are equal."""
        models = dict.fromkeys((source.models[0], target.models[-1]))
        return cls(*models)

    @classmethod
    def load(cls, folder: Path, fingerprint: str | None = None) -> Tokenizer:
        """Read the SentencePiece files `tokenizer.model`, or `source.model` and `target.model`.

        Args:
            folder: the folder with the files.
            fingerprint: the fingerprint that the tokenizer must have, if known. It is compared before SentencePiece
                parses the files.

        Raises:
            UserError: a file is missing or damaged, its fingerprint differs, or its special ids are not ours.
        """
        names = ["tokenizer.model"] if (folder / "tokenizer.model").exists() else ["source.model", "target.model"]
        models = {}
        for name in names:
            file = folder / name
            try:
                models[file] = read_at_most(file, LARGEST)
            except FileNotFoundError as error:
                missing_files = "neither tokenizer.model nor source.model and target.model"
                raise UserError(
                    f"has no tokenizer: {missing_files}", file=folder, fix="Is this a run folder?"
                ) from error
            except OSError as error:
                raise UserError(f"can't be read ({error.strerror})", file=file) from error
        if fingerprint is not None and _fingerprint(models.values()) != fingerprint:
            fix = "Put back the tokenizer that the model was trained with."
            raise UserError("the tokenizer is not the model's: it was changed or damaged", file=folder, fix=fix)
        for file, model in models.items():
            try:
                _processor(model)
            except ValueError as error:
                raise UserError(str(error), file=file, fix="Take it from a backup, or train again.") from error
        return cls(*models.values())

    def save(self, folder: Path) -> None:
        """Write the files that `load` reads, atomically.

        Raises:
            UserError: the disk is full, or the folder can't be written to.
        """
        for name, content in self._models.items():
            write_atomically(folder / f"{name}.model", content)
        for name in {"tokenizer", "source", "target"} - set(self._models):
            (folder / f"{name}.model").unlink(missing_ok=True)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the models, by which a run recognizes the tokenizer that it was trained with."""
        return _fingerprint(self._models.values())

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        """Return the source ids of each text, without the end token; `▁`, SentencePiece's space, is read as `_`."""
        return _encode(self._source, texts, self.threads, self.source_opening)

    def encode_target(self, texts: list[str]) -> list[list[int]]:
        """Return the target ids of each text, without the end token, as `encode_source` does for the source."""
        return _encode(self._target, texts, self.threads, self.target_opening)

    @property
    def models(self) -> list[bytes]:
        """The SentencePiece models: one for both sides, or that of the source and that of the target."""
        return list(self._models.values())

    @property
    def tag(self) -> int | None:
        """The source id that marks synthetic pairs, if the vocabulary has one; no text yields it."""
        number: int = self._source.piece_to_id(TAG)
        return number if self._source.is_control(number) else None

    def reserves(self, pieces: Iterable[str]) -> bool:
        """Whether both vocabularies have all of some reserved pieces (`data/tokenizing/pieces.py`)."""
        pieces = list(pieces)
        return SPECIAL.unknown not in self._source.piece_to_id(pieces) + self._target.piece_to_id(pieces)

    def source_id(self, piece: str) -> int:
        """Return the source id of a piece, or that of the unknown piece."""
        return self._source.piece_to_id(piece)

    @cached_property
    def has_placeholders(self) -> bool:
        """Whether the vocabularies have the pieces that stand for placeholders."""
        return self.reserves(PLACEHOLDERS)

    def mask(self, text: str, patterns: Sequence[str] = ()) -> Masked:
        """Return a text with such pieces in place of its placeholders, if the vocabularies have them.

        `patterns`: those of a user for further parts (`data.protected`).
        """
        return mask(text, patterns) if self.has_placeholders else Masked(text, {})

    @property
    def marks_terms(self) -> bool:
        """Whether the vocabularies have the pieces that mark terms."""
        return self.reserves(TERM)

    @property
    def has_formality(self) -> bool:
        """Whether the vocabularies have the control tokens that ask for a form of address."""
        return self.reserves(FORMALITY.values())

    @property
    def source_segmenter(self) -> Segmenter:
        """The source model for subword dropout."""
        return Segmenter(self._source)

    @property
    def target_segmenter(self) -> Segmenter:
        """The target model for subword dropout."""
        return Segmenter(self._target)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids: one line without control characters.

        Padding, start and end tokens are skipped; an unknown piece is `⁇`.
        """
        return _one_line(self._target.decode(list(map(int, ids))))

    def decode_source(self, ids: Sequence[int]) -> str:
        """Return the text of source ids, as `decode` does for target ids."""
        return _one_line(self._source.decode(list(map(int, ids))))

    def source_pieces(self, ids: Sequence[int], text: str | None = None) -> list[str]:
        """Return the pieces of source ids as they are written in the vocabulary, `▁` for a space.

        `text`: the text that they encode, if unknown pieces should be shown as they are in the text.
        """
        return named_pieces(self._source, ids, text)

    def target_pieces(self, ids: Sequence[int], text: str | None = None) -> list[str]:
        """Return the pieces of target ids, as `source_pieces` does for source ids."""
        return named_pieces(self._target, ids, text)

    def source_labels(self, ids: Sequence[int], text: str | None = None) -> list[str]:
        """Return the pieces of source ids as words and figures show them.

        If every character is a piece, those of a text without spaces are words.
        """
        return _labels(self._source, self.source_pieces(ids, text))

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of target ids, as `source_labels` does for source ids."""
        return _labels(self._target, self.target_pieces(ids))

    @property
    def target_vocabulary(self) -> list[str]:
        """The target pieces in the order of their ids."""
        return self.target_pieces(range(self.target_size))

    def words_read(self, text: str, *, of_target: bool = False) -> list[int]:
        """Return how many words the tokenizer reads in each word of a text, as `linked_words` separates them.

        A no-break space within a word separates two words for most tokenizers, and a character that the normalization
        removes is none.
        """
        processor = self._target if of_target else self._source
        counts = []
        words = linked_words(text)
        if _splits_characters(processor) and len(words) == 1:  # each character is a word, as for `source_labels`
            return [len(processor.encode(sanitized(words[0])))]
        for word in words:
            normalized = processor.normalize(sanitized(word))
            counts.append(len([part for part in normalized.split(SPACE) if part]))
        return counts

    def lacks(self, character: str) -> bool:
        """Return whether the vocabulary of the source lacks a character."""
        return SPECIAL.unknown in self.encode_source([character])[0]

    def joins(self, start: str, end: str) -> bool:
        """Return whether two parts of a source are rather one word: together, they have fewer pieces than apart."""
        first, second, whole = map(len, self.encode_source([start, end, start + end]))
        return whole + len(self.source_opening) < first + second

    def source_word_starts(self) -> list[bool]:
        """Return for each source id whether its piece begins a word."""
        return [self._source.id_to_piece(i).startswith(SPACE) for i in range(self.source_size)]

    def target_word_starts(self) -> list[bool]:
        """Return for each target id whether its piece begins a word."""
        return [self._target.id_to_piece(i).startswith(SPACE) for i in range(self.target_size)]

    @cached_property
    def target_lengths(self) -> tuple[list[int], list[int]]:
        """For each target id the characters of its piece within a text, and the spaces at its beginning."""
        characters, spaces = [], []
        for number in range(self.target_size):
            piece = self._target.id_to_piece(number)
            if self._target.is_control(number):
                piece = ""
            elif self._target.is_byte(number):  # those after the first byte of a character have none of their own
                piece = "" if 0x80 <= int(piece[3:-1], 16) < 0xC0 else "?"
            text = piece.replace(SPACE, " ")
            # After a letter, as an accent by itself belongs to the letter before it.
            characters.append(count_characters(f"a{text}") - 1)
            spaces.append(len(text) - len(text.lstrip(" ")))
        return characters, spaces


def _language_ids(
    code: str | None, languages: Mapping[str, str], processor: sentencepiece.SentencePieceProcessor, side: str
) -> list[int]:
    """Return the ids of the pieces that stand for a language of the source or the target side, most often one."""
    if code is None or code not in languages:
        codes = ", ".join(sorted(languages)[:20]) + (", …" if len(languages) > 20 else "")
        problem = f"does not have the {side} language {code!r}" if code else f"needs the {side} language"
        raise UserError(f"this multilingual model {problem}", fix=f"Give `{side}`, one of {codes}.")
    numbers: list[int] = processor.piece_to_id(languages[code].split(" "))
    if not all(map(processor.is_control, numbers)):
        what = f"data.tokenizer.languages names {languages[code]!r}, which the tokenizer does not have for a language"
        raise UserError(what, fix="Take config.yaml and the tokenizer from one run.")
    return numbers


def _splits_characters(processor: sentencepiece.SentencePieceProcessor) -> bool:
    return isinstance(processor, ListedPieces) and not processor.reads_words


def _labels(processor: sentencepiece.SentencePieceProcessor, pieces: list[str]) -> list[str]:
    """Return pieces; with the sign for the beginning of a word, if they are the characters of one word."""
    if not _splits_characters(processor) or SPACE in pieces:
        return pieces
    return [piece if piece in SPELLINGS else SPACE + piece for piece in pieces]


def _fingerprint(models: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(models)).hexdigest()


def _one_line(text: str) -> str:
    """Return text without line breaks and control characters, which a downloaded vocabulary may contain."""
    return text if text.isprintable() else _CONTROL.sub("�", _BREAKS.sub(" ", text))


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Return SentencePiece's object for a model from a file, which may be damaged or malicious.

    Raises:
        ValueError: it is not a usable SentencePiece model.
    """
    not_a_model = "is not a SentencePiece model, or is damaged"
    if not model:  # SentencePiece would return an object without a model
        raise ValueError(not_a_model)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ValueError(not_a_model) from error
    special_ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if special_ids != SPECIAL:
        expected = f"{SPECIAL.pad}, {SPECIAL.unknown}, {SPECIAL.start} and {SPECIAL.end}"
        raise ValueError(f"has the ids {special_ids} for padding, unknown, start and end, which must be {expected}")
    piece_ids = list(range(processor.get_piece_size()))
    try:
        processor.id_to_piece(piece_ids)
        unknown = processor.decode([SPECIAL.unknown])  # the file may name a text of any length
    except UnicodeDecodeError as error:
        raise ValueError("is damaged: it has pieces that are not UTF-8") from error
    scores = processor.get_score(piece_ids)
    if not all(map(math.isfinite, scores)):
        raise ValueError("is damaged: it has pieces whose score is not a number")
    if len(unknown) > MAX_UNKNOWN_LENGTH:
        raise ValueError(f"writes {len(unknown):,} characters for an unknown piece")
    if scores[len(SPECIAL) :][:2] == [0.0, 0.0]:  # pieces of a list have no scores
        return ListedPieces.of(model) or processor
    return processor


def _encode(
    processor: sentencepiece.SentencePieceProcessor, texts: list[str], threads: int, opening: Sequence[int]
) -> list[list[int]]:
    # For a few texts, starting threads takes longer than encoding; a call with a list starts at least one.
    if len(texts) > 200:
        ids: list[list[int]] = processor.encode(list(map(sanitized, texts)), num_threads=threads)
    else:
        ids = [processor.encode(sanitized(text)) for text in texts]
    return [[*opening, *text_ids] for text_ids in ids] if opening else ids


class Segmenter:
    """The pieces and scores of a SentencePiece model, for subword dropout."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        """Collect the pieces of words of one language's model.

        Raises:
            UserError: the vocabulary is a list of words or characters, which has no subwords.
        """
        if isinstance(processor, ListedPieces):
            what = "subword dropout is for subwords, and this vocabulary is a list of words or characters"
            raise UserError(what, fix="Set data.subword_dropout=0.")
        self._processor = processor
        self._ids: list[int] = []
        self.reserved: list[str] = []
        """Reserved pieces, which are never cut."""
        for number in range(len(SPECIAL), processor.get_piece_size()):
            # Words contain no tags, and no pieces that only the other language has.
            if processor.is_control(number) or processor.is_unused(number):
                continue
            piece = processor.id_to_piece(number)
            if piece in RESERVED_PIECES:
                self.reserved.append(piece)
            else:
                self._ids.append(number)
        # BPE scores are 0, -1, -2, ... in the order of the merges; unigram scores are log-probabilities, below zero.
        self.is_bpe = bool(max(processor.get_score(self._ids)) == 0)

    def normalize(self, text: str) -> str:
        """Return the text in the form that SentencePiece cuts, with a `▁` before each word."""
        text = self._processor.normalize(sanitized(text))
        return text

    def ranks(self) -> dict[str, int]:
        """Return the rank of each piece of a BPE model, 0 for the piece that is merged first."""
        return {self._processor.id_to_piece(i): round(-self._processor.get_score(i)) for i in self._ids}

    def number(self, piece: str) -> int:
        """Return the id of a piece, or that of the unknown piece."""
        return self._processor.piece_to_id(piece)

    def likeliest(self, word: str, count: int) -> list[tuple[list[int], float]]:
        """Return up to `count` segmentations of a word by a unigram model, with their log-probabilities, best first."""
        text = word.removeprefix(SPACE)
        segmentations: list[list[int]] = self._processor.nbest_encode(text, nbest_size=count)
        # Keep only the segmentations in which the reserved pieces of the word are whole.
        reserved_ids = {self.number(piece) for piece in self.reserved if piece in word}
        if reserved_ids:
            segmentations = [ids for ids in segmentations if reserved_ids.issubset(ids)]
            segmentations = segmentations or [self._processor.encode(text)]
        scored = [(ids, sum(map(self._processor.get_score, ids))) for ids in segmentations if ids]
        return scored or [([self.number(word)], 0.0)]
