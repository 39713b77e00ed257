"""Documents: their segments and interface, their kinds, and their limits.

A document has segments, and writes itself with their translations. The ending of its name determines its kind. A small
document can be made to need much, by a long name that every text repeats, or by parts that are compared with each
other. The limits hold for every format; a document that exceeds one is refused in one line.
"""

from __future__ import annotations

import mmap
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, Protocol, cast

from bitext.cancellation import between_steps, call_around_steps
from bitext.documents.tagged_text import TaggedText, complete, with_marks_of
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.words import count_characters

_LIMIT_IN_NOTE = re.compile(r"\bchar(?:acter)?[ _]limit[ ]?[=:][ ]?([1-9][0-9]{0,6})(?![0-9])", re.IGNORECASE)
"""A limit as developers write it in comments on strings: `[CHAR LIMIT=30]`."""
_LIMIT_IN_FLAG = re.compile(r"\bmax-length:[ ]?([1-9][0-9]{0,6})(?![0-9])")
"""A limit as Weblate writes it in flags: `max-length:30`."""


def limit_of_flags(flags: str) -> int | None:
    """Return the largest number of characters that Weblate's flags allow.

    >>> limit_of_flags("c-format, max-length:30")
    30
    """
    match = _LIMIT_IN_FLAG.search(flags)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class Segment:
    """A unit of a document that is translated as a whole: a paragraph, a message, a caption."""

    source: TaggedText
    place: str
    """The position in the document for people: `line 12`, `slide 3`."""
    existing: TaggedText | None = None
    """The translation that the document already has; it stays unless the user asks for a new one.

    In a list of segments, its marks are those of the source."""
    note: str | None = None
    """A comment in the document for translators."""
    longest: int | None = None
    """The largest number of characters of the translation, if the document limits it."""
    draft: TaggedText | None = None
    """A translation in the document that nobody has checked, such as a fuzzy one of gettext; it does not stay."""


