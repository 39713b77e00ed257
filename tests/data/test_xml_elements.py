"""The elements of XML files: their names, contents and offsets, unit by unit, and the limits of what is read."""

import io

import pytest

from bitext.readers import xml_elements
from bitext.readers.xml_elements import Element, ElementReader, Piece
from translucid.ground.errors import UserError

SPACES = {"urn:main": "", "urn:other": "o"}
FILE = """<?xml version="1.0"?>
<!DOCTYPE file SYSTEM "file.dtd">
<file xmlns="urn:main" xmlns:o="urn:other" xmlns:z="urn:unknown" source="en">
 <!-- of nobody --> <head/>
 <!-- first
 unit --><unit id="é" xml:lang="es" o:a="1" z:b="2">ein &amp; zwei<b>drei<!-- x --></b
 ><o:c/><![CDATA[<vier>&amp;]]>&ent;fünf<?p i?>
 <unit>inner</unit></unit>text<unit/><group translate="no"><unit>&#65;b</unit></group><unit  ></unit >
</file>
"""


def reader(**options):
    return ElementReader("f.xml", ["file"], {"unit"}, SPACES, **options)


def units(content, *, custom_reader=None, **options):
    return list((custom_reader or reader(**options)).units(io.BytesIO(content)))


def shape(element):
    """Return the name of an element, and the names and texts of all in it."""
    inner = []
    for part in element.parts:
        inner.append((part.kind, part.text) if isinstance(part, Piece) else shape(part))
    return element.name, inner


def check_offsets(content, element):
    """Compare the offsets of an element, and of all in it, with the bytes of the file."""
    tag = content[element.start : element.inner]
    end = content[element.inner_end : element.end]
    assert tag.startswith(b"<") and tag.endswith(b">") and tag.count(b"<") == 1
    assert end == b"" if tag.endswith(b"/>") else end.startswith(b"</") and end.endswith(b">")
    offset = element.inner
    for part in element.parts:
        assert part.start == offset
        offset = part.end
        if isinstance(part, Element):
            check_offsets(content, part)
    assert offset == element.inner_end


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_units_have_their_content_and_offsets(monkeypatch, chunk, encoding):
    monkeypatch.setattr(xml_elements, "CHUNK", chunk)
    content = FILE.encode(encoding)
    first, second, third, last = all_units = units(content)
    assert shape(first) == (
        "unit",
        [
            ("text", "ein & zwei"),
            ("b", [("text", "drei"), ("other", "")]),
            ("o:c", []),
            ("cdata", "<vier>&amp;"),
            ("other", ""),
            ("text", "fünf"),
            ("other", ""),
            ("text", "\n "),
            ("unit", [("text", "inner")]),
        ],
    )
    assert first.attributes == {"id": "é", "xml:lang": "es", "o:a": "1", "?:b": "2"}
    assert (first.comment, first.entity) == ("first\n unit", "ent")
    assert shape(third) == ("unit", [("text", "Ab")])
    assert shape(second) == shape(last) == ("unit", [])
    assert [unit.comment + unit.entity for unit in (second, third, last)] == ["", "", ""]
    assert [unit.line for unit in all_units] == [6, 8, 8, 8]
    if encoding == "utf-8":
        for unit in all_units:
            check_offsets(content, unit)


def test_what_can_be_asked_of_an_element():
    first, _, third, _ = units(FILE.encode())
    assert [child.name for child in first.children] == ["b", "o:c", "unit"]
    assert [child.name for child in first.children_except("b", "unit")] == ["o:c"]
    assert first.child("b") is first.children[0] and first.child("d") is None
    assert first.words() == "ein & zweidrei<vier>&amp;fünf\n inner"
    assert first.words(lambda element: element.name == "b") == "ein & zwei<vier>&amp;fünf\n inner"
    assert first.children[0].text == "drei"
    assert (third.inherited("translate"), third.inherited("source"), third.inherited("id")) == ("no", "en", None)
    assert (first.inherited("id"), first.children[2].inherited("id")) == ("é", "é")
    (nested,) = units(b"<file><unit><b>1<b>2</b></b><c><b>3</b><d>4</d></c><b>5</b></unit></file>")
    assert [part.words() for part in nested.within("b", "d")] == ["12", "3", "4", "5"]
    assert nested.child("b").words() == "5"
    inner = nested.children[0]
    nested.release()
    assert nested.parts == inner.parts == []


