"""Apple's .xcstrings: a catalog of all languages in JSON, in which each string gets a translation.

The state of a model's translation is `needs_review`. Plurals get the forms of the target language; variations by device
stay. Strings with `shouldTranslate: false` and stale strings stay. Members are added in the style of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from bitext.cancellation import between_steps
from bitext.documents.document import Segment, SegmentList, Target
from bitext.documents.spans import LineNumbers, Spans, TextFile
from bitext.documents.strings.json_strings import discard, explained
from bitext.documents.strings.messages import by_span, is_language, message_spans
from bitext.documents.strings.plural_forms import ORDER, categories, place_of_form
from bitext.documents.tagged_text import TaggedText
from bitext.documents.xml.xliff import agree
from bitext.errors import UserError
from bitext.languages import Languages, matching_code, usual_code
from bitext.protected_spans import Edit

_UNTRANSLATED = ("new", "")
"""The states of a translation that is only a copy of the source."""


def read(name: str, content: bytes, languages: Languages) -> StringCatalog:
    """Parse a catalog.

    Raises:
        UserError: the file is not a catalog, is for another source language, or the target language is unknown.
    """
    file = TextFile.of(name, content)
    with explained(name):
        json.loads(file.text, parse_int=discard, parse_float=discard, object_pairs_hook=discard)
        return StringCatalog(file, languages)


class _Leaf(NamedTuple):
    """A text of a string: the only one, or that of a plural form or a device."""

    text: str
    spans: Spans
    numbers: range
    """The numbers of its segments; empty if there is nothing to translate."""
    existing: dict[str, Any] | None
    """The unit with the existing translation."""

    def unit(self, targets: Mapping[int, Target]) -> dict[str, Any]:
        origins = {targets[number].origin for number in self.numbers if number in targets}
        if not origins:
            if self.existing:
                return self.existing
            return {"state": "new" if self.numbers else "translated", "value": self.text}
        is_complete = targets.keys() >= set(self.numbers)
        state = "translated" if is_complete and "model" not in origins else "needs_review"
        return {"state": state, "value": self.spans.filled(targets)}


class _String(NamedTuple):
    """A string with segments."""

    entry: Member
    numbers: range
    plan: dict[str, Any]
    """The localization in the target language, with a leaf in place of each unit."""


class StringCatalog:
    """A catalog of strings."""

    def __init__(self, file: TextFile, languages: Languages) -> None:
        """Add the segments of all strings.

        Raises:
            UserError: the file is not a catalog, is for another source language, or the target language is unknown.
        """
        self.file, self.segments = file, SegmentList(file.name)
        text = file.text
        top: dict[str, Member] = {}
        start = skip_blank(text, 0)
        if text[start] == "{":
            top = {member.key: member for member in members(text, start)}
        strings = top.get("strings")
        if strings is None or "sourceLanguage" not in top or text[strings.start] != "{":
            raise UserError("has no sourceLanguage or no strings", file=file.name, fix="Is this a string catalog?")
        self._source = str(self._value(top["sourceLanguage"]))
        if not agree(languages[0], self._source):
            what = f"is from {self._source}, the translator from {languages[0]}"
            raise UserError(what, file=file.name, fix="Take a translator of its language.")
        entries = list(members(text, strings.start))
        self._target = self._target_code(entries, languages[1])
        self._forms = categories(languages[1])
        self._style = JsonStyle.of(file)
        self._strings: list[_String] = []
        lines = LineNumbers(text)
        for entry in entries:
            self._add(entry, f"line {lines.at(entry.key_start)}")

    def _value(self, member: Member) -> Any:
        return json.loads(self.file.text[member.start : member.end])

    def _target_code(self, entries: list[Member], language: str | None) -> str:
        """Return the code of the target language: that of the file if it has one, else the usual one."""
        if not language:
            raise UserError("holds all languages", file=self.file.name, fix="Name the target language.")
        codes: dict[str, None] = {}
        for entry in entries:
            if localizations := self._child(entry, "localizations"):
                codes.update(dict.fromkeys(member.key for member in self._members(localizations)))
        codes.pop(self._source, None)
        usual = usual_code(language) or language
        return matching_code(usual, codes) or usual

    def _members(self, member: Member) -> list[Member]:
        if self.file.text[member.start] != "{":
            return []
        return list(members(self.file.text, member.start))

    def _child(self, member: Member, key: str) -> Member | None:
        for child in self._members(member):
            if child.key == key:
                return child
        return None

    def _add(self, entry: Member, place: str) -> None:
        value = self._value(entry)
        if not isinstance(value, dict) or value.get("shouldTranslate") is False:
            return
        if value.get("extractionState") == "stale":
            return
        localizations = _object(value.get("localizations"))
        source = _object(localizations.get(self._source)) or {"stringUnit": {"value": entry.key}}
        comment = value.get("comment")
        template = Segment(TaggedText(""), place, note=comment if isinstance(comment, str) else None)
        first = len(self.segments)
        plan = self._planned(source, _object(localizations.get(self._target)), template, entry.key)
        if len(self.segments) > first:
            self._strings.append(_String(entry, range(first, len(self.segments)), plan))

    def _planned(
        self,
        source: dict[str, Any],
        existing: dict[str, Any],
        template: Segment,
        key: str,
        *,
        in_plural: bool = False,
    ) -> dict[str, Any]:
        """Return a localization with the structure of the source's and leaves in place of units; add their segments."""
        plan: dict[str, Any] = {}
        for name, value in source.items():
            existing_value = _object(existing.get(name))
            if name == "stringUnit" and isinstance(value, dict):
                plan[name] = self._leaf(str(value.get("value", "")), existing_value, template, key)
            elif name == "plural" and isinstance(value, dict):
                # `other` stands for all forms that the source lacks, so nested plurals would grow exponentially.
                if in_plural:
                    what = f"has a plural in a form of a plural ({template.place})"
                    raise UserError(what, file=self.file.name, fix="Xcode writes none: remove it.")
                plan[name] = self._plural(value, existing_value, template, key)
            elif isinstance(value, dict):
                plan[name] = self._planned(value, existing_value, template, key, in_plural=in_plural)
            else:
                plan[name] = value
        return plan

    def _plural(self, forms: dict[str, Any], existing: dict[str, Any], template: Segment, key: str) -> dict[str, Any]:
        """Return the forms of the target language; a form that the source lacks is translated from `other`."""
        target_forms = dict(self._forms or {})
        if self._forms is None or "zero" in forms:
            # Apple uses `zero` for 0 in every language.
            target_forms.update(
                (form, target_forms.get(form, "")) for form in forms if self._forms is None or form == "zero"
            )
        general = forms.get("other") or next(iter(forms.values()), None)
        plan: dict[str, Any] = {}
        for form in ORDER:
            source = forms.get(form, general)
            if form in target_forms and isinstance(source, dict):
                place = place_of_form(template.place, form, target_forms[form])
                existing_form = _object(existing.get(form))
                in_form = replace(template, place=place)
                plan[form] = self._planned(source, existing_form, in_form, key, in_plural=True)
        return plan

    def _leaf(self, text: str, existing: dict[str, Any], template: Segment, key: str) -> _Leaf:
        first, spans = len(self.segments), Spans(text)
        translation = str(existing.get("value", ""))
        is_translated = bool(translation) and existing.get("state", "") not in _UNTRANSLATED
        if is_language(text, key):
            message = message_spans(text)
            translations = by_span(TaggedText(translation) if is_translated else None, len(message), message_spans)
            for i, span in enumerate(message):
                spans.add(self.segments.add(replace(template, source=span.marked, existing=translations[i])), span)
        return _Leaf(text, spans, range(first, len(self.segments)), existing if is_translated else None)

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations in the target language."""
        edits = []
        for string in self._strings:
            between_steps()
            if not targets.keys().isdisjoint(string.numbers):
                edits.append(self._edit(string.entry, _resolved(string.plan, targets)))
        return self.file.spliced(edits)

    def _edit(self, entry: Member, localization: dict[str, Any]) -> Edit:
        """Return the edit that puts a localization in the target language into a string."""
        text = self.file.text
        localizations = self._child(entry, "localizations")
        if localizations is None:
            return self._style.addition(text, entry.start, entry.end, "localizations", {self._target: localization})
        if existing := self._child(localizations, self._target):
            return self._style.replacement(text, existing, localization)
        return self._style.addition(text, localizations.start, localizations.end, self._target, localization)


def _resolved(plan: Any, targets: Mapping[int, Target]) -> Any:
    """Return a planned localization with units in place of its leaves."""
    if isinstance(plan, _Leaf):
        return plan.unit(targets)
    if isinstance(plan, dict):
        return {key: _resolved(value, targets) for key, value in plan.items()}
    return plan


def _object(value: object) -> dict[str, Any]:
    """Return a value that is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


