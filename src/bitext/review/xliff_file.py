"""XLIFF 2.1 for reviewers: each unit has a source, a translation with its state, notes, and what the machine wrote.

The machine's text is a match of the Translation Candidates module (XLIFF 2.1, section 5.1), so that it can be compared
with the corrected and the final text. Tags of the document are inline codes, whose content is in `<originalData>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate, chain
from typing import cast, get_args

from bitext.documents.document import Document, SegmentList, Target
from bitext.documents.shown_tags import SHOWN_TAG
from bitext.documents.tagged_text import Side, Tag, matched_tags, nested
from bitext.documents.xml.xml_file import XmlFile, escaped
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.readers.xliff import NAMESPACES
from bitext.readers.xml_elements import Element, Piece
from bitext.review.review import Review, Row, State, review_of

ENDINGS = (".xlf", ".xliff")
_CORE, _MATCHES = "urn:oasis:names:tc:xliff:document:2.0", "urn:oasis:names:tc:xliff:matches:2.0"
_FILE = "translucid-review"
"""The id of the `<file>`, which tells these files from other XLIFF files."""
_OURS = "translucid"
"""The category of notes and the origin of matches that are not the reviewer's."""
DEEPEST = 100
"""The largest depth of nested codes; deeper ones are written as single codes, as readers of XML limit the depth."""
_UNKNOWN = "und"
"""The code of an unknown language (BCP 47)."""
_STATES: tuple[State, ...] = get_args(State)


def xliff_of(review: Review) -> bytes:
    """Return rows as a file."""
    source, target = (code or _UNKNOWN for code in review.languages)
    languages = f'srcLang="{_quoted(source)}" trgLang="{_quoted(target)}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<xliff xmlns="{_CORE}" xmlns:mtc="{_MATCHES}" version="2.1" {languages}>')
    lines.append(f'<file id="{_FILE}" original="{_quoted(review.document)}" xml:space="preserve">')
    for row in review.rows:
        lines += _unit(row)
    return "\n".join([*lines, "</file>", "</xliff>", ""]).encode()


def _unit(row: Row) -> Iterator[str]:
    data = {tag: f"d{i}" for i, tag in enumerate(row.tags, 1)}
    name = f' name="{_quoted(row.place)}"' if row.place else ""
    yield f'<unit id="{row.number}"{name}>'
    source = _inline(row.source, data)
    if row.machine is not None:
        # Codes of a match have no data here: that of the unit does not apply to it.
        texts = f"<source>{_inline(row.source, dict.fromkeys(data, ''))}</source>"
        texts += f"<target>{_inline(row.machine, dict.fromkeys(data, ''))}</target>"
        kind = "mt" if row.state == "translated" else "tm"
        yield f'<mtc:matches><mtc:match ref="#m1" type="{kind}" origin="{_OURS}">{texts}</mtc:match></mtc:matches>'
        source = f'<mrk id="m1" type="mtc:match">{source}</mrk>'
    notes = [(_OURS, note) for note in row.notes]
    if row.comment:
        notes.append(("comment", row.comment))
    if notes:
        written = "".join(f'<note category="{category}">{escaped(note)}</note>' for category, note in notes)
        yield f"<notes>{written}</notes>"
    if data:
        written = "".join(f'<data id="{data[tag]}">{escaped(raw)}</data>' for tag, raw in row.tags.items())
        yield f"<originalData>{written}</originalData>"
    yield f'<segment id="s1" state="{row.state}">'
    yield f"<source>{source}</source>"
    if row.target is not None:
        yield f"<target>{_inline(row.target, data)}</target>"
    yield "</segment>"
    yield "</unit>"


def _quoted(text: str) -> str:
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;")


def _inline(text: str, data: Mapping[str, str]) -> str:
    """Return a text as XML, with inline codes in place of tags; `data`: the ids of their content by their tags."""
    parts, position = list[str](), 0
    matches = [match for match in SHOWN_TAG.finditer(text) if match[0] in data]
    sides: list[Tag] = [(side_of(match[0]), match[0].strip("⟨/⟩")) for match in matches]
    with_partner = set(chain.from_iterable(matched_tags(sides)))
    depth = max(accumulate(side.depth for side, _ in sides if side), default=0)
    is_nested = nested(sides) and depth <= DEEPEST
    for i, match in enumerate(matches):
        parts.append(escaped(text[position : match.start()]))
        tag, (side, number) = match[0], sides[i]
        reference = data[tag]
        has_partner = i in with_partner
        parts.append(_code(str(number), side, reference, data, is_nested=is_nested, has_partner=has_partner))
        position = match.end()
    return "".join([*parts, escaped(text[position:])])


def side_of(tag: str) -> Side:
    """Return the side of a tag.

    >>> side_of("⟨1⟩").value, side_of("⟨/1⟩").value, side_of("⟨2/⟩").value
    ('opens', 'closes', 'alone')
    """
    if tag.endswith("/⟩"):
        return Side.alone
    return Side.of_tag(closes=tag.startswith("⟨/"))


