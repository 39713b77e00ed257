"""XLIFF 1.2 and 2.x: each segment gets a target, whose attributes state its origin.

Units get notes with the confidence and doubts of our translations, and near matches of a memory: `<alt-trans>` in XLIFF
1.2. In XLIFF 2, these are notes, because its module for matches requires named spans in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from typing import NamedTuple

from bitext.documents.document import Segment, Target, limit_of_flags, smallest
from bitext.documents.spans import Spans
from bitext.documents.strings.messages import has_cases, is_language, message_spans, message_writer
from bitext.documents.tagged_text import Side, TaggedText
from bitext.documents.xml.xml_file import (
    AddedText,
    Inline,
    Render,
    Role,
    SlottedXml,
    Targets,
    XmlFile,
    escaped,
    margin,
    message_items,
    opened,
    prefix,
    with_attributes,
)
from bitext.errors import UserError
from bitext.languages import Languages, short_code, usual_code
from bitext.protected_spans import PlaceholderSyntax
from bitext.readers.xliff import NAMESPACES, UNITS, has_translation, marked_segments, segments_of
from bitext.readers.xml_elements import CODES, Element

_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
"""The attributes that name the languages, by their element."""
_STATES: dict[str, dict[str, str | None]] = {
    "model": {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"},
    "memory": {"state": "needs-review-translation", "state-qualifier": "exact-match"},
    "person": {"state": "translated", "state-qualifier": None},
}
"""The states in XLIFF 1.2 by the origin of a translation."""
_SUB_STATES = {"model": "translucid:mt-suggestion", "memory": "translucid:exact-match", "person": None}
"""The sub-states in XLIFF 2, where the `state` is `translated`."""


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Parse an XLIFF file.

    Raises:
        UserError: the file is invalid, harmful, or for other languages.
    """
    document = SlottedXml(XmlFile(name, content))
    reader = _Xliff(document, languages)
    for unit in document.file.units({"xliff"}, UNITS, NAMESPACES):
        reader.add(unit)
    reader.finish()
    return document


class _Text(NamedTuple):
    """The content of a source, or of a `<mrk mtype="seg">` in it."""

    numbers: range
    """The numbers of its segments: one, or one for each case of an ICU message."""
    element: Element
    write: Callable[[Targets], str]
    """Returns its translation."""


@dataclass(frozen=True)
class _Pair:
    """A source and its target."""

    file: XmlFile
    unit: Element
    segment: Element
    source: Element
    """The source, or its copy with segments."""
    target: Element | None
    target_segments: Mapping[str | None, Element]
    """The segments of the target by their ids."""
    texts: Sequence[_Text]
    language: str | None

    def written_target(self, targets: Targets, render: Render) -> str:
        inner_xml = self._segmented(targets)
        if self.texts[0].element.name == "source":
            inner_xml = self.texts[0].write(targets)
        raw = self.file.raw
        tag, space = raw(self.source.start, self.source.inner), ""
        name = f"{prefix(tag)}target"
        if self.target:
            tag = raw(self.target.start, self.target.inner)
        else:
            attributes = {"xml:lang": None, "xml:space": self.source.attributes.get("xml:space")}
            if "xml:lang" in self.source.attributes:
                attributes["xml:lang"] = usual_code(self.language or "")
            tag = with_attributes(f"<{name}>", attributes)
            indent = margin(self.file, self.source)
            space = raw(indent.start, indent.end)
        if self.segment is self.unit:
            tag = with_attributes(tag, self._state(targets))
        return f"{space}{opened(tag)}{inner_xml}</{name}>"

    def _segmented(self, targets: Targets) -> str:
        """Return the content of a segmented target; segments without a translation keep the old one, or are empty."""
        raw = self.file.raw
        by_start = {text.element.start: text for text in self.texts}
        parts, position = list[str](), self.source.inner
        for mark in marked_segments(self.source):
            parts.append(raw(position, mark.inner))
            text, translation = by_start.get(mark.start), self.target_segments.get(mark.attributes.get("mid"))
            if text is None:  # There is nothing to translate.
                parts.append(raw(mark.inner, mark.inner_end))
            elif not targets.keys().isdisjoint(text.numbers):
                parts.append(text.write(targets))
            elif translation:
                parts.append(raw(translation.inner, translation.inner_end))
            position = mark.inner_end
        return "".join([*parts, raw(position, self.source.inner_end)])

    def _state(self, targets: Targets) -> Mapping[str, str | None]:
        """Return the attributes of a target of XLIFF 1.2; of several origins, the first in `_STATES` counts."""
        origins = set[str]()
        for text in self.texts:
            for number in text.numbers:
                if number not in targets:
                    return {"state": "needs-translation", "state-qualifier": None}
                origins.add(targets[number].origin)
        return _STATES[next(origin for origin in _STATES if origin in origins)]

    def written_tag(self, targets: Targets, render: Render) -> str:
        """Return the start tag of a segment of XLIFF 2."""
        numbers = set[int]()
        for text in self.texts:
            numbers.update(text.numbers)
        first = min(numbers & targets.keys())
        states = {"state": "translated", "subState": _SUB_STATES[targets[first].origin]}
        return with_attributes(self.file.raw(self.segment.start, self.segment.inner), states)