DEEPEST = 200
"""The largest depth of nested objects and lists."""
_BLANK = re.compile(r"[ \t\r\n]*")
_SIGN = re.compile(r'["{}\[\]]')
_LITERAL = re.compile(r"[^\s,\]}]+")
_FIRST_KEY = re.compile(r"\s*\{(\r?\n)?([ \t]*)\"")
_COLON = re.compile(r'"([ \t]*:[ \t]*)[{\["\w]')


class Member(NamedTuple):
    """A member of an object, and its offsets."""

    key: str
    key_start: int
    start: int
    """The start of the value."""
    end: int


def skip_blank(text: str, offset: int) -> int:
    """Return the offset of the next character that is not white space."""
    match = _BLANK.match(text, offset)
    return match.end() if match else offset


def members(text: str, start: int) -> Iterator[Member]:
    """Yield the members of the object that begins at `start` in valid JSON.

    Raises:
        RecursionError: a member is nested too deep.
    """
    offset = skip_blank(text, start + 1)
    while text[offset] == '"':
        between_steps()
        key, end = scanstring(text, offset + 1, True)
        value = skip_blank(text, skip_blank(text, end) + 1)
        value_end = _end(text, value)
        yield Member(key, offset, value, value_end)
        offset = skip_blank(text, value_end)
        if text[offset] == ",":
            offset = skip_blank(text, offset + 1)


