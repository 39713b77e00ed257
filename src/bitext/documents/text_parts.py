"""Parts of a text, such as tags in message strings, that become marks during translation."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bitext.documents import tag_tree
from bitext.documents.kept_elements import LONGEST_WORD, expanded
from bitext.documents.mark_spacing import stands_for_text
from bitext.documents.spans import DIRECTION_SIGNS
from bitext.documents.splicing import Edit as TextEdit
from bitext.documents.stand_ins import is_address, letters_before, parts_of
from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.protected_spans import kept_parts
from bitext.words import without_edges

_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>[A-Za-z0-9][^\s<>/]*)[^<>]*?(?P<empty>/?)>"
    r"|\[(?P<closes_code>/?)(?P<code>[A-Za-z][\w-]*)[^\[\]]*\]"
    r"|\{\{(?P<open_block>[#^])\s*(?P<block>\w+)[^{}]*\}\}|\{\{/\s*(?P<end_of_block>\w+)\s*\}\}"
)
_NO_TAG = None, ""
_KEY = re.compile(r"(?<!\S)(?:[^\W_]{1,2})?_(?=[^\W\d_])|(?<!\S)(?:[^\W_]+)?&(?=[a-zß-ÿ])|(?<!\S)&(?=[^\W\d_])")
"""The marker of an access key: `_` or `&` before a letter, as in `_File` (GTK) and `&File` (Qt, Windows)."""

_WORD_END, _WORD_START = re.compile(r"[^\W\d_]{2,}\Z"), re.compile(r"[^\W\d_]{2,40}")
_DIRECTION_SIGN = re.compile(f"[{DIRECTION_SIGNS}]")


@dataclass(frozen=True)
class Part(Mark):
    """A part of the text that is a mark only during translation."""


class Edit(NamedTuple):
    """The replacement of a range of a text by a text or a mark."""

    start: int
    end: int
    new: str | Mark


def with_key(source: TaggedText) -> TaggedText:
    """Return a text with the marker of its access key as a part, if it has exactly one."""
    markers = list(_KEY.finditer(source.text))
    if len(markers) != 1 or source.text.count(markers[0][0][-1]) != 1:
        return source
    offset = markers[0].end() - 1
    for _, start, end in kept_parts(source.text, source.syntax):
        if start <= offset < end:
            return source
    return edited(source, [Edit(offset, offset + 1, Part(0, source.text[offset]))])


def with_wordless_elements(source: TaggedText) -> TaggedText:
    """Return a text with elements without translatable letters, such as `<sup>2</sup>` in `m<sup>2</sup>`, as parts."""
    if "<" not in source.text:
        return source
    parts = parts_of(source)
    letters = letters_before(source.text, parts)
    tags = [part for part in parts if part[0].startswith("<")]
    edits: list[Edit] = []
    last_included = -1
    # Sorted by their opening tags, outer elements come before the elements in them.
    for first, last in sorted(_pairs(tags)):
        content = source.text[tags[first][2] : tags[last][1]]
        if first > last_included and content.strip() and letters[tags[first][2]] == letters[tags[last][1]]:
            for raw, start, end in tags[first : last + 1]:
                edits.append(Edit(start, end, Part(0, raw)))
            last_included = last
    return edited(source, edits)


def with_direction_signs(source: TaggedText) -> TaggedText:
    """Return a text with its controls of writing direction as parts."""
    return edited(source, [Edit(*sign.span(), Part(0, sign[0])) for sign in _DIRECTION_SIGN.finditer(source.text)])


def with_edges(source: TaggedText, lacks: Callable[[str], bool]) -> TaggedText:
    """Return a text with the bullets, quotation marks and other signs at its ends that the model cannot read as parts.

    Args:
        source: the text.
        lacks: whether the vocabulary lacks a character.
    """
    text = source.text
    start, end = without_edges(text, lacks)
    offsets = [offset for offset in (*range(start), *range(end, len(text))) if not text[offset].isspace()]
    if not offsets:
        return source
    for _, start, end in kept_parts(text, source.syntax):
        offsets = [offset for offset in offsets if not start <= offset < end]
    return edited(source, [Edit(offset, offset + 1, Part(0, text[offset])) for offset in offsets])


def with_separate_words(source: TaggedText, joins: Callable[[str, str], bool]) -> TaggedText:
    """Return a text with a space at each mark of XLIFF or TMX that seems to separate words, as a line end does.

    Args:
        source: the text.
        joins: whether two parts of a text are rather one word.
    """
    edits: dict[int, TextEdit] = {}
    for mark in filter(stands_for_text, source.marks):
        start = _WORD_END.search(source.text, max(0, mark.offset - LONGEST_WORD), mark.offset)
        end = _WORD_START.match(source.text, mark.offset)
        if start and end and not joins(start[0], end[0]):
            edits[mark.offset] = TextEdit(mark.offset, mark.offset, " ")
    return source.spliced(list(edits.values())) if edits else source


def _pairs(tags: Iterable[tuple[str, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the indices of the opening and closing tag of each element that contains no unclosed tag."""
    open_tags: list[tuple[str, int]] = []
    for i, (raw, _, _) in enumerate(tags):
        side, name = tag_of(raw)
        if side is Side.opens:
            open_tags.append((name, i))
        elif side is Side.closes and open_tags and open_tags[-1][0] == name:
            yield open_tags.pop()[1], i


