"""Android string resources: strings, items of type string, string arrays and plurals.

Their content has escapes, such as that of the apostrophe, quotes that preserve white space, and HTML tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bitext.documents.markup.html_elements import BLOCKS
from bitext.documents.strings.messages import is_language, wraps
from bitext.documents.strings.plural_forms import ORDER, categories, place_of_form
from bitext.documents.tagged_text import Side
from bitext.documents.xml.xml_file import (
    WORD_BREAK,
    AddedText,
    Divider,
    Inline,
    Item,
    Render,
    Role,
    SlottedXml,
    Targets,
    XmlFile,
    add_text,
    escaped,
    margin,
    unplaced,
    with_attributes,
    written_in_cdata,
)
from bitext.languages import Languages
from bitext.protected_spans import STYLE_OR_SCRIPT, PlaceholderSyntax
from bitext.readers.xml_elements import Element

_SPACES = {"urn:oasis:names:tc:xliff:document:1.2": "xliff"}


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Parse a file of string resources.

    Raises:
        UserError: the file is not one of string resources, invalid or harmful.
    """
    strings = _Strings(SlottedXml(XmlFile(name, content, entities=True)), languages[1])
    for unit in strings.document.file.units({"resources"}, {"string", "string-array", "plurals", "item"}, _SPACES):
        # Items of other types are colors, dimensions and the like.
        is_text = unit.name != "item" or unit.attributes.get("type") == "string"
        if is_text and unit.inherited("translatable") != "false":
            strings.add(unit)
    return strings.document


class _Strings:
    """The strings of a file."""

    def __init__(self, document: SlottedXml, language: str | None) -> None:
        self.document, self.forms = document, categories(language)
        self.inline = Inline(
            document.file,
            _role,
            edges=False,
            texts=items_of,
            write=written,
            write_cdata=written_cdata,
            syntax=PlaceholderSyntax.message,
        )

    def add(self, unit: Element) -> None:
        note = unit.comment or None
        if unit.name == "plurals":
            self._plurals(unit, note)
        else:
            for text in unit.children if unit.name == "string-array" else [unit]:
                self._text(text, note)

    def _text(self, text: Element, note: str | None) -> AddedText | None:
        """Add a text and return it; None if there is nothing to translate."""
        # `@string/name` and `?attr/name` refer to other resources.
        is_reference = text.text.lstrip().startswith(("@", "?"))
        if is_reference or not text.parts or not is_language(text.text, text.attributes.get("name", "")):
            return None
        return add_text(self.document, self.inline, text.parts, f"line {text.line}", note)

    def _plurals(self, unit: Element, note: str | None) -> None:
        """Add the forms of the target language; a form that the source lacks is translated from `other`."""
        items: dict[str, Element] = {}
        for item in unit.children:
            form = item.attributes.get("quantity")
            if form in ORDER:
                items[form] = item
        if not items:
            return
        general_form = "other" if "other" in items else list(items)[-1]
        general = items[general_form]
        first, texts = len(self.document.segments), dict[str, AddedText | None]()
        for form, item in items.items():
            if self.forms is None or form in self.forms or form == general_form:
                texts[form] = self._text(item, note)
        general_text = texts[general_form]
        if self.forms is None or general_text is None:
            return
        sources = self.document.segments[general_text.numbers.start : general_text.numbers.stop]
        added: dict[str, AddedText] = {}
        for form, examples in self.forms.items():
            if form not in items:
                start = len(self.document.segments)
                for source in sources:
                    place = place_of_form(source.place, form, examples)
                    self.document.segments.add(replace(source, place=place))
                added[form] = general_text._replace(numbers=range(start, len(self.document.segments)))
        numbers = range(first, len(self.document.segments))
        for form, item in items.items():
            if form not in texts:
                indent = margin(self.document.file, item)
                self.document.add_slot(indent.start, item.end, numbers, "")
        if added:
            write = partial(self._added_items, general, general_text, added)
            self.document.add_slot(general.start, general.start, range(general_text.numbers.start, numbers.stop), write)

    def _added_items(
        self, item: Element, text: AddedText, forms: dict[str, AddedText], targets: Targets, render: Render
    ) -> str:
        """Return the items of added forms; a form without a translation has that of `item`, or its source text."""
        raw, indent, output = self.document.file.raw, margin(self.document.file, item), list[str]()
        for form, added in forms.items():
            output.append(with_attributes(raw(item.start, item.inner), {"quantity": form}))
            translated = added
            if targets.keys().isdisjoint(added.numbers):
                translated = text
            if not targets.keys().isdisjoint(translated.numbers):
                translation = self.inline.written(text.contents, translated.targets(targets))
                output += [raw(item.inner, text.start), translation, raw(text.end, item.end)]
            else:
                output.append(raw(item.inner, item.end))
            output.append(raw(indent.start, indent.end))
        return "".join(output)