def _end(text: str, start: int) -> int:
    """Return the end of the value that begins at `start` in valid JSON."""
    if text[start] not in '"{[':
        match = _LITERAL.match(text, start)
        return match.end() if match else start
    depth, offset = 0, start
    while match := _SIGN.search(text, offset):
        offset = match.end()
        if match[0] == '"':
            offset = scanstring(text, offset, True)[1]
        else:
            depth += 1 if match[0] in "{[" else -1
            if depth > DEEPEST:
                raise RecursionError
        if depth == 0:
            break
    return offset


class JsonStyle(NamedTuple):
    """The white space of a file of JSON."""

    indentation: str | None
    """The indentation of the first level; None if everything is on one line."""
    colon: str
    """The colon between key and value, with the white space around it."""
    line_end: str

    @classmethod
    def of(cls, file: TextFile) -> JsonStyle:
        """Return the style of a file."""
        first_key, colon = _FIRST_KEY.match(file.text), _COLON.search(file.text)
        indentation = first_key[2] if first_key and first_key[1] else None
        return cls(indentation, colon[1] if colon else ":", file.line_end)

    def written(self, value: Any, margin: str) -> str:
        """Return a value as JSON with sorted keys; `margin`: the white space at the beginning of its line."""
        separators = (",", self.colon)
        written = json.dumps(value, ensure_ascii=False, indent=self.indentation, separators=separators, sort_keys=True)
        return written.replace("\n", f"{self.line_end}{margin}")

    def replacement(self, text: str, member: Member, value: Any) -> Edit:
        """Return the edit that replaces the value of a member."""
        return Edit(member.start, member.end, self.written(value, _indentation(text, member.key_start)))

    def addition(self, text: str, start: int, end: int, key: str, value: Any) -> Edit:
        """Return the edit that adds a new member to an object, in the order of its keys if they are sorted."""
        existing = list(members(text, start))
        if not existing:
            return Edit(start, end, self.written({key: value}, _indentation(text, start)))
        margin = _indentation(text, existing[0].key_start)
        space = "" if self.indentation is None else f"{self.line_end}{margin}"
        member_text = f"{json.dumps(key, ensure_ascii=False)}{self.colon}{self.written(value, margin)}"
        keys = [member.key for member in existing]
        if keys == sorted(keys):
            for member in existing:
                if member.key > key:
                    return Edit(member.key_start, member.key_start, f"{member_text},{space}")
        end_of_last = existing[-1].end
        return Edit(end_of_last, end_of_last, f",{space}{member_text}")


def _indentation(text: str, offset: int) -> str:
    """Return the white space at the beginning of the line of a character."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
