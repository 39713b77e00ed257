"""Android string resources, whose texts are replaced: strings, items that are strings, arrays of them, and plurals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from translucid.data.languages import Languages
from translucid.data.placeholder_syntax import PlaceholderSyntax
from translucid.documents.document import Segment
from translucid.documents.strings.android_text import items_of, written, written_cdata
from translucid.documents.strings.messages import is_language
from translucid.documents.strings.plural_forms import ORDER, categories, examples_of
from translucid.documents.tagged_text import TaggedText
from translucid.documents.xml.slots import Kept, SlottedXml, Targets
from translucid.documents.xml.xml_inline import Added, Inline, Role, add_text
from translucid.documents.xml.xml_spans import Element, XmlFile
from translucid.documents.xml.xml_tags import margin, with_attributes

_SPACES = {"urn:oasis:names:tc:xliff:document:1.2": "xliff"}


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Take a file of strings apart.

    Raises:
        UserError: it is no such file, broken or harmful.
    """
    strings = _Strings(SlottedXml(XmlFile(name, content, entities=True)), languages[1])
    for unit in strings.document.file.units({"resources"}, {"string", "string-array", "plurals", "item"}, _SPACES):
        is_text = unit.name != "item" or unit.attributes.get("type") == "string"  # other items are colours and the like
        if is_text and unit.inherited("translatable") != "false":
            strings.take(unit)
    return strings.document


class _Strings:
    """The strings of a file."""

    def __init__(self, document: SlottedXml, language: str | None) -> None:
        self.document, self.language, self.forms = document, language, categories(language)
        self.inline = Inline(
            document.file,
            _role,
            edges=False,
            texts=items_of,
            write=written,
            write_cdata=written_cdata,
            syntax=PlaceholderSyntax.message,
        )

    def take(self, unit: Element) -> None:
        """Add the texts of a resource."""
        note = unit.comment or None
        if unit.name == "plurals":
            self._plurals(unit, note)
        else:
            for text in unit.children if unit.name == "string-array" else [unit]:
                self._text(text, note)

    def _text(self, text: Element, note: str | None) -> Added | None:
        """Add a text, if there is one to translate, and return it."""
        # What begins so names another resource.
        if text.text.lstrip().startswith(("@", "?")) or not is_language(text.text, text.attributes.get("name", "")):
            return None
        segment = Segment(TaggedText(""), f"line {text.line}", note=note)
        return add_text(self.document, self.inline, text.parts, segment) if text.parts else None

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
        source, more = self.document.segments[made.number], dict[str, int]()
        for form in self.forms:
            if form not in items:
                numbers = ", ".join(map(str, examples_of(self.language, form)))
                what = f"for {numbers} …" if numbers else f"form {form}"
                more[form] = self.document.add_segment(replace(source, place=f"{source.place}, {what}"))
        every = range(first, len(self.document.segments))
        for form, item in items.items():
            if form not in self.forms and item is not general:
                before = margin(self.document.file, item)
                self.document.add_slot(before.start, item.end, every, lambda targets, kept: "")
        if more:
            write = partial(self._more, general, made, more)
            self.document.add_slot(general.start, general.start, range(made.number, every.stop), write)

    def _more(self, item: Element, made: Added, forms: dict[str, int], targets: Targets, kept: Kept) -> str:
        """Return items of more forms; one without a translation of its own says what `item` does."""
        raw, before, items = self.document.file.raw, margin(self.document.file, item), list[str]()
        for form, number in forms.items():
            target = targets.get(number) or targets.get(made.number)
            items.append(with_attributes(raw(item.start, item.inner), {"quantity": form}))
            if target:
                parts = [*made.content.lead, *target.marked.parts, *made.content.tail]
                items += [raw(item.inner, made.start), self.inline.written(parts, kept, {}), raw(made.end, item.end)]
            else:
                items.append(raw(item.inner, item.end))
            items.append(raw(before.start, before.end))
        return "".join(items)


def _role(element: Element) -> Role:
    return "alone" if element.name == "xliff:g" or element.attributes.get("translatable") == "false" else "pair"
