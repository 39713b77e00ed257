"""Documents that grow out of small ones: each string becomes long, each part is repeated, each part is put into itself.

    python -m tests.probes.grown [NAME ...]

reads documents of up to 1 MB, each in a process of its own with 1 GiB, and prints what takes too much time or memory.
"""

from __future__ import annotations

import io
import multiprocessing
import re
import resource
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from time import process_time
from types import CodeType, FrameType
from typing import Any, NamedTuple

from bitext.documents.document import Segment, Target, read_document
from tests.probes.documents import MAKERS
from tests.probes.packed import ods, packed, types
from tests.probes.samples import SAMPLES
from translucid.ground.errors import UserError

_OFFICE = "application/vnd.openxmlformats-officedocument"
_SCHEMAS = "http://schemas.openxmlformats.org"


def _workbook() -> bytes:
    """A workbook with names of sheets, a table, a pivot table, notes and cells with texts."""
    space = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main" xmlns:r="{_SCHEMAS}/officeDocument/2006/relationships"'
    kinds = {"workbook": "sheet.main", "sheet1": "worksheet", "comments1": "comments", "table1": "table"}
    kinds |= {"pivot1": "pivotCacheDefinition"}
    relations = f'<Relationships xmlns="{_SCHEMAS}/package/2006/relationships">{{}}</Relationships>'
    related = '<Relationship Id="r{}" Target="{}.xml"/>'.format
    cell = '<c t="inlineStr"><is><t>I like soccer</t></is></c>'
    rows = f'<row r="1">{cell}</row><row>{cell}</row>'
    sheet = '<sheet name="Games" sheetId="1" r:id="r1"/>'
    source = '<cacheSource><worksheetSource ref="ZZ1:ZZ9" sheet="Games"/></cacheSource>'
    return packed(
        {
            "[Content_Types].xml": types({f"xl/{n}.xml": f"{_OFFICE}.spreadsheetml.{k}+xml" for n, k in kinds.items()}),
            "xl/workbook.xml": f"<workbook {space}><sheets>{sheet}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations.format(related(1, "sheet1")),
            "xl/_rels/sheet1.xml.rels": relations.format(related(1, "comments1") + related(2, "table1")),
            "xl/sheet1.xml": f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>",
            "xl/comments1.xml": f'<comments {space}><comment ref="A1"><text><t>Mind it</t></text></comment></comments>',
            "xl/table1.xml": f'<table {space} ref="Y1:Z9"/>',
            "xl/pivot1.xml": f"<pivotCacheDefinition {space}>{source}</pivotCacheDefinition>",
        }
    )


def _slides() -> bytes:
    """A presentation with a master: placeholders, other shapes, pictures, charts."""
    space = f'xmlns:p="{_SCHEMAS}/presentationml/2006/main" xmlns:a="{_SCHEMAS}/drawingml/2006/main"'
    kind = f"{_OFFICE}.presentationml"
    text = "<p:txBody><a:p><a:r><a:t>I like soccer</a:t></a:r></a:p></p:txBody>"
    placeholder = f"<p:sp><p:nvPr><p:ph/></p:nvPr>{text}</p:sp>"
    shapes = f'{text}<p:spTree>{placeholder}</p:spTree><p:pic><p:cNvPr descr="A red ball"/></p:pic>'
    parts = {"presentation": "presentation.main", "slideMaster1": "slideMaster", "slide1": "slide"}
    return packed(
        {
            "[Content_Types].xml": types({f"ppt/{n}.xml": f"{kind}.{k}+xml" for n, k in parts.items()}),
            "ppt/presentation.xml": f"<p:presentation {space}/>",
            "ppt/slideMaster1.xml": f"<p:sldMaster {space}>{shapes}</p:sldMaster>",
            "ppt/slide1.xml": f"<p:sld {space}>{shapes}</p:sld>",
        }
    )


_GENERATED = {name: make(Random(f"{name} 1")) for name, make in MAKERS.items()}
SEEDS = {
    **_GENERATED,
    "l.ods": ods(Random("l.ods 1"), has_strings=True),
    "names.xlsx": _workbook(),
    "master.pptx": _slides(),
    **SAMPLES,
}
"""Small documents by file name, some for each reader."""


NAME = "name of the member"
"""The kind of the name of a file in a zip file, which is long wherever it stands."""
LONGEST_NAME = 60_000
"""The most letters that a zip file allows, with the rest of the name."""


