"""gettext's .po and .pot: each message is a segment; if it has plural forms, each form is a segment.

Translations of a model are flagged `fuzzy`, so that `msgfmt` omits them until a person has checked them; a comment
gives their confidence and doubts. Translations of a memory or a person are not flagged. Obsolete entries stay. Strings
are written as gettext does: escaped, with a new line after each line feed and at most 79 columns. Placeholders are
checked as `msgfmt --check` does for `c-format`, `python-format` and others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple
from unicodedata import east_asian_width

from bitext.cancellation import between_steps
from bitext.documents.document import Segment, SegmentList, Target, limit_of_flags, sentence
from bitext.documents.spans import LINE_END, Span, Spans, TextFile
from bitext.documents.strings.documentation_markup import markup_of
from bitext.documents.strings.messages import by_span, message_spans, message_writer
from bitext.documents.strings.plural_forms import PluralForms, place_of_form
from bitext.documents.tagged_text import TaggedText
from bitext.errors import UserError
from bitext.languages import Languages, usual_code
from bitext.protected_spans import FORMATS, Edit, PlaceholderSyntax, fixed_parts, syntax_of_flags
from bitext.readers.po import NAMED, Entry, entries

OURS = "# translucid:"
"""The beginning of our comment on a translation, which replaces an earlier one."""
_LINE = re.compile(rf"[^\r\n]*(?:{LINE_END}|\Z)")
_CHARSET = re.compile(rb"charset=([\w.:-]+)")
_OTHER_ENDS = re.compile(r"[\x1c-\x1e\x85\u2028\u2029]")
_UNSET = ("CHARSET", "INTEGER", "EXPRESSION")
"""The placeholders in the header of a template."""


class _Form(NamedTuple):
    """The text of one plural form of an entry, or its only text."""

    entry: Entry
    number: int
    source: str
    spans: Spans
    """The spans of the source: one, or one for each case of an ICU message."""
    numbers: range
    """The numbers of the segments."""
    existing: Spans | None
    """The spans of the existing translation, if it has as many ICU cases as the source."""

    def filled(self, targets: Mapping[int, Target]) -> str:
        """Return the text with translations; cases without one keep the existing translation."""
        is_complete = targets.keys() >= set(self.numbers)
        if self.existing and not is_complete:
            return self.existing.filled(targets)
        return self.spans.filled(targets)


class Po:
    """A file of messages."""

    def __init__(self, file: TextFile, target: str | None) -> None:
        """Parse the messages of a file; `target`: the target language.

        Raises:
            UserError: the file is invalid.
        """
        self._file, self._target = file, target
        self._end = file.line_end
        self.segments = SegmentList(file.name)
        messages: list[Entry] = []
        self._header: Entry | None = None
        for entry in entries(_lines(file.text), self._refuse):
            if self._header is None and not entry.source and "msgctxt" not in entry.values:
                self._header = entry
                continue
            self.segments.need_room(len(messages) + 1)
            messages.append(entry)
        self._plurals = self._rule()
        self._width = None if any(map(_is_unwrapped, file.text.split("\n"))) else WIDTH
        self._forms: list[_Form] = []
        for entry in messages:
            self._add(entry, f"line {entry.values['msgid'].number}")

    def _refuse(self, number: int, what: str, fix: str, text: str) -> None:
        raise UserError(what, file=self._file.name, line=number, fix=fix)

    def _rule(self) -> PluralForms:
        """Return the plural rule of the header, or that of the target language."""
        header, line = "", None
        if self._header:
            header, line = self._header.forms[0].text, self._file.line(self._header.start)
        rule = re.search(r"^Plural-Forms:(.*)$", header, re.MULTILINE | re.IGNORECASE)
        try:
            return (rule and PluralForms.of(rule[1])) or PluralForms.of_language(self._target)
        except ValueError as error:
            raise UserError(f"has invalid Plural-Forms: {error}", file=self._file.name, line=line) from error

    def _add(self, entry: Entry, place: str) -> None:
        if entry.plural is None:
            self._add_form(entry, 0, entry.source, place)
            return
        for index in range(self._plurals.nplurals):
            source = self._text_of_form(entry.source, entry.plural, index)
            self._add_form(entry, index, source, place_of_form(place, index, self._plurals.examples(index)))

    def _add_form(self, entry: Entry, index: int, source: str, place: str) -> None:
        """Add the segments of a plural form: one, or one for each case of an ICU message."""
        syntax = syntax_of_flags(entry.flags) or PlaceholderSyntax.message
        text_of_form = entry.forms[index].text if index in entry.forms else ""
        existing = "" if entry.fuzzy else text_of_form
        first = len(self.segments)
        references = "\n".join(
            self._file.text[start:end] for start, end in entry.comments if self._file.text.startswith("#:", start)
        )
        markup = markup_of(source, entry.flags, references)
        # The translation is needed twice.
        parse = cache(partial(message_spans, syntax=syntax, accelerators=markup is None, markup=markup))
        spans, existing_spans = parse(source), parse(existing)
        # If there are as many cases in the translation as in the source, they correspond to each other.
        existing_by_case = None
        if len(existing_spans) == len(spans) > 1:
            existing_by_case = _numbered(existing, existing_spans, first)
        numbers = range(first, first + len(spans))
        form = _Form(entry, index, source, _numbered(source, spans, first), numbers, existing_by_case)
        self._forms += [form] * len(spans)
        limit = limit_of_flags(" ".join(entry.flags))
        translations = by_span(TaggedText(text_of_form) if text_of_form else None, len(spans), parse)
        for i, span in enumerate(spans):
            longest = None
            if limit is not None and len(spans) == 1:  # tags are characters of the string, too
                longest = max(limit - sum(len(mark.raw) for mark in span.marked.marks), 1)
            segment = Segment(span.marked, place, translations[i], entry.note, longest)
            if entry.fuzzy:
                segment = replace(segment, existing=None, draft=translations[i])
            self.segments.add(segment)

    def _text_of_form(self, singular: str, plural: str, index: int) -> str:
        """Return the source text of a form: the singular if it is right for all numbers of the form."""
        numbers = self._plurals.numbers[index]
        if 1 not in numbers or self._plurals.nplurals == 1:
            return plural
        # In Russian, form 0 is for 1, 21, 31 …: "one file" would be wrong for 21, "%d file" would not.
        if numbers == (1,) or fixed_parts(singular) == fixed_parts(plural):
            return singular
        return plural

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations; the header gets the language and its plural forms if it lacks them."""
        by_entry: dict[int, dict[int, Target]] = {}
        for number, target in targets.items():
            by_entry.setdefault(id(self._forms[number].entry), {})[number] = target
        edits: list[Edit] = []
        for entry_targets in by_entry.values():
            between_steps()
            edits += self._edits(entry_targets)
        if not edits:
            return self._file.spliced([])
        file, to_unicode = self._file, False
        try:
            "".join(edit.new for edit in edits).encode(file.encoding)
        except UnicodeEncodeError:
            file, to_unicode = file._replace(encoding="utf-8"), True
        return file.spliced([*edits, *self._header_edits(to_unicode)])

    def _edits(self, targets: dict[int, Target]) -> Iterator[Edit]:
        forms = {self._forms[number].number: self._forms[number] for number in targets}
        entry = next(iter(forms.values())).entry
        new_texts: dict[int, str] = {}
        broken: list[str] = []
        for index, form in forms.items():
            new_texts[index] = _with_line_feeds(form.filled(targets), form.source)
            if doubt := broken_format(entry.flags, form.source, new_texts[index], entry.plural is not None):
                broken.append(doubt)
        yield from self._translation_edits(entry, new_texts)
        doubts: list[str] = []
        confidences: list[float] = []
        for target in targets.values():
            doubts += target.doubts
            if target.confidence is not None:
                confidences.append(target.confidence)
        yield from self._comment_edits(entry, dict.fromkeys(doubts + broken), min(confidences, default=None))
        is_from_model = any(target.origin == "model" for target in targets.values())
        # msgfmt --check refuses broken placeholders, whoever wrote them, unless the entry is fuzzy.
        yield from self._flag_edits(entry, fuzzy=bool(broken) or is_from_model)

    def _translation_edits(self, entry: Entry, new_texts: dict[int, str]) -> Iterator[Edit]:
        """Yield the edits of the `msgstr` lines of an entry; `new_texts` has the texts of some of its forms."""
        count = 1 if entry.plural is None else self._plurals.nplurals
        if set(entry.forms) == set(range(count)):
            for index, text in new_texts.items():
                value = entry.forms[index]
                yield Edit(value.start, value.end, self._quoted(text, value.keyword))
            return
        # Add the forms that the entry lacks, and remove those that the language lacks.
        texts = {index: value.text for index, value in entry.forms.items()} | new_texts
        lines = []
        for index in range(count):
            keyword = f"msgstr[{index}]"
            lines.append(f"{keyword} {self._quoted(texts.get(index, ''), keyword)}")
        values = entry.forms.values()
        start, end = min(value.line for value in values), max(value.end for value in values)
        yield Edit(start, end, self._end.join(lines))

    def _quoted(self, text: str, keyword: str) -> str:
        return quoted(text, keyword, self._end, self._width)

    def _flag_edits(self, entry: Entry, *, fuzzy: bool) -> Iterator[Edit]:
        """Yield the edit that adds or removes the flag `fuzzy`."""
        if fuzzy == entry.fuzzy:
            return
        flags = [flag for flag in entry.flags if flag != "fuzzy"]
        if fuzzy:
            flags.insert(0, "fuzzy")
        line = ""
        if flags:
            line = f"#, {', '.join(flags)}{self._end}"
        if entry.flag_line:
            yield Edit(*entry.flag_line, line)
            return
        # gettext writes the flags before the previous source (`#|`), which stands before the keywords.
        starts = [value.line for value in entry.values.values()]
        starts += [start for start, _ in entry.comments if self._file.text.startswith("#|", start)]
        yield Edit(min(starts), min(starts), line)

    def _comment_edits(self, entry: Entry, doubts: Iterable[str], confidence: float | None) -> Iterator[Edit]:
        """Yield the edits that replace our comment on a translation."""
        remarks = list(map(sentence, doubts))
        if confidence is not None:
            remarks.insert(0, f"The confidence is {confidence:.0%}.")
        for start, end in entry.comments:
            if self._file.text.startswith(OURS, start):
                yield Edit(start, end, "")
        if remarks:
            yield Edit(entry.start, entry.start, f"{OURS} {' '.join(remarks)}{self._end}")

    def _header_edits(self, to_unicode: bool) -> Iterator[Edit]:
        """Yield the edits that complete the header; `to_unicode`: the encoding of the file becomes UTF-8."""
        if not self._header:
            return
        value = self._header.forms[0]
        raw = self._file.text[value.start : value.end]
        fields: dict[str, str] = {}
        if code := usual_code(self._target or ""):
            fields["Language"] = code.replace("-", "_")
        fields["Plural-Forms"] = self._plurals.rule
        missing = ""
        for name, text in fields.items():
            line = re.search(rf'"{name}:[ \t]*((?:[^"\\]|\\[^n])*)', raw, re.IGNORECASE)
            if line is None:
                missing += f'{self._end}"{name}: {text}\\n"'
            elif not line[1].strip() or _has_unset(line[1]):
                colon = line.start() + len(f'"{name}:')
                yield Edit(value.start + colon, value.start + line.end(1), f" {text}")
        if missing:
            yield Edit(value.end, value.end, missing)
        charset = re.search(r"charset=([\w.:-]+)", raw)
        if charset and (to_unicode or charset[1] in _UNSET):
            yield Edit(value.start + charset.start(1), value.start + charset.end(1), "UTF-8")
        # The header of a template is flagged fuzzy until it is filled in.
        if _has_unset(raw):
            yield from self._flag_edits(self._header, fuzzy=False)