def _role(element: Element) -> Role:
    is_kept = element.name == "xliff:g" or element.attributes.get("translatable") == "false"
    return "alone" if is_kept else "pair"


_SPECIAL = re.compile(
    rf"{STYLE_OR_SCRIPT}"
    r"|\\u[0-9A-Fa-f]{4}|\\.|\"|(?<!%)</?[A-Za-z][^<>]*>|\\",
    re.DOTALL,
)
_PLAIN = {r"\'": "'", r"\"": '"', r"\\": "\\", r"\@": "@", r"\?": "?"}
_TO_ESCAPE = str.maketrans({"\\": "\\\\", "'": r"\'", '"': r"\"", "\n": r"\n", "\t": r"\t"})
_SPACE = re.compile(r"[ \t\r\n]+")
_NAME = re.compile(r"</?([A-Za-z0-9]+)")
_BREAKS = {r"\n", r"\t"}
_VOID = {"br", "hr", "img"}


def items_of(text: str) -> Iterator[Item]:
    """Yield the texts and marks of a string."""
    # In quotes, white space is preserved; escaped quotes do not count.
    fold = str if text.count('"') > text.count(r"\"") else partial(_SPACE.sub, " ")
    open_tags: dict[str, list[int]] = {}
    position = pair = 0  # pairs are numbered from -1 downwards, as the XML elements around have the numbers from 0
    line_start = 0
    in_quotes = False
    for match in _SPECIAL.finditer(text):
        yield fold(text[position : match.start()])
        position, token = match.end(), match[0]
        raw = escaped(token)
        if token in _PLAIN:
            yield _PLAIN[token]
        elif token.startswith("\\u") and len(token) == 6 and _is_visible(chr(int(token[2:], 16))):
            yield chr(int(token[2:], 16))
        elif token == '"':
            pair -= not in_quotes
            yield unplaced(raw, Side.of_tag(closes=in_quotes), pair)
            in_quotes = not in_quotes
        elif token.startswith("<") and (name := _NAME.match(token)) and name[1].lower() in BLOCKS:
            yield Divider(0, raw)
        elif token.startswith("<") and (name := _NAME.match(token)) and name[1].lower() not in _VOID:
            pairs = open_tags.setdefault(name[1].lower(), [])
            if not token.startswith("</"):
                pair -= 1
                pairs.append(pair)
                yield unplaced(raw, Side.opens, pair)
            elif pairs:
                yield unplaced(raw, Side.closes, pairs.pop())
            else:
                yield unplaced(raw)
        elif token == r"\t" or (token == r"\n" and not wraps(text[line_start : match.start()], text, match)):
            yield Divider(0, raw)
        else:
            if token in _BREAKS or token.lower().startswith("<br"):
                yield WORD_BREAK
            yield unplaced(raw)
        if token in _BREAKS:
            line_start = position
    yield fold(text[position:])


def written(text: str) -> str:
    r"""Return a text escaped for a string.

    >>> written("Don't <stop>")
    "Don\\'t &lt;stop&gt;"
    """
    return escaped(_escaped(text))


def written_cdata(text: str) -> str:
    """Return a text escaped for a CDATA section."""
    return written_in_cdata(_escaped(text))


def _is_visible(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def _escaped(text: str) -> str:
    text = text.translate(_TO_ESCAPE)
    # At the beginning, these would make the string a reference to a resource.
    return f"\\{text}" if text.startswith(("@", "?")) else text