class _Xliff:
    """The units of a file."""

    def __init__(self, document: SlottedXml, languages: Languages) -> None:
        self.document, self.file, self.languages = document, document.file, languages
        self.roots: dict[int, Element] = {}  # the elements that name languages, by their offset
        self.note: str | None = None  # the note of the current unit

    def add(self, unit: Element) -> None:
        self._check_languages(unit)
        if unit.inherited("translate") == "no":
            return
        self.note = notes_of(unit)
        first = len(self.document.segments)
        for segment in segments_of(unit):
            self._pair(unit, segment)
        if numbers := range(first, len(self.document.segments)):
            add_notes(self.document, unit, numbers)

    def finish(self) -> None:
        """Add the target language where the file lacks it."""
        code = usual_code(self.languages[1] or "") or self.languages[1]
        for root in self.roots.values():
            names = _LANGUAGES[root.name]
            if code and names[0] in root.attributes and names[1] not in root.attributes:
                self.document.set_attributes(root, {names[1]: code}, range(len(self.document.segments)))

    def _check_languages(self, unit: Element) -> None:
        """Refuse a unit of other languages than those of the translation."""
        root = unit.parent
        while root is not None:
            if root.name in _LANGUAGES and root.start not in self.roots:
                self.roots[root.start] = root
                source, target = map(root.attributes.get, _LANGUAGES[root.name])
                place = self.file.name, root.line
                refuse_other_languages(self.languages, (source, target), place, "Take a translator of its languages.")
            root = root.parent

    def _pair(self, unit: Element, segment: Element) -> None:
        """Add a source and its target."""
        source, target = segment.child("source"), segment.child("target")
        if source is None:
            raise self.file.error(f"has a <{segment.name}> without a <source>", segment.line)
        if source.inner == source.inner_end:
            return
        seg_source = segment.child("seg-source")
        pieces = list(marked_segments(seg_source)) if seg_source else []
        target_segments: dict[str | None, Element] = {}
        keeps_existing = target is not None and has_translation(segment, target)
        if target:
            target_segments = {mark.attributes.get("mid"): mark for mark in marked_segments(target)}
            # The segments of such a target are unknown, so the source is translated as a whole.
            if not target_segments and target.words(_is_code):
                pieces = []
        texts = list[_Text]()
        for piece in pieces or [source]:
            translation = target_segments.get(piece.attributes.get("mid")) if pieces else target
            if not keeps_existing:
                translation = None
            template = Segment(TaggedText(""), f"line {piece.line}", None, self.note, _longest(unit, segment))
            if text := self._text(piece, template, translation):
                texts.append(text)
        if not texts:
            return
        numbers = range(texts[0].numbers.start, texts[-1].numbers.stop)
        pair = _Pair(self.file, unit, segment, seg_source or source, target, target_segments, texts, self.languages[1])
        start = end = pair.source.end
        if target:
            start, end = target.start, target.end
        self.document.add_slot(start, end, numbers, pair.written_target)
        if segment is not unit:
            self.document.add_slot(segment.start, segment.inner, numbers, pair.written_tag)

    def _text(self, piece: Element, segment: Segment, translation: Element | None) -> _Text | None:
        """Add the segments of a text, which may have a translation; None if there is nothing to translate."""
        syntax = PlaceholderSyntax.message
        texts = partial(message_items, folds=piece.inherited("xml:space") != "preserve")
        # Each text has a reader of its own, in which the numbers of pairs are unique.
        inline = Inline(self.file, partial(_role, {}), edges=False, texts=texts, syntax=syntax)
        contents = inline.contents(piece.parts)
        if not contents or not any(is_language(content.source.text) for content in contents):
            return None
        segments = self.document.segments
        first = len(segments)
        whole_text = translation.words(_is_code).strip() if translation else ""
        segment = replace(segment, existing=TaggedText(whole_text) if whole_text else None)
        if not has_cases(piece.text):
            # Each text has a reader of its own, as above.
            other = replace(inline, role=partial(_role, {}))
            translations = other.contents(translation.parts) if translation and whole_text else []
            for i, content in enumerate(contents):
                if len(translations) == len(contents):
                    segment = replace(segment, existing=translations[i].source)
                longest = segment.longest if len(contents) == 1 else None
                segments.add(replace(segment, source=content.source, longest=longest))
            added = AddedText(range(first, len(segments)), contents, piece.inner, piece.inner_end)
            return _Text(added.numbers, piece, lambda targets: inline.written(contents, added.targets(targets)))
        # The cases are parsed from the raw XML, because tags may be in some of them.
        raw = self.file.raw(piece.inner, piece.inner_end)
        spans, write = Spans(raw), message_writer(raw)
        for span in message_spans(raw, decode=unescape):
            number = segments.add(replace(segment, source=span.marked))
            spans.add(number, span, lambda text: escaped(write(text)))
        return _Text(range(first, len(segments)), piece, spans.filled)