def _lines(text: str) -> Iterator[str]:
    for match in _LINE.finditer(text):
        between_steps()
        yield match[0]


def _has_unset(text: str) -> bool:
    """Whether a part of the header contains placeholders of a template."""
    return any(word in text for word in _UNSET)


def _numbered(text: str, spans: Sequence[Span], first: int) -> Spans:
    """Return the spans of a text, numbered from `first`."""
    numbered, write = Spans(text), message_writer(text)
    for number, span in enumerate(spans, first):
        numbered.add(number, span, write)
    return numbered


def _with_line_feeds(text: str, source: str) -> str:
    """Replace unusual line ends that the source lacks by line feeds: some programs split the file at them."""
    if _OTHER_ENDS.search(source):
        return text
    return _OTHER_ENDS.sub("\n", text)


def _is_unwrapped(line: str) -> bool:
    """Whether a string is too long for a wrapped file although it has a space at which gettext would wrap it."""
    line = line.strip()
    return line.endswith('"') and " " in line[10:60] and columns(line) > WIDTH + 10


def read(name: str, content: bytes, languages: Languages) -> Po:
    """Parse a file of messages. Its encoding is the one in the header, else UTF-8.

    Raises:
        UserError: the file is not in its encoding, or invalid.
    """
    charset = _CHARSET.search(content[:20_000])
    encoding = charset[1].decode() if charset else None
    if encoding in _UNSET:
        encoding = None
    return Po(TextFile.of(name, content, encoding), languages[1])