class Place(NamedTuple):
    """A range of a text of a document."""

    kind: str
    """What the range is, so that of equal ones one is taken."""
    start: int
    end: int
    separator: str = ""
    """The text between two such parts."""


_TAG = re.compile(r"<(/?)([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*(/?)>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*[\"']([^\"'<>]+)[\"']")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)+)\"|(\w[^\s\"<>{}\[\]=;,|]*)")


def _elements(text: str) -> Iterator[tuple[Place, Place]]:
    """Yield each element, and what is in it."""
    opened: list[tuple[str, int, int]] = []
    for tag in _TAG.finditer(text):
        path = "/".join([name for name, _, _ in opened[-3:]] + [tag[2]])
        if tag[4]:
            yield Place(f"<{path}>", *tag.span()), Place(path, tag.end(), tag.end())
        elif not tag[1]:
            opened.append((tag[2], tag.start(), tag.end()))
        elif opened and opened[-1][0] == tag[2]:
            _, start, inner = opened.pop()
            path = "/".join([name for name, _, _ in opened[-3:]] + [tag[2]])
            yield Place(f"<{path}>", start, tag.end()), Place(path, inner, tag.start())


def _brackets(text: str) -> Iterator[Place]:
    """Yield what is in brackets, with the brackets."""
    opened: list[tuple[str, int]] = []
    for match in re.finditer(r"[{}\[\]]", text):
        sign = match[0]
        if sign in "{[":
            opened.append((sign, match.start()))
        elif opened and opened[-1][0] == "{["["}]".index(sign)]:
            _, start = opened.pop()
            before = re.search(r"[\w\"']*[^\w{}\[\],]*\Z", text[max(0, start - 30) : start])
            yield Place(f"{before[0] if before else ''}{sign}", start, match.end())


def _items(text: str, start: int, end: int, comma: str) -> Iterator[Place]:
    """Yield what is between commas, but not in brackets or quotes."""
    depth, first, is_quoted = 0, start, False
    for i in range(start, end + 1):
        sign = text[i] if i < end else comma
        if sign == '"' and text[i - 1] != "\\":
            is_quoted = not is_quoted
        elif not is_quoted and sign in "{[(":
            depth += 1
        elif not is_quoted and sign in "}])":
            depth -= 1
        elif sign == comma and (depth == 0 or i == end) and (not is_quoted or i == end):
            yield Place(f"{_shape(text[first:i])}{comma}", first, i, comma)
            first = i + 1


def _shape(text: str) -> str:
    """Return what remains of a text when words and numbers are equal."""
    return re.sub(r"\w+", "a", " ".join(text.split()))[:24]


def units(text: str) -> list[Place]:
    """Return the parts of a text that may be repeated."""
    places = [element for element, _ in _elements(text)]
    for bracket in _brackets(text):
        places += _items(text, bracket.start + 1, bracket.end - 1, ",")
        # A case of a message: its name and its text.
        name = re.search(r"[=\w]+\s*\Z", text[max(0, bracket.start - 20) : bracket.start])
        if name:
            places.append(Place(f"case {_shape(name[0])}", bracket.start - len(name[0]), bracket.end, " "))
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            places.append(Place(f"line {_shape(line)}", offset, offset + len(line)))
            for comma in ",;|":
                if comma in line and "<" not in line and "{" not in line:
                    places += _items(text, offset, offset + len(line.rstrip()), comma)
        offset += len(line)
    for block in re.finditer(r"(?:[^\n]+\n)+", text):
        places.append(Place(f"block {_shape(block[0])}", *block.span(), "\n"))
    if "xmlns" in text:  # XML with two roots is none, but readers that look for one part of it do not notice
        root = max((element for element, _ in _elements(text)), key=lambda element: element.end - element.start)
        places = [place for place in places if place.start > root.start or place.end < root.end]
    return _distinct(places)


def strings(text: str) -> list[Place]:
    """Return the names, keys, values, notes and texts that may be long."""
    places = []
    for tag in _TAG.finditer(text):
        for attribute in _ATTRIBUTE.finditer(text, tag.start(3), tag.end(3)):
            places.append(Place(f"{tag[2]} {attribute[1]}", *attribute.span(2)))
    for element, inner in _elements(text):
        if inner.end > inner.start and "<" not in text[inner.start : inner.end]:
            places.append(Place(f"text of {element.kind}", inner.start, inner.end))
    if "<?xml" not in text and "xmlns" not in text:
        for match in _STRING.finditer(text):
            before = text[max(0, match.start() - 12) : match.start()]
            places.append(Place(f"{_shape(before)}|{_shape(match[0])}", *match.span(1 if match[1] else 2)))
    return _distinct(places)


