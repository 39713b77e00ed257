"""Tables of strings for translators in texts and spreadsheets: which cells take translations, and which stay."""

import re
from io import BytesIO
from zipfile import ZipFile

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from tests.probes.packed import packed, types
from translucid.ground.errors import UserError

OASIS = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
NAMES = " ".join(f'xmlns:{name}="{OASIS.format(name)}"' for name in ("office", "text", "table", "style"))
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def paragraphs(text, paragraph):
    return "".join(map(paragraph, text.split("\n")))


def word(rows, before=""):
    """Return the XML of a Word document with a table."""
    paragraph = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>".format
    xml = ""
    for row in rows:
        cells = (f"<w:tc><w:tcPr/>{paragraphs(text or '', paragraph)}</w:tc>" for text in row)
        xml += f"<w:tr>{''.join(cells)}</w:tr>"
    return f"<w:document {W}><w:body>{before}<w:tbl>{xml}</w:tbl></w:body></w:document>"


def opendocument(rows, before=""):
    """Return the XML of an OpenDocument file with a table."""
    paragraph = "<text:p>{}</text:p>".format
    xml = ""
    for row in rows:
        cells = (f"<table:table-cell>{text and paragraphs(text, paragraph)}</table:table-cell>" for text in row)
        xml += f"<table:table-row>{''.join(cells).replace('None', '')}</table:table-row>"
    table = f'<table:table table:name="Data">{xml}</table:table>'
    return f"<office:document-content {NAMES}><office:body>{before}{table}</office:body></office:document-content>"


def file_of(name, xml):
    """Return a file with an XML part."""
    if name == "a.docx":
        return packed({"[Content_Types].xml": types({"word/document.xml": WORD}), "word/document.xml": xml})
    kind = {"a.odt": "text", "a.ods": "spreadsheet"}[name]
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    return packed({"mimetype": mimetype, "META-INF/manifest.xml": "<m/>", "content.xml": xml})


def xml_of(content):
    archive = ZipFile(BytesIO(content))
    return archive.read(archive.namelist()[-1]).decode()


def rows_of(content):
    """Return the texts of the cells of a table, whose paragraphs are separated by line ends."""
    rows = []
    for row in re.findall(r"<(?:w:tr|table:table-row)>(.*?)</(?:w:tr|table:table-row)>", xml_of(content), re.DOTALL):
        cells = re.findall(r"<(w:tc|table:table-cell)\b[^<>]*?(?:/>|>(.*?)</\1>)", row, re.DOTALL)
        texts = ["\n".join(re.findall(r"<(?:w:t|text:p)(?: [^<>]*)?>([^<>]*)<", inside)) for _, inside in cells]
        rows.append([text or None for text in texts])
    return rows


def translated(name, xml):
    """Return the document, and the file with translations of all texts that have none."""
    document = read_document(name, file_of(name, xml), ENGLISH_SPANISH)
    assert document.filled({}) == file_of(name, xml)
    targets = {i: target for i, target in all_changed(document).items() if not document.segments[i].existing}
    return document, document.filled(targets)


FORMATS = {"a.docx": word, "a.odt": opendocument, "a.ods": opendocument}


