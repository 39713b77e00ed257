"""XLIFF 1.2 and 2.x: each segment's target is put in or replaced, and says where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from typing import NamedTuple

from translucid.data.languages import Languages, short_code, usual_code
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.data.readers.inline import BREAKS, CODES
from translucid.documents.document import Segment
from translucid.documents.spans import Spans
from translucid.documents.strings.messages import has_cases, is_language, message_spans, message_writer
from translucid.documents.tagged_text import Side, TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xliff_notes import add_notes, notes_of
from translucid.documents.xml.xml_inline import Content, Inline, Role, by_line, escaped, folded
from translucid.documents.xml.xml_spans import Element, Piece, XmlFile
from translucid.documents.xml.xml_tags import margin, opened, prefix, with_attributes
from translucid.ground.errors import UserError

SPACES = {
    **{f"urn:oasis:names:tc:xliff:document:{version}": "" for version in ("1.1", "1.2", "2.0", "2.1", "2.2")},
    "urn:oasis:names:tc:xliff:sizerestriction:2.0": "slr",
}
_UNTRANSLATED = {"initial", "new", "needs-translation"}
"""States of a target that is no translation."""
_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
"""Attributes that name the languages, by their element."""
_STATES = {
    "model": {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"},
    "memory": {"state": "needs-review-translation", "state-qualifier": "exact-match"},
    "person": {"state": "translated", "state-qualifier": None},
}
"""Of XLIFF 1.2, by the origin of a translation."""
_SUB_STATES = {"model": "translucid:mt-suggestion", "memory": "translucid:exact-match", "person": None}
"""Of XLIFF 2, whose `state` is `translated`."""


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Take an XLIFF file apart.

    Raises:
        UserError: it is broken or harmful, or translates between other languages.
    """
    document = SlottedXml(XmlFile(name, content))
    reader = _Xliff(document, languages)
    for unit in document.file.units({"xliff"}, {"trans-unit", "unit"}, SPACES):
        reader.take(unit)
    reader.finish()
    return document


class _Text(NamedTuple):
    """All of a source, or what is in a `<mrk mtype="seg">` of it."""

    numbers: range
    """Of its segments: one, or one for each case of a message in ICU's syntax."""
    content: Content | Spans
    whole: Element
    """What it is all of."""

    def is_in(self, targets: Targets) -> bool:
        """Whether there is a translation of it."""
        return any(number in targets for number in self.numbers)