def nestings(text: str) -> list[tuple[Place, Place]]:
    """Return pairs of a part and a part in it which the outer one can replace."""
    elements = [element for element, _ in _elements(text)]
    pairs: dict[str, tuple[Place, Place]] = {}
    for places in (elements[:: max(1, len(elements) // 12)], list(_brackets(text))[-25:]):
        for outer in places:
            for inner in places:
                is_inside = outer.start < inner.start and inner.end < outer.end
                if is_inside and text[outer.start] == text[inner.start]:
                    kinds = [place.kind.rpartition("/")[2] for place in (outer, inner)]
                    pairs.setdefault(" ".join(kinds), (outer, inner))
    return list(pairs.values())


def _distinct(places: Iterable[Place]) -> list[Place]:
    by_kind: dict[str, Place] = {}
    for place in places:
        by_kind.setdefault(place.kind, place)
    distinct = list(by_kind.values())
    return distinct[:: 1 + len(distinct) // MOST]


def _stem(member: str) -> str:
    """Return the name of a member without its folder and its ending."""
    return member.rpartition("/")[2].partition(".")[0]


def _part(member: str) -> str:
    """Return what a member is: chapters differ from each other by their names, sheets and slides by their numbers."""
    return member.rpartition("/")[0] if member.endswith(".xhtml") else re.sub(r"\d+", "", member)


def _letters(length: int) -> str:
    """Return letters and words to make a string longer."""
    return "x" * (length // 2) + " x" * (length // 4)


@dataclass(frozen=True)
class Change:
    """A change of a text of a document, which can be made to any size."""

    member: str
    """The member of a zip file; empty for other documents."""
    place: Place
    is_unit: bool
    inner: Place | None = None
    """The part that the outer one replaces."""

    def __str__(self) -> str:
        what = "repeated" if self.is_unit else "long"
        return f"{self.member}: {self.place.kind} {f'in {self.inner.kind}' if self.inner else what}"


class Seed:
    """A small document from which others grow."""

    def __init__(self, name: str) -> None:
        content = SEEDS[name]
        content = content.encode() if isinstance(content, str) else content
        self.name = name
        self.is_packed = content.startswith(b"PK")
        self.texts: dict[str, str] = {}
        self.binary: dict[str, bytes] = {}
        if self.is_packed:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for member in archive.namelist():
                    data = archive.read(member)
                    if member.endswith((".xml", ".rels", ".xhtml", ".opf", ".ncx")):
                        self.texts[member] = data.decode("utf-8-sig")
                    else:
                        self.binary[member] = data
        else:
            encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            text = content.decode(encoding).replace('encoding="UTF-16"', 'encoding="UTF-8"')
            self.texts[""] = text.replace("\r\n", "\n")

    def changes(self) -> tuple[list[Change], list[Change], list[Change]]:
        """Return the strings, the units and the nestings of all texts; of the same ones in two sheets, the first."""
        by_kind: dict[tuple[object, ...], Change] = {}
        for member, text in self.texts.items():
            changes = [Change(member, place, is_unit=False) for place in strings(text)]
            changes += [Change(member, place, is_unit=True) for place in units(text)]
            changes += [Change(member, outer, is_unit=True, inner=inner) for outer, inner in nestings(text)]
            for change in changes:
                kinds = (change.is_unit, change.place.kind, change.inner.kind if change.inner else "")
                by_kind.setdefault((_part(member), *kinds), change)
        nested = [change for change in by_kind.values() if change.inner]
        repeated = [change for change in by_kind.values() if change.is_unit and not change.inner]
        long = [change for change in by_kind.values() if not change.is_unit]
        for member in self.texts if self.is_packed else ():
            if member != "[Content_Types].xml" and "_rels" not in member:
                long.append(Change(member, Place(NAME, 0, 0), is_unit=False))
        return long, repeated, nested

    def text_of(self, change: Change) -> str:
        """Return the part that a change repeats."""
        return self.texts[change.member][change.place.start : change.place.end]

    def document(self, sizes: dict[Change, int]) -> bytes:
        """Return the document with changes, each of a size: letters for strings, repetitions for units."""
        inserted: dict[str, list[tuple[int, int, str]]] = {}
        names: dict[str, str] = {}
        for change, size in sizes.items():
            place, text = change.place, self.texts[change.member]
            if change.inner:
                before = text[place.start : change.inner.start]
                after = text[change.inner.end : place.end]
                inner = text[change.inner.start : change.inner.end]
                edit = (place.start, place.end, before * size + inner + after * size)
            elif change.is_unit:
                edit = (place.end, place.end, (place.separator + text[place.start : place.end]) * size)
            elif place.kind == NAME:
                stem = _stem(change.member)
                names[stem] = stem + "x" * min(size, LONGEST_NAME)
                continue
            else:
                edit = (place.end, place.end, _letters(size))
            inserted.setdefault(change.member, []).append(edit)
        members: dict[str, str | bytes] = {}
        for member, text in self.texts.items():
            parts, end = [], 0
            for start, stop, new in sorted(inserted.get(member, []), key=lambda edit: edit[:2]):
                parts += [text[end:start], new]
                end = stop
            members[member] = "".join([*parts, text[end:]])
        if not self.is_packed:
            return str(members[""]).encode()
        for stem, long in names.items():
            renamed = {}
            for member, content in members.items():
                renamed[re.sub(rf"\b{re.escape(stem)}(?=\.)", long, member)] = re.sub(
                    rf"\b{re.escape(stem)}(?=\.)", long, str(content)
                )
            members = dict(renamed)
        return packed({**self.binary, **members})


def is_read(name: str, content: bytes) -> bool:
    """Return whether a document is read and written, and not refused in one line."""
    try:
        written(name, content)
    except UserError:
        return False
    return True


def written(name: str, content: bytes) -> tuple[list[Segment], bytes]:
    """Return the segments of a document, and the document with its source texts as translations.

    Raises:
        UserError: the document is refused.
    """
    document = read_document(name, content, ("en", "de"))
    segments = document.segments
    return segments, document.filled({i: Target(segment.source) for i, segment in enumerate(segments)})


def accepted(seed: Seed, changes: Iterable[Change], size: int) -> list[Change]:
    """Return the changes with which a document is still read, alone and together."""
    fewest = len(written(seed.name, seed.document({}))[0])
    good = []
    for change in changes:
        with suppress(UserError):
            if len(written(seed.name, seed.document({change: size}))[0]) >= fewest:
                good.append(change)
    return _together(seed, good, size)


def _together(seed: Seed, changes: list[Change], size: int) -> list[Change]:
    if not changes or is_read(seed.name, seed.document(dict.fromkeys(changes, size))):
        return changes
    if len(changes) == 1:
        return []
    half = len(changes) // 2
    together = _together(seed, changes[:half], size)
    for change in _together(seed, changes[half:], size):
        if is_read(seed.name, seed.document(dict.fromkeys([*together, change], size))):
            together = [*together, change]
    return together


def steps(name: str, content: bytes, functions: Container[str] | None = None, limit: int = 3_000_000) -> Counter[str]:
    """Return how often lines of each function of our readers ran, which nothing else on the machine disturbs.

    Args:
        name: the name of the document.
        content: the document.
        functions: the functions whose lines are counted; all of our readers by default.
        limit: the most lines that may run.

    Raises:
        TimeoutError: more than `limit` lines ran.
        UserError: the document is refused.
    """
    counts: dict[CodeType, int] = {}
    names: dict[CodeType, str] = {}  # empty for functions whose lines are not counted
    total = 0

    def in_reader(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal total
        if event == "line":
            total += 1
            counts[frame.f_code] = counts.get(frame.f_code, 0) + 1
        return in_reader

    def in_any(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if total > limit:
            raise TimeoutError
        code = frame.f_code
        function = names.get(code)
        if function is None:
            function = _name_of(code)
            if functions is not None and function not in functions:
                function = ""
            names[code] = function
        return in_reader if function else None

    sys.settrace(in_any)
    try:
        written(name, content)
    finally:
        sys.settrace(None)
    named = Counter[str]()
    for code, count in counts.items():
        named[names[code]] += count
    return named


def _name_of(code: CodeType) -> str:
    """Return the place and the name of a function of our readers; of other code, an empty text."""
    file = code.co_filename
    # The limits measure the time, and how often they do depends on the machine.
    is_limit = code.co_qualname.startswith("_Budget.") or code.co_name == "_memory"
    if "bitext/documents/" not in file or is_limit:
        return ""
    return f"{file.rpartition('bitext/')[2]}:{code.co_firstlineno} {code.co_name}"


def characters(name: str, content: bytes) -> int:
    """Return the characters that a document repeats: in places, notes, texts and tags of segments, and as written."""
    segments, output = written(name, content)
    count = len(output)
    for segment in segments:
        count += len(segment.place) + len(segment.note or "") + len(segment.source.full_text)
    return count


MOST = 40
"""The most strings and parts of a text; of more, every second or third is taken."""
FEW = 3
"""The repetitions of the smallest document."""
SINGLE = 60_000
"""The bytes of a document with one change."""
LETTERS = 5_000
"""The letters of a long string, more than the limits of places and notes."""


def quadratic_steps(seed: Seed, changes: Sequence[Change]) -> dict[str, list[int]]:
    """Return the functions whose steps grow with the product of two numbers of repeated parts."""

    def growing(few: int, functions: Container[str] | None = None) -> dict[str, list[int]]:
        """Return the steps of suspicious functions: for a + b n + c n², the second difference is 2 c few²."""
        counts = [steps(seed.name, seed.document(dict.fromkeys(changes, few * i)), functions) for i in (1, 2, 3)]
        found = {}
        for function, last in counts[2].items():
            first, middle = counts[0][function], counts[1][function]
            if last - 2 * middle + first > max(few**2, 0.05 * last):
                found[function] = [first, middle, last]
        return found

    suspicious = growing(FEW)
    if not suspicious:
        return {}
    # Not something that happens once from a certain number of parts on: twice the parts, four times the difference.
    confirmed = growing(2 * FEW, suspicious)
    return {function: confirmed[function] for function in suspicious if function in confirmed}


def multiplied_output(seed: Seed, repeated: Sequence[Change]) -> int:
    """Return the characters that each pair of repeated parts adds to the written document."""
    if seed.is_packed:  # the size depends on the compression
        return 0
    added = []
    for i in (1, 2, 3):
        content = seed.document(dict.fromkeys(repeated, FEW * i))
        added.append(len(written(seed.name, content)[1]) - len(content))
    return (added[2] - 2 * added[1] + added[0]) // (2 * FEW**2)


def multiplied_characters(seed: Seed, long: Sequence[Change], repeated: Sequence[Change]) -> list[str]:
    """Return the strings that repeated parts copy."""

    found = []
    short = characters(seed.name, seed.document(dict.fromkeys(repeated, 2 * FEW)))
    for string in long:  # each alone, because a long reference hides what it refers to
        parts = [part for part in repeated if not _contains(seed, part, string)]

        def count(letters: int, times: int, string: Change = string, parts: Sequence[Change] = parts) -> int:
            content = seed.document({string: letters, **dict.fromkeys(parts, times)})
            return characters(seed.name, content)

        with suppress(UserError):  # together, some are refused
            # A text may be in a place, in a note, in its segment and in the output, but not for each repetition.
            if count(2 * LETTERS, 2 * FEW) - short < 12 * LETTERS:
                continue
            counts = [count(*sizes) for sizes in product((LETTERS, 2 * LETTERS), (FEW, 2 * FEW))]
            # The copies of each letter for each repetition.
            if (counts[3] - counts[2] - counts[1] + counts[0]) / (LETTERS * FEW) > 0.5:
                found.append(str(string))
    return found


def _contains(seed: Seed, part: Change, string: Change) -> bool:
    """Whether a part contains a string: its copies hide the long one, and those of a name multiply it themselves."""
    if string.place.kind == NAME:
        return _stem(string.member) in seed.text_of(part)
    is_inside = part.place.start <= string.place.start and string.place.end <= part.place.end
    return part.member == string.member and is_inside


DEEP = 250
"""Levels of nesting that exceed all limits; without one, they are an internal error."""


def exponential_nestings(seed: Seed, nested: Iterable[Change], enough: float = 0.25) -> list[str]:
    """Return the parts that take exponential time, or end in an internal error, if they are in themselves."""
    found = []
    changes = list(nested)
    for change in changes:
        for depth in (12, DEEP) if _is_innermost(change, changes) else (12,):
            content = seed.document({change: depth})
            try:
                seconds = _seconds_of_reading(seed.name, content)
            except Exception as error:
                found.append(f"{change}, {depth} levels: {type(error).__name__}")
                break
            # Twice as many levels square exponential time; a busy machine does not.
            if seconds > enough and depth < DEEP:
                half = seed.document({change: depth // 2})
                if seconds > 8 * min(_seconds_of_reading(seed.name, half) for _ in range(2)):
                    found.append(f"{change}, {depth} levels, {len(content)} bytes: {seconds:.1f} s")
                    break
    return found


def _seconds_of_reading(name: str, content: bytes) -> float:
    start = process_time()
    is_read(name, content)
    return process_time() - start


def _is_innermost(change: Change, changes: Iterable[Change]) -> bool:
    """Whether no other change puts the same part further inside itself, which opens more elements on each level."""
    assert change.inner
    for other in changes:
        is_same_part = (other.member, other.place) == (change.member, change.place)
        if is_same_part and other.inner and change.inner.start < other.inner.start < change.inner.end:
            return False
    return True


def large(seed: Seed, long: Sequence[Change], repeated: Sequence[Change], size: int) -> bytes:
    """Return a document of about `size` bytes, half of them in long strings, half in repeated parts."""
    long = [change for change in long if change.place.kind != NAME]
    letters = size // 2 // max(1, len(long))
    unit = sum(change.place.end - change.place.start for change in repeated) or 1
    sizes = {**dict.fromkeys(long, letters), **dict.fromkeys(repeated, max(1, size // 2 // unit))}
    return seed.document(sizes)


class Cost(NamedTuple):
    """What reading and writing a document took."""

    seconds: float
    """Of the processor."""
    mebibytes: float
    """Of memory, above the process before."""
    result: str


def cost(name: str, content: bytes, most_seconds: int = 30) -> Cost:
    """Read and write a document in a process of its own with 1 GiB of memory more than this one has."""
    receiver, sender = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_measure, args=(sender, name, content, most_seconds))
    process.start()
    sender.close()
    try:
        return Cost(*receiver.recv())
    except EOFError:
        return Cost(most_seconds, 1024, f"FAULT: ended, or took more than {most_seconds} s")
    finally:
        process.join()


def _measure(sender: Any, name: str, content: bytes, most_seconds: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds + 1))
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    # Other than the peak of `getrusage`, this one does not contain what the parent has used.
    Path("/proc/self/clear_refs").write_text("5")
    start = process_time()
    try:
        segments, output = written(name, content)
        result = f"{len(segments)} segments, {len(output):,} bytes"
    except UserError as error:
        result = f"refused: {str(error)[:100]}"
    except BaseException as error:
        result = f"FAULT: {type(error).__name__}"
    seconds = process_time() - start
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    assert peak
    sender.send((seconds, (int(peak[1]) * 1024 - before) / (1 << 20), result))


def main(names: Sequence[str]) -> None:
    """Print what is quadratic, multiplied or exponential, and what documents of 1 MB take."""
    for name in names or SEEDS:
        print(name, flush=True)
        for fault in faults(name):
            print(f"    {fault}", flush=True)


def faults(name: str) -> Iterator[str]:
    """Yield what is quadratic, multiplied or exponential for one of the `SEEDS`, and what takes too much at 1 MB."""
    try:
        seed = Seed(name)
        long, repeated, nested = seed.changes()
        long, repeated = accepted(seed, long, LETTERS), accepted(seed, repeated, FEW)
        for function, counts in quadratic_steps(seed, repeated).items():
            yield f"QUADRATIC {function}: {counts} steps"
        if count := multiplied_output(seed, repeated):
            yield f"OUTPUT grows by {count} characters for each pair of repeated parts"
        for change in multiplied_characters(seed, long, repeated):
            yield f"COPIED {change}"
        for line in exponential_nestings(seed, nested):
            yield f"NESTED {line}"
        yield from _costly(seed, "everything", large(seed, long, repeated, 1_000_000))
        for change in repeated:
            yield from _costly(seed, str(change), large(seed, [], [change], SINGLE))
        for change in long:
            yield from _costly(seed, f"{change}, and parts repeated", large(seed, [change], repeated, SINGLE))
    except (Exception, TimeoutError) as error:
        yield f"FAULT {type(error).__name__}: {str(error)[:150]}"


def _costly(seed: Seed, what: str, content: bytes) -> Iterator[str]:
    """Yield what a document takes, if that is too much."""
    measured = cost(seed.name, content)
    share = max(0.2, len(content) / 1_000_000)
    if measured.seconds > 10 * share or measured.mebibytes > 300 * share or "FAULT" in measured.result:
        size = f"{len(content):,} bytes, {measured.seconds:.1f} s, {measured.mebibytes:.0f} MiB"
        yield f"COSTLY {what}: {size}, {measured.result}"


if __name__ == "__main__":
    main(sys.argv[1:])
