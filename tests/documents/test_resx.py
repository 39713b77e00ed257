""".NET resources as documents."""

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError

HEAD = '<?xml version="1.0" encoding="utf-8"?>\r\n<root>\r\n  <xsd:schema id="root" xmlns:xsd="http://www.w3.org/2001/XMLSchema"/>\r\n'
DATA = '  <data name="{}" xml:space="preserve"{}>\r\n    <value>{}</value>\r\n  </data>\r\n'


def read(*data):
    return read_document("Strings.resx", f"{HEAD}{''.join(data)}</root>".encode(), ENGLISH_SPANISH)


def values_after(*values):
    """Return the values of a translated file."""
    document = read(*(DATA.format("a", "", value) for value in values))
    filled = document.filled(all_changed(document)).decode()
    return [part.partition("</value>")[0] for part in filled.split("<value>")[1:]]


def test_values_are_translated_and_the_rest_stays():
    document = read(
        DATA.format("Save", "", "Save {0} of {1:N2} &amp; go"), DATA.format("b", ' type="System.String"', "b")
    )
    assert [(segment.place, segment.source.text) for segment in document.segments] == [
        ("line 4", "Save {0} of {1:N2} & go"),
        ("line 7", "b"),
    ]
    filled = document.filled(all_changed(document)).decode()
    assert (
        filled
        == HEAD
        + DATA.format("Save", "", "SAVE {0} OF {1:N2} &amp; GO")
        + DATA.format("b", ' type="System.String"', "B")
        + "</root>"
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("&lt;b>two&lt;/b> words", "&lt;b&gt;TWO&lt;/b&gt; WORDS"),
        ("one\r\ntwo", "ONE\r\nTWO"),
        ("<![CDATA[<i>a</i> & b]]>", "<![CDATA[<i>A</i> & B]]>"),
        ("  a  ", "  A  "),
        ("{n, plural, one {a cat} other {# cats}}", "{n, plural, one {A CAT} other {# CATS}}"),
    ],
)
def test_values_are_read_and_written_as_dot_net_does(source, target):
    assert values_after(source) == [target]


@pytest.mark.parametrize(
    "data",
    [
        DATA.format("a.Font", ' type="System.Drawing.Font"', "Segoe UI, 9pt"),
        DATA.format("a.Icon", ' mimetype="application/x-microsoft.net.object.bytearray.base64"', "AAEC"),
        DATA.format("&gt;&gt;a.Name", "", "button"),
        DATA.format("a", "", "{0}"),
        DATA.format("a", "", ""),
        DATA.format("a", "", "Contoso").replace("</value>", "</value>\r\n<comment>{Locked}</comment>"),
        '<metadata name="a"><value>a cat</value></metadata>',
        '<data name="a"/>',
    ],
)
def test_values_that_are_not_text_are_unchanged(data):
    assert not read(data).segments


def test_a_comment_is_a_note():
    commented = DATA.format("a", "", "a").replace("</value>", "</value>\r\n<comment> Of a button </comment>")
    assert [segment.note for segment in read(commented, DATA.format("b", "", "b")).segments] == ["Of a button", None]


def test_another_xml_file_is_refused():
    with pytest.raises(UserError, match=r"^a\.resw:1: begins with <html>, not with <root>"):
        read_document("a.resw", b"<html/>")
