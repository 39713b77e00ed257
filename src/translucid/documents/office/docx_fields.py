"""Fields, content controls and ruby of Word: the part of each that is text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from translucid.data.readers.xml_elements import Element, Piece

TEXT, FIXED = "translated", "fixed"
"""The names of merged elements: with text that is translated, or without."""
_SHOWING_TEXT = ("HYPERLINK",)
"""Fields whose result is text that a person wrote, not a number, a date or a copy."""
_WITH_PROPERTIES = {"w:smartTag": "w:smartTagPr", "w:customXml": "w:customXmlPr"}


def with_fields(parts: Sequence[Element | Piece]) -> Sequence[Element | Piece]:
    """Return the parts of a paragraph or a run, in which each field, control and ruby is one element.

    A field that ends in another paragraph, as a table of contents does, is not merged.
    """
    merged = list[Element | Piece]()
    depth = first = separate = 0
    for part in parts:
        merged.append(_control(part))
        for kind in _field_characters(part):
            if kind == "begin":
                if depth == 0:
                    first, separate = len(merged) - 1, 0
                depth += 1
            elif kind == "separate" and depth == 1:
                separate = len(merged) - 1 - first
            elif kind == "end" and depth:
                depth -= 1
                if depth == 0 and len(merged) - 1 > first:
                    merged[first:] = [_field(merged[first:], separate)]
    return merged


def _field_characters(part: Element | Piece) -> Iterator[str | None]:
    """Yield the types of the field characters in a run: the begin, the separator or the end of a field."""
    if isinstance(part, Element) and part.name == "w:r":
        for child in part.children:
            if child.name == "w:fldChar":
                yield child.attributes.get("w:fldCharType")


def _field(runs: Sequence[Element | Piece], separate: int) -> Element:
    """Merge the runs of a field; `separate`: the index of the run between its code and its result, 0 if there is none.

    The result is text only in some fields.
    """
    start, last = runs[0], runs[-1]
    assert isinstance(start, Element)
    field = replace(start, name=FIXED, end=last.end, parts=list(runs))
    code = ""
    for run in runs[:separate]:
        if isinstance(run, Element):
            for text in run.within("w:instrText"):
                code += text.text
    result = list(runs[separate + 1 : -1])
    if not result or not code.strip().upper().startswith(_SHOWING_TEXT):
        return field
    return replace(field, name=TEXT, inner=result[0].start, inner_end=last.start, parts=result)


def _control(part: Element | Piece) -> Element | Piece:
    """Return a content control, a ruby or custom XML as an element that contains only its text."""
    if isinstance(part, Piece):
        return part
    if part.name == "w:sdt":
        text, settings = part.child("w:sdtContent"), part.child("w:sdtPr")
        if text is None or (settings and settings.child("w:dataBinding")):
            return replace(part, name=FIXED)
        return replace(part, name=TEXT, inner=text.inner, inner_end=text.inner_end, parts=text.parts)
    if part.name == "w:ruby" and (base := part.child("w:rubyBase")):
        return replace(part, name=TEXT, inner=base.inner, inner_end=base.inner_end, parts=base.parts)
    if part.name in _WITH_PROPERTIES:
        parts = part.children_except(_WITH_PROPERTIES[part.name])
        if not parts:
            return replace(part, name=FIXED)
        return replace(part, name=TEXT, inner=parts[0].start, parts=[*parts])
    return part
