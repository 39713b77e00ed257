"""Text to subword ids and back: SentencePiece (Kudo and Richardson 2018), one model for both languages or one each.

The first four ids are those of `ground.special`. No text yields padding, start or end: `<s>` in a sentence is three
ordinary characters. The same holds for the tag of synthetic pairs, a control symbol too: only `tag` gives its id.
"""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import sentencepiece

from translucid.data.filtering import draw
from translucid.data.placeholders import Masked, mask
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.learning import Learning
from translucid.data.tokenizing.pieces import SPACE, as_read, named_pieces
from translucid.data.tokenizing.reserved import EVERY, PLACEHOLDERS, TERM
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most
from translucid.ground.special import SPECIAL, TAG

LARGEST = 1 << 26
"""Bytes of a SentencePiece file, at most: one with a million pieces has half of that."""

LONGEST_UNKNOWN = 100
"""Characters that stand for an unknown piece, at most: ours is one, with spaces three."""

_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Tokenizer:
    """A pair of SentencePiece models, which are one and the same when `joint`."""

    joint: bool
    """Whether both languages share one model."""
    source_size: int
    """Pieces in the source vocabulary."""
    target_size: int
    """Pieces in the target vocabulary."""
    threads: int = -1
    """That encode many texts at once; -1 is as many as there are cores."""
    source_opening: Sequence[int] = ()
    """Ids that every source begins with, such as that of a language."""
    target_opening: Sequence[int] = ()
    """Ids that every target begins with."""

    def __init__(self, source: bytes, target: bytes | None = None) -> None:
        """Wrap serialised SentencePiece models; without `target`, `source` serves both languages.

        Raises:
            ValueError: these are not SentencePiece models, or not with our special ids.
        """
        self.joint = target is None
        self._models = {"tokenizer": source} if target is None else {"source": source, "target": target}
        self._source = _processor(source)
        self._target = self._source if target is None else _processor(target)
        self.source_size: int = self._source.get_piece_size()
        self.target_size: int = self._target.get_piece_size()

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes, ...], dict[str, Sequence[int]]]:
        """Travel to another process as the models' bytes."""
        openings = {"source_opening": self.source_opening, "target_opening": self.target_opening}
        return Tokenizer, tuple(self._models.values()), openings

    def between(self, source: str | None, target: str | None, options: TokenizerOptions) -> Tokenizer:
        """Return the same tokenizer with each text opened by the pieces of its languages, as the options say.

        Args:
            source: code of the source language, of use where each side is told its own.
            target: code of the target language.
            options: of the tokenizer; without `languages`, nothing is opened.

        Raises:
            UserError: a language is not given, or there is no piece for it.
        """
        if not options.languages:
            return self
        each = options.told == "each on its own side"
        opened = copy.copy(self)
        opened.source_opening = [_language(source if each else target, options.languages, self._source, each)]
        opened.target_opening = [_language(target, options.languages, self._target, False)] if each else ()
        return opened

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
            options: how.
            seed: which pairs are drawn from a large text.
            tagged: whether the source vocabulary gets a `tag`.
            reserved: pieces that the vocabularies have for what is no word; see `data/tokenizing/reserved.py`.
            flexible: whether the vocabulary may have another size than wanted, if the text asks for it.
            tell: told of another size, and of characters that normalisation changes.

        Raises:
            UserError: there is no text, or the vocabulary is larger or smaller than the text allows.
        """
        drawn = draw(pairs, options.sample, seed)
        if options.joint:
            both = [text for pair in drawn for text in pair]
            learning = Learning("the training text", options, reserved, flexible, tell)
            return cls(learning.model(both, tagged=tagged))
        models = []
        for side in Pair._fields:
            learning = Learning(f"the {side} text", options, reserved, flexible, tell)
            texts = [getattr(pair, side) for pair in drawn]
            models.append(learning.model(texts, tagged=tagged and side == "source"))
        return cls(*models)

    @classmethod
    def paired(cls, source: Tokenizer, target: Tokenizer) -> Tokenizer:
        """Return the source side of one beside the target side of another; joint if both are the same model."""
        both = next(iter(source._models.values())), [*target._models.values()][-1]
        return cls(both[0]) if both[0] == both[1] else cls(*both)

    @classmethod
    def load(cls, folder: Path, fingerprint: str | None = None) -> Tokenizer:
        """Read `tokenizer.model`, or `source.model` and `target.model`, which are SentencePiece files.

        Args:
            folder: where they are.
            fingerprint: what the tokenizer must have, if known; SentencePiece is not shown any other.

        Raises:
            UserError: a file is missing, damaged, not the one, or a SentencePiece model with other special ids.
        """
        names = ["tokenizer.model"] if (folder / "tokenizer.model").exists() else ["source.model", "target.model"]
        models = {}
        for name in names:
            file = folder / name
            try:
                models[file] = read_at_most(file, LARGEST)
            except FileNotFoundError as error:
                wanted = "neither tokenizer.model nor source.model and target.model"
                raise UserError(f"has no tokenizer: {wanted}", file=folder, fix="Is this a run folder?") from error
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
        """SHA-256 of the models, by which a network can tell the tokenizer it was trained with."""
        return _fingerprint(self._models.values())

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        """Return the source ids of each text, without the end token; `▁`, SentencePiece's space, is read as `_`."""
        return _encode(self._source, texts, self.threads, self.source_opening)

    def encode_target(self, texts: list[str]) -> list[list[int]]:
        """Return the target ids of each text, without the end token; see `encode_source`."""
        return _encode(self._target, texts, self.threads, self.target_opening)

    @property
    def models(self) -> list[bytes]:
        """The SentencePiece models: one, or that of the source and that of the target."""
        return list(self._models.values())

    @property
    def tag(self) -> int | None:
        """The source id that marks synthetic pairs, if the vocabulary has one; no text yields it."""
        number: int = self._source.piece_to_id(TAG)
        return number if self._source.is_control(number) else None

    def reserves(self, pieces: Iterable[str]) -> bool:
        """Whether both vocabularies have all of some pieces; see `data/tokenizing/reserved.py`."""
        models = (self._source, self._target)
        return all(model.piece_to_id(piece) != SPECIAL.unknown for piece in pieces for model in models)

    @cached_property
    def has_placeholders(self) -> bool:
        """Whether the vocabularies have the pieces that stand for placeholders."""
        return self.reserves(PLACEHOLDERS)

    def mask(self, text: str) -> Masked:
        """Return a text with such pieces in the place of its placeholders, if the vocabularies have them."""
        return mask(text) if self.has_placeholders else Masked(text, {})

    @property
    def marks_terms(self) -> bool:
        """Whether the vocabularies have the pieces that point terms out."""
        return self.reserves(TERM)

    @property
    def source_segmenter(self) -> Segmenter:
        """The source model's inner workings."""
        return Segmenter(self._source)

    @property
    def target_segmenter(self) -> Segmenter:
        """The target model's inner workings."""
        return Segmenter(self._target)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids: one line, no control characters.

        Padding, start and end tokens are passed over, an unknown piece is `⁇`.
        """
        return _one_line(self._target.decode([int(i) for i in ids]))

    def decode_source(self, ids: Sequence[int]) -> str:
        """Return the text of source ids; see `decode`."""
        return _one_line(self._source.decode([int(i) for i in ids]))

    def source_pieces(self, ids: Sequence[int], text: str | None = None) -> list[str]:
        """Return the pieces of source ids as they are written in the vocabulary, `▁` for a space.

        Args:
            ids: of any pieces.
            text: the text that they encode, if unknown pieces are to be shown as they stand there.
        """
        return named_pieces(self._source, ids, text)

    def target_pieces(self, ids: Sequence[int], text: str | None = None) -> list[str]:
        """Return the pieces of target ids; see `source_pieces`."""
        return named_pieces(self._target, ids, text)

    @property
    def target_vocabulary(self) -> list[str]:
        """The target pieces in the order of their ids."""
        return self.target_pieces(range(self.target_size))

    def target_word_starts(self) -> list[bool]:
        """Return for each target id whether its piece begins a word."""
        return [self._target.id_to_piece(i).startswith(SPACE) for i in range(self.target_size)]


def _language(
    code: str | None, languages: Mapping[str, str], processor: sentencepiece.SentencePieceProcessor, is_source: bool
) -> int:
    """Return the id of the piece that stands for a language."""
    side = "source" if is_source else "target"
    if code is None or code not in languages:
        known = ", ".join(sorted(languages)[:20]) + ", …" * (len(languages) > 20)
        what = f"knows no {side} language {code!r}" if code else f"has to be told the {side} language"
        raise UserError(f"this model of many languages {what}", fix=f"Give --{side}-language, one of {known}.")
    number: int = processor.piece_to_id(languages[code])
    if not processor.is_control(number):
        what = f"data.tokenizer.languages names {languages[code]!r}, which the tokenizer does not have for a language"
        raise UserError(what, fix="Take config.yaml and the tokenizer from one run.")
    return number


def _fingerprint(models: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(models)).hexdigest()


def _one_line(text: str) -> str:
    """Return text that breaks no line and commands no terminal, whatever stands in the pieces of a stranger."""
    return text if text.isprintable() else _CONTROL.sub("�", _BREAKS.sub(" ", text))


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model) if model else None
    except RuntimeError:
        processor = None
    if processor is None:
        raise ValueError("is not a SentencePiece model, or is damaged")
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != SPECIAL:
        wanted = f"{SPECIAL.pad}, {SPECIAL.unknown}, {SPECIAL.start} and {SPECIAL.end}"
        raise ValueError(f"has the ids {ids} for padding, unknown, start and end, which must be {wanted}")
    every = list(range(processor.get_piece_size()))
    try:
        processor.id_to_piece(every)
        unknown = processor.decode([SPECIAL.unknown])  # any text that the file names, of any length
    except UnicodeDecodeError as error:
        raise ValueError("is damaged: it has pieces that are not UTF-8") from error
    if not all(map(math.isfinite, processor.get_score(every))):
        raise ValueError("is damaged: it has pieces whose score is not a number")
    if len(unknown) > LONGEST_UNKNOWN:
        raise ValueError(f"writes {len(unknown):,} characters for an unknown piece")
    return processor


def _encode(
    processor: sentencepiece.SentencePieceProcessor, texts: list[str], threads: int, opening: Sequence[int]
) -> list[list[int]]:
    # Threads cost more than they bring for a few texts.
    threads = threads if len(texts) > 200 else 1
    ids: list[list[int]] = processor.encode([as_read(text) for text in texts], num_threads=threads)
    return [[*opening, *each] for each in ids] if opening else ids


class Segmenter:
    """What subword dropout must know of a SentencePiece model."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        """`processor`: of one language."""
        self._processor = processor
        every = range(len(SPECIAL), processor.get_piece_size())
        # A tag is no piece of any word, nor is one that only the other language has.
        used = [i for i in every if not processor.is_control(i) and not processor.is_unused(i)]
        self._ids = [i for i in used if processor.id_to_piece(i) not in EVERY]
        self.whole = [processor.id_to_piece(i) for i in used if processor.id_to_piece(i) in EVERY]
        """Pieces that are never cut."""
        # BPE scores are 0, -1, -2, ... in the order of the merges; unigram scores are log-probabilities, below zero.
        self.is_bpe = bool(max(processor.get_score(self._ids)) == 0)

    def normalise(self, text: str) -> str:
        """Return the text as SentencePiece cuts it, each word with a `▁` in front."""
        text = self._processor.normalize(as_read(text))
        return text

    def ranks(self) -> dict[str, int]:
        """Return the rank of each piece of a BPE model, 0 for the one merged first."""
        return {self._processor.id_to_piece(i): round(-self._processor.get_score(i)) for i in self._ids}

    def number(self, piece: str) -> int:
        """Return the id of a piece, or that of the unknown one."""
        number: int = self._processor.piece_to_id(piece)
        return number

    def likeliest(self, word: str, count: int) -> list[tuple[list[int], float]]:
        """Return up to `count` segmentations of a word by a unigram model, with their log-probabilities, best first."""
        found: list[list[int]] = self._processor.nbest_encode(word.removeprefix(SPACE), nbest_size=count)
        if self.whole and (wanted := [piece for piece in self.whole if piece in word]):
            found = [ids for ids in found if {*map(self.number, wanted)} <= {*ids}] or [
                self._processor.encode(word.removeprefix(SPACE))
            ]
        scored = [(ids, sum(map(self._processor.get_score, ids))) for ids in found if ids]
        return scored or [([self.number(word)], 0.0)]
