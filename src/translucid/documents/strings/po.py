"""gettext's .po and .pot: each message is a segment, of plurals each form is one.

What a model translated is marked fuzzy, so that `msgfmt` leaves it out until somebody has looked at it; its confidence
and what looks wrong stand in a comment. What a memory or a person says is not marked. Obsolete entries stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from translucid.data.languages import Languages, usual_code
from translucid.data.non_translatable import fixed_parts
from translucid.data.placeholder_syntax import PlaceholderSyntax, syntax_of_flags
from translucid.documents.document import Segment, SegmentList, Target
from translucid.documents.spans import Span, Spans
from translucid.documents.splicing import Edit, TextFile
from translucid.documents.strings.messages import message_spans, message_writer
from translucid.documents.strings.plural_forms import PluralForms
from translucid.documents.strings.po_entries import OURS, Entry, entries
from translucid.documents.strings.po_formats import broken_format
from translucid.documents.strings.po_strings import WIDTH, columns, quoted
from translucid.ground.errors import UserError

_CHARSET = re.compile(rb"charset=([\w.:-]+)")
_OTHER_ENDS = re.compile(r"[\x1c-\x1e\x85\u2028\u2029]")
_UNSET = ("CHARSET", "INTEGER", "EXPRESSION")
"""What stands in the header of a template."""


class _Form(NamedTuple):
    """A text of an entry that is to be there in the target language."""

    entry: Entry
    form: int
    source: str
    spans: Spans
    """Of the source: one, or one for each case of a message in ICU's syntax."""
    numbers: range
    """Of its segments."""
    existing: Spans | None
    """Of the translation that is there, if it has as many."""

    def filled(self, targets: Mapping[int, Target]) -> str:
        """Return the text with translations; where some are missing, with what is there."""
        if self.existing and any(number not in targets for number in self.numbers):
            return self.existing.filled(targets)
        return self.spans.filled(targets)