def _code(
    number: str, side: Side | None, reference: str, data: Mapping[str, str], *, is_nested: bool, has_partner: bool
) -> str:
    """Return the inline code of a tag."""
    kept = 'canCopy="no" canDelete="no"'
    data_reference = f' dataRef="{reference}"' if reference else ""
    if side is Side.alone:
        # A single code and an element never have the same number.
        return f'<ph id="{number}" {kept}{data_reference}/>'
    if is_nested and side is Side.closes:
        return "</pc>"
    if is_nested:
        if reference:
            data_reference = f' dataRefStart="{reference}" dataRefEnd="{data[f"⟨/{number}⟩"]}"'
        return f'<pc id="{number}" {kept}{data_reference}>'
    if side is Side.opens:
        isolated = "" if has_partner else ' isolated="yes"'
        return f'<sc id="{number}" {kept}{isolated}{data_reference}/>'
    if has_partner:
        return f'<ec startRef="{number}" {kept}{data_reference}/>'
    return f'<ec id="{number}" {kept} isolated="yes"{data_reference}/>'


class DocumentForReview:
    """A document whose translation is written as a file for review, in place of the translated document."""

    def __init__(self, name: str, document: Document, languages: Languages) -> None:
        """Wrap a document; the arguments are those of `review_of`."""
        self.name, self.document, self.languages = name, document, languages

    @property
    def segments(self) -> SegmentList:
        """The segments of the document."""
        return self.document.segments

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file for review, with all segments."""
        return xliff_of(review_of(self.name, self.document, targets, self.languages))


def read_xliff(name: str, content: bytes) -> Review:
    """Read rows.

    Raises:
        UserError: the file is invalid or harmful, or none that we have written.
    """
    rows: list[Row] = []
    problems: list[str] = []
    document, languages = "", cast(Languages, (None, None))
    xml = XmlFile(name, content)
    for unit in xml.units({"xliff"}, {"unit"}, {**NAMESPACES, _MATCHES: "mtc"}):
        file, root = unit.outermost("file"), unit.outermost("xliff")
        if file is None or root is None or file.attributes.get("id") != _FILE:
            break
        document = file.attributes.get("original", "")
        source, target = (root.attributes.get(name, _UNKNOWN) for name in ("srcLang", "trgLang"))
        languages = None if source == _UNKNOWN else source, None if target == _UNKNOWN else target
        number = unit.attributes.get("id", "")
        if number.isascii() and number.isdigit() and len(number) < 10:
            rows.append(_row(int(number), unit))
        else:
            problems.append(f"line {unit.line}: the unit {number[:50]!r} is not from the document")
    if not rows:
        fix = "Give a file of `translucid review make`."
        raise UserError("is no review of a document", file=name, fix=fix)
    return Review(document, languages, rows, problems)


def _row(number: int, unit: Element) -> Row:
    sources, targets, states = list[str](), list[str](), list[State]()
    has_target = False
    # A program may split a segment.
    for part in unit.children:
        if part.name not in ("segment", "ignorable"):
            continue
        source, target = part.child("source"), part.child("target")
        sources.append(_text(source) if source else "")
        has_target = has_target or (part.name == "segment" and target is not None)
        targets.append(_text(target) if target else sources[-1] if part.name == "ignorable" else "")
        if part.name == "segment":
            state = part.attributes.get("state", "initial")
            states.append(state if state in _STATES else "initial")
    machine = None
    for match in unit.within("mtc:match"):
        if match.attributes.get("origin") == _OURS and (text := match.child("target")):
            machine = _text(text)
    notes, comments = list[str](), list[str]()
    for note in unit.within("note"):
        (notes if note.attributes.get("category") == _OURS else comments).append(note.text)
    return Row(
        number,
        "".join(sources),
        machine,
        "".join(targets) if has_target else None,
        min(states, key=_STATES.index, default="initial"),
        "\n".join(comments),
        place=unit.attributes.get("name", ""),
        notes=tuple(notes),
    )


def _text(element: Element) -> str:
    """Return the text of an element with tags in place of inline codes."""
    text = ""
    for part in element.parts:
        if isinstance(part, Piece):
            text += part.text
            continue
        number = part.attributes.get("id", "")
        match part.name:
            case "pc":
                text += f"⟨{number}⟩{_text(part)}⟨/{number}⟩"
            case "ph":
                text += f"⟨{number}/⟩"
            case "sc":
                text += f"⟨{number}⟩"
            case "ec":
                text += f"⟨/{part.attributes.get('startRef', number)}⟩"
            case "mrk":
                text += _text(part)
            case "cp":
                text += "\ufffd"  # a character that XML cannot represent
            case _:  # `sm` and `em` mark a text that a program or a person has annotated
                pass
    return text