def test_any_root_will_do_if_none_is_named():
    assert len(units(b"<a><unit/></a>", custom_reader=ElementReader("f", (), {"unit"}, {}))) == 1
    with pytest.raises(UserError, match=r"f\.xml:1: begins with <other>, not with <file>\."):
        units(b"<other><file/></other>")
    two_roots = ElementReader("f", ["b", "a"], {"unit"}, {})
    with pytest.raises(UserError, match="not with <a> or <b>"):
        units(b"<c/>", custom_reader=two_roots)


def test_elements_may_be_so_deep():
    opened, closed = b"<a>" * 199, b"</a>" * 199
    assert len(units(b"<file>" + b"<a>" * 198 + b"<unit/>" + b"</a>" * 198 + b"</file>")) == 1
    with pytest.raises(UserError, match="has elements nested more than 200 levels deep"):
        units(b"<file>" + opened + b"<unit/>" + closed + b"</file>")


def test_a_unit_may_have_so_many_parts(monkeypatch):
    monkeypatch.setattr(xml_elements, "MOST_PARTS", 4)
    full = b"<unit>1<a/>2<b>3</b></unit>"  # five parts
    assert len(units(b"<file>" + b"<unit>1<a/>2<b/></unit>" * 3 + b"</file>")) == 3
    with pytest.raises(UserError, match="has more than 4 elements and texts in one unit"):
        units(b"<file>" + full + b"</file>")


@pytest.mark.parametrize("chunk", [1, 5, 1 << 16])
def test_a_unit_may_have_so_many_bytes(monkeypatch, chunk):
    monkeypatch.setattr(xml_elements, "CHUNK", chunk)
    limit = len(b"<unit>123456</unit>") + chunk
    content = b"<file>" + b"<unit>123456</unit><c/> some text <d/>" * 50 + b"</file>"
    assert len(units(content, max_bytes=limit)) == 50
    if chunk < 6:
        for long in (
            b"<unit>" + b"1<c/>" * 20 + b"</unit>",
            b"<unit a='" + b"1" * 80 + b"'/>",
            b"<!--" + b"x" * 80 + b"-->",
        ):
            with pytest.raises(UserError, match="has a unit, tag or comment of more than"):
                units(b"<file>" + long + b"</file>", max_bytes=limit)


class Sizes(io.BytesIO):
    """A stream that records how many bytes are asked for."""

    def __init__(self, content):
        super().__init__(content)
        self.sizes = []

    def read(self, size):
        self.sizes.append(size)
        return super().read(size)


def test_a_long_token_is_read_in_growing_chunks():
    """Expat reads an incomplete token again with each chunk."""
    stream = Sizes(
        b"<file>" + b"<unit/>" * 20_000 + b"<a b='" + b"x" * 500_000 + b"'/>" + b"<unit/>" * 20_000 + b"</file>"
    )
    assert len(list(reader().units(stream))) == 40_000
    kib = [size // 1024 for size in stream.sizes]
    assert all(size % 65_536 == 0 for size in stream.sizes)
    assert kib == [64, 64, 64, 64, 128, 256, 64, 64, 64]
    stream = Sizes(b"<file><a b='" + b"x" * 200_000)
    with pytest.raises(UserError, match="has a unit, tag or comment of more than 150,000 bytes"):
        list(reader(max_bytes=150_000).units(stream))
    assert stream.sizes == [65_536, 65_536, 18_935]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"f\.xml: is empty"),
        (b"<file><unit>", r"f\.xml:1: is no XML \(no element found\)"),
        (b"<file>\n</wrong>", r"f\.xml:2: is no XML \(mismatched tag\)"),
        (b"<?xml version='1.0' encoding='nonsense'?><file/>", "is in an encoding that can't be read"),
        (b"<!DOCTYPE file [<!ENTITY a 'b'>]><file/>", "declares entities or elements of its own"),
    ],
)
def test_files_that_are_refused(content, message):
    with pytest.raises(UserError, match=message):
        units(content)


def test_whoever_handles_declarations_may_read_them():
    declaring = reader()
    declaring.may_declare = True
    (unit,) = units(b"<!DOCTYPE file [<!ENTITY a 'b'>]><file><unit>x&a;y</unit></file>", custom_reader=declaring)
    assert unit.words() == "xy"
    assert units("<file><unit>é</unit></file>".encode("latin-1"), encoding="latin-1")[0].words() == "é"