def edited(marked: TaggedText, edits: Iterable[Edit]) -> TaggedText:
    """Return a text with ranges replaced by texts or parts; the offsets of marks are adjusted.

    Tags become a pair of marks if both become marks.
    """
    ordered = sorted(edits, key=lambda edit: edit.start)
    if not ordered:
        return marked
    text = TaggedText.of(_with_edits(marked, ordered), marked.syntax)
    return replace(text, marks=_paired(text.marks))


def _with_edits(marked: TaggedText, edits: Iterable[Edit]) -> Iterator[str | Mark]:
    """Yield the texts and marks of a text after edits, which are in order; marks in a replaced range go after it."""
    text, position, pending = marked.text, 0, deque(marked.marks)
    for edit in [*edits, Edit(len(text), len(text), "")]:
        while pending and pending[0].offset <= edit.start:
            mark = pending.popleft()
            yield text[position : mark.offset]
            yield mark
            position = max(position, mark.offset)
        yield text[position : edit.start]
        yield edit.new
        position = edit.end


def _paired(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return marks; parts that are the tags of an element become a pair."""
    paired = list(marks)
    tags = []
    for mark in marks:
        tags.append(tag_of(mark.raw) if isinstance(mark, Part) else _NO_TAG)
    for opening, closing in tag_tree.matched_tags(tags):
        pair = -1 - opening  # negative, because the document's pairs are counted from 0
        paired[opening] = replace(paired[opening], side=Side.opens, pair=pair)
        paired[closing] = replace(paired[closing], side=Side.closes, pair=pair)
    return tuple(paired)


def tag_of(raw: str) -> tuple[Side | None, str]:
    """Return the side and the name of a tag or a template block such as `{{#if x}}`; no side for anything else."""
    tag = _TAG.fullmatch(raw)
    if not tag or (tag["empty"] and not tag["closes"]):
        return _NO_TAG
    name = tag["name"] or (tag["code"] and "[" + tag["code"]) or "{{" + (tag["block"] or tag["end_of_block"])
    return Side.of_tag(closes=tag["closes"] or tag["closes_code"] or tag["end_of_block"]), name


def absorbed(marked: TaggedText) -> TaggedText:
    """Return a text with its parts as text again.

    A space is inserted between addresses and letters, which would otherwise become part of the address.
    """
    return TaggedText.of(_absorbed(expanded(marked.parts)), marked.syntax)


def _absorbed(parts: Iterable[str | Mark]) -> Iterator[str | Mark]:
    previous = ""  # the previous text or part, unless a mark is in between
    for part in parts:
        if isinstance(part, Mark) and not isinstance(part, Part):
            yield part
            previous = ""
            continue
        text = part.raw if isinstance(part, Part) else str(part)
        if (is_address(previous) or is_address(text)) and previous[-1:].isalnum() and text[:1].isalnum():
            text = f" {text}"
        yield text
        previous = text


def nested(parts: Iterable[str]) -> bool:
    """Whether each closing tag closes the last open tag, and no tag stays open."""
    return tag_tree.nested(list(map(tag_of, parts)))
