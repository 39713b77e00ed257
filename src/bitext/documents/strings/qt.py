"""Qt's .ts: each message gets a translation; a message with a number gets one for each plural form.

Translations of a model are marked `unfinished`: `lrelease` uses them, and Qt Linguist asks a person to check them.
Obsolete messages stay, and so do messages with control characters or with translations of several lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bitext.documents.document import Segment, sentence
from bitext.documents.strings.messages import add_message
from bitext.documents.strings.plural_forms import PluralForms, place_of_form
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xliff import refuse_other_languages
from bitext.documents.xml.xml_file import (
    Message,
    Render,
    SlottedXml,
    Targets,
    XmlFile,
    escaped,
    margin,
    opened,
    with_attributes,
)
from bitext.errors import UserError
from bitext.languages import Languages, short_code, usual_code
from bitext.protected_spans import PlaceholderSyntax
from bitext.readers.xml_elements import Element

_OURS = "translucid:"
"""The beginning of our comment on a translation, which replaces an earlier one."""
_OBSOLETE = ("vanished", "obsolete")
_UNFINISHED = "unfinished"
_RULES = {
    **dict.fromkeys(["id", "ms"], "nplurals=1; plural=0;"),
    "hy": "nplurals=2; plural=n>1;",
    "ka": "nplurals=2; plural=n!=1;",
    "ga": "nplurals=3; plural=n==1 ? 0 : n==2 ? 1 : 2;",
    "mk": "nplurals=3; plural=n%10==1 ? 0 : n%10==2 ? 1 : 2;",
    "gd": "nplurals=4; plural=n==1||n==11 ? 0 : n==2||n==12 ? 1 : n>2&&n<20 ? 2 : 3;",
}
"""The plural rules of languages for which Qt has another number of forms than gettext."""
_QUOTES = {"'": "&apos;", '"': "&quot;"}
_COMMENTS = ("comment", "extracomment", "translatorcomment")


def read(name: str, content: bytes, languages: Languages) -> SlottedXml:
    """Parse a file of messages.

    Raises:
        UserError: the file is TypeScript or a video, invalid, harmful, or for other languages.
    """
    # The first characters suffice: TypeScript cannot begin with a tag, and the file may be in UTF-16.
    if not content[:200].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<"):
        fix = "Export texts in TypeScript as .json; give lines of text on standard input."
        raise UserError("is not a Qt translation file: it does not begin with <", file=name, fix=fix)
    document = SlottedXml(XmlFile(name, content))
    reader = _Reader(document, languages)
    for unit in document.file.units({"TS"}, {"message"}, {}):
        reader.add(unit)
    reader.finish()
    return document


@dataclass(frozen=True)
class _Text:
    """A translation: of a message, or of one of its plural forms."""

    message: Message
    existing: str
    """The content of the existing translation in the file."""

    def written(self, targets: Targets, quotes: Mapping[str, str]) -> str:
        """Return the content of the translation; `quotes`: the escapes of quotes in the file."""
        if targets.keys().isdisjoint(self.message.numbers):
            return self.existing
        content = self.message.written(targets)
        for sign, entity in quotes.items():
            content = content.replace(sign, entity)
        return content

    def is_unfinished(self, targets: Targets) -> bool:
        """Whether a person has to check the translation, or it is missing."""
        if targets.keys().isdisjoint(self.message.numbers):
            return not self.existing
        origins = {targets[number].origin for number in self.message.numbers if number in targets}
        return "model" in origins or not targets.keys() >= set(self.message.numbers)


class _Reader:
    """The messages of a file."""

    def __init__(self, document: SlottedXml, languages: Languages) -> None:
        self.document, self.file, self.languages = document, document.file, languages
        self.root: Element | None = None
        rule = PluralForms.of(_RULES.get(short_code(languages[1] or ""), ""))
        self.plurals = rule or PluralForms.of_language(languages[1])
        self.line_end = self.file.file.line_end
        # Qt's own programs escape quotes in texts; most others do not.
        self.quotes = {sign: name for sign, name in _QUOTES.items() if name.encode() in self.file.content}

    def add(self, unit: Element) -> None:
        if self.root is None:
            self._check_languages(unit)
        source, translation = unit.child("source"), unit.child("translation")
        if source is None or source.children:
            return
        state = None
        if translation:
            state = translation.attributes.get("type")
            if state in _OBSOLETE or translation.attributes.get("variants") == "yes":
                return
        is_plural = unit.attributes.get("numerus") == "yes"
        elements = [translation] if translation and not is_plural else []
        if translation and is_plural:
            elements = translation.children
        texts = list(self._texts(unit, source.text, elements, is_plural, keep_existing=state != _UNFINISHED))
        numbers = range(texts[0].message.numbers.start, texts[-1].message.numbers.stop)
        if numbers:
            start = end = (translation or unit.children[-1]).end
            if translation:
                start = translation.start
            write = partial(self._written, unit, translation, texts, is_plural)
            self.document.add_slot(start, end, numbers, write)
            self._replace_remark(unit, numbers)

    def finish(self) -> None:
        """Add the target language where the file lacks it."""
        code = usual_code(self.languages[1] or "")
        if self.root and code and not self.root.attributes.get("language"):
            numbers = range(len(self.document.segments))
            self.document.set_attributes(self.root, {"language": code.replace("-", "_")}, numbers)

    def _check_languages(self, unit: Element) -> None:
        """Find the root, and refuse a file of other languages than those of the translation."""
        root = unit
        while root.parent is not None:
            root = root.parent
        self.root = root
        source, target = root.attributes.get("sourcelanguage"), root.attributes.get("language")
        fix = "Take a translator of its languages, or change the attributes of <TS>."
        refuse_other_languages(self.languages, (source, target), (self.file.name, root.line), fix)

    def _texts(
        self, unit: Element, text: str, elements: list[Element], is_plural: bool, *, keep_existing: bool
    ) -> Iterator[_Text]:
        """Yield the texts of a message, whose segments are added; the source is the same for all plural forms."""
        notes = []
        for name in _COMMENTS:
            comment = unit.child(name)
            if comment and not comment.text.startswith(_OURS):
                notes.append(comment.text.strip())
        note = "\n".join(filter(None, notes)) or None
        count = self._count_of_forms(elements) if is_plural else 1
        for form in range(count):
            place, element = f"line {unit.line}", elements[form] if form < len(elements) else None
            if is_plural:
                examples = self.plurals.examples(form) if count == self.plurals.nplurals else ""
                place = place_of_form(place, form, examples)
            existing, raw = None, ""
            if element:
                existing = TaggedText(element.text) if element.text else None
                raw = self.file.raw(element.inner, element.inner_end)
            template = Segment(TaggedText(""), place, note=note)
            if keep_existing:
                template = replace(template, existing=existing)
            else:
                template = replace(template, draft=existing)
            added = add_message(
                self.document.segments, text, template, syntax=PlaceholderSyntax.numbered, accelerators=True
            )
            yield _Text(Message(*added, self.line_end), raw)

    def _count_of_forms(self, elements: list[Element]) -> int:
        """Return the number of plural forms: that of the file if it is for the target language, else Qt's."""
        is_of_target = self.root is not None and self.root.attributes.get("language")
        return len(elements) if elements and is_of_target else self.plurals.nplurals

    def _written(
        self,
        unit: Element,
        translation: Element | None,
        texts: list[_Text],
        is_plural: bool,
        targets: Targets,
        render: Render,
    ) -> str:
        """Return the element of the translation, after our comment if the message has no comment of a translator."""
        # The elements of a message are on lines of their own, with the same white space before each.
        space = self._space_before(unit.children[-1])
        lead, tag = space, "<translation>"
        if translation:
            lead, tag = "", self.file.raw(translation.start, translation.inner)
        is_unfinished = any(text.is_unfinished(targets) for text in texts)
        tag = opened(with_attributes(tag, {"type": _UNFINISHED if is_unfinished else None}))
        contents = [text.written(targets, self.quotes) for text in texts]
        inner_xml = contents[0]
        if is_plural:
            form_space = f"{space}    " if space else ""
            if translation and translation.children:
                form_space = self._space_before(translation.children[0])
            inner_xml = "".join(f"{form_space}<numerusform>{content}</numerusform>" for content in contents)
            inner_xml += space if form_space else ""
        numbers = range(texts[0].message.numbers.start, texts[-1].message.numbers.stop)
        remark = _remark(numbers, targets)
        if remark and unit.child("translatorcomment") is None:
            lead = f"{lead}{remark}{space}"
        return f"{lead}{tag}{inner_xml}</translation>"

    def _replace_remark(self, unit: Element, numbers: range) -> None:
        """Add a slot that replaces our comment on an earlier translation, and the white space before it."""
        comment = unit.child("translatorcomment")
        if comment is None or not comment.text.startswith(_OURS):
            return
        space = self._space_before(comment)

        def write(targets: Targets, render: Render) -> str:
            remark = _remark(numbers, targets)
            return f"{space}{remark}" if remark else ""

        self.document.add_slot(comment.start - len(space.encode()), comment.end, numbers, write)

    def _space_before(self, element: Element) -> str:
        indent = margin(self.file, element)
        return self.file.raw(indent.start, indent.end)


def _remark(numbers: range, targets: Targets) -> str:
    """Return our comment on translations: the lowest confidence, and all doubts; "" if there are none."""
    remarks: list[str] = []
    confidences: list[float] = []
    for number in numbers:
        if target := targets.get(number):
            remarks += map(sentence, target.doubts)
            if target.confidence is not None:
                confidences.append(target.confidence)
    if confidences:
        remarks.insert(0, f"The confidence is {min(confidences):.0%}.")
    if not remarks:
        return ""
    return f"<translatorcomment>{_OURS} {escaped(' '.join(dict.fromkeys(remarks)))}</translatorcomment>"