class SegmentList(list[Segment]):
    """The segments of a document that is being read; one with too many is refused before it fills the memory."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.limit = name, max_segments()
        self._room = max_characters()
        self._long_note: str | None = None
        self._short_note: str | None = None
        self.remarks: list[str] = []
        """What the user should know about the choice of the texts, one clause each, without a final period."""

    def add(self, segment: Segment) -> int:
        """Append a segment, and return its number. A place or a note that is too long loses its middle.

        A limit of characters in the note is that of the segment, unless it has one.

        Raises:
            UserError: the document has too many segments, or too many characters in them.
            Cancelled: the request for the document was cancelled.
        """
        between_steps()
        self.need_room(len(self) + 1)
        segment = self._with_short_texts(segment)
        if segment.longest is None and segment.note and (match := _LIMIT_IN_NOTE.search(segment.note)):
            segment = replace(segment, longest=int(match[1]))
        if segment.existing:
            segment = replace(segment, existing=with_marks_of(segment.source, segment.existing))
        if segment.draft:
            segment = replace(segment, draft=with_marks_of(segment.source, segment.draft))
        self._room -= _characters(segment)
        if self._room < 0:
            fix = "Split it, or shorten the notes and names that it repeats."
            raise UserError("has far more text than its size, as it repeats notes or names", file=self.name, fix=fix)
        self.append(segment)
        return len(self) - 1

    def _with_short_texts(self, segment: Segment) -> Segment:
        """Return a segment whose place and note are not too long."""
        note = segment.note
        if len(segment.place) <= LONGEST_PLACE and (note is None or len(note) <= LONGEST_NOTE):
            return segment
        if note is not self._long_note:  # segments that share a note share its short form, too
            self._long_note = note
            self._short_note = None if note is None else shortened(note, LONGEST_NOTE)
        return replace(segment, place=shortened(segment.place, LONGEST_PLACE), note=self._short_note)

    def need_room(self, segments: int) -> None:
        """Refuse a document that has, or will have, more segments than the limit.

        Raises:
            UserError: `segments` is over the limit.
        """
        if segments > self.limit:
            raise UserError(f"has more than {self.limit:,} texts", file=self.name, fix="Split it.")


def _characters(segment: Segment) -> int:
    count = len(segment.place) + len(segment.note or "")
    for marked in (segment.source, segment.existing, segment.draft):
        if marked:
            count += len(marked.text) + sum(len(mark.raw) for mark in marked.marks)
    return count


class NearMatch(NamedTuple):
    """An entry of a translation memory that is similar to a segment."""

    percent: int
    source: str
    target: str


class RetrievedWord(NamedTuple):
    """A word of a translation, and the earlier sentence of a memory that decided it (`Translator.with_knn`)."""

    word: str
    position: int
    """The number of the word in the translation, from 0."""
    share: float
    """λ p_kNN of this sentence, as a share of the probability of the word: the mean over its pieces."""
    changed: bool
    """Whether the model alone would have preferred another piece after the same words."""
    source: str
    target: str

    def record(self) -> dict[str, object]:
        """Return the word for JSON."""
        return {**self._asdict(), "share": round(self.share, 4)}


@dataclass(frozen=True, slots=True)
class Target:
    """The translation of a segment, its origin and its quality."""

    marked: TaggedText
    origin: Literal["model", "memory", "person"] = "model"
    confidence: float | None = None
    """The calibrated probability that the translation is good, if the run can estimate it."""
    doubts: tuple[str, ...] = ()
    """Results of the quality checks, each as `kind: finding`."""
    matches: tuple[NearMatch, ...] = ()
    """Similar entries of the memory, the best first; empty if the translation itself is from the memory."""
    alternatives: tuple[TaggedText, ...] = ()
    """Other translations, the best first, if the caller asked for more than one."""
    retrieved: tuple[RetrievedWord, ...] = ()
    """The words that a memory has changed or supported, if the caller asked for them; their positions are those in the
    text without tags, as the model wrote it."""

    def within(self, longest: int | None) -> Target:
        """Return the translation, with another doubt if it has more than `longest` characters; None means no limit."""
        length = count_characters(self.marked.text)
        if longest is None or length <= longest:
            return self
        return replace(self, doubts=(*self.doubts, f"length: {length} characters, {longest} at most"))


def smallest(*limits: int | None) -> int | None:
    """Return the smallest of several limits; None if there are none.

    >>> smallest(None, 30, 25)
    25
    """
    return min((limit for limit in limits if limit is not None), default=None)


_SENTENCES = {
    "lost": "Missing: {}.",
    "invented": "Not in the source: {}.",
    "placed": "Check the place of {}.",
    "length": "The translation is too long: {}.",
    "long": "The text is too long for the model: {}.",
    "too short": "The translation may be incomplete: {}.",
    "too long": "The translation may have too much: {}.",
    "repeated": "The translation repeats itself: {}.",
    "copied": "The translation may be a copy: {}.",
    "wrong language": "Check the language: {}.",
    "unknown characters": "The model does not know these characters: {}",
    "unknown words": "The model may not know all words: {}.",
    "capitals": "Check the meaning: {}.",
    "lower case": "Check the meaning: {}.",
    "term not used": "A term is not used: {}.",
    "improbable": "The text is unlike what the model has learned: {}.",
    "detached attention": "The translation may not follow the text: {}.",
    "placeholders": "Check the placeholders: {}.",
}
"""The sentences for translators by the kind of a doubt."""


def sentence(doubt: str) -> str:
    """Return a doubt about a translation as a sentence for translators.

    >>> sentence("lost: %d")
    'Missing: %d.'
    """
    kind, _, details = " ".join(doubt.split()).partition(": ")
    if kind in _SENTENCES and details:
        return _SENTENCES[kind].format(details)
    text = f"{kind}: {details}" if details else kind
    return f"{text[:1].upper()}{text[1:]}."


class Document(Protocol):
    """A document after parsing."""

    @property
    def segments(self) -> SegmentList:
        """The translatable segments, in reading order."""

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the document with the translations of segments, by their numbers; every other byte is unchanged.

        Without translations, the result is the original document.
        """


def completed(segments: Sequence[Segment], targets: Mapping[int, Target]) -> dict[int, Target]:
    """Return the translations of segments, by their numbers, each with all tags of its source."""
    result: dict[int, Target] = {}
    for number, target in targets.items():
        result[number] = replace(target, marked=complete(segments[number].source, target.marked))
    return result


LARGEST = 64 * 1024 * 1024
"""The largest number of bytes of a document, and of the unpacked content of a zip file."""
MOST_SEGMENTS = 250_000
"""The largest number of segments of a document."""
MOST_PARTS = 200_000
"""The largest number of tags and texts between tags in a segment."""
MOST_COLUMNS = 16_384
"""The largest number of columns of a table: that of Excel."""
MOST_CELLS = 1_000_000
"""The largest number of cells of a table, including those that translations add to short rows."""
LONGEST_PLACE = 200
"""The largest number of characters of the place of a segment; longer ones lose their middle."""
LONGEST_NOTE = 2_000
"""The largest number of characters of the note of a segment; longer ones lose their middle."""
FREE_BYTES = 1 << 20
"""The size of a document up to which the following limits are the same; they grow in proportion with larger ones."""
CHARACTERS = 32 << 20
"""The characters of all segments with their places, notes and tags, many of which may be repetitions."""
MEMORY = 256 << 20
"""The bytes of memory for reading or for writing a document."""
SECONDS = 10.0
"""The seconds of the processor for reading or for writing a document."""
_CHECK_SECONDS = 0.01
"""The time between two measurements of the memory: each costs a hundredth of a millisecond."""
_max_segments: ContextVar[int] = ContextVar("max_segments", default=MOST_SEGMENTS)
_max_characters: ContextVar[int] = ContextVar("max_characters", default=sys.maxsize)


