"""Fields, controls and ruby of Word: which of their parts is text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from translucid.documents.xml.xml_spans import Element, Piece

TEXT, FIXED = "translated", "fixed"
"""Names of what is made one element: with text in it that is translated, or without."""
_SHOWING_TEXT = ("HYPERLINK",)
"""Fields whose result is text that somebody wrote, and not a number, a date or a copy."""
_WITH_PROPERTIES = {"w:smartTag": "w:smartTagPr", "w:customXml": "w:customXmlPr"}


def with_fields(parts: Sequence[Element | Piece]) -> Sequence[Element | Piece]:
    """Return the parts of a paragraph, or of a run, with all runs of a field made one element; see `_control`.

    A field that ends in another paragraph, as a table of contents does, stays as it is.
    """
    parts = [_control(part) if isinstance(part, Element) else part for part in parts]
    made, depth, begun, separate = list[Element | Piece](), 0, 0, None
    for part in parts:
        made.append(part)
        for kind in _marks(part):
            if kind == "begin":
                if depth == 0:
                    begun, separate = len(made) - 1, None
                depth += 1
            elif kind == "separate" and depth == 1:
                separate = len(made) - 1
            elif kind == "end" and depth:
                depth -= 1
                if depth == 0 and len(made) - 1 > begun:
                    made[begun:] = [_field(made[begun:], None if separate is None else separate - begun)]
    return made


def _marks(part: Element | Piece) -> Iterator[str | None]:
    if isinstance(part, Element) and part.name == "w:r":
        for child in part.children:
            if child.name == "w:fldChar":
                yield child.attributes.get("w:fldCharType")


def _field(runs: Sequence[Element | Piece], separate: int | None) -> Element:
    """Make one element of the runs of a field; `separate`: which of them parts its code from its result."""
    first, last = runs[0], runs[-1]
    assert isinstance(first, Element)
    field = replace(first, name=FIXED, end=last.end, parts=list(runs))
    if separate is None:
        return field
    code = "".join(
        text.text for run in runs[:separate] if isinstance(run, Element) for text in run.within("w:instrText")
    )
    if not code.strip().upper().startswith(_SHOWING_TEXT) or separate + 1 >= len(runs) - 1:
        return field
    result = list(runs[separate + 1 : -1])
    return replace(field, name=TEXT, inner=result[0].start, inner_end=last.start, parts=result)


def _control(part: Element) -> Element:
    """Return what holds text and settings, or text and how it is read, as an element with the text alone in it."""
    if part.name == "w:sdt":
        text, settings = part.child("w:sdtContent"), part.child("w:sdtPr")
        if text is None or (settings and settings.child("w:dataBinding")):
            return replace(part, name=FIXED)
        return replace(part, name=TEXT, inner=text.inner, inner_end=text.inner_end, parts=text.parts)
    if part.name == "w:ruby" and (base := part.child("w:rubyBase")):
        return replace(part, name=TEXT, inner=base.inner, inner_end=base.inner_end, parts=base.parts)
    if part.name in _WITH_PROPERTIES:
        parts: list[Element | Piece] = [one for one in part.children if one.name != _WITH_PROPERTIES[part.name]]
        return replace(part, name=TEXT, inner=parts[0].start, parts=parts) if parts else replace(part, name=FIXED)
    return part
