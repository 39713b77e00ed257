"""Excel workbooks, created and checked with openpyxl, and parts that only other programs write."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from tests.probes.packed import packed, types
from translucid.ground.errors import UserError

SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(cells, strings, before="", **members):
    """Return a workbook of one sheet with the XML of its cells and shared strings."""
    parts = {"xl/workbook.xml": "sheet.main", "xl/worksheets/sheet1.xml": "worksheet"}
    relations = f'<Relationship Id="rId1" Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    content_types = {
        name: f"{SHEET}.{kind}+xml" for name, kind in (parts | {"xl/sharedStrings.xml": "sharedStrings"}).items()
    }
    sheets = '<sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets>'
    return packed(
        {
            "[Content_Types].xml": types(content_types),
            "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}">{sheets}</workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{namespace}">{relations}</Relationships>',
            "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}>{before}<sheetData>{cells}</sheetData></worksheet>",
            "xl/sharedStrings.xml": f"<sst {MAIN}>{strings}</sst>",
            **members,
        }
    )


def read(content):
    return read_document("a.xlsx", content, ENGLISH_SPANISH)


def texts(document):
    return {segment.place: segment.source.full_text for segment in document.segments}


def strings_after(content):
    """Return the shared strings of a translated workbook, without the tags around them."""
    document = read(content)
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("xl/sharedStrings.xml").decode()
    return filled.removeprefix(f"<sst {MAIN}>").removesuffix("</sst>")


def test_a_workbook_of_openpyxl():
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.comments import Comment
    from openpyxl.styles import Font
    from openpyxl.worksheet.table import Table

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Pets"
    for row in (["Kind", "Number"], ["a cat", 3], ["a dog", 4], ["all", "=SUM(B2:B3)"]):
        sheet.append(row)
    sheet["D1"], sheet["D2"], sheet["D3"] = "two\nlines", '=A2&" and more"', True
    sheet["D1"].font = Font(bold=True)
    sheet["A2"].comment = Comment("a note", "Ana")
    sheet.add_table(Table(displayName="Pets", ref="A1:B4"))
    out = BytesIO()
    book.save(out)
    document = read(out.getvalue())
    assert document.filled({}) == out.getvalue()
    # "Kind" and "Number" are column headers of a table, to which formulas may refer.
    assert texts(document) == {
        "Pets!A2": "a cat",
        "Pets!A3": "a dog",
        "Pets!A4": "all",
        "Pets!D1": "two \nlines",
        "Pets!A2, note": "a note",
    }
    after = openpyxl.load_workbook(BytesIO(document.filled(all_changed(document))))["Pets"]
    rows = [list(row) for row in after.iter_rows(max_row=4, max_col=2, values_only=True)]
    assert rows == [["Kind", "Number"], ["A CAT", 3], ["A DOG", 4], ["ALL", "=SUM(B2:B3)"]]
    assert [after[cell].value for cell in ("D1", "D2", "D3")] == ["TWO\nLINES", '=A2&" and more"', True]
    assert after["D1"].font.bold and after["A2"].comment.text == "A NOTE"


def test_shared_strings_keep_formats_and_escapes():
    cells = "".join(f'<c r="A{i + 1}" t="s"><v>{i}</v></c>' for i in range(5))
    rich = '<si><r><t xml:space="preserve">a </t></r><r><rPr><b/></rPr><t>cat_x000D_\nor a_x0009_dog</t></r></si>'
    strings = (
        rich + "<si><t>one_x000D_\ntwo</t></si><si><t>sku_12</t></si>"
        '<si><t xml:space="preserve"> dogs </t><rPh sb="0" eb="1"><t>x</t></rPh><phoneticPr fontId="1"/></si>'
        "<si><t>=SUM(A1:A2)</t></si><si><t>in no cell</t></si>"
    )
    content = workbook(f'<row r="1">{cells}</row>', strings)
    bold, spaced = "</r><r><rPr><b/></rPr><t", ' xml:space="preserve"'
    assert strings_after(content) == (
        f"<si><r><t{spaced}>A </t>{bold}>CAT</t>{bold}{spaced}>_x000D_</t>{bold}{spaced}>\n</t>"
        f"{bold}>OR A</t>{bold}{spaced}>_x0009_</t>{bold}>DOG</t></r></si>"
        "<si><t>ONE_x000D_\nTWO</t></si><si><t>sku_12</t></si>"
        '<si><t xml:space="preserve"> DOGS </t><phoneticPr fontId="1"/></si>'
        "<si><t>=SUM(A1:A2)</t></si><si><t>in no cell</t></si>"
    )


def test_cells_without_references_inline_strings_and_formulas():
    cells = (
        '<row><c t="inlineStr"><is><t>a cat</t></is></c><c t="s"><v>0</v></c></row>'
        '<row r="7"><c t="str"><f>A1</f><v>a cat</v></c><c t="s"><f>B1</f><v>1</v></c><c t="s"><v>x</v></c></row>'
    )
    content = workbook(cells, "<si><t>a dog</t></si><si><t>a formula</t></si>")
    assert texts(read(content)) == {"Data!B1": "a dog", "Data!A1": "a cat"}
    pivot = f'<pivotCacheDefinition {MAIN}><cacheSource><worksheetSource ref="A1:A9" sheet="Data"/></cacheSource>'
    with_pivot = workbook(
        cells,
        "<si><t>a dog</t></si>",
        **{
            "[Content_Types].xml": types(
                {
                    "xl/workbook.xml": f"{SHEET}.sheet.main+xml",
                    "xl/worksheets/sheet1.xml": f"{SHEET}.worksheet+xml",
                    "xl/sharedStrings.xml": f"{SHEET}.sharedStrings+xml",
                    "xl/pivot.xml": f"{SHEET}.pivotCacheDefinition+xml",
                }
            ),
            "xl/pivot.xml": f"{pivot}</pivotCacheDefinition>",
        },
    )
    assert texts(read(with_pivot)) == {"Data!B1": "a dog"}


@pytest.mark.parametrize(
    ("runs", "after"),
    [
        (
            "<r><t>Ana Cat</t></r><r><t>:</t></r><r><t>a note</t></r>",
            "<r><t>Ana Cat</t></r><r><t>:</t></r><r><t>A NOTE",
        ),
        ("<r><t>Ana Cat likes it</t></r>", "<r><t>ANA CAT LIKES IT</t></r>"),
        ("<r><t>Ana Cat:</t></r>", "<r><t>Ana Cat:</t></r>"),
    ],
)
def test_the_author_of_a_note_stays(runs, after):
    comment = f'<comment ref="A1" authorId="1"><text>{runs}</text></comment>'
    authors = "<authors><author>x</author><author>Ana Cat</author></authors>"
    kinds = {"xl/workbook.xml": "sheet.main", "xl/worksheets/sheet1.xml": "worksheet", "xl/notes.xml": "comments"}
    content = workbook(
        "",
        "",
        **{
            "[Content_Types].xml": types({name: f"{SHEET}.{kind}+xml" for name, kind in kinds.items()}),
            "xl/notes.xml": f"<comments {MAIN}>{authors}<commentList>{comment}</commentList></comments>",
        },
    )
    document = read(content)
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("xl/notes.xml").decode()
    assert f"{authors}<commentList>" in filled and after in filled


def test_another_package_is_refused():
    content = packed({"[Content_Types].xml": types({"word/document.xml": "x"}), "word/document.xml": "<a/>"})
    with pytest.raises(UserError, match=r"^a\.xlsx: is another kind of document than its name says"):
        read(content)
    with pytest.raises(UserError, match=r"^a\.xlsx: holds no files"):
        read(packed({}))


def rows_of(content):
    openpyxl = pytest.importorskip("openpyxl")
    return [list(row) for row in openpyxl.load_workbook(BytesIO(content)).active.iter_rows(values_only=True)]


def book_of(*rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.active.title = "Data"
    out = BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("head", "rows", "expected", "remark"),
    [
        (
            ["Key", "English", "Spanish", "Notes"],
            [["a.b", "a cat", None, "for a pet"], ["c", "a dog", "un perro"], ["d", "a cat"]],
            [["a.b", "a cat", "A CAT", "for a pet"], ["c", "a dog", "un perro", None], ["d", "a cat", "A CAT", None]],
            "“English” into “Spanish”",
        ),
        (
            ["es", "source", "Locale"],
            [[None, "one\n<b>two</b>", "es"], ["x", "a dog", "fr"]],
            [["ONE\n<b>TWO</b>", "one\n<b>two</b>", "es"], ["x", "a dog", "fr"]],
            "“source” into “es”",
        ),
        (["id", "title", "sku"], [["a cat", "a cat", "a tag"]], [["a cat", "A CAT", "a tag"]], "“title”"),
        # Tables that people read: goals, school subjects, a single column.
        (["KPI", "Actual", "Target"], [["big sales", 1, 2]], [["BIG SALES", 1, 2]], None),
        (["Student", "English", "Spanish"], [["a pupil", 5, 6]], [["A PUPIL", 5, 6]], None),
        (["Source", "Amount"], [["a shop", 7]], [["A SHOP", 7]], None),
    ],
)
@pytest.mark.parametrize("rows_before", [[], [["a project"], []]])
def test_sheets_of_strings_are_read_as_tables(head, rows, expected, remark, rows_before):
    content = book_of(*rows_before, head, *rows)
    document = read(content)
    targets = {i: target for i, target in all_changed(document).items() if not document.segments[i].existing}
    after = rows_of(document.filled(targets))[len(rows_before) :]
    assert document.filled({}) == content and after[1:] == expected
    if remark:
        assert after[0] == head and document.segments.remarks == [f"Data: translated columns: {remark}"]
    else:
        assert after[0] == [name.upper() for name in head] and not document.segments.remarks


def test_cells_for_translations_keep_their_style_and_are_inserted_in_order():
    cells = (
        '<row r="1" spans="1:2">' + "".join(f'<c r="{c}1" t="s"><v>{i}</v></c>' for i, c in enumerate("ACE")) + "</row>"
        '<row r="2" spans="1:3"><c r="A2" t="s"><v>3</v></c><c r="C2" s="4"/><c r="F2"><v>1</v></c></row>'
        '<row r="3" spans="1:1"><c r="A3" t="inlineStr"><is><t>a_x0009_dog</t></is></c></row>'
        '<row r="4"><c r="A4" t="s"><v>3</v></c><c r="C4" t="str"><f>F(A4)</f><v>x</v></c></row>'
        '<row r="5"><c r="B5" t="s"><v>3</v></c></row>'
    )
    strings = "".join(f"<si><t>{text}</t></si>" for text in ("source", "target", "note", "a cat"))
    document = read(workbook(cells, strings))
    assert [segment.source.text for segment in document.segments] == ["a cat", "a", "dog"]
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("xl/worksheets/sheet1.xml").decode()
    item = '<is><t xml:space="preserve">{}</t></is></c>'
    assert f'<c r="C2" s="4" t="inlineStr">{item.format("A CAT")}<c r="F2">' in filled
    assert '<row r="2" spans="1:3">' in filled
    assert '<row r="3"><c r="A3" t="inlineStr"><is><t>a_x0009_dog</t></is></c><c r="C3" t="inlineStr">' in filled
    assert "<f>F(A4)</f><v>x</v>" in filled and '<row r="5"><c r="B5" t="s"><v>3</v></c></row>' in filled


def test_blocks_of_html_in_a_cell_are_segments():
    content = workbook(
        '<row><c t="s"><v>0</v></c></row>',
        "<si><t>&lt;p&gt;A &lt;b>cat&lt;/b>.&lt;/p&gt;&lt;p&gt;A dog.&lt;/p&gt;</t></si>",
    )
    assert [segment.source.text for segment in read(content).segments] == ["A cat.", "A dog."]
    assert strings_after(content) == (
        "<si><t>&lt;p&gt;A &lt;b&gt;CAT&lt;/b&gt;.&lt;/p&gt;&lt;p&gt;A DOG.&lt;/p&gt;</t></si>"
    )


def test_a_string_that_one_cell_keeps_is_translated_in_others():
    cells = '<row><c t="s"><f>A9</f><v>0</v></c><c s="2" t="s"><v>0</v></c><c t="str"><v>a dog</v></c></row>'
    document = read(workbook(cells, "<si><r><t>a </t></r><r><t>cat</t></r></si>"))
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("xl/worksheets/sheet1.xml").decode()
    assert '<c t="s"><f>A9</f><v>0</v></c><c s="2" t="inlineStr"><is><t xml:space="preserve">A CAT</t>' in filled
    assert '<c t="inlineStr"><is><t xml:space="preserve">A DOG</t></is></c>' in filled


def test_rules_name_the_first_translation_of_a_value_without_formats():
    cells = "".join(f'<c t="s"><v>{i}</v></c>' for i in range(3))
    strings = '<si><r><t xml:space="preserve">a </t></r><r><rPr><b/></rPr><t>cat</t></r></si>'
    strings += "<si><t>a cat</t></si><si><t>A cat</t></si>"
    rule = '<extLst><cfRule text="a cat"/></extLst>'
    document = read(workbook(f"<row>{cells}</row></sheetData>{rule}<sheetData>", strings))
    targets = {i: Target(TaggedText(text)) for i, text in enumerate(("rich", "first", "second"))}
    filled = ZipFile(BytesIO(document.filled(targets))).read("xl/worksheets/sheet1.xml").decode()
    assert '<cfRule text="first"/>' in filled


def test_long_translations_of_the_messages_of_rules_are_cut_off():
    rule = '<dataValidation errorTitle="Pet" error="No pet"/>'
    document = read(workbook(f"</sheetData>{rule}<sheetData>", "<si><t>a cat</t></si>"))
    targets = {i: Target(TaggedText("a" * 300)) for i in range(len(document.segments))}
    filled = ZipFile(BytesIO(document.filled(targets))).read("xl/worksheets/sheet1.xml").decode()
    assert f'errorTitle="{"a" * 32}" error="{"a" * 255}"' in filled


@pytest.mark.parametrize(
    ("rule", "after"),
    [
        ('<dataValidation type="list"><formula1>"A cat, a dog,x_1"</formula1></dataValidation>', '"A CAT,A DOG,x_1"'),
        ('<dataValidation type="list"><formula1>"Yes,""No"""</formula1></dataValidation>', '"YES,""NO"""'),
        ('<dataValidation type="list"><formula1>Data!$A$1:$A$2</formula1></dataValidation>', None),
        ('<dataValidation type="custom"><formula1>A1="a cat"</formula1></dataValidation>', 'A1="A CAT"'),
        (
            '<filters><filter val="A cat"/></filters><customFilter val="*at*"/>',
            'val="A CAT"/></filters><customFilter val="*at*"',
        ),
        (
            '<cfRule text="a dog"><formula>NOT(ISERROR(SEARCH("a dog",A1)))</formula></cfRule>',
            '<cfRule text="A DOG"><formula>NOT(ISERROR(SEARCH("A DOG",A1)))',
        ),
        ('<dataValidation prompt="Choose a pet" promptTitle="Pet"/>', 'prompt="CHOOSE A PET" promptTitle="PET"'),
        (
            '<x14:dataValidation type="list"><x14:formula1><xm:f>"a cat,a cow"</xm:f></x14:formula1>'
            "<xm:sqref>B1</xm:sqref></x14:dataValidation>",
            '<x14:formula1><xm:f>"A CAT,A COW"</xm:f></x14:formula1>',
        ),
        ('<x14:dataValidation error="No pet" type="custom"/>', 'error="NO PET"'),
        (
            '<dataValidation type="list"><x12ac:list>a cat,"red, ""wild"""</x12ac:list>'
            '<m:Fallback xmlns:m="m"><formula1>"a cat,red, ""wild"""</formula1></m:Fallback></dataValidation>',
            '<x12ac:list>A CAT,"RED, ""WILD"""</x12ac:list>'
            '<m:Fallback xmlns:m="m"><formula1>"A CAT,RED, ""WILD"""</formula1>',
        ),
        ('<x14:cfRule text="a dog"><xm:f>A1="a dog"</xm:f></x14:cfRule>', 'text="A DOG"><xm:f>A1="A DOG"</xm:f>'),
        ('<x14:filters><x14:filter val="a cat"/></x14:filters>', '<x14:filter val="A CAT"/>'),
        (
            '<c><f>F(GETPIVOTDATA("a cat",A1),\'a cat, b\'!B1&amp;"a cat",{"a cat";2})</f></c>',
            '<f>F(GETPIVOTDATA("a cat",A1),\'a cat, b\'!B1&amp;"A CAT",{"A CAT";2})</f>',
        ),
        (
            '<c><f>GETPIVOTDATA("a cat",B2,"a dog","a cat",T("a dog"),"a dog")&amp;"a cat"</f></c>',
            '<f>GETPIVOTDATA("a cat",B2,"a dog","A CAT",T("a dog"),"A DOG")&amp;"A CAT"</f>',
        ),
    ],
)
def test_what_names_the_value_of_a_cell_names_its_translation(rule, after):
    cells = '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c><f>IF(A1="a cat",INDIRECT("a cat"),"")</f></c>'
    cells += '<c><f>IF(A1="A cat","b","a dog")</f><v>b</v></c></row>'
    extensions = 'xmlns:x14="{0}/spreadsheetml/2009/9/main" xmlns:xm="{0}/excel/2006/main"'
    extensions += ' xmlns:x12ac="{0}/spreadsheetml/2011/1/ac"'
    strings = "<si><t>a cat</t></si><si><t>A dog</t></si>"
    extension = f"<extLst {extensions.format('http://schemas.microsoft.com/office')}>{rule}</extLst>"
    content = workbook(f"{cells}</sheetData>{extension}<sheetData>", strings)
    document = read(content)
    assert document.filled({}) == content
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("xl/worksheets/sheet1.xml").decode()
    assert (after or rule) in filled
    assert '<f>IF(A1="A CAT","b","A DOG")</f><v>b</v>' in filled
    assert '<f>IF(A1="A CAT",INDIRECT("a cat"),"")</f>' in filled
    remark = "Data: filters or formatting rules name texts that no translated cell has, and stay: “at”"
    assert document.segments.remarks == [remark] * ("*at*" in rule)
    with_comma = {i: Target(TaggedText("one, two")) for i in range(len(document.segments))}
    filled = ZipFile(BytesIO(document.filled(with_comma))).read("xl/worksheets/sheet1.xml").decode()
    can_have_commas = "x12ac" in rule
    assert ('"list"' in rule and not can_have_commas) <= (rule in filled)