class TooManyParts(Exception):  # noqa: N818  # The caller that knows the file's name turns it into a `UserError`.
    """A text has more than `MOST_PARTS` parts."""


@contextmanager
def limit_segments(limit: int) -> Iterator[None]:
    """Limit the number of segments of documents that are read in this context; reading stops once it is exceeded."""
    token = _max_segments.set(min(limit, MOST_SEGMENTS))
    try:
        yield
    finally:
        _max_segments.reset(token)


def max_segments() -> int:
    """Return the largest number of segments that a document may have in this context."""
    return _max_segments.get()


def max_characters() -> int:
    """Return the largest number of characters of all segments of a document in this context."""
    return _max_characters.get()


def shortened(text: str, limit: int) -> str:
    """Return a text without its middle if it has more than `limit` characters.

    >>> shortened("a very long name!B7", 11)
    'a ver…me!B7'
    """
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[len(text) - half :]}"


@contextmanager
def limit_work(name: str, size: int) -> Iterator[None]:
    """Limit the characters, the memory and the processor time for reading or writing a document in this context.

    Memory and time are measured between steps (`cancellation.py`), those of other threads during a step
    included. The memory is only limited where the system states it (Linux).

    Args:
        name: the file name for messages.
        size: the number of bytes of the document.

    Raises:
        UserError: the document needs more.
    """
    budget = _Budget(name, max(1.0, size / FREE_BYTES))
    token = _max_characters.set(int(budget.factor * CHARACTERS))
    try:
        with call_around_steps(budget.stop, budget.go_on):
            yield
    except MemoryError:
        raise UserError("needs more memory than there is", file=name, fix="Split it.") from None
    finally:
        _max_characters.reset(token)


class _Budget:
    """The memory and the processor time of one document; only the time between `go_on` and `stop` counts."""

    def __init__(self, name: str, factor: float) -> None:
        self.name, self.factor = name, factor
        self.grown = 0
        self.started = time.thread_time()
        self.memory = _memory()
        self.checked = time.monotonic()

    def stop(self) -> None:
        """Count the memory and the time since the last call, and refuse the document if they are too much."""
        now = time.monotonic()
        if now < self.checked + _CHECK_SECONDS:
            return
        self.checked = now
        memory = _memory()
        self.grown += memory - self.memory
        self.memory = memory
        if self.grown > self.factor * MEMORY:
            raise self._error(f"needs more than {self.factor * MEMORY / (1 << 20):.0f} MiB of memory")
        if time.thread_time() - self.started > self.factor * SECONDS:
            raise self._error(f"needs more than {self.factor * SECONDS:.0f} seconds of the processor")

    def go_on(self) -> None:
        """Leave out the memory of other work that ran meanwhile."""
        now = time.monotonic()
        if now > self.checked + _CHECK_SECONDS:
            self.checked, self.memory = now, _memory()

    def _error(self, what: str) -> UserError:
        return UserError(what, file=self.name, fix="Split it, or leave out what is repeated in it.")


