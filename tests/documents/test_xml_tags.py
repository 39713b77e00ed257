"""Raw tags of XML files: setting and removing attributes, prefixes, margins."""

import pytest

from bitext.documents.xml.xml_file import XmlFile, margin, opened, prefix, with_attributes


@pytest.mark.parametrize(
    ("tag", "attributes", "after"),
    [
        ("<a>", {}, "<a>"),
        ("<a >", {"k": "1"}, '<a k="1">'),
        ("<a/>", {"k": "1", "l": None, "m": "2"}, '<a k="1" m="2"/>'),
        ("<a\n  k='x>y'\tl = \"/>\" />", {"k": "1"}, '<a k="1"\tl = "/>"/>'),
        ("<a k='1' kk='2' x:k='3'>", {"k": None}, "<a kk='2' x:k='3'>"),
        ("<a l='2' k='1'>", {"k": "3", "j": "4"}, '<a l=\'2\' k="3" j="4">'),
        ("<a b='k=\"1\"'/>", {"k": '"<&>\n\r\0'}, '<a b=\'k="1"\' k="&quot;&lt;&amp;&gt;&#10;&#13;\ufffd"/>'),
    ],
)
def test_attributes_are_set_and_removed(tag, attributes, after):
    before = dict(attributes)
    assert with_attributes(tag, attributes) == after
    assert attributes == before


def test_an_empty_element_is_opened():
    assert [opened(tag) for tag in ("<a/>", "<a k='/'>", "<a k='1' />", "<a>")] == [
        "<a>",
        "<a k='/'>",
        "<a k='1'>",
        "<a>",
    ]


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("<x:a>", "x:"),
        ("<x:a/>", "x:"),
        ("<x:a\tk='1'>", "x:"),
        ("<a k='b:c'>", ""),
        ("<a x:k='1'/>", ""),
        ("<a/>", ""),
        ("<a b='1' x:c='2'>", ""),
    ],
)
def test_the_prefix_is_that_of_the_name(tag, name):
    assert prefix(tag) == name


def test_a_margin_is_the_white_space_before_an_element():
    file = XmlFile("a.xml", b"<u>\n <a/>x <b/><c/> \t<d/><!-- e --><f/> </u>")
    (unit,) = file.units((), {"u"}, {})
    margins = [margin(file, child) for child in unit.children]
    assert [file.raw(part.start, part.end) for part in margins] == ["\n ", "", "", " \t", ""]
    assert [part.end for part in margins] == [child.start for child in unit.children]
    root_margin = margin(file, unit)
    assert (root_margin.start, root_margin.end) == (0, 0)