WIDTH = 79
"""The largest number of columns of a line."""
_TO_ESCAPE = str.maketrans({character: f"\\{letter}" for letter, character in {**NAMED, "\\": "\\", '"': '"'}.items()})
_BREAKS = re.compile(r"(?<= )(?=[^ ])(?!\\n)|(?<=-)(?=[^\W\d_])")
"""The places where a line may end, as in gettext: after spaces unless `\\n` follows, between a hyphen and a letter."""


def quoted(text: str, keyword: str, end: str = "\n", width: int | None = WIDTH) -> str:
    """Return a text, not escaped, as the value of a keyword such as `msgstr[0]`.

    `end`: the line end; `width`: the largest number of columns of a line; None is no limit.
    """
    lines = [line.translate(_TO_ESCAPE) for line in re.split(r"(?<=\n)(?!\Z)", text)]
    # 3 columns for the space after the keyword and the two quotes.
    if len(lines) == 1 and (width is None or len(keyword) + 3 + columns(lines[0]) <= width):
        return f'"{lines[0]}"'
    quoted_lines = ['""']
    for line in lines:
        parts = [line] if width is None else _wrapped(line, width - 2)
        quoted_lines += map('"{}"'.format, parts)
    return end.join(quoted_lines)


def _wrapped(line: str, width: int) -> list[str]:
    """Cut a line after spaces and hyphens into parts of at most `width` columns; only one long word may be wider."""
    parts, column = [""], 0
    for word in _BREAKS.split(line):
        length = columns(word)
        if column and column + length > width:
            parts.append("")
            column = 0
        parts[-1] += word
        column += length
    return parts