def agree(code: str | None, declared: str | None) -> bool:
    """Whether a language of the translation may be the declared one; unknown languages agree with all."""
    return not code or not declared or not usual_code(code) or short_code(code) == short_code(declared)


def refuse_other_languages(languages: Languages, declared: Languages, place: tuple[str, int], fix: str) -> None:
    """Check that a document may be of the languages of the translation, by the languages that it declares.

    `place`: the name of the document, and the line with its languages; `fix`: the advice if they differ.

    Raises:
        UserError: they differ.
    """
    if all(map(agree, languages, declared)):
        return
    source, target = declared
    what = f"is from {source or '?'} to {target or '?'}, the translator from {languages[0]} to {languages[1]}"
    raise UserError(what, file=place[0], line=place[1], fix=fix)


def _role(numbers: dict[str, int], element: Element) -> Role:
    """Return the role of an element in a text of XLIFF 1.2 or 2; `numbers`: the pairs of the text by their key."""
    name, attributes = element.name, element.attributes
    key = attributes.get("startRef") or attributes.get("rid") or attributes.get("id") or ""
    if name in ("g", "pc"):
        return "pair"
    if name == "mrk":
        is_protected = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
        return "alone" if is_protected else "pair"
    if name in ("bpt", "bx", "sc") and attributes.get("isolated") != "yes":
        return Side.opens, numbers.setdefault(key, element.start)
    if name in ("ept", "ex", "ec") and attributes.get("isolated") != "yes":
        return Side.closes, numbers.setdefault(key, element.start)
    return "alone"


def _is_code(element: Element) -> bool:
    return element.name in CODES