def _memory() -> int:
    """Return the bytes of memory of this process; 0 where the system does not state them."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


class Kind(NamedTuple):
    """A kind of document."""

    name: str
    """The usual name of the format."""
    endings: tuple[str, ...]
    media: str
    """The media type (MIME type)."""
    module: str
    """The module below `bitext.documents` whose `read(name, content, languages)` parses a document."""
    near_matches: bool = False
    """Whether the format can hold near matches of a translation memory."""
    packed: bool = False
    """Whether a document is a zip file."""

    def read(self, name: str, content: bytes, languages: Languages) -> Document:
        """Parse a document; the arguments are those of `read_document`."""
        if len(content) > LARGEST:
            raise UserError(f"has more than {LARGEST >> 20} MiB", file=name, fix="Split it.")
        # Each command loads only the parsers that it needs: some import large libraries.
        module = import_module(f"bitext.documents.{self.module}")
        try:
            with limit_work(name, len(content)):
                return cast(Document, module.read(name, content, languages))
        except TooManyParts:
            what = f"has a text with more than {MOST_PARTS:,} tags"
            raise UserError(what, file=name, fix="Split it.") from None


_OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = (
    Kind("PO", (".po", ".pot"), "text/x-gettext-translation", "strings.po"),
    Kind("XLIFF", (".xlf", ".xliff"), "application/xliff+xml", "xml.xliff", near_matches=True),
    Kind("TMX", (".tmx",), "application/x-tmx+xml", "xml.tmx"),
    Kind("SubRip subtitles", (".srt",), "application/x-subrip", "subtitles.cues"),
    Kind("WebVTT subtitles", (".vtt",), "text/vtt", "subtitles.cues"),
    Kind("HTML", (".html", ".htm", ".xhtml"), "text/html", "markup.html"),
    Kind("Markdown", (".md", ".markdown", ".mdx"), "text/markdown", "markup.markdown"),
    Kind("text", (".txt",), "text/plain", "text"),
    Kind("Word", (".docx",), f"{_OFFICE}.wordprocessingml.document", "office.docx", packed=True),
    Kind("PowerPoint", (".pptx",), f"{_OFFICE}.presentationml.presentation", "office.pptx", packed=True),
    Kind("Excel", (".xlsx",), f"{_OFFICE}.spreadsheetml.sheet", "office.xlsx", packed=True),
    Kind("OpenDocument text", (".odt",), "application/vnd.oasis.opendocument.text", "office.opendocument", packed=True),
    Kind(
        "OpenDocument spreadsheet",
        (".ods",),
        "application/vnd.oasis.opendocument.spreadsheet",
        "office.opendocument",
        packed=True,
    ),
    Kind("EPUB", (".epub",), "application/epub+zip", "markup.epub", packed=True),
    Kind("JSON strings", (".json", ".arb"), "application/json", "strings.json_strings"),
    Kind("YAML strings", (".yaml", ".yml"), "application/yaml", "strings.yaml_strings"),
    Kind("Android strings", (".xml",), "application/xml", "strings.android"),
    Kind(".NET resources", (".resx", ".resw"), "application/xml", "strings.resx"),
    Kind("iOS strings", (".strings",), "text/plain", "strings.ios"),
    Kind("Apple string catalogs", (".xcstrings",), "application/json", "strings.xcstrings"),
    Kind("Qt translations", (".ts",), "application/x-linguist", "strings.qt"),
    Kind("Fluent", (".ftl",), "text/plain", "strings.fluent"),
    Kind("Java properties", (".properties",), "text/x-java-properties", "strings.properties"),
    Kind("table", (".csv", ".tsv"), "text/csv", "strings.table"),
)


_BY_ENDING: dict[str, Kind] = {}
for _kind in KINDS:
    _BY_ENDING.update(dict.fromkeys(_kind.endings, _kind))
ENDINGS = frozenset(_BY_ENDING)
"""The endings of all kinds."""

PDF_FIX = "Translate the file that it was exported from; or open it in Word, save it as .docx, and translate that."
"""The advice on PDF files, which cannot be translated."""
_SAVE_AS = {
    ".docx": ".doc .docm .dot .dotm .dotx .pages .rtf .wpd .wps",
    ".xlsx": ".fods .numbers .ots .xls .xlsb .xlsm .xlt .xltm .xltx",
    ".pptx": ".key .odp .pot .potm .potx .pps .ppsm .ppsx .ppt .pptm",
    ".odt": ".fodt .ott .sxw",
    ".epub": ".azw .azw3 .fb2 .mobi",
    ".srt": ".ass .dfxp .sbv .ssa .sub .ttml",
}
"""The endings of files that their programs can save as a supported kind, by the ending of that kind."""
_FIXES = {".pdf": PDF_FIX}
for _ending, _others in _SAVE_AS.items():
    for _other in set(_others.split()) - ENDINGS:
        _FIXES[_other] = f"Save it as {_ending}, and translate that."


def kind_of(name: str) -> Kind | None:
    """Return the kind of document with this file name; None if no kind has its ending."""
    return _BY_ENDING.get(PurePath(name).suffix.lower())


def read_document(name: str, content: bytes, languages: Languages = (None, None)) -> Document:
    """Parse a document.

    Args:
        name: the file name; its ending determines the kind.
        content: the bytes of the file.
        languages: the source and the target language.

    Raises:
        UserError: the kind is unknown, or the document is invalid or harmful.
    """
    kind = kind_of(name)
    if kind is None:
        raise not_translated(name)
    return kind.read(name, content, languages)


def unknown_kind(name: str) -> str:
    """Return the message of the server for a file of a kind that cannot be translated, without a final period."""
    message = f"{name[:50]!r} is of no kind that is translated here"
    fix = _FIXES.get(PurePath(name).suffix.lower())
    return f"{message}. {fix}" if fix else message


def not_translated(name: str) -> UserError:
    """Return the error for a file of a kind that cannot be translated."""
    what = "is not a document that can be translated"
    ending = PurePath(name).suffix.lower()
    if ending == ".pdf":
        what = "is a PDF, which stores positions of letters instead of paragraphs, so it cannot be translated in place"
    fix = _FIXES.get(ending)
    if fix is None:
        endings = " ".join(_BY_ENDING)
        fix = f"Supported: {endings}. Pass plain text on standard input or as an argument."
    return UserError(what, file=name, fix=fix)
