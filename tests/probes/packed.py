"""Random packed files: Word, PowerPoint, Excel, OpenDocument, e-books."""

import zipfile
from io import BytesIO
from itertools import count
from random import Random

from tests.probes.drawn import DECLARATION, tagged, text


def docx(chance: Random) -> bytes:
    """A Word document: runs, links, fields, tracked changes, notes, text boxes, a header."""
    ids = count(1)

    def run(inside=None, properties=("", "", "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/><w:lang w:val='en'/></w:rPr>")):
        space = ' xml:space="preserve"'
        return f"<w:r>{chance.choice(properties)}<w:t{space}>{text(chance) if inside is None else inside}</w:t></w:r>"

    def field(code):
        char = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
        code = f"<w:r><w:instrText>{code}</w:instrText></w:r>"
        return char.format("begin") + code + char.format("separate") + run() + char.format("end")

    def box():
        return f"<w:r><w:pict><w:txbxContent><w:p>{run()}</w:p></w:txbxContent></w:pict></w:r>"

    pieces = [
        run,
        run,
        run,
        lambda: f'<w:hyperlink r:id="rId{next(ids)}">{run()}</w:hyperlink>',
        lambda: "<w:r><w:tab/></w:r>",
        lambda: "<w:r><w:t>two</w:t><w:br/><w:t>lines</w:t></w:r>",
        lambda: f'<w:bookmarkStart w:id="{(number := next(ids))}" w:name="b"/><w:bookmarkEnd w:id="{number}"/>',
        lambda: '<w:proofErr w:type="spellStart"/>',
        lambda: f'<w:ins w:id="{next(ids)}">{run()}</w:ins>',
        lambda: f'<w:del w:id="{next(ids)}"><w:r><w:delText>gone</w:delText></w:r></w:del>',
        lambda: f'<w:r><w:footnoteReference w:id="{next(ids)}"/></w:r>',
        lambda: field(" HYPERLINK 'x' "),
        lambda: field(" PAGE "),
        lambda: f"<w:sdt><w:sdtPr/><w:sdtContent>{run()}</w:sdtContent></w:sdt>",
        box,
    ]

    def paragraph():
        inside = "".join(chance.choice(pieces)() for _ in range(chance.randrange(6)))
        return f"<w:p><w:pPr/>{inside}</w:p>"

    names = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    )
    body = "".join(paragraph() for _ in range(10))
    office = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    return packed(
        {
            "[Content_Types].xml": types(
                {"word/document.xml": f"{office}.document.main+xml", "word/header1.xml": f"{office}.header+xml"}
            ),
            "word/document.xml": f"{DECLARATION}\r\n<w:document {names}><w:body>{body}</w:body></w:document>",
            "word/header1.xml": f"{DECLARATION}<w:hdr {names}>{paragraph()}</w:hdr>",
            "word/media/image1.bin": "\0" * 100,
        },
        chance,
    )


def pptx(chance: Random) -> bytes:
    """Slides, with notes."""
    ids = count(1)

    def run():
        link = f'<a:rPr lang="en-US"><a:hlinkClick r:id="rId{next(ids)}"/></a:rPr>'
        properties = chance.choice(["", '<a:rPr lang="en-US" dirty="0"/>', '<a:rPr b="1" err="1"/>', link])
        return f"<a:r>{properties}<a:t>{text(chance)}</a:t></a:r>"

    pieces = [run, run, lambda: "<a:br/>", lambda: '<a:fld id="{1}" type="slidenum"><a:t>1</a:t></a:fld>']

    def paragraph():
        inside = "".join(chance.choice(pieces)() for _ in range(chance.randrange(6)))
        return f"<a:p><a:pPr/>{inside}{chance.choice(['', '<a:endParaRPr/>'])}</a:p>"

    base = "http://schemas.openxmlformats.org/"
    names = (
        f'xmlns:p="{base}presentationml/2006/main" xmlns:a="{base}drawingml/2006/main" '
        f'xmlns:r="{base}officeDocument/2006/relationships"'
    )
    office = "application/vnd.openxmlformats-officedocument.presentationml"

    def slide():
        paragraphs = "".join(paragraph() for _ in range(4))
        return f"<p:sld {names}><p:txBody>{paragraphs}</p:txBody></p:sld>"

    slides = {f"ppt/slides/slide{number}.xml": f"{office}.slide+xml" for number in (1, 2, 10)}
    relations = "".join(f'<Relationship Id="r{i}" Target="{name[4:]}"/>' for i, name in enumerate(slides))
    slide_ids = "".join(f'<p:sldId r:id="r{i}"/>' for i in (2, 0, 1))
    return packed(
        {
            "[Content_Types].xml": types({"ppt/presentation.xml": f"{office}.presentation.main+xml", **slides}),
            "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{slide_ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": (
                f'<Relationships xmlns="{base}package/2006/relationships">{relations}</Relationships>'
            ),
            **{name: slide() for name in slides},
        },
        chance,
    )