class _Xliff:
    """The units of a file."""

    def __init__(self, document: SlottedXml, languages: Languages) -> None:
        self.document, self.file, self.languages = document, document.file, languages
        self.roots: dict[int, Element] = {}
        """Elements that name languages, by their place."""
        self.note: str | None = None
        """Of the unit."""

    def take(self, unit: Element) -> None:
        """Add the segments of a unit."""
        self._meet(unit)
        if unit.inherited("translate") == "no":
            return
        self.note = notes_of(unit)
        first = len(self.document.segments)
        if unit.name == "trans-unit":
            self._pair(unit, unit)
        else:
            for segment in unit.children:
                if segment.name == "segment":
                    self._pair(unit, segment)
        if numbers := range(first, len(self.document.segments)):
            add_notes(self.document, unit, numbers)

    def finish(self) -> None:
        """Name the target language where the file does not."""
        code = usual_code(self.languages[1] or "") or self.languages[1]
        for root in self.roots.values():
            names = _LANGUAGES[root.name]
            if code and names[0] in root.attributes and names[1] not in root.attributes:
                tag = with_attributes(self.file.raw(root.start, root.inner), {names[1]: code})
                everything = range(len(self.document.segments))
                self.document.add_slot(root.start, root.inner, everything, partial(_always, tag))

    def _meet(self, unit: Element) -> None:
        """Look at the languages that are named around a unit."""
        root = unit.parent
        while root is not None:
            if root.name in _LANGUAGES and root.start not in self.roots:
                self.roots[root.start] = root
                named = [root.attributes.get(attribute) for attribute in _LANGUAGES[root.name]]
                for wanted, found in zip(self.languages, named, strict=True):
                    if wanted and found and usual_code(wanted) and short_code(wanted) != short_code(found):
                        raise UserError(
                            f"is from {named[0]} to {named[1] or '?'}, the translator from {self.languages[0]}"
                            f" to {self.languages[1]}",
                            file=self.file.name,
                            line=root.line,
                            fix="Take a translator of its languages.",
                        )
            root = root.parent

    def _pair(self, unit: Element, segment: Element) -> None:
        """Add a source and its target."""
        source, target = segment.child("source"), segment.child("target")
        if source is None:
            raise self.file.refused(f"has a <{segment.name}> without a <source>", segment.line)
        if source.inner == source.inner_end:
            return
        cut = segment.child("seg-source")
        pieces = [source] if cut is None else list(_cut(cut)) or [source]
        old = {mark.attributes.get("mid"): mark for mark in _cut(target)} if target else {}
        if target and pieces != [source] and not old and _said(target):
            pieces = [source]
        stays = target is not None and not _UNTRANSLATED & {
            segment.attributes.get("state"),
            target.attributes.get("state"),
        }
        texts = list[_Text]()
        for piece in pieces:
            there = target if piece is source else old.get(piece.attributes.get("mid"))
            made = Segment(
                TaggedText(""),
                f"line {piece.line}",
                existing=_said(there).strip() or None if there and stays else None,
                note=self.note,
                longest=_longest(unit, segment),
            )
            if text := self._text(piece, made):
                texts.append(text)
        if not texts:
            return
        numbers = range(texts[0].numbers.start, texts[-1].numbers.stop)
        before = source if cut is None else cut
        write = partial(self._target, unit, segment, before, target, old, texts)
        start, end = (before.end, before.end) if target is None else (target.start, target.end)
        self.document.add_slot(start, end, numbers, write)
        if segment is not unit:
            self.document.add_slot(segment.start, segment.inner, numbers, partial(self._segment, segment, numbers))

    def _text(self, piece: Element, segment: Segment) -> _Text | None:
        """Add the segments of a text, if there is something to translate in it."""
        content = self._inline(piece).content(piece.parts)
        if content is None or not is_language(content.source.text):
            return None
        first = len(self.document.segments)
        if not has_cases(content.source.text):
            self.document.add_segment(replace(segment, source=content.source))
            return _Text(range(first, first + 1), content, piece)
        # Its cases are found in what stands in the file, where the tags are.
        raw = self.file.raw(piece.inner, piece.inner_end)
        spans, write = Spans(raw), message_writer(raw)
        for span in message_spans(raw, decode=unescape):
            spans.add(self.document.add_segment(replace(segment, source=span.marked)), span, _escaping(write))
        return _Text(range(first, len(self.document.segments)), spans, piece)

    def _target(
        self,
        unit: Element,
        segment: Element,
        before: Element,
        target: Element | None,
        old: dict[str | None, Element],
        texts: list[_Text],
        targets: Targets,
        kept: Kept,
    ) -> str:
        """Return the element of a target."""
        if texts[0].whole.name == "source":
            inside = self._written(texts[0], targets, kept)
        else:
            inside = self._cut_again(before, old, texts, targets, kept)
        tag = self.file.raw(before.start, before.inner)
        name = f"{prefix(tag)}target"
        if target is None:
            language = usual_code(self.languages[1] or "") if "xml:lang" in before.attributes else None
            tag = with_attributes(f"<{name}>", {"xml:lang": language, "xml:space": before.attributes.get("xml:space")})
            between = margin(self.file, before)
            space = self.file.raw(between.start, between.end)
        else:
            tag, space = self.file.raw(target.start, target.inner), ""
        if segment is unit:
            tag = with_attributes(tag, _state(texts, targets))
        return f"{space}{opened(tag)}{inside}</{name}>"

    def _cut_again(
        self, cut: Element, old: dict[str | None, Element], texts: list[_Text], targets: Targets, kept: Kept
    ) -> str:
        """Return a text that is cut into segments, segments that are not translated as they were, or empty."""
        by_place = {text.whole.start: text for text in texts}
        parts, at = list[str](), cut.inner
        for mark in _cut(cut):
            parts.append(self.file.raw(at, mark.inner))
            text, there = by_place.get(mark.start), old.get(mark.attributes.get("mid"))
            if text is None:
                parts.append(self.file.raw(mark.inner, mark.inner_end))
            elif text.is_in(targets):
                parts.append(self._written(text, targets, kept))
            elif there:
                parts.append(self.file.raw(there.inner, there.inner_end))
            at = mark.inner_end
        return "".join([*parts, self.file.raw(at, cut.inner_end)])

    def _segment(self, segment: Element, numbers: range, targets: Targets, kept: Kept) -> str:
        """Return the start tag of a segment of XLIFF 2."""
        origin = next(targets[number].origin for number in numbers if number in targets)
        states = {"state": "translated", "subState": _SUB_STATES[origin]}
        return with_attributes(self.file.raw(segment.start, segment.inner), states)

    def _written(self, text: _Text, targets: Targets, kept: Kept) -> str:
        content = text.content
        if isinstance(content, Spans):
            return content.filled(targets)
        marked = targets[text.numbers.start].marked
        return self._inline(text.whole).written([*content.lead, *marked.parts, *content.tail], kept, {})

    def _inline(self, text: Element) -> Inline:
        """Return a reader of one text; the two marks of a pair have the same number in it."""
        texts = by_line if text.inherited("xml:space") == "preserve" else folded
        syntax = PlaceholderSyntax.message
        return Inline(self.file, partial(_role, {}), edges=False, texts=texts, syntax=syntax)