@pytest.mark.parametrize(
    ("head", "rows", "expected", "remark"),
    [
        (
            ["Key", "English", "Spanish", "Notes"],
            [["a.b", "a cat", None, "for a pet"], ["c", "a dog", "un perro", None], [None, "one\ntwo", None, None]],
            [
                ["a.b", "a cat", "A CAT", "for a pet"],
                ["c", "a dog", "un perro", None],
                [None, "one\ntwo", "ONE\nTWO", None],
            ],
            "“English” into “Spanish”",
        ),
        (["Target", "Source"], [[None, "a dog"]], [["A DOG", "a dog"]], "“Source” into “Target”"),
        (
            ["title_en", "body_en", "title_es", "body_es"],
            [["a cat", "a dog", None, None]],
            [["a cat", "a dog", "A CAT", "A DOG"]],
            "“title_en” into “title_es”, “body_en” into “body_es”",
        ),
        (
            ["es", "source", "Locale"],
            [[None, "a cat", "es"], [None, "a dog", "fr"]],
            [["A CAT", "a cat", "es"], [None, "a dog", "fr"]],
            "“source” into “es”",
        ),
        # Tables that people read.
        (["KPI", "Actual", "Target"], [["big sales", "1", "2"]], [["BIG SALES", "1", "2"]], None),
        (["Student", "English", "Spanish"], [["a pupil", "5", "6"]], [["A PUPIL", "5", "6"]], None),
        (["Source", "Amount"], [["a shop", "7"]], [["A SHOP", "7"]], None),
    ],
)
@pytest.mark.parametrize("name", FORMATS)
def test_tables_with_columns_for_source_and_translation(name, head, rows, expected, remark):
    document, content = translated(name, FORMATS[name]([head, *rows]))
    after = rows_of(content)
    assert after[1:] == expected
    if remark:
        table = "Data" if name == "a.ods" else "table 1"
        assert after[0] == head and document.segments.remarks == [f"{table}: translated columns: {remark}"]
    else:
        assert after[0] == [text.upper() for text in head] and not document.segments.remarks


@pytest.mark.parametrize("name", ["a.docx", "a.odt"])
@pytest.mark.parametrize("head", [["Key", "Text"], ["English", "French"], ["Description", "Translation"]])
def test_other_tables_of_a_text_are_parts_of_it(name, head):
    _, content = translated(name, FORMATS[name]([head, ["a cat", "a dog"]]))
    assert rows_of(content) == [[text.upper() for text in head], ["A CAT", "A DOG"]]


def test_a_translation_keeps_formats_but_no_identifiers_and_the_cell_keeps_its_style():
    bold = "<w:r><w:rPr><w:b/></w:rPr><w:t>cat</w:t></w:r>"
    source = (
        f'<w:p w14:paraId="0A1B2C3D" w:rsidR="00AA"><w:bookmarkStart w:id="1" w:name="b"/>'
        f'<w:r><w:t xml:space="preserve">a </w:t></w:r>{bold}<w:bookmarkEnd w:id="1"/></w:p>'
    )
    cell = "<w:tc><w:tcPr><w:shd w:fill='{}'/></w:tcPr>{}</w:tc>".format
    row = f"<w:tr>{cell('red', source)}{cell('blue', '<w:p><w:pPr/></w:p>')}</w:tr>"
    xml = word([["source", "target"]]).replace("</w:tbl>", f"{row}</w:tbl>")
    xml = xml.replace(W, f'{W} xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"')
    _, content = translated("a.docx", xml)
    new = (
        '<w:p w:rsidR="00AA"><w:r><w:rPr><w:lang w:val="es-ES"/></w:rPr><w:t xml:space="preserve">A </w:t></w:r>'
        '<w:r><w:rPr><w:b/><w:lang w:val="es-ES"/></w:rPr><w:t>CAT</w:t></w:r></w:p>'
    )
    assert xml_of(content) == xml.replace("<w:p><w:pPr/></w:p>", new)


def sheet(*rows, before="", after=""):
    rows = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    table = f'{before}<table:table table:name="Data">{rows}</table:table>{after}'
    return f"<office:document-content {NAMES}><office:body>{table}</office:body></office:document-content>"


def cell(text, attributes=""):
    return f"<table:table-cell{attributes}><text:p>{text}</text:p></table:table-cell>"


HEAD = "".join(map(cell, ("English", "id", "Spanish", "note")))
STRING = ' office:value-type="string"'