def xlsx(chance: Random) -> bytes:
    """A workbook of two sheets: shared and inline strings, formats, line ends, formulas."""

    def value():
        return text(chance) + chance.choice(["", "", "_x000D_\nmore", "\nmore", "_x0009_"]) + text(chance)

    def run():
        properties = chance.choice(["", "<rPr><b/></rPr>", '<rPr><i/><sz val="9"/></rPr>'])
        return f'<r>{properties}<t xml:space="preserve">{value()}</t></r>'

    def item():
        runs = "".join(run() for _ in range(chance.randrange(1, 4)))
        return chance.choice([f'<t xml:space="preserve">{value()}</t>', runs])

    def cell():
        return chance.choice(
            [
                f'<c t="s"><v>{chance.randrange(12)}</v></c>',
                f'<c t="inlineStr"><is>{item()}</is></c>',
                '<c t="str"><f>A1</f><v>a cat</v></c>',
                "<c><v>12</v></c>",
            ]
        )

    def sheet():
        rows = "".join(f'<row r="{number}">{cell()}{cell()}{cell()}</row>' for number in range(1, 8))
        return f"{DECLARATION}<worksheet {main}><sheetData>{rows}</sheetData></worksheet>"

    base = "http://schemas.openxmlformats.org/"
    main, relations = f'xmlns="{base}spreadsheetml/2006/main"', f"{base}officeDocument/2006/relationships"
    office = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    sheets = {f"xl/worksheets/sheet{number}.xml": sheet() for number in (1, 2)}
    kinds = {
        "xl/workbook.xml": "sheet.main",
        "xl/sharedStrings.xml": "sharedStrings",
        **dict.fromkeys(sheets, "worksheet"),
    }
    names = "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="r{i}"/>' for i in (1, 2))

    def related(targets):
        listed = (
            f'<Relationship Id="{i}" Type="{relations}/{kind}" Target="{to}"/>' for i, (kind, to) in targets.items()
        )
        return f'<Relationships xmlns="{base}package/2006/relationships">{"".join(listed)}</Relationships>'

    parts = {f"r{i}": ("worksheet", f"worksheets/sheet{i}.xml") for i in (1, 2)}
    return packed(
        {
            "[Content_Types].xml": types({name: f"{office}.{kind}+xml" for name, kind in kinds.items()}),
            "xl/workbook.xml": f'<workbook {main} xmlns:r="{relations}"><sheets>{names}</sheets></workbook>',
            "_rels/.rels": related({"r1": ("officeDocument", "xl/workbook.xml")}),
            "xl/_rels/workbook.xml.rels": related({**parts, "r3": ("sharedStrings", "sharedStrings.xml")}),
            **sheets,
            "xl/sharedStrings.xml": f"<sst {main}>{''.join(f'<si>{item()}</si>' for _ in range(12))}</sst>",
        },
        chance,
    )


def odt(chance: Random) -> bytes:
    """A text of OpenDocument: spans, links, notes, breaks, deleted text."""
    ids = count(1)

    def note(inside):
        return (
            f'<text:note text:id="f{next(ids)}"><text:note-citation>1</text:note-citation>'
            f"<text:note-body><text:p>{text(chance)}</text:p></text:note-body></text:note>"
        )

    tags = [
        lambda inside: f'<text:span text:style-name="T{chance.choice("12")}">{inside}</text:span>',
        lambda inside: f'<text:a xlink:href="h{next(ids)}">{inside}</text:a>',
        lambda inside: f'<text:bookmark text:name="b{next(ids)}"/>',
        lambda inside: '<text:s text:c="2"/>',
        lambda inside: "<text:line-break/>",
        lambda inside: "<text:soft-page-break/>",
        note,
    ]
    oasis = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
    names = " ".join(f'xmlns:{name}="{oasis.format(name)}"' for name in ("office", "text", "style"))
    names += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:officeooo="http://openoffice.org/2009/office"'
    styles = (
        '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="1"/></style:style>'
        '<style:style style:name="T2" style:family="text"><style:text-properties style:x="bold"/></style:style>'
    )
    deleted = "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    body = deleted + "".join(f"<text:p>{tagged(chance, tags)}</text:p>" for _ in range(8))
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": (
                f"{DECLARATION}<office:document-content {names}><office:automatic-styles>{styles}"
                f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>"
            ),
            "styles.xml": f"<office:document-styles {names}><text:p>The header</text:p></office:document-styles>",
        },
        chance,
    )