class Po:
    """A file of messages."""

    def __init__(self, name: str, file: TextFile, languages: Languages, *, flags_unseen: bool = True) -> None:
        """Find its messages.

        Args:
            name: of the file.
            file: its text.
            languages: of the translation.
            flags_unseen: mark what a model translated as fuzzy.

        Raises:
            UserError: it is broken.
        """
        self._file, self._target, self._flags_unseen = file, languages[1], flags_unseen
        self._end = file.line_end
        self.segments = SegmentList(name)
        found: list[Entry] = []
        for entry in entries(name, file):
            self.segments.need_room(len(found))  # the header is no segment
            found.append(entry)
        self._header = next((entry for entry in found if not entry.source and "msgctxt" not in entry.values), None)
        self._plurals = self._rule(name)
        self._width = None if any(map(_unwrapped, file.text.split("\n"))) else WIDTH
        self._forms: dict[int, _Form] = {}
        line, at = 1, 0
        for entry in found:
            first = entry.values["msgid"].line
            line, at = line + file.text.count("\n", at, first), first
            if entry is not self._header:
                self._add(entry, f"line {line}")

    def _rule(self, name: str) -> PluralForms:
        """Return the rule of the header, or that of the target language."""
        said = self._header.forms[0].text if self._header else ""
        rule = re.search(r"^Plural-Forms:(.*)$", said, re.MULTILINE | re.IGNORECASE)
        try:
            return (rule and PluralForms.of(rule[1])) or PluralForms.of_language(self._target)
        except ValueError as error:
            line = self._file.line(self._header.start) if self._header else None
            raise UserError(f"has Plural-Forms that mean nothing: {error}", file=name, line=line) from error

    def _add(self, entry: Entry, place: str) -> None:
        syntax = syntax_of_flags(entry.flags) or PlaceholderSyntax.message
        for index in range(self._plurals.nplurals if entry.plural is not None else 1):
            source, where = entry.source, place
            if entry.plural is not None:
                source = self._text_of_form(entry.source, entry.plural, index)
                examples = self._plurals.examples(index)
                where = f"{place}, for {examples}" if examples else f"{place}, form {index}"
            said = entry.forms[index].text if index in entry.forms else ""
            existing = said if said and not entry.fuzzy else None
            first = len(self.segments)
            found = message_spans(source, syntax=syntax, accelerators=True)
            there = message_spans(existing, syntax=syntax, accelerators=True) if existing else []
            matched = there if len(there) == len(found) > 1 else []
            numbers = range(first, first + len(found))
            fills = _filling(existing, matched, first) if existing and matched else None
            form = _Form(entry, index, source, _filling(source, found, first), numbers, fills)
            for i, span in enumerate(found):
                self._forms[first + i] = form
                of_span = matched[i].marked.whole if matched else existing
                self.segments.add(Segment(span.marked, where, of_span, entry.note))

    def _text_of_form(self, singular: str, plural: str, index: int) -> str:
        """Return what a form translates: the singular where it is right for all numbers of the form."""
        numbers = self._plurals.numbers[index]
        same = fixed_parts(singular) == fixed_parts(plural)
        return singular if 1 in numbers and self._plurals.nplurals > 1 and (same or numbers == (1,)) else plural

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """See `Document`. The header gets the language and its plural forms where it does not say them."""
        by_entry: dict[int, dict[int, Target]] = {}
        for number, target in targets.items():
            by_entry.setdefault(id(self._forms[number].entry), {})[number] = target
        edits = [edit for of_entry in by_entry.values() for edit in self._edits(of_entry)]
        if not edits:
            return self._file.spliced([])
        file, unicode = self._file, False
        try:
            "".join(edit.new for edit in edits).encode(file.encoding)
        except UnicodeEncodeError:
            file, unicode = file._replace(encoding="utf-8"), True
        return file.spliced([*edits, *self._header_edits(unicode)])

    def _edits(self, targets: dict[int, Target]) -> Iterator[Edit]:
        """Yield what changes in an entry."""
        forms = list({self._forms[number].form: self._forms[number] for number in targets}.values())
        entry = forms[0].entry
        new = {form.form: _with_line_feeds(form.filled(targets), form.source) for form in forms}
        count = self._plurals.nplurals if entry.plural is not None else 1
        if set(entry.forms) == set(range(count)):
            for index, text in new.items():
                value = entry.forms[index]
                yield Edit(value.start, value.end, self._quoted(text, value.keyword))
        else:
            texts = {i: new.get(i, entry.forms[i].text if i in entry.forms else "") for i in range(count)}
            # Forms that are missing come, and those that the language lacks go.
            lines = [f"msgstr[{i}] {self._quoted(text, f'msgstr[{i}]')}" for i, text in texts.items()]
            values = entry.forms.values()
            yield Edit(min(v.line for v in values), max(v.end for v in values), self._end.join(lines))
        doubts = [doubt for target in targets.values() for doubt in target.doubts]
        plural = entry.plural is not None
        broken = filter(None, (broken_format(entry.flags, form.source, new[form.form], plural) for form in forms))
        unseen = self._flags_unseen and any(target.origin == "model" for target in targets.values())
        if wrong := list(broken):
            doubts, unseen = doubts + wrong, True
        yield from self._remarked(entry, list(dict.fromkeys(doubts)), [t.confidence for t in targets.values()])
        yield from self._marked_fuzzy(entry, unseen)

    def _quoted(self, text: str, keyword: str) -> str:
        return quoted(text, keyword, self._end, self._width)

    def _marked_fuzzy(self, entry: Entry, fuzzy: bool) -> Iterator[Edit]:
        flags = [flag for flag in entry.flags if flag != "fuzzy"]
        new = f"#, {', '.join(['fuzzy'] * fuzzy + flags)}{self._end}" if fuzzy or flags else ""
        if fuzzy != entry.fuzzy:
            if entry.flag_line:
                yield Edit(*entry.flag_line, new)
            else:
                before = [s for s, e in entry.comments if self._file.text.startswith("#|", s)]
                place = min([*before, *(value.line for value in entry.values.values())])
                yield Edit(place, place, new)

    def _remarked(self, entry: Entry, doubts: list[str], confidences: list[float | None]) -> Iterator[Edit]:
        """Yield the comment on a translation, in the place of the one before."""
        known = [confidence for confidence in confidences if confidence is not None]
        said = ([f"confidence {min(known):.0%}"] if known else []) + [" ".join(doubt.split()) for doubt in doubts]
        for start, end in entry.comments:
            if self._file.text.startswith(OURS, start):
                yield Edit(start, end, "")
        if said:
            yield Edit(entry.start, entry.start, f"{OURS} {'; '.join(said)}{self._end}")

    def _header_edits(self, unicode: bool) -> Iterator[Edit]:
        if not self._header:
            return
        value = self._header.forms[0]
        raw = self._file.text[value.start : value.end]
        code = usual_code(self._target) if self._target else None
        wanted = {"Language": code.replace("-", "_") if code else None, "Plural-Forms": self._plurals.rule}
        missing = ""
        for name, text in wanted.items():
            said = re.search(rf'"{name}:[ \t]*((?:[^"\\]|\\[^n])*)', raw, re.IGNORECASE)
            if said and text and (not said[1].strip() or any(word in said[1] for word in _UNSET)):
                colon = said.start() + len(f'"{name}:')
                yield Edit(value.start + colon, value.start + said.end(1), f" {text}")
            elif not said and text:
                missing += f'{self._end}"{name}: {text}\\n"'
        if missing:
            yield Edit(value.end, value.end, missing)
        charset = re.search(r"charset=([\w.:-]+)", raw)
        if charset and (unicode or charset[1] in _UNSET):
            yield Edit(value.start + charset.start(1), value.start + charset.end(1), "UTF-8")
        if any(word in raw for word in _UNSET):
            yield from self._marked_fuzzy(self._header, False)


def _filling(text: str, spans: Sequence[Span], first: int) -> Spans:
    """Return the spans of a text, numbered from `first`."""
    filling, write = Spans(text), message_writer(text)
    for number, span in enumerate(spans, first):
        filling.add(number, span, write)
    return filling


def _with_line_feeds(text: str, source: str) -> str:
    """Return a text whose lines end at line feeds alone, unless its source has other ends: some readers part lines."""
    return text if _OTHER_ENDS.search(source) else _OTHER_ENDS.sub("\n", text)


def _unwrapped(line: str) -> bool:
    """Whether a line is so long that its file is not wrapped."""
    line = line.strip()
    return line.endswith('"') and " " in line[10:60] and columns(line) > WIDTH + 10


def read(name: str, content: bytes, languages: Languages) -> Po:
    """Take a file of messages apart. Its encoding is the one that its header names, else UTF-8.

    Raises:
        UserError: it is not in its encoding, or broken.
    """
    said = _CHARSET.search(content[:20_000])
    encoding = said[1].decode() if said and said[1].decode() not in _UNSET else None
    return Po(name, TextFile.of(name, content, encoding), languages)
