"""What becomes one mark while a text is translated: elements without letters, access keys, direction controls, edges.

Inline elements without translatable letters, such as `<sup>2</sup>`, `<a>[4]</a>` and `<b>{count}</b>`, are marks that
include their content, so that no letter of the translation can get into it. The model sees the content only if it is a
word of the sentence, as in `<b>25</b> years`: then its copy in the translation becomes the content of the element. A
word with such an element between its letters, as in H₂O, is treated as one element too. In message strings, parts of
the text itself, such as tags, become marks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

from bitext.documents.spans import DIRECTION_SIGNS
from bitext.documents.tag_projection import PUNCTUATION, Span
from bitext.documents.tagged_text import (
    CLOSING,
    KeptElement,
    Mark,
    Side,
    TaggedText,
    letters_before,
    matched_tags,
    nested,
    parts_of,
    separates_words,
    stands_for_text,
    tag_tree,
)
from bitext.protected_spans import UNITS, is_address, kept_parts
from bitext.protected_spans import Edit as TextEdit
from bitext.words import WITHOUT_SPACES, is_letter, without_edges

MOST_COPIES = 24
"""The largest number of elements of a text whose content the model sees: each is searched for in the translation."""
LONGEST_WORD = 40
"""The largest number of characters of a word that is not translated because an element is between its letters."""
_RAISED = re.compile(r"<su[bp]\b|superscript|subscript|baseline=|vert-align|\A[~^]\Z", re.IGNORECASE)
"""Tags, and delimiters of Markdown, of superscripts and subscripts."""
_LOWERED = re.compile(r"<sub\b|subscript|baseline=\"-|\A~\Z", re.IGNORECASE)
_SYMBOL = re.compile(rf"(?:{UNITS}|[^\W\d_])\Z")
"""A unit or a letter, as in `km<sup>2</sup>` and `x<sup>2</sup>`: the number after it is not a footnote."""
_LONGEST_SYMBOL = 4
"""The largest number of letters before a subscript that belongs to them, as in `CO<sub>2</sub>`."""
_SENTENCE = frozenset(" \t\r\n\xa0-‐‑–—/") | PUNCTUATION
"""Characters that belong to the sentence, and may differ in the translation."""


_START = attrgetter("start")


class Copy(NamedTuple):
    """An element whose content the model sees."""

    core: str
    """The content without white space at its ends."""
    number: int
    """The number of equal contents that precede it in the text."""
    start: int
    """The start of the core in the text for the model."""
    element: KeptElement

    @property
    def end(self) -> int:
        """The end of the core in the text for the model."""
        return self.start + len(self.core)


class Collapsed(NamedTuple):
    """A text whose elements without letters are marks or copies."""

    source: TaggedText
    copies: tuple[Copy, ...] = ()


class _Element(NamedTuple):
    """An element without letters, or a word with such elements, and its span in the text."""

    start: int
    end: int
    first_mark: int
    """The index of its first mark."""
    last_mark: int
    """The index of its last mark."""
    hidden: bool = False
    """Whether the model does not see it, because it is not a word of the sentence."""


def collapsed(source: TaggedText, hidden: Collection[str] = (), *, attached: bool = False) -> Collapsed:
    """Make each element without letters one mark.

    Args:
        source: a text with its marks.
        hidden: contents that the model does not see.
        attached: whether the model sees elements that touch a word, such as the number of a footnote.
    """
    if not any(mark.side is Side.opens for mark in source.marks):
        return Collapsed(source)
    elements = list(_elements_and_words(source))
    if not elements:
        return Collapsed(source)
    hide = [(element.hidden and not attached) or _core(source, element) in hidden for element in elements]
    while True:
        result, lost = _built(source, elements, hide)
        if not lost:
            return result
        for i in lost:
            hide[i] = True


def find_copies(text: str, source: Collapsed) -> tuple[list[tuple[int, int, Copy]], set[str]]:
    """Return the spans of the copies in a translation, and the contents that it has too rarely or too often."""
    by_core: dict[str, list[Copy]] = defaultdict(list)
    for copy in source.copies:
        by_core[copy.core].append(copy)
    found: list[tuple[int, int, Copy]] = []
    lost = set[str]()
    for core, copies in by_core.items():
        spans = spans_of(core, text)
        count = len(spans_of(core, source.source.text))
        if not len(copies) <= len(spans) <= count:
            lost.add(core)
            continue
        index = -1
        for i, copy in enumerate(copies):
            # The same position among equal contents, scaled if the translation has fewer of them.
            expected = copy.number * len(spans) // count
            last = len(spans) - len(copies) + i  # leaves enough spans for the copies after it
            index = min(max(expected, index + 1), last)
            found.append((*spans[index], copy))
    found.sort(key=lambda copy_span: copy_span[:2])
    for (_, end, _), (start, _, following) in pairwise(found):
        if start < end:
            lost.add(following.core)
    return found, lost


def spans_of(core: str, text: str) -> list[Span]:
    """Return the spans at which a text has a content as a separate word or number.

    >>> spans_of("2", "2, 12, [2] and 2.5")
    [(0, 1), (8, 9)]
    """
    before = after = ""
    if core[0].isdigit():
        before = r"(?<!\d)(?<!\d[.,])"
    elif core[0].isalnum():
        before = r"(?<![^\W_])"
    if core[-1].isdigit():
        after = r"(?!\d|[.,]\d)"
    elif core[-1].isalnum():
        after = r"(?![^\W_])"
    return list(map(re.Match.span, re.finditer(f"{before}{re.escape(core)}{after}", text)))


def expanded(parts: Iterable[str | Mark]) -> Iterator[str | Mark]:
    """Yield texts and marks, with the content of each kept element in its place."""
    for part in parts:
        if isinstance(part, KeptElement):
            yield from part.parts
        else:
            yield part


def _core(source: TaggedText, element: _Element) -> str:
    return source.text[element.start : element.end].strip()


def _elements_and_words(source: TaggedText) -> Iterator[_Element]:
    """Yield elements without letters, and words that have such elements between their letters."""
    text, elements, breaks = source.text, list(_elements(source)), _breaks(source)
    words = _Words(source, elements, breaks)
    processed = i = 0
    while i < len(elements):
        block = [elements[i]]  # elements that touch each other
        while i + len(block) < len(elements) and elements[i + len(block)].start == block[-1].end:
            block.append(elements[i + len(block)])
        i += len(block)
        start, end = block[0].start, block[-1].end
        if start < processed:  # The previous word contains it.
            continue
        # The characters that touch the elements.
        left_character = right_character = ""
        if start not in breaks and not text[start].isspace():
            left_character = text[start - 1 : start]
        if end not in breaks and not text[end - 1].isspace():
            right_character = text[end : end + 1]
        is_in_word = is_letter(left_character) and (is_letter(right_character) or words.is_symbol(block[0]))
        if is_in_word and (word := words.word_around((start, end), processed)):
            yield word
            processed = word.end
        else:
            for element in block:
                yield element._replace(hidden=_is_attached(source, element, left_character, right_character))
            processed = end


class _Words:
    """The words of a text that contain elements without letters."""

    def __init__(self, source: TaggedText, elements: Sequence[_Element], breaks: Collection[int]) -> None:
        self.source, self.elements, self.breaks = source, elements, breaks
        self.mark_offsets = source.mark_offsets
        self.edges = {*map(_START, elements), *map(attrgetter("end"), elements)}

    def word_around(self, span: Span, low: int) -> _Element | None:
        """Return the word around an element, from `low` on and without punctuation at its ends, as one element.

        Return None if it is too long, or contains only one mark of a pair.
        """
        start, end = self._ends(span, low)
        first_element = bisect_left(self.elements, start, key=_START)
        inner_elements = self.elements[first_element : bisect_left(self.elements, end, key=_START)]
        end = max(end, inner_elements[-1].end)
        if end - start > LONGEST_WORD:
            return None
        inner_first = min(bisect_right(self.mark_offsets, start), inner_elements[0].first_mark)
        inner_last = max(bisect_left(self.mark_offsets, end) - 1, inner_elements[-1].last_mark)
        # Marks at the ends of the word may belong to it or not, as in `<i>x</i><sub>1</sub>`. Only three are tried on
        # each side, to bound the time.
        outer_first, outer_last = bisect_left(self.mark_offsets, start), bisect_right(self.mark_offsets, end) - 1
        for first_mark in range(inner_first, max(outer_first, inner_first - 3) - 1, -1):
            for last_mark in range(inner_last, min(outer_last, inner_last + 3) + 1):
                word = _Element(start, end, first_mark, last_mark)
                if _is_balanced(self.source, word):
                    return word
        return None

    def is_symbol(self, element: _Element) -> bool:
        """Whether the word before an element is a symbol to which its number belongs."""
        context = self.source.text[max(0, element.start - 2 * _LONGEST_SYMBOL) : element.start]
        word = re.search(r"[^\W\d_]+\Z", context)
        if not word or not _core(self.source, element)[0].isalnum():
            return False
        raw = self.source.marks[element.first_mark].raw
        if _RAISED.search(raw) and _SYMBOL.match(word[0]):
            return True
        return len(word[0]) <= _LONGEST_SYMBOL and bool(_LOWERED.search(raw))

    def _ends(self, span: Span, low: int) -> Span:
        text, (start, end) = self.source.text, span
        while start > low and end - start <= LONGEST_WORD and self._continues(start, text[start - 1]):
            start -= 1
        while end < len(text) and end - start <= LONGEST_WORD and self._continues(end, text[end]):
            end += 1
        while text[start] in PUNCTUATION and start not in self.edges:
            start += 1
        while text[end - 1] in PUNCTUATION and end not in self.edges:
            end -= 1
        return start, end

    def _continues(self, offset: int, character: str) -> bool:
        ends = character.isspace() or character in "<>" or WITHOUT_SPACES.match(character)
        return offset not in self.breaks and not ends


def _elements(source: TaggedText) -> Iterator[_Element]:
    """Yield the outermost elements that have content, but no translatable letter."""
    text = source.text
    parts = parts_of(source)
    letters, blanks = letters_before(text, parts), [0, *accumulate(map(str.isspace, text))]
    within_parts = set[int]()
    for _, start, end in parts:
        within_parts.update(range(start + 1, end))
    stack = [tag_tree(source)]
    while stack:
        node = stack.pop()
        start, end = node.span
        is_element = len(node.marks) == 2 and blanks[end] - blanks[start] < end - start
        if not is_element or letters[start] < letters[end]:
            stack.extend(child for child in reversed(node.children) if child.span[0] < child.span[1])
            continue
        element = _Element(start, end, node.marks[0], node.marks[1])
        if start in within_parts or end in within_parts:  # The element splits a placeholder.
            continue
        is_punctuation = _SENTENCE.issuperset(text[start:end])
        if _is_balanced(source, element) and (_stands_alone(text, element) or not is_punctuation):
            yield element


def _stands_alone(text: str, element: _Element) -> bool:
    """Whether an element has white space or nothing on both sides, and is not the whole text."""
    start, end = element.start, element.end
    around = text[max(start - 1, 0) : start] + text[end : end + 1]
    return not around.strip() and len(text[start:end].strip()) < len(text.strip())


def _is_balanced(source: TaggedText, element: _Element) -> bool:
    """Whether an element contains both marks of each pair or none."""
    open_counts: Counter[int] = Counter()
    for mark in source.marks[element.first_mark : element.last_mark + 1]:
        if mark.pair is not None:
            open_counts[mark.pair] += mark.side.depth
    return not any(open_counts.values())


def _breaks(source: TaggedText) -> set[int]:
    """Return the offsets of marks that separate words as a space does."""
    return {mark.offset for mark in source.marks if separates_words(mark)}


def _is_attached(source: TaggedText, element: _Element, left_character: str, right_character: str) -> bool:
    """Whether an element belongs to a word or a sentence that it touches, as the number of a footnote does."""
    neighbors = list(filter(str.isalnum, (left_character, right_character)))
    if not neighbors:
        return bool(left_character) and left_character in CLOSING
    if any(map(is_letter, neighbors)):
        return True
    # In scripts without spaces, only the form shows whether it is a footnote or a number of the sentence.
    return bool(_RAISED.search(source.marks[element.first_mark].raw)) or not _core(source, element)[0].isalnum()


def _built(source: TaggedText, elements: Sequence[_Element], hide: Sequence[bool]) -> tuple[Collapsed, list[int]]:
    """Return a text whose elements are marks and copies, and the indices of the elements that cannot be copies."""
    pieces: list[str | Mark] = []
    visible: list[tuple[int, int, KeptElement]] = []
    position = mark_index = removed = 0
    for i, element in enumerate(elements):
        pieces += sliced(source, position, element.start, mark_index, element.first_mark).parts
        position, mark_index = element.end, element.last_mark + 1
        content = sliced(source, element.start, element.end, element.first_mark, mark_index)
        kept_element = KeptElement(element.start, content.full_text, parts=tuple(content.parts))
        if hide[i]:
            pieces.append(kept_element)
            removed += len(content.text)
        else:
            pieces.append(content.text)
            visible.append((i, position - removed - len(content.text.lstrip()), kept_element))
    pieces += sliced(source, position, len(source.text), mark_index, len(source.marks)).parts
    result = TaggedText.of(pieces, source.syntax)
    copies: list[Copy] = []
    spans: dict[str, list[Span]] = {}
    lost: list[int] = []
    for i, start, kept_element in visible:
        core = _core(source, elements[i])
        if core not in spans and len(copies) < MOST_COPIES:
            spans[core] = spans_of(core, result.text)
        span = start, start + len(core)
        # Content that is not a separate word of this text could not be found in the translation either.
        if len(copies) == MOST_COPIES or span not in spans[core]:
            lost.append(i)
        else:
            copies.append(Copy(core, spans[core].index(span), start, kept_element))
    return Collapsed(result, tuple(copies)), lost


def sliced(source: TaggedText, start: int, end: int, first: int, last: int) -> TaggedText:
    """Return a range of a text with a range of its marks."""
    marks = (replace(mark, offset=mark.offset - start) for mark in source.marks[first:last])
    return TaggedText(source.text[start:end], tuple(marks))


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
    """Return a text with the signs at its ends that a vocabulary `lacks`, such as bullets and quotes, as parts."""
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

    `joins`: whether two parts of a text are rather one word.
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
    for opening, closing in matched_tags(tags):
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


def are_nested(parts: Iterable[str]) -> bool:
    """Whether each closing tag closes the last open tag, and no tag stays open."""
    return nested(list(map(tag_of, parts)))