def ods(chance: Random, *, has_strings: bool = False) -> bytes:
    """A spreadsheet: notes, drawings, formulas, repeated cells; `has_strings`: also a table for translators."""
    oasis = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
    names = " ".join(f'xmlns:{name}="{oasis.format(name)}"' for name in ("office", "text", "style", "table", "drawing"))

    def cell(inside, attributes=""):
        return f"<table:table-cell{attributes}>{inside}</table:table-cell>"

    def line():
        return f"<text:p>{text(chance)}</text:p>"

    cells = [
        lambda: cell(line(), ' office:value-type="string"'),
        lambda: cell(line() + line(), ' table:number-columns-repeated="2"'),
        lambda: cell(f"<office:annotation>{line()}</office:annotation>{line()}"),
        lambda: cell("<text:p>3</text:p>", ' office:value-type="float" office:value="3"'),
        lambda: cell("<text:p>a cat</text:p>", ' table:formula="of:=[.A1]" office:value-type="string"'),
        lambda: '<table:table-cell table:number-columns-repeated="3"/>',
        lambda: "<table:covered-table-cell/>",
    ]

    def row(*inside):
        return f"<table:table-row>{''.join(inside)}</table:table-row>"

    rows = "".join(row(*(chance.choice(cells)() for _ in range(3))) for _ in range(6))
    drawing = f"<table:shapes><drawing:frame>{line()}</drawing:frame></table:shapes>"
    head = row(*(cell(f"<text:p>{name}</text:p>") for name in ("Key", "Source", "Notes", "Target")))
    empty = '<table:table-cell table:number-columns-repeated="3"/>'
    strings = row(cell("<text:p>a.b</text:p>"), cell(line()), empty) + row(empty, cell("<text:p>Casa</text:p>"))
    sheets = f'<table:table table:name="One">{drawing}{rows}</table:table>'
    if has_strings:
        sheets += f'<table:table table:name="Two">{head}{strings}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheets}</office:spreadsheet></office:body>"
    labels = f'<series names="local-table.B1"/><table:table>{row(cells[0]())}</table:table>'
    chart = '<entry type="application/vnd.oasis.opendocument.chart" full-path="Object 1/"/>'
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f"<manifest>{chart}</manifest>",
            "content.xml": f"{DECLARATION}<office:document-content {names}>{body}</office:document-content>",
            "Object 1/content.xml": f"<office:document-content {names}>{line()}{labels}</office:document-content>",
        },
        chance,
    )


def epub(chance: Random) -> bytes:
    """A book of two pages with both kinds of tables of contents."""
    tags = [
        lambda inside: f"<b>{inside}</b>",
        lambda inside: f'<a href="b.xhtml">{inside}</a>',
        lambda inside: "<br/>",
        lambda inside: "<code>fixed</code>",
    ]
    head = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A title</title></head><body>'
    page = lambda: head + "".join(f"<p>{tagged(chance, tags)}</p>" for _ in range(5)) + "</body></html>"  # noqa: E731
    items = (
        '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="text/b%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="c" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    )
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
                'full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
            ),
            "OEBPS/book.opf": (
                f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
                '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
            ),
            "OEBPS/nav.xhtml": (
                f'{head}<nav><ol><li><a href="text/a.xhtml">Chapter one</a></li></ol></nav></body></html>'
            ),
            "OEBPS/text/a.xhtml": page(),
            "OEBPS/text/b b.xhtml": page(),
            "OEBPS/toc.ncx": (
                f'{DECLARATION}<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" '
                '"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
                '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel><text>Chapter one</text></navLabel></ncx>'
            ),
        },
        chance,
    )


def types(parts) -> str:
    """Return the content types of an Office document."""
    listed = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in parts.items())
    return f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{listed}</Types>'


def packed(members, chance: Random | None = None) -> bytes:
    """Return a zip file of some members, with a random choice of the options that programs use."""
    chance = chance or Random(0)
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if chance.random() < 0.3:
            archive.comment = b"a comment"
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (1980 + chance.randrange(40), 2, 3, 4, 5, 6))
            stored = name == "mimetype" or chance.random() < 0.2
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            info.external_attr = chance.randrange(1 << 16) << 16
            with archive.open(info, "w", force_zip64=not stored and chance.random() < 0.1) as member:
                member.write(content.encode() if isinstance(content, str) else content)
    return out.getvalue()
