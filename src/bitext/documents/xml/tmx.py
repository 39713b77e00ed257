"""TMX: the units of a translation memory get a text in the target language."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bitext.documents.document import Segment, Target
from bitext.documents.tagged_text import Side, TaggedText
from bitext.documents.xml.xml_file import (
    Inline,
    Render,
    Role,
    SlottedXml,
    Targets,
    XmlFile,
    escaped,
    margin,
    opened,
    texts_of,
    with_attributes,
)
from bitext.errors import UserError
from bitext.languages import Languages, matching_code, same_language, usual_code
from bitext.readers.tmx import LANGUAGE, NAMESPACES, language_of
from bitext.readers.xml_elements import Element

_CONFIDENCE, _DOUBT = "x-translucid-confidence", "x-translucid-doubt"
_FIX = "Name both languages of the translation."


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Parse a translation memory.

    Raises:
        UserError: the file is invalid or harmful, or its source or target language is not clear.
    """
    document = SlottedXml(XmlFile(name, content))
    source, units = None, []
    for element in document.file.units({"tmx"}, {"tu", "header"}, NAMESPACES):
        if element.name == "tu":
            units.append(element)
        elif source is None:
            source = element.attributes.get("srclang")
    memory = _Memory(document, languages, source)
    memory.choose(units)
    for unit in units:
        memory.add(unit)
    return document


class _Memory:
    """The units of a file."""

    def __init__(self, document: SlottedXml, languages: Languages, srclang: str | None) -> None:
        self.document, self.file = document, document.file
        source, self.target = (usual_code(code or "") or code for code in languages)
        if srclang and srclang.lower() == "*all*":  # Each unit may have another source language.
            srclang = None
        self.source = source or srclang or None
        self.target_code = self.target or ""
        """The code of the target language in the file."""

    def choose(self, units: list[Element]) -> None:
        """Determine the source and the target language."""
        codes: list[str] = []
        for unit in units:
            codes += filter(None, map(language_of, unit.within("tuv")))
        codes = list(dict.fromkeys(codes))
        languages = ", ".join(codes[:20]) or "no language"
        other_codes = [code for code in codes if not same_language(code, self.source or "")]
        if self.source is None or len(other_codes) == len(codes):
            expected = self.source or "a known source"
            raise UserError(f"holds {languages}, not {expected}", file=self.file.name, fix=_FIX)
        if self.target is None and len(other_codes) != 1:
            raise UserError(f"holds {languages}: which is the target", file=self.file.name, fix=_FIX)
        target = self.target or other_codes[0]
        self.target_code = matching_code(target, other_codes) or self.target_code

    def add(self, unit: Element) -> None:
        variants = [child for child in unit.children if child.name == "tuv"]
        source = _of_language(variants, self.source or "")
        target = _of_language([variant for variant in variants if variant is not source], self.target_code)
        if source is None or (segment := source.child("seg")) is None:
            return
        # Each text has a reader of its own, in which the numbers of pairs are unique.
        inline = Inline(self.file, partial(_role, {}), edges=False, texts=texts_of(segment))
        content = inline.content(segment.parts)
        if content is None:
            return
        start = end = variants[-1].end
        old_seg, existing = None, None
        if target and (old_seg := target.child("seg")):
            start, end = old_seg.start, old_seg.end
            old_content = replace(inline, role=partial(_role, {})).content(old_seg.parts)
            if old_content:
                existing = old_content.source
            elif text := old_seg.words(_is_code).strip():
                existing = TaggedText(text)
        notes = [child.text.strip() for child in (*unit.children, *source.children) if child.name == "note"]
        note = "\n".join(filter(None, notes)) or None
        new_segment = Segment(content.source, f"line {unit.line}", existing=existing, note=note)
        number = self.document.segments.add(new_segment)
        numbers = range(number, number + 1)
        for prop in (target or source).within("prop"):
            if target and prop.attributes.get("type") in (_CONFIDENCE, _DOUBT):
                self.document.add_slot(prop.start, prop.end, numbers, "")

        def write(targets: Targets, render: Render) -> str:
            inner_xml = inline.written([content], [targets[number].marked])
            return self._variant(targets[number], inner_xml, source, old_seg)

        self.document.add_slot(start, end, numbers, write)

    def _variant(self, target: Target, inner_xml: str, source: Element, old_seg: Element | None) -> str:
        """Return the text in the target language, in a new element of that language if the unit has none."""
        if old_seg:
            return f"{_properties(target)}{opened(self.file.raw(old_seg.start, old_seg.inner))}{inner_xml}</seg>"
        # The attribute of the source, because readers of older versions do not know `xml:lang`.
        attribute = next(name for name in LANGUAGE if name in source.attributes)
        tag = with_attributes("<tuv>", {attribute: self.target_code})
        indent = margin(self.file, source)
        text = f"{_properties(target)}<seg>{inner_xml}</seg>"
        return f"{self.file.raw(indent.start, indent.end)}{tag}{text}</tuv>"


def _role(numbers: dict[str, int], element: Element) -> Role:
    """Return the role of an element in a text; `numbers`: the pairs of the text by their attribute `i`."""
    if element.name == "hi":
        return "pair"
    if element.name in ("bpt", "ept"):
        number = numbers.setdefault(element.attributes.get("i", ""), element.start)
        return Side.of_tag(closes=element.name == "ept"), number
    return "alone"


def _of_language(variants: list[Element], code: str) -> Element | None:
    """Return the variant that is in exactly this language or, if there is none, the first one of the same language."""
    by_code: dict[str, Element] = {}
    for variant in variants:
        by_code.setdefault(language_of(variant), variant)
    exact = matching_code(code, by_code)
    return None if exact is None else by_code[exact]


def _is_code(element: Element) -> bool:
    return element.name != "hi"


def _properties(target: Target) -> str:
    """Return the confidence and the doubts of a translation as properties."""
    properties = [(_DOUBT, doubt) for doubt in target.doubts]
    if target.confidence is not None:
        properties.insert(0, (_CONFIDENCE, f"{target.confidence:.2f}"))
    return "".join(f'<prop type="{kind}">{escaped(value)}</prop>' for kind, value in properties)
