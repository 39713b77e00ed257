"""The rows of a translated document for a reviewer, and the document with the reviewer's corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from bitext.documents.document import Document, Segment, Target, read_document, sentence
from bitext.documents.shown_tags import SHOWN_TAG, read_leniently, read_shown, shown, tags_of
from bitext.documents.tag_projection import readable
from bitext.documents.tagged_text import TaggedText, complete, with_marks_of
from bitext.documents.xml.xml_file import without_forbidden
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.pair import Pair
from bitext.protected_spans import lost_and_invented

State: TypeAlias = Literal["initial", "translated", "reviewed", "final"]
"""How far a translation is, as in XLIFF 2.1, section 4.3.1.28."""


@dataclass(frozen=True)
class Row:
    """A segment for a reviewer. Its texts have tags in place of marks: ⟨1⟩bold⟨/1⟩, ⟨2/⟩."""

    number: int
    """The number of the segment in the document, from 1."""
    source: str
    machine: str | None = None
    """The translation before the review."""
    target: str | None = None
    """The translation, with corrections."""
    state: State = "initial"
    comment: str = ""
    """What the reviewer says about the translation."""
    who: str = ""
    """The reviewer, if the file names one."""
    place: str = ""
    notes: tuple[str, ...] = ()
    """What the reviewer should know: notes in the document, the confidence, what is doubtful."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """What the tags of the source stand for."""


@dataclass(frozen=True)
class Review:
    """The rows of a document."""

    document: str
    """The name of the document."""
    languages: Languages
    rows: Sequence[Row]
    problems: Sequence[str] = ()
    """What cannot be read in the file, one line each."""


class Correction(NamedTuple):
    """A translation that a reviewer has changed or approved, as a translation memory stores it."""

    pair: Pair
    who: str
    is_changed: bool
    """Whether it differs from the translation before the review."""


@dataclass
class Corrected:
    """The translations of a document after its review."""

    targets: dict[int, Target] = field(default_factory=dict)
    """By the number of the segment, from 0; without those that the document already has."""
    corrections: list[Correction] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One line for each row that is not used."""
    warnings: list[str] = field(default_factory=list)
    """What to check in the rows that are used, one line each."""


def review_of(
    name: str,
    document: Document,
    targets: Mapping[int, Target],
    languages: Languages,
    earlier: Review | None = None,
) -> Review:
    """Return all segments of a document for a reviewer.

    Args:
        name: the file name of the document.
        document: the document.
        targets: the translations of its segments; of the others, those in the document are taken.
        languages: the source and the target language.
        earlier: a review from which the translations are; its machine's text, notes and comments are kept.

    Raises:
        UserError: the document has no segments; XLIFF allows no file without them.
    """
    if not document.segments:
        raise UserError("has no text to review", file=name)
    earlier_rows = {row.number: row for row in earlier.rows} if earlier else {}
    rows = []
    for i, segment in enumerate(document.segments):
        target = targets.get(i) or _in_document(segment)
        text = shown(segment.source, target.marked) if target else None
        state: State = "initial"
        if target:
            state = "reviewed" if target.origin == "person" else "translated"
        tags = {tag: mark.raw for tag, mark in tags_of(segment.source).items()}
        source = shown(segment.source, segment.source)
        notes = tuple(_notes(segment, target))
        row = Row(i + 1, source, text, text, state, place=segment.place, notes=notes, tags=tags)
        if old := earlier_rows.get(row.number):
            machine = text if old.machine is None else old.machine
            row = replace(row, machine=machine, notes=old.notes or notes, comment=old.comment)
        rows.append(row)
    return Review(name, languages, rows)


def _in_document(segment: Segment) -> Target | None:
    """Return the translation that the document has of a segment, if any."""
    if segment.existing:
        return Target(segment.existing, "person")
    return Target(segment.draft) if segment.draft else None


def _notes(segment: Segment, target: Target | None) -> Iterator[str]:
    if segment.note:
        yield segment.note
    if segment.longest is not None:
        yield f"At most {segment.longest} characters."
    if target and target.confidence is not None:
        yield f"The confidence is {target.confidence:.0%}."
    if target:
        yield from map(sentence, target.doubts)


def translations_of(document: Document, name: str, content: bytes, languages: Languages) -> dict[int, Target]:
    """Return the translations in the translated document, by the number of the segment in the original.

    Args:
        document: the original.
        name: the file name of the translated document.
        content: its bytes.
        languages: the source and the target language.

    Raises:
        UserError: the translated document is invalid, or has other segments.
    """
    targets: dict[int, Target] = {}
    for number, target in translated_texts(name, content, languages, len(document.segments)).items():
        source = document.segments[number - 1].source
        targets[number - 1] = replace(target, marked=with_marks_of(source, target.marked))
    return targets