def workbook_with_pivot(source, fields, records="", pivot="", names=""):
    """Return a workbook with the cells Kind, a cat, a dog, and a pivot table of them."""
    cells = "".join(f'<row><c t="s"><v>{i}</v></c></row>' for i in range(3))
    relation = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    relation += '<Relationship Id="rId1" Type="x" Target="{}"/></Relationships>'
    kinds = {
        "xl/workbook.xml": "sheet.main",
        "xl/worksheets/sheet1.xml": "worksheet",
        "xl/sharedStrings.xml": "sharedStrings",
        "xl/cache.xml": "pivotCacheDefinition",
        "xl/records.xml": "pivotCacheRecords",
        "xl/pivot.xml": "pivotTable",
    }
    sheets = f'<sheets><sheet name="Pets" sheetId="1" r:id="rId1"/></sheets><definedNames>{names}</definedNames>'
    cache = (
        f'<cacheSource type="worksheet"><worksheetSource {source}/></cacheSource><cacheFields>{fields}</cacheFields>'
    )
    return workbook(
        cells,
        "<si><t>Kind</t></si><si><t>a cat</t></si><si><t>a dog</t></si>",
        **{
            "[Content_Types].xml": types({name: f"{SHEET}.{kind}+xml" for name, kind in kinds.items()}),
            "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}">{sheets}</workbook>',
            "xl/cache.xml": f'<pivotCacheDefinition {MAIN} xmlns:r="{RELATIONS}">{cache}</pivotCacheDefinition>',
            "xl/_rels/cache.xml.rels": relation.format("records.xml"),
            "xl/records.xml": f"<pivotCacheRecords {MAIN}>{records}</pivotCacheRecords>",
            "xl/pivot.xml": f"<pivotTableDefinition {MAIN}>{pivot}</pivotTableDefinition>",
            "xl/_rels/pivot.xml.rels": relation.format("cache.xml"),
        },
    )


