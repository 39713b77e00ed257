"""TMX: the units of a memory that lack the target language get it."""

from __future__ import annotations

from functools import partial

from translucid.data.languages import Languages, same_language, usual_code
from translucid.data.readers.inline import BREAKS
from translucid.documents.document import Segment, Target
from translucid.documents.tagged_text import Side
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_inline import Content, Inline, Role, by_line, escaped, folded
from translucid.documents.xml.xml_spans import Element, Piece, XmlFile
from translucid.documents.xml.xml_tags import margin, opened, with_attributes
from translucid.ground.errors import UserError

_SPACES = {"http://www.lisa.org/tmx14": ""}
_LANGUAGE = ("xml:lang", "lang")
"""Attributes that name the language of a text, in TMX 1.4 and before."""
_SURE, _DOUBT = "x-translucid-confidence", "x-translucid-doubt"
_FIX = "Name both languages of the translation."


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Take a translation memory apart.

    Raises:
        UserError: it is broken or harmful, or it is not plain which languages are meant.
    """
    document = SlottedXml(XmlFile(name, content))
    units = list(document.file.units({"tmx"}, {"tu", "header"}, _SPACES))
    header = next((unit for unit in units if unit.name == "header"), None)
    memory = _Memory(document, languages, header.attributes.get("srclang") if header else None)
    units = [unit for unit in units if unit.name == "tu"]
    memory.choose(units)
    for unit in units:
        memory.take(unit)
    return document


class _Memory:
    """The units of a file."""

    def __init__(self, document: SlottedXml, languages: Languages, srclang: str | None) -> None:
        self.document, self.file = document, document.file
        wanted, self.target = (usual_code(code or "") or code for code in languages)
        self.source = wanted or (srclang if srclang and srclang.lower() != "*all*" else None)
        self.written = self.target or ""
        """The target's code as the file has it."""

    def choose(self, units: list[Element]) -> None:
        """Find out which languages are meant."""
        met = list(dict.fromkeys(code for unit in units for variant in unit.within("tuv") if (code := _code(variant))))
        if self.source is None or not any(same_language(code, self.source) for code in met):
            found = ", ".join(met[:20]) or "no language"
            raise UserError(f"holds {found}, not {self.source or 'a known source'}", file=self.file.name, fix=_FIX)
        others = [code for code in met if not same_language(code, self.source)]
        if self.target is None and len(others) != 1:
            raise UserError(f"holds {', '.join(met[:20])}: which is the target", file=self.file.name, fix=_FIX)
        wanted = self.target or others[0]
        self.written = next((code for code in others if same_language(code, wanted)), self.written)

    def take(self, unit: Element) -> None:
        """Add the text of a unit."""
        variants = [child for child in unit.children if child.name == "tuv"]
        source = next((one for one in variants if same_language(_code(one), self.source or "")), None)
        target = next((one for one in variants if same_language(_code(one), self.written) and one is not source), None)
        segment = source.child("seg") if source else None
        if source is None or segment is None:
            return
        inline = self._inline(segment)
        content = inline.content(segment.parts)
        if content is None:
            return
        old = target.child("seg") if target else None
        said = _words(old).strip() if old else ""
        notes = [note.text.strip() for note in (*unit.within("note"), *source.within("note"))]
        number = self.document.add_segment(
            Segment(content.source, f"line {unit.line}", existing=said or None, note="\n".join(notes) or None)
        )
        numbers = range(number, number + 1)
        for prop in target.within("prop") if target else ():
            if prop.attributes.get("type") in (_SURE, _DOUBT):
                self.document.add_slot(prop.start, prop.end, numbers, lambda targets, kept: "")
        start, end = (old.start, old.end) if old else (variants[-1].end, variants[-1].end)
        self.document.add_slot(start, end, numbers, partial(self._variant, number, content, source, old))

    def _variant(
        self, number: int, content: Content, source: Element, old: Element | None, targets: Targets, kept: Kept
    ) -> str:
        """Return the target's text, with the element of its language if there is none."""
        target = targets[number]
        inside = self._inline(source).written([*content.lead, *target.marked.parts, *content.tail], kept, {})
        tag = "<seg>" if old is None else opened(self.file.raw(old.start, old.inner))
        text = f"{_said(target)}{tag}{inside}</seg>"
        if old is not None:
            return text
        attribute = next(name for name in _LANGUAGE if name in source.attributes)
        tag = with_attributes("<tuv>", {attribute: self.written})
        before = margin(self.file, source)
        return f"{self.file.raw(before.start, before.end)}{tag}{text}</tuv>"

    def _inline(self, text: Element) -> Inline:
        """Return a reader of one text; the two marks of a pair have the same number in it."""
        texts = by_line if text.inherited("xml:space") == "preserve" else folded
        return Inline(self.file, partial(_role, {}), edges=False, texts=texts)


def _role(numbers: dict[str, int], element: Element) -> Role:
    """Say what an element within a text is."""
    if element.name == "hi":
        return "pair"
    if element.name in ("bpt", "ept"):
        number = numbers.setdefault(element.attributes.get("i", ""), -1 - len(numbers))
        return (Side.opens if element.name == "bpt" else Side.closes), number
    return "break" if element.name in BREAKS else "alone"


def _code(variant: Element) -> str:
    return next((variant.attributes[name] for name in _LANGUAGE if name in variant.attributes), "")


def _words(text: Element) -> str:
    """Return the words of a text; what is in its codes is none."""
    parts = (part for part in text.parts if isinstance(part, Piece) or part.name == "hi")
    return "".join(part.text if isinstance(part, Piece) else _words(part) for part in parts)


def _said(target: Target) -> str:
    """Return how sure a translation is, and what looks wrong, as properties."""
    props = [] if target.confidence is None else [(_SURE, f"{target.confidence:.2f}")]
    props += [(_DOUBT, doubt) for doubt in target.doubts]
    return "".join(f'<prop type="{kind}">{escaped(value)}</prop>' for kind, value in props)