def translated_texts(name: str, content: bytes, languages: Languages, count: int) -> dict[int, Target]:
    """Return the translations in a translated document, by the number of the segment, from 1.

    It has the same segments as the original in the same order, as a translation changes only texts.

    Args:
        name: the file name of the translated document.
        content: its bytes.
        languages: the source and the target language.
        count: the number of segments of the original.

    Raises:
        UserError: the document is invalid, or has other segments.
    """
    counts = []
    # Texts that an original marks as in another language are skipped; its translation is in the target language.
    for read_as in (languages, (languages[1], languages[1]), (None, None)):
        segments = read_document(name, content, read_as).segments
        counts.append(len(segments))
        if len(segments) == count:
            own = {number: target for number, segment in enumerate(segments, 1) if (target := _in_document(segment))}
            return own or {number: Target(segment.source) for number, segment in enumerate(segments, 1)}
    what = f"has {counts[0]:,} texts, and the original {count:,}"
    fix = "Give the translation as `translucid translate` wrote it, or translate the document into an .xlf."
    raise UserError(what, file=name, fix=fix)


def without_tags(text: str) -> str:
    """Return a text without tags.

    >>> without_tags("⟨1⟩Save⟨/1⟩ now⟨2/⟩")
    'Save now'
    """
    return SHOWN_TAG.sub("", text)


def corrected(document: Document, review: Review, who: str) -> Corrected:
    """Return the translations of a document after its review.

    A row with a problem, and a segment without a row, keep the translation before the review.

    Args:
        document: the document that was reviewed.
        review: the rows that came back.
        who: the author of corrections without a name.
    """
    result = Corrected(problems=[*review.problems])
    segments = document.segments
    counts = Counter(row.number for row in review.rows)
    for row in review.rows:
        if not 1 <= row.number <= len(segments):
            result.problems.append(f"row {row.number}: the document has {len(segments):,} segments")
            continue
        segment = segments[row.number - 1]
        target = None
        if counts[row.number] > 1:
            problem: str | None = f"the number is there {counts[row.number]} times; none of these rows is used"
        else:
            problem = _problem(segment, row)
        if problem is None and row.target is not None:
            try:
                target = Target(read_shown(segment.source, row.target), _origin(row))
            except UserError as error:
                problem = str(error)
        if problem:
            result.problems.append(f"row {row.number}: {problem}")
        target = target or _before(segment, row)
        if target is None:
            continue
        target = target.within(segment.longest)
        if target.origin == "person":
            if row.target != row.machine:
                target = replace(target, doubts=(*_doubts(segment.source, target.marked), *target.doubts))
            for doubt in target.doubts:
                result.warnings.append(f"row {row.number}: {sentence(doubt)}")
            pair = Pair(readable(segment.source).text, readable(target.marked).text)
            result.corrections.append(Correction(pair, row.who or who, row.target != row.machine))
        if not _stays(segment, target):
            result.targets[row.number - 1] = target
    return result


def _doubts(source: TaggedText, target: TaggedText) -> Iterator[str]:
    """Yield which placeholders, numbers and addresses a correction lacks or adds."""
    for kind, parts in zip(
        ("lost", "invented"), lost_and_invented(source.text, target.text, source.syntax), strict=True
    ):
        for part in parts:
            yield f"{kind}: {part}"


def _problem(segment: Segment, row: Row) -> str | None:
    """Return why a row cannot be used, if so."""
    source = shown(segment.source, segment.source)
    if _comparable(row.source) != _comparable(source):
        return "the source is another one than in the document"
    if row.target is None:
        return None
    if not row.target.strip():
        return "the translation is empty"
    own_tags = {*SHOWN_TAG.findall(source), *SHOWN_TAG.findall(segment.source.text)}
    unknown = [tag for tag in SHOWN_TAG.findall(row.target) if tag not in own_tags]
    return f"{unknown[0]} is not in the source" if unknown else None


def _comparable(text: str) -> str:
    """Return a text as it is after it was in a file for review."""
    return " ".join(without_forbidden(text).split())


def _origin(row: Row) -> Literal["model", "person"]:
    is_checked = row.state in ("reviewed", "final") or row.target != row.machine
    return "person" if is_checked else "model"


def _before(segment: Segment, row: Row) -> Target | None:
    """Return the translation before the review, with all tags of the source."""
    if row.machine is None:
        return None
    marked = read_leniently(segment.source, row.machine)
    return Target(complete(segment.source, marked))


def _stays(segment: Segment, target: Target) -> bool:
    """Whether the document already has this translation, as checked as it is now."""
    own = _in_document(segment)
    return own is not None and own.marked == target.marked and (own.origin == "person" or target.origin == "model")