def _longest(unit: Element, segment: Element) -> int | None:
    """Return the largest number of characters of a target, if there is a limit."""
    limits = [segment.attributes.get("slr:sizeRestriction"), unit.attributes.get("slr:sizeRestriction")]
    if unit.attributes.get("size-unit") == "char":
        limits.append(unit.attributes.get("maxwidth"))
    numbers = []
    for limit in filter(None, limits):
        # A size restriction may be a minimum and a maximum, separated by a comma.
        maximum = limit.rpartition(",")[2].strip()
        if maximum.isascii() and maximum.isdigit() and len(maximum) < 10:
            numbers.append(int(maximum))
    return smallest(*numbers, limit_of_flags(unit.attributes.get("weblate-flags", "")))


_AUTHOR = "translucid"


def notes_of(unit: Element) -> str | None:
    """Return the notes of a unit for translators, except ours."""
    notes = (note.text.strip() for note in unit.within("note") if not _is_ours(note))
    return "\n".join(filter(None, notes)) or None


def add_notes(document: SlottedXml, unit: Element, numbers: range) -> None:
    """Add slots for our notes and near matches to a unit with these segments; they replace earlier ones of ours."""
    our_elements = list(filter(_is_ours, unit.within("note", "alt-trans")))
    name = prefix(document.file.raw(unit.start, unit.inner))
    group = unit.child("notes")
    if unit.name == "trans-unit":  # XLIFF 1.2
        write = partial(_written_1, name, numbers)
        names = ("source", "seg-source", "target")
        start = end = max(child.end for child in unit.children if child.name in names)
    elif group and len(our_elements) != len(group.children):
        write = partial(_written_2, name, numbers)
        start = end = group.inner_end
    else:  # no group, or only with our notes: we write the whole group
        write = partial(_group, name, numbers)
        if group:
            start, end, our_elements = group.start, group.end, []
        else:
            names = ("originalData", "segment", "ignorable")
            start = end = next(child.start for child in unit.children if child.name in names)
    for element in our_elements:
        document.add_slot(element.start, element.end, numbers, "")
    document.add_slot(start, end, numbers, write)


def _group(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return a group of notes; nothing if there are none."""
    notes = _written_2(prefix, numbers, targets, render)
    return f"<{prefix}notes>{notes}</{prefix}notes>" if notes else ""


def _written_1(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return notes and near matches for XLIFF 1.2."""
    parts = list[str]()
    for label, target in _labeled(numbers, targets):
        if note := _note(target):
            parts.append(f'<{prefix}note from="{_AUTHOR}" annotates="target">{escaped(label + note)}</{prefix}note>')
        for match in target.matches:
            texts = f"<{prefix}source>{escaped(match.source)}</{prefix}source>"
            texts += f"<{prefix}target>{escaped(match.target)}</{prefix}target>"
            attributes = f'match-quality="{match.percent}%" origin="{_AUTHOR}"'
            parts.append(f"<{prefix}alt-trans {attributes}>{texts}</{prefix}alt-trans>")
    return "".join(parts)


def _written_2(prefix: str, numbers: range, targets: Targets, render: Render) -> str:
    """Return notes for XLIFF 2."""
    parts = list[str]()
    for label, target in _labeled(numbers, targets):
        notes = [f"near match, {match.percent} %: {match.source} → {match.target}" for match in target.matches]
        if note := _note(target):
            notes.insert(0, note)
        for note in notes:
            parts.append(f'<{prefix}note category="{_AUTHOR}">{escaped(label + note)}</{prefix}note>')
    return "".join(parts)


def _labeled(numbers: range, targets: Targets) -> Iterator[tuple[str, Target]]:
    """Yield the translations of a unit, each with a label if there are several segments."""
    for position, number in enumerate(numbers, 1):
        if number in targets:
            yield f"segment {position}: " if len(numbers) > 1 else "", targets[number]


def _note(target: Target) -> str:
    """Return the confidence and the doubts of a translation."""
    remarks = list(target.doubts)
    if target.confidence is not None:
        remarks.insert(0, f"confidence {target.confidence:.2f}")
    return "; ".join(remarks)


def _is_ours(note: Element) -> bool:
    return _AUTHOR in map(note.attributes.get, ("from", "category", "origin"))