ITEMS = '<sharedItems><s v="a cat"/><s v="A dog"/><n v="3"/></sharedItems>'


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        ({"fields": f"<cacheField>{ITEMS}</cacheField>"}, '<s v="A CAT"/><s v="A DOG"/><n v="3"/>'),
        (
            {"fields": '<fieldGroup><discretePr/><groupItems><s v="a cat"/><s v="Group1"/></groupItems></fieldGroup>'},
            '<s v="A CAT"/><s v="Group1"/>',
        ),
        (
            {"fields": '<fieldGroup><rangePr groupBy="months"/><groupItems><s v="a cat"/></groupItems></fieldGroup>'},
            '<groupItems><s v="a cat"/>',
        ),
        (
            {
                "fields": "</cacheFields><calculatedItems>"
                "<calculatedItem formula=\"Kind['a cat']+'a dog'*'a cat'[x]\"/>"
                "</calculatedItems><cacheFields>"
            },
            "Kind['A CAT']+'A DOG'*'a cat'[x]",
        ),
        ({"fields": "", "records": '<r><s v="a cat"/><s v="A Cat"/><x v="0"/></r>'}, '<s v="A CAT"/><s v="A CAT"/>'),
        ({"fields": "", "pivot": '<filter type="captionEqual" stringValue1="A dog"/>'}, 'stringValue1="A DOG"'),
        ({"fields": "", "pivot": '<items><item n="a dog" x="0"/></items>'}, '<item n="A DOG" x="0"/>'),
        ({"fields": "", "names": '<definedName name="n">IF(x="a cat",1)</definedName>'}, '>IF(x="A CAT",1)<'),
    ],
)
@pytest.mark.parametrize("source", ['ref="A1:A3" sheet="Pets"', 'name="all"', 'ref="A1:A3" r:id="rId9"'])
def test_the_items_of_pivot_tables_follow_their_cells(parts, after, source):
    parts = {"names": "", **parts}
    parts["names"] += "<definedName name=\"All\">'Pets'!$A$1:$A$3</definedName>"
    content = workbook_with_pivot(source, **parts)
    document = read(content)
    assert document.filled({}) == content
    is_external = "r:id" in source
    assert ("Pets!A1" in texts(document)) == is_external, "the source of the pivot table keeps its headings"
    archive = ZipFile(BytesIO(document.filled(all_changed(document))))
    filled = "".join(archive.read(name).decode() for name in archive.namelist() if "rels" not in name)
    stays = is_external and not parts["names"].startswith('<definedName name="n"')
    original = [part for key, part in parts.items() if key != "names"]
    assert all(part in filled for part in original) if stays else after in filled
    # Items that would become the same one stay: a pivot table with equal items is damaged.
    same = {i: Target(TaggedText("an animal")) for i in range(len(document.segments))}
    cache = ZipFile(BytesIO(document.filled(same))).read("xl/cache.xml").decode()
    assert (ITEMS in parts["fields"]) <= (ITEMS in cache)


def test_items_of_pivot_tables_without_a_translated_cell_are_listed():
    content = workbook_with_pivot('ref="A1:A3" sheet="Pets"', '<sharedItems><s v="a cat"/><s v="a cow"/></sharedItems>')
    assert read(content).segments.remarks == ["pivot tables name texts that no translated cell has, and stay: “a cow”"]