@pytest.mark.parametrize(
    ("row", "after"),
    [
        # Equal cells are written once; the one that takes the translation is cut out of them.
        (
            cell("a cat") + '<table:table-cell table:style-name="s" table:number-columns-repeated="16383"/>',
            cell("a cat")
            + '<table:table-cell table:style-name="s"/>'
            + cell("A CAT", f' table:style-name="s"{STRING}')
            + '<table:table-cell table:style-name="s" table:number-columns-repeated="16381"/>',
        ),
        (cell("a cat"), cell("a cat") + "<table:table-cell/>" + cell("A CAT", STRING)),
        (
            cell("a cat", ' table:number-columns-repeated="2"') + "<table:table-cell/>",
            cell("a cat", ' table:number-columns-repeated="2"') + cell("A CAT", STRING),
        ),
        # A number or a formula is no text, and a hidden cell takes none.
        (cell("12 cats", ' office:value-type="float" office:value="12"'), None),
        (cell("a cat") + cell("") + cell("x", ' table:formula="of:=[.B1]"'), None),
        (cell("a cat") + cell("") + "<table:covered-table-cell/>", None),
    ],
)
def test_cells_of_spreadsheets_that_stand_for_several_or_are_missing(row, after):
    xml = sheet(HEAD, row)
    _, content = translated("a.ods", xml)
    assert xml_of(content) == sheet(HEAD, after or row)


def test_texts_of_spreadsheets_outside_of_tables_of_strings():
    note = "<office:annotation><text:p>a note</text:p></office:annotation>"
    rows = (
        cell("one", ' table:number-columns-repeated="2"') + cell("two", f'{STRING} office:string-value="two"'),
        "<table:table-cell/>"
        + f"<table:table-cell>{note}<text:p>three</text:p><text:p>four</text:p></table:table-cell>",
        cell("5 cats", ' office:value-type="float"')
        + cell("one", ' table:formula="of:=IF([.A1]=&quot;One&quot;;1;2)"'),
        cell("sku_12"),
    )
    names = '"one";"other";"sku_12";"the ""5 cats""";"12"'.replace('"', "&quot;")
    condition = f' table:condition="of:cell-content-is-in-list({names})"'
    rule = f"<table:content-validation{condition}><table:help-message><text:p>Choose one</text:p></table:help-message>"
    before = f"<table:content-validations>{rule}</table:content-validation></table:content-validations>"
    shapes = "<table:shapes><text:p>a box</text:p></table:shapes>"
    hidden = "<table:tracked-changes><table:table-cell><text:p>old</text:p></table:table-cell></table:tracked-changes>"
    xml = sheet(*rows, before=hidden + before).replace('"Data">', f'"Data">{shapes}')
    xml = xml.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="2">', 1)
    document, content = translated("a.ods", xml)
    *texts, other, cats = document.segments
    assert (other.source.text, cats.source.text) == ("other", 'the "5 cats"')
    assert other.place == cats.place == "list of choices"
    assert {segment.place: segment.source.text for segment in texts} == {
        "paragraph 1": "Choose one",
        "Data, drawing": "a box",
        "Data!A1": "one",
        "Data!C1": "two",
        "Data!B3": "four",  # after "three", in the same cell
        "Data!B3, note": "a note",
    }
    after = xml.replace(' office:string-value="two"', "").replace("=&quot;One&quot;", "=&quot;ONE&quot;")
    after = after.replace(
        names, names.replace("one", "ONE").replace("other", "OTHER").replace("the", "THE").replace("cats", "CATS")
    )
    for text in ("one", "two", "three", "four", "a note", "a box", "Choose one"):
        after = after.replace(f"<text:p>{text}</text:p>", f"<text:p>{text.upper()}</text:p>")
    formula = ' table:formula="of:=IF([.A1]=&quot;{}&quot;;1;2)"'
    assert xml_of(content) == after.replace(cell("ONE", formula.format("ONE")), cell("one", formula.format("ONE")))


def test_another_kind_of_file_is_refused():
    with pytest.raises(UserError, match=r"^a\.ods: is another kind of document"):
        read_document("a.ods", file_of("a.odt", opendocument([["a"]])))