def _escaping(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: escaped(write(text))


def _always(text: str, targets: Targets, kept: Kept) -> str:
    return text


def _role(numbers: dict[str, int], element: Element) -> Role:
    """Say what an element within a text of XLIFF 1.2 or 2 is."""
    name, attributes = element.name, element.attributes
    key = attributes.get("startRef") or attributes.get("rid") or attributes.get("id") or ""
    if name in ("g", "pc"):
        return "pair"
    if name == "mrk":
        fixed = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
        return "alone" if fixed else "pair"
    if name in ("bpt", "bx", "sc") and attributes.get("isolated") != "yes":
        return Side.opens, numbers.setdefault(key, -1 - len(numbers))
    if name in ("ept", "ex", "ec") and attributes.get("isolated") != "yes":
        return Side.closes, numbers.setdefault(key, -1 - len(numbers))
    return "break" if name in BREAKS else "alone"


def _cut(text: Element) -> Iterator[Element]:
    """Yield the segments that a text of XLIFF 1.2 is cut into."""
    for child in text.children:
        if child.name == "mrk" and child.attributes.get("mtype") == "seg":
            yield child
        else:
            yield from _cut(child)


def _said(text: Element) -> str:
    """Return the words of a text."""
    return "".join(part.text if isinstance(part, Piece) else _said(part) for part in text.parts if not _is_code(part))


def _is_code(part: Element | Piece) -> bool:
    return isinstance(part, Element) and part.name in CODES


def _state(texts: list[_Text], targets: Targets) -> dict[str, str | None]:
    """Return the attributes of a target of XLIFF 1.2."""
    numbers = [number for text in texts for number in text.numbers]
    if any(number not in targets for number in numbers):
        return {"state": "needs-translation", "state-qualifier": None}
    origins = {targets[number].origin for number in numbers}
    return _STATES[next(origin for origin in _STATES if origin in origins)]  # type: ignore[return-value]


def _longest(unit: Element, segment: Element) -> int | None:
    """Return the characters that a target may have."""
    limits = [segment.attributes.get("slr:sizeRestriction"), unit.attributes.get("slr:sizeRestriction")]
    if unit.attributes.get("size-unit") == "char":
        limits.append(unit.attributes.get("maxwidth"))
    ends = [limit.rpartition(",")[2].strip() for limit in limits if limit]
    return min((int(end) for end in ends if end.isascii() and end.isdigit() and len(end) < 10), default=None)