def columns(text: str) -> int:
    """Return the width of a text in a terminal: East Asian wide and full-width characters take two columns."""
    if text.isascii():
        return len(text)
    return len(text) + sum(east_asian_width(character) in "WF" for character in text)


_SIGNS = {PlaceholderSyntax.braces: "{}", PlaceholderSyntax.tilde: "~"}
"""The first character of placeholders, if it is not a percent sign."""
_FREE = {PlaceholderSyntax.numbered, PlaceholderSyntax.tilde}
"""Syntaxes in which the first character may also occur as text."""
_UNCHECKED = {"icu-format", "java-format", "sh-format"}
"""Flags whose braces may be nested, quoted or optional, which a pattern cannot check."""
_NAME = re.compile(r"%[(<](?P<name>[^()<>]*)[)>]|%\d+\$|\{(?P<field>[^{}!:]*)")


def broken_format(flags: Sequence[str], source: str, target: str, plural: bool) -> str | None:
    """Return a doubt about the placeholders of a translation; None if they are right.

    `plural`: whether the text is a plural form, which may omit the number.
    """
    syntax = syntax_of_flags(flag for flag in flags if flag not in _UNCHECKED)
    if syntax is None:
        return None
    source_arguments, target_arguments = _count_arguments(source, syntax) or Counter(), _count_arguments(target, syntax)
    if target_arguments is None:
        return "placeholders: one is broken"
    lost, invented = source_arguments - target_arguments, target_arguments - source_arguments
    # The number is the one placeholder that a plural form may omit, as in "one file".
    if invented or lost.total() > int(plural):
        problems = [f"{name} is lost" for name in lost]
        problems += [f"{name} is too much" for name in invented]
        return f"placeholders: {', '.join(problems)}"
    return None


def _count_arguments(text: str, syntax: PlaceholderSyntax) -> Counter[str] | None:
    """Count the arguments that placeholders insert; None if the text has invalid placeholders."""
    signs = _SIGNS.get(syntax, "%")
    pattern = re.compile(FORMATS[syntax], re.DOTALL)
    remainder = pattern.sub("", text).replace("{{", "").replace("}}", "")
    if syntax not in _FREE and not set(signs).isdisjoint(remainder):
        return None
    arguments: Counter[str] = Counter()
    for match in pattern.finditer(text):
        if match[0][0] in signs and (argument := _argument(match[0])):
            arguments[argument] += 1
    return arguments


def _argument(placeholder: str) -> str:
    """Return a placeholder without its position and format, such as `%s` for `%2$-5s`; "" for an escaped sign.

    >>> list(map(_argument, ("%2$-5s", "%(n)03d", "{price:.2f}", "%1", "%%", "{{")))
    ['%s', '%(n)d', '{price}', '%1', '', '']
    """
    if placeholder.startswith(("%%", "{{", "~%", "~~")):
        return ""
    name = _NAME.match(placeholder)
    if name and name["field"] is not None:
        return f"{{{name['field']}}}"
    if name and name["name"] is not None:
        return f"%({name['name']}){placeholder[-1]}"
    if placeholder[-1].isdigit() or placeholder[-1] in "%|":
        return placeholder
    return placeholder[0] + placeholder[-1]
