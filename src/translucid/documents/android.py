"""Android string resources: `<string>`, `<string-array>` and `<plurals>`, whose texts are replaced."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from translucid.data.languages import Languages
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.android_text import items_of, items_of_cdata, written, written_cdata
from translucid.documents.document import Segment
from translucid.documents.marked import Marked
from translucid.documents.messages import is_language
from translucid.documents.plural_forms import ORDER, categories, examples_of
from translucid.documents.slots import Kept, SlottedXml, Targets
from translucid.documents.xml_inline import Added, Inline, Role, add_text
from translucid.documents.xml_spans import Element, Piece, XmlFile
from translucid.documents.xml_tags import margin, with_attributes

_SPACES = {"urn:oasis:names:tc:xliff:document:1.2": "xliff"}
_CDATA = len("<![CDATA["), len("]]>")


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Take a file of strings apart.

    Raises:
        UserError: it is no such file, broken or harmful.
    """
    strings = _Strings(SlottedXml(XmlFile(name, content)), languages[1])
    for unit in strings.document.file.units({"resources"}, {"string", "string-array", "plurals"}, _SPACES):
        if unit.inherited("translatable") != "false":
            strings.take(unit)
    return strings.document


class _Strings:
    """The strings of a file."""

    def __init__(self, document: SlottedXml, language: str | None) -> None:
        self.document, self.language, self.forms = document, language, categories(language)
        inline = partial(Inline, document.file, _role, edges=False, syntax=PlaceholderSyntax.message)
        self.inline = inline(texts=items_of, write=written)
        self.cdata = inline(texts=items_of_cdata, write=written_cdata)

    def take(self, unit: Element) -> None:
        """Add the texts of a resource."""
        note = unit.comment or None
        if unit.name == "plurals":
            self._plurals(unit, note)
        else:
            for text in [unit] if unit.name == "string" else unit.children:
                self._text(text, note)

    def _text(self, text: Element, note: str | None) -> tuple[Added, Inline] | None:
        """Add a text, if there is one to translate; return it, and how it is written."""
        # What begins so names another resource.
        if text.text.lstrip().startswith(("@", "?")) or not is_language(text.text, text.attributes.get("name", "")):
            return None
        parts, inline = text.parts, self.inline
        cdata = [
            part for part in parts if not (isinstance(part, Piece) and part.kind == "text" and part.text.isspace())
        ]
        if len(cdata) == 1 and isinstance(cdata[0], Piece) and cdata[0].kind == "cdata":
            piece = cdata[0]
            parts, inline = [replace(piece, start=piece.start + _CDATA[0], end=piece.end - _CDATA[1])], self.cdata
        segment = Segment(Marked(""), f"line {text.line}", note=note)
        added = add_text(self.document, inline, parts, segment) if parts else None
        return (added, inline) if added else None

    def _plurals(self, unit: Element, note: str | None) -> None:
        """Add the forms that the target language has, each made of the same one of the source, or of `other`."""
        items = {form: item for item in unit.children if (form := item.attributes.get("quantity")) in ORDER}
        if not items:
            return
        general = items.get("other") or [*items.values()][-1]
        first, made = len(self.document.segments), None
        for form, item in items.items():
            if self.forms is None or form in self.forms or item is general:
                written = self._text(item, note)
                made = written if item is general else made
        if self.forms is None or made is None:
            return
        source, more = self.document.segments[made[0].number], dict[str, int]()
        for form in self.forms:
            if form not in items:
                numbers = ", ".join(map(str, examples_of(self.language, form)))
                more[form] = self.document.add_segment(replace(source, place=f"{source.place}, for {numbers} …"))
        every = range(first, len(self.document.segments))
        for form, item in items.items():
            if form not in self.forms and item is not general:
                before = margin(self.document.file, item)
                self.document.add_slot(before.start, item.end, every, lambda targets, kept: "")
        if more:
            write = partial(self._more, general, *made, more)
            self.document.add_slot(general.start, general.start, range(made[0].number, every.stop), write)

    def _more(
        self, item: Element, made: Added, inline: Inline, forms: dict[str, int], targets: Targets, kept: Kept
    ) -> str:
        """Return items of more forms; one without a translation of its own says what `item` does."""
        raw, before, items = self.document.file.raw, margin(self.document.file, item), list[str]()
        for form, number in forms.items():
            target = targets.get(number) or targets.get(made.number)
            items.append(with_attributes(raw(item.start, item.inner), {"quantity": form}))
            if target:
                parts = [*made.content.lead, *target.marked.parts, *made.content.tail]
                items += [raw(item.inner, made.start), inline.written(parts, kept, {}), raw(made.end, item.end)]
            else:
                items.append(raw(item.inner, item.end))
            items.append(raw(before.start, before.end))
        return "".join(items)


def _role(element: Element) -> Role:
    return "alone" if element.name == "xliff:g" or element.attributes.get("translatable") == "false" else "pair"
